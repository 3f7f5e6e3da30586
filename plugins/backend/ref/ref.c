/* The reference backend: plain C, one thread, in float or in double: the judge of all others. Nodes run one by one, every value lies in
 * plain layout, sums are in double. Slow on purpose: it has no second way of doing anything.
 *
 *   [backend.ref] precision = float | double        double: F32 values are C doubles, for gradient checks and golden data */
#include "plugins/backend/ref/ref.h"

#include <stdlib.h>
#include <string.h>

static const char *const precisions[] = {"float", "double", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(ref_cfg, precision, "float", precisions, "type that values are kept in"),
};

#define OP(name, parts) [SODET_OP_##name] = sodet_ref32_##name,
static const sodet_ref_kernel *const table_float[SODET_OP_COUNT] = {
#include "kernels/ops.def"
};
#undef OP
#define OP(name, parts) [SODET_OP_##name] = sodet_ref64_##name,
static const sodet_ref_kernel *const table_double[SODET_OP_COUNT] = {
#include "kernels/ops.def"
};
#undef OP

uint64_t ref_bytes(const ref_device *d, const sodet_shape *s)
{
    uint64_t size = s->dtype == SODET_F32 ? d->real_size : s->dtype == SODET_I32 ? 4 : 2;
    return (uint64_t)sodet_elements(s) * size;
}

sodet_status ref_kernel_of(const ref_device *d, const sodet_node *n, sodet_ref_kernel *out, sodet_err *err)
{
    *out = NULL;
    if (n->op->flags & (SODET_OP_VIEW | SODET_OP_COLLECTIVE))
        return SODET_OK;
    if (n->op->id)
        *out = (d->real_size == 8 ? table_double : table_float)[n->op->id][n->part];
    else if (n->op->kernels) {
        const sodet_ref_kernel *own = d->real_size == 8 ? n->op->kernels->ref_double : n->op->kernels->ref_float;
        *out = own ? own[n->part] : NULL;
    }
    if (!*out)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: operator %s, part %u, has no reference kernel in %s", n->layer, n->op->name,
                          n->part, d->real_size == 8 ? "double" : "float");
    return SODET_OK;
}

static sodet_status devices(const void *self, uint32_t capacity, sodet_device_info *out, uint32_t *n, sodet_err *err)
{
    const ref_cfg *cfg = self;
    (void)err;
    *n = 1;
    if (capacity) {
        memset(out[0].name, 0, sizeof out[0].name);
        strcpy(out[0].name, cfg->precision == REF_DOUBLE ? "reference, double" : "reference, float");
        out[0].memory = 0;
    }
    return SODET_OK;
}

static sodet_status open_group(const void *self, uint32_t n, void **group, sodet_err *err)
{
    (void)self;
    sd_host_group *made;
    sodet_status status = sd_host_group_open(n, &made, err);
    *group = made;
    return status;
}

static void close_group(void *group)
{
    sd_host_group_close(group);
}

static void abort_group(void *group)
{
    sd_host_group_abort(group);
}

static uint32_t awaited(void *group, double *seconds)
{
    return sd_host_group_awaited(group, seconds);
}

static sodet_status times(void *device, sodet_device_times *out, sodet_err *err)
{
    (void)err;
    const ref_device *d = device;
    sd_host_group_times(d->group, d->rank, d->in_runs, out);
    return SODET_OK;
}

static sodet_status open_device(const void *self, uint32_t index, const sodet_device_options *o, void **device, sodet_err *err)
{
    *device = NULL;
    if (index != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "ref:%u: there is one reference device, ref:0; for replicas write ref:x%u", index,
                          index + 1);
    if (o->precision != SODET_PRECISION_FP32)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "[run] precision: the reference backend computes in float or, by [backend.ref] precision, in double; write "
                          "precision = fp32");
    ref_device *d = sd_alloc(1, sizeof *d);
    if (!d)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a reference device");
    d->cfg = self;
    d->real_size = d->cfg->precision == REF_DOUBLE ? 8 : 4;
    d->rank = o->rank;
    d->world = o->group ? o->world : 1;
    d->group = o->group;
    *device = d;
    return SODET_OK;
}

static void close_device(void *device)
{
    sd_free(device);
}

static uint32_t real_size(const void *device)
{
    return ((const ref_device *)device)->real_size;
}

static sodet_status alloc_memory(void *device, uint64_t bytes, void **out, sodet_err *err)
{
    (void)device;
    size_t room = ((size_t)bytes + 127) / 64 * 64;
    *out = bytes > SIZE_MAX - 128 ? NULL : aligned_alloc(64, room);
    if (!*out)
        return SODET_FAIL(err, SODET_E_MEMORY, "reference device: no memory for %llu bytes: use a smaller batch",
                          (unsigned long long)bytes);
    memset(*out, 0, room);
    return SODET_OK;
}

static void release_memory(void *device, void *memory, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(memory);
}

static sodet_status upload(void *device, void *to, uint64_t offset, const void *from, uint64_t bytes, sodet_err *err)
{
    (void)device;
    (void)err;
    if (bytes)
        memcpy((char *)to + offset, from, bytes);
    return SODET_OK;
}

static sodet_status download(void *device, const void *from, uint64_t offset, void *to, uint64_t bytes, sodet_err *err)
{
    (void)device;
    (void)err;
    if (bytes)
        memcpy(to, (const char *)from + offset, bytes);
    return SODET_OK;
}

static sodet_status copy(void *device, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes, sodet_err *err)
{
    return upload(device, to, to_offset, (const char *)from + from_offset, bytes, err);
}

static const sodet_backend_ops ops = {.struct_size = sizeof ops,
                                      .devices = devices,
                                      .open_group = open_group,
                                      .close_group = close_group,
                                      .abort_group = abort_group,
                                      .awaited = awaited,
                                      .times = times,
                                      .copy = copy,
                                      .open = open_device,
                                      .close = close_device,
                                      .real_size = real_size,
                                      .alloc = alloc_memory,
                                      .release = release_memory,
                                      .upload = upload,
                                      .download = download,
                                      .prepare = ref_prepare,
                                      .discard = ref_discard,
                                      .bind = ref_bind,
                                      .unbind = ref_unbind,
                                      .address = ref_address,
                                      .run = ref_run};
SODET_PLUGIN(SODET_KIND_BACKEND, "ref", "plain C, in float or double: the judge of the other backends", ref_cfg, options, .ops = &ops);
