/* Plans of convolutions: the choice of an engine, and its run. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/backend/cuda/dnn_graph.h"

/* A device is told by a descriptor: cuDNN's handle stands behind it only where there is a device. */
enum { OLDEST = 90800, CONFIGURATIONS = 64, TEXT = 240 };

struct dnn_context {
    cudnnHandle_t handle; /* NULL: the device is described */
    cudaStream_t stream;
    dnn_parts device; /* one part */
    dnn_options options;
    unsigned version; /* of the library */
};

/* An operation graph: all plans for it share it. */
typedef struct made_graph {
    dnn_parts parts;
    cudnnBackendDescriptor_t graph;
    uint32_t users;
} made_graph;

typedef struct made_plan {
    const dnn_context *context;
    dnn_conv conv; /* as cuDNN sees it */
    made_graph *graph;
    dnn_parts parts, pack; /* configuration and plan; the variant pack for `last` */
    cudnnBackendDescriptor_t plan;
    dnn_tensors last;
    uint64_t zeros; /* bytes of a bias of zeros at the workspace's end, and where it begins */
    uint64_t zeros_at;
} made_plan;

/* Why configurations were passed over. */
typedef struct passed {
    uint32_t seen, compiled, narrow, varying, large, refused;
    bool memory;    /* the host's ran out */
    uint64_t least; /* bytes that the smallest of the large ones wants */
    char reason[200];
} passed;

/* ---- texts ---- */
static const char *version_text(unsigned v, char text[48])
{
    const unsigned unit = v >= 10000 ? 10000 : 1000; /* 9 and later count otherwise than 8 */
    snprintf(text, 48, "%u.%u.%u", v / unit, v % unit / 100, v % 100);
    return text;
}

static const char *conv_text(const dnn_conv *v, char text[TEXT])
{
    static const char *const part[] = {"convolution", "gradient of a convolution's data", "gradient of a convolution's weights"};
    static const char *const type[] = {[SODET_F32] = "fp32", [SODET_BF16] = "bf16", [SODET_F16] = "fp16"};
    int k = snprintf(text, TEXT,
                     "%s [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] with %" PRId64 " kernels %" PRId64 "x%" PRId64 " to %" PRId64
                     "x%" PRId64 " (stride %" PRId64 "x%" PRId64,
                     part[v->part], v->n, v->c, v->h, v->w, v->k, v->r, v->s, v->p, v->q, v->stride[0], v->stride[1]);
    if (k < TEXT && v->groups != 1)
        k += snprintf(text + k, TEXT - (size_t)k, ", %" PRId64 " groups", v->groups);
    if (k < TEXT && (v->dilation[0] != 1 || v->dilation[1] != 1))
        k += snprintf(text + k, TEXT - (size_t)k, ", dilation %" PRId64 "x%" PRId64, v->dilation[0], v->dilation[1]);
    if (k < TEXT)
        snprintf(text + k, TEXT - (size_t)k, ", padding %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 ")%s%s%s in %s", v->before[0],
                 v->before[1], v->after[0], v->after[1], v->residual ? " + residual" : "", v->bias ? " + bias" : "",
                 v->relu ? " + ReLU" : "", type[v->type]);
    return text;
}

static sodet_status code_of(cudnnStatus_t s)
{
    if (s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED || s == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
        return SODET_E_MEMORY;
    switch (CUDNN_STATUS_CATEGORY((int)s)) {
    case 2000:
        return SODET_E_INVALID;
    case 3000:
        return SODET_E_UNSUPPORTED;
    case 4000:
        return SODET_E_INTERNAL;
    default:
        return SODET_E_DEVICE;
    }
}

/* ---- the context ---- */
static sodet_status check_versions(dnn_context *c, sodet_err *err)
{
    char have[48], want[48];
    c->version = (unsigned)cudnnGetVersion();
    version_text(c->version, have);
    if (c->version / 10000 != CUDNN_MAJOR)
        return SODET_FAIL(
            err, SODET_E_DEVICE,
            "cuDNN %s was loaded, and this program was built for cuDNN %d: install a cuDNN %d, or take another one's folder out "
            "of LD_LIBRARY_PATH",
            have, CUDNN_MAJOR, CUDNN_MAJOR);
    if (c->version < OLDEST)
        return SODET_FAIL(err, SODET_E_DEVICE, "cuDNN %s was loaded, and %s is the oldest that this program can use: install a newer one",
                          have, version_text(OLDEST, want));
    if (cudnnGraphVersionCheck() != CUDNN_STATUS_SUCCESS || cudnnCnnVersionCheck() != CUDNN_STATUS_SUCCESS)
        return SODET_FAIL(err, SODET_E_DEVICE,
                          "libcudnn.so is version %s, and libcudnn_graph.so or libcudnn_cnn.so is another: they come from different "
                          "installations; leave one of them in LD_LIBRARY_PATH",
                          have);
    return SODET_OK;
}

static sodet_status open_context(const dnn_options *o, dnn_context **out, sodet_err *err)
{
    *out = NULL;
    dnn_context *c = calloc(1, sizeof *c);
    if (!c)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a context of cuDNN");
    c->options = *o;
    sodet_status s = check_versions(c, err);
    if (s == SODET_OK)
        *out = c;
    else
        free(c);
    return s;
}

sodet_status dnn_open(void *stream, const dnn_options *o, dnn_context **out, sodet_err *err)
{
    dnn_context *c;
    sodet_status s = open_context(o, out, err);
    if (s != SODET_OK)
        return s;
    c = *out;
    c->stream = stream;
    dnn_parts *p = &c->device;
    dnn_parts_failed(p, cudnnCreate(&c->handle));
    if (p->status == CUDNN_STATUS_SUCCESS)
        dnn_parts_failed(p, cudnnSetStream(c->handle, stream));
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    dnn_set(p, d, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle);
    dnn_finish(p, d);
    if (p->status == CUDNN_STATUS_SUCCESS)
        return SODET_OK;
    s = SODET_FAIL(err, code_of(p->status), "cuDNN cannot start on this device: %s; sodet doctor tells what is in the way", p->reason);
    dnn_close(c);
    *out = NULL;
    return s;
}

sodet_status dnn_open_described(const char *json, const dnn_options *o, dnn_context **out, sodet_err *err)
{
    sodet_status s = open_context(o, out, err);
    if (s != SODET_OK)
        return s;
    dnn_parts *p = &(*out)->device;
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    dnn_set(p, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    dnn_finish(p, d);
    if (p->status == CUDNN_STATUS_SUCCESS)
        return SODET_OK;
    s = SODET_FAIL(err, SODET_E_INVALID, "the description of the device is not one that cuDNN reads: %s", p->reason);
    dnn_close(*out);
    *out = NULL;
    return s;
}

void dnn_close(dnn_context *c)
{
    if (!c)
        return;
    dnn_parts_free(&c->device);
    if (c->handle)
        cudnnDestroy(c->handle);
    free(c);
}

/* ---- the choice ---- */
static cudnnBackendDescriptor_t device_of(const dnn_context *c)
{
    return c->device.of[0];
}

static void get(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                int64_t *n, void *out)
{
    if (p->status == CUDNN_STATUS_SUCCESS)
        dnn_parts_failed(p, cudnnBackendGetAttribute(d, name, type, most, n, out));
}

typedef struct engine {
    int64_t index;
    bool compiled, narrow, varying;
} engine;

/* What the engine of a configuration is. narrow: it rounds operands or sums to fewer bits than the tensors' type and float32 sums have; a
 * tensor core takes float32 operands as TF32. */
static void read_engine(dnn_parts *p, cudnnBackendDescriptor_t configuration, const made_plan *m, engine *e)
{
    cudnnBackendNumericalNote_t numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    const bool exact = m->conv.type == SODET_F32 && !m->context->options.tf32;
    int64_t n = 0, n_numerical = 0, n_behavior = 0;
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    get(p, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &d);
    get(p, d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &e->index);
    get(p, d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n_numerical, numerical);
    get(p, d, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n_behavior, behavior);
    if (p->status != CUDNN_STATUS_SUCCESS)
        return;
    for (int64_t i = 0; i < n_behavior; i++)
        e->compiled |= behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    for (int64_t i = 0; i < n_numerical; i++) {
        e->varying |= numerical[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        e->narrow |= numerical[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
        e->narrow |= numerical[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        e->narrow |= numerical[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && exact;
    }
}

/* Finishes the plan of *configuration, which then is the plan's; false: passed over. m: what all plans of the convolution have in common. */
static bool take(const made_plan *m, cudnnBackendDescriptor_t *configuration, const char *list, passed *why, dnn_plan *out)
{
    const dnn_options *o = &m->context->options;
    engine e = {0};
    dnn_parts p = {0};
    int64_t n, size = 0;
    why->seen++;
    read_engine(&p, *configuration, m, &e);
    const bool compiled = e.compiled, narrow = !compiled && e.narrow, varying = !compiled && !narrow && e.varying && o->deterministic;
    why->compiled += compiled;
    why->narrow += narrow;
    why->varying += varying;
    if (!compiled && !narrow && !varying) {
        cudnnBackendDescriptor_t d = dnn_part(&p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        dnn_set_part(&p, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_of(m->context));
        dnn_set_part(&p, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *configuration);
        dnn_finish(&p, d);
        get(&p, d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &size);
    }
    const uint64_t zeros_at = ((uint64_t)size + DNN_ALIGNMENT - 1) / DNN_ALIGNMENT * DNN_ALIGNMENT;
    const uint64_t workspace = m->zeros ? zeros_at + m->zeros : (uint64_t)size;
    const bool made = p.n == 2 && p.status == CUDNN_STATUS_SUCCESS, fits = made && workspace <= o->workspace_limit;
    if (p.status != CUDNN_STATUS_SUCCESS) {
        why->refused++;
        memcpy(why->reason, p.reason, sizeof why->reason);
    }
    if (made && !fits)
        why->least = !why->large++ || workspace < why->least ? workspace : why->least;
    made_plan *taken = fits ? malloc(sizeof *taken) : NULL;
    why->memory = why->memory || (fits && !taken);
    if (taken) {
        *taken = *m;
        taken->graph->users++;
        taken->parts.of[taken->parts.n++] = *configuration;
        taken->parts.of[taken->parts.n++] = taken->plan = p.of[--p.n];
        taken->zeros_at = zeros_at;
        *configuration = NULL;
        *out = (dnn_plan){.workspace = workspace, .handle = taken, .varying = why->varying};
        snprintf(out->text, sizeof out->text, "%sengine %" PRId64, list, e.index);
    }
    dnn_parts_free(&p);
    return taken;
}

/* Goes through the list of one mode and adds to the plans what may be taken. A list that cuDNN refuses is an empty one. */
static void choose(const made_plan *m, cudnnBackendHeurMode_t mode, uint32_t most, passed *why, dnn_plan *out, uint32_t *found)
{
    cudnnBackendDescriptor_t list, configuration[CONFIGURATIONS] = {NULL};
    dnn_parts p = {0};
    int64_t n = 0, filled = 0;
    list = dnn_part(&p, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    dnn_set_part(&p, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, m->graph->graph);
    dnn_set(&p, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    dnn_set_part(&p, list, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_of(m->context));
    dnn_finish(&p, list);
    get(&p, list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL);
    n = p.status != CUDNN_STATUS_SUCCESS ? 0 : n < CONFIGURATIONS ? n : CONFIGURATIONS;
    for (int64_t i = 0; i < n && p.status == CUDNN_STATUS_SUCCESS; i++)
        dnn_parts_failed(&p, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configuration[i]));
    if (n)
        get(&p, list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &filled, configuration);
    /* Those behind `filled` are not finished: fewer come than the list said. */
    for (int64_t i = 0; i < filled && p.status == CUDNN_STATUS_SUCCESS && *found < most && !why->memory; i++)
        *found += take(m, &configuration[i], mode == CUDNN_HEUR_MODE_FALLBACK ? "fallback " : "", why, &out[*found]);
    if (p.status != CUDNN_STATUS_SUCCESS)
        memcpy(why->reason, p.reason, sizeof why->reason);
    for (int64_t i = 0; i < n; i++)
        if (configuration[i])
            cudnnBackendDestroyDescriptor(configuration[i]);
    dnn_parts_free(&p);
}

static sodet_status no_engine(const made_plan *m, const passed *why, sodet_err *err)
{
    char conv[TEXT], version[48];
    const double mib = 1.0 / 1048576;
    const bool rounds = m->conv.type == SODET_F32 && !m->context->options.tf32;
    conv_text(&m->conv, conv);
    version_text(m->context->version, version);
    if (why->memory)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no host memory for a plan of cuDNN", conv);
    if (why->large)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "%s: the engine of cuDNN %s that needs least workspace wants %.1f MiB, the limit is %.1f: raise " CUDA_SECTION
                          " workspace, or take a smaller batch",
                          conv, version, (double)why->least * mib, (double)m->context->options.workspace_limit * mib);
    if (why->varying)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "%s: cuDNN %s has no deterministic engine for it (of %u configurations %u are not): " CUDA_SECTION
                          " deterministic = no, or another [run] precision",
                          conv, version, why->seen, why->varying);
    if (why->narrow)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "%s: cuDNN %s has no engine for it that keeps its precision (of %u configurations %u round operands or sums): "
                          "%sanother [run] precision",
                          conv, version, why->seen, why->narrow, rounds ? CUDA_SECTION " tf32 = yes, or " : "");
    return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                      "%s: cuDNN %s has no ready engine for it (of %u configurations %u are compiled at run time, %u refused): another "
                      "[run] precision or other sizes%s%s",
                      conv, version, why->seen, why->compiled, why->refused, why->reason[0] ? "; cuDNN says: " : "", why->reason);
}

static bool is_positive(const dnn_conv *v)
{
    const int64_t size[] = {v->n, v->c, v->h, v->w, v->k, v->r, v->s, v->p, v->q, v->groups};
    bool good = true;
    for (uint32_t i = 0; i < sizeof size / sizeof *size; i++)
        good = good && size[i] > 0;
    return good;
}

static void leave_graph(made_graph *g)
{
    if (g && --g->users == 0) {
        dnn_parts_free(&g->parts);
        free(g);
    }
}

sodet_status dnn_plan_list(dnn_context *c, const dnn_conv *conv, uint32_t most, dnn_plan *out, uint32_t *n, sodet_err *err)
{
    *n = 0;
    memset(out, 0, most * sizeof *out);
    char text[TEXT];
    if (conv->part > DNN_GRADIENT_WEIGHT || (conv->type != SODET_F32 && conv->type != SODET_BF16 && conv->type != SODET_F16))
        return SODET_FAIL(err, SODET_E_INTERNAL, "a convolution's part %u in type %u: there is no such", conv->part, conv->type);
    if (!is_positive(conv) || conv->c % conv->groups || conv->k % conv->groups)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: all sizes must be positive, and channels and kernels multiples of the groups",
                          conv_text(conv, text));
    if (conv->part != DNN_FORWARD && (conv->bias || conv->residual || conv->relu))
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s: bias, residual and ReLU belong to the forward convolution", conv_text(conv, text));
    made_plan m = {.context = c, .conv = *conv, .graph = calloc(1, sizeof *m.graph)};
    if (!m.graph)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a plan of cuDNN");
    m.graph->users = 1;
    if ((conv->residual || conv->relu) && !conv->bias) {
        m.conv.bias = 1;
        m.zeros = (uint64_t)conv->k * (conv->type == SODET_F32 ? 4 : 2);
    }
    passed why = {0};
    m.graph->graph = dnn_graph_make(&m.graph->parts, &m.conv);
    const dnn_parts *parts = &m.graph->parts;
    sodet_status s = SODET_OK;
    if (parts->status == CUDNN_STATUS_SUCCESS) {
        choose(&m, CUDNN_HEUR_MODE_A, most, &why, out, n);
        if (!*n)
            choose(&m, CUDNN_HEUR_MODE_FALLBACK, most, &why, out, n);
        s = *n ? SODET_OK : no_engine(&m, &why, err);
    } else {
        s = SODET_FAIL(err, code_of(parts->status), "%s: cuDNN refuses it: %s", conv_text(&m.conv, text), parts->reason);
    }
    leave_graph(m.graph);
    return s;
}

sodet_status dnn_plan_make(dnn_context *c, const dnn_conv *conv, dnn_plan *out, sodet_err *err)
{
    uint32_t n;
    return dnn_plan_list(c, conv, 1, out, &n, err);
}

sodet_status dnn_plan_varying(dnn_context *c, const dnn_conv *conv, dnn_plan *out, sodet_err *err)
{
    const uint32_t asked = c->options.deterministic;
    c->options.deterministic = 0;
    sodet_status s = dnn_plan_make(c, conv, out, err);
    c->options.deterministic = asked;
    return s;
}

void dnn_plan_free(dnn_plan *p)
{
    made_plan *m = p->handle;
    if (m) {
        dnn_parts_free(&m->pack);
        dnn_parts_free(&m->parts);
        leave_graph(m->graph);
        free(m);
    }
    *p = (dnn_plan){0};
}

unsigned dnn_version(const dnn_context *c)
{
    return c->version;
}

/* ---- the run ---- */
/* The variant pack is made when addresses change, which they do not from one step to the next. */
static sodet_status make_pack(made_plan *m, const dnn_tensors *t, sodet_err *err)
{
    static const char *const name[] = {"x", "w", "y", "bias", "residual"};
    const int64_t id[] = {DNN_X, DNN_W, DNN_Y, DNN_BIAS, DNN_RESIDUAL};
    const bool used[] = {true, true, true, m->conv.bias, m->conv.residual};
    void *zeros = m->zeros && t->workspace ? (char *)t->workspace + m->zeros_at : NULL;
    void *given[] = {t->x, t->w, t->y, m->zeros ? zeros : t->bias, t->residual}, *address[5];
    int64_t ids[5], n = 0;
    char text[TEXT];
    for (uint32_t i = 0; i < 5; i++) {
        if (!used[i])
            continue;
        if (!given[i] || (uintptr_t)given[i] % DNN_ALIGNMENT)
            return SODET_FAIL(err, SODET_E_INTERNAL, "%s: its %s lies at %p: an address that is a multiple of %d is needed",
                              conv_text(&m->conv, text), name[i], given[i], DNN_ALIGNMENT);
        ids[n] = id[i];
        address[n++] = given[i];
    }
    dnn_parts_free(&m->pack);
    dnn_parts *p = &m->pack;
    *p = (dnn_parts){0};
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_set(p, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    dnn_set(p, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, address);
    dnn_set(p, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &t->workspace);
    dnn_finish(p, d);
    if (p->status != CUDNN_STATUS_SUCCESS)
        return SODET_FAIL(err, code_of(p->status), "%s: cuDNN refuses its addresses: %s", conv_text(&m->conv, text), p->reason);
    m->last = *t;
    return SODET_OK;
}

sodet_status dnn_plan_run(const dnn_plan *p, const dnn_tensors *t, sodet_err *err)
{
    made_plan *m = p->handle;
    const dnn_context *c = m->context;
    char text[TEXT];
    if (!c->handle)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s: a plan for a described device cannot run", conv_text(&m->conv, text));
    if (p->workspace && !t->workspace)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s: %s needs a workspace of %" PRIu64 " bytes", conv_text(&m->conv, text), p->text,
                          p->workspace);
    if (!m->pack.n || memcmp(&m->last, t, sizeof *t) != 0) {
        sodet_status s = make_pack(m, t, err);
        if (s != SODET_OK)
            return s;
    }
    if (m->zeros) {
        cudaError_t e = cudaMemsetAsync((char *)t->workspace + m->zeros_at, 0, m->zeros, c->stream);
        if (e != cudaSuccess)
            return SODET_FAIL(err, SODET_E_DEVICE, "%s: %s while its bias was cleared", conv_text(&m->conv, text), cudaGetErrorName(e));
    }
    dnn_parts failed = {0};
    dnn_parts_failed(&failed, cudnnBackendExecute(c->handle, m->plan, m->pack.of[0]));
    if (failed.status != CUDNN_STATUS_SUCCESS)
        return SODET_FAIL(err, code_of(failed.status), "%s: %s failed: %s", conv_text(&m->conv, text), p->text, failed.reason);
    return SODET_OK;
}
