#include "core/device/transport.h"

#include <string.h>

/* One process: every collective is already done, a gather is a copy. */

static sodet_status open_world(void *self, double timeout, sodet_transport_info *out, sodet_err *err)
{
    (void)self;
    (void)timeout;
    (void)err;
    *out = (sodet_transport_info){.struct_size = sizeof *out, .size = 1, .local_size = 1};
    return SODET_OK;
}

static sodet_status barrier(void *self, sodet_err *err)
{
    (void)self;
    (void)err;
    return SODET_OK;
}

static sodet_status broadcast(void *self, void *bytes, uint64_t n, uint32_t root, sodet_err *err)
{
    (void)self;
    (void)bytes;
    (void)n;
    (void)root;
    (void)err;
    return SODET_OK;
}

static sodet_status gather(void *self, const void *bytes, const uint64_t *counts, void *all, uint32_t root, sodet_err *err)
{
    (void)self;
    (void)root;
    (void)err;
    if (counts[0])
        memmove(all, bytes, (size_t)counts[0]);
    return SODET_OK;
}

static sodet_status sum(void *self, double *values, uint64_t n, sodet_err *err)
{
    (void)self;
    (void)values;
    (void)n;
    (void)err;
    return SODET_OK;
}

static void abort_world(void *self, const char *why)
{
    (void)self;
    (void)why;
}

static void close_world(void *self)
{
    (void)self;
}

const sodet_transport_ops sd_transport_self = {
    .struct_size = sizeof(sodet_transport_ops),
    .open = open_world,
    .barrier = barrier,
    .broadcast = broadcast,
    .gather = gather,
    .sum = sum,
    .abort = abort_world,
    .close = close_world,
};

/* ---- devices of all processes ---- */
static sodet_status hand_id(const sd_world *w, const sodet_backend_ops *ops, const void *backend, sodet_group_options *o, sodet_err *err)
{
    /* The others wait for it, so a failure is handed to them, too. */
    struct {
        sodet_status status;
        sodet_err err;
        uint8_t id[SODET_GROUP_ID_BYTES];
    } made = {.err = SODET_ERR_INIT};
    if (w->info.rank == 0)
        made.status = ops->group_id(backend, made.id, &made.err);
    sodet_status s = w->ops->broadcast(w->self, &made, sizeof made, 0, err);
    if (s == SODET_OK && made.status != SODET_OK)
        s = SODET_FAIL(err, made.status, "process 0: %s", made.err.text);
    memcpy(o->id, made.id, sizeof o->id);
    return s;
}

sodet_status sd_world_join(const sd_world *w, const sodet_backend_ops *ops, const void *backend, const char *name, uint32_t n,
                           sd_world_group *out, sodet_err *err)
{
    *out = (sd_world_group){.world = n};
    if (w->info.size <= 1)
        return n > 1 ? ops->open_group(backend, n, &out->group, err) : SODET_OK;
    if (!ops->group_id || !ops->join_group)
        return SODET_FAIL(
            err, SODET_E_UNSUPPORTED,
            "backend %s: its devices reduce among those of one process, and the job has %u: use one process, or devices = cuda", name,
            w->info.size);
    double *each = sd_alloc(w->info.size, sizeof *each);
    if (!each)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the devices of %u processes", w->info.size);
    each[w->info.rank] = n;
    sodet_status s = w->ops->sum(w->self, each, w->info.size, err);
    sodet_group_options o = {.struct_size = sizeof o, .n = n};
    for (uint32_t r = 0; r < w->info.size; r++) {
        o.first += r < w->info.rank ? (uint32_t)each[r] : 0;
        o.world += (uint32_t)each[r];
    }
    sd_free(each);
    if (s == SODET_OK)
        s = hand_id(w, ops, backend, &o, err);
    if (s == SODET_OK)
        s = ops->join_group(backend, &o, &out->group, err);
    out->first = o.first;
    out->world = o.world;
    return s;
}
