/* The stand-in's execution: checks of the variant pack when it is asked for, the work on the stream's thread. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn_parts.h"

enum { X, W, Y, B, TENSORS = B + HC_STEPS };

typedef struct work {
    hc_graph graph;
    uint32_t bits;
    int64_t engine;
    int device;
    void *address[TENSORS]; /* X, W, the last result, and the operands of the steps */
    void *workspace;
    size_t workspace_bytes;
} work;

/* ---- the work ---- */
/* Engines that are ready know these alone. */
static void step(const hc_graph *g, uint32_t i, const float *b, float *y)
{
    const int64_t n = hc_elements(&g->y), c = g->y.size[1];
    const bool whole = g->step[i].has_b && hc_elements(&g->step[i].b) == n;
    for (int64_t k = 0; k < n; k++)
        y[k] = g->step[i].mode == CUDNN_POINTWISE_ADD ? y[k] + b[whole ? k : k % c] : y[k] > 0 ? y[k] : 0;
}

static bool compute(const work *v)
{
    const hc_graph *g = &v->graph;
    const hc_tensor *shape[] = {&g->x, &g->w, &g->y}, *result = g->steps ? &g->step[g->steps - 1].y : &g->y;
    float *operand[3] = {NULL, NULL, NULL};
    const uint32_t out = g->part == 0 ? Y : g->part == 1 ? X : W;
    bool good = true;
    for (uint32_t i = X; i <= Y; i++) {
        /* 16-bit operands have no more bits than a tensor core takes */
        const uint32_t bits = shape[i]->type == CUDNN_DATA_FLOAT || v->bits < 7 ? v->bits : 0;
        operand[i] = i == out ? malloc((size_t)hc_elements(shape[i]) * sizeof(float)) : hc_load(shape[i], v->address[i], bits);
        good = good && operand[i];
    }
    good = good && hc_convolve(g, operand[X], operand[W], operand[Y]);
    for (uint32_t i = 0; good && i < g->steps; i++) {
        float *b = g->step[i].has_b ? hc_load(&g->step[i].b, v->address[B + i], 0) : NULL;
        good = b || !g->step[i].has_b;
        if (good)
            step(g, i, b, operand[Y]);
        free(b);
    }
    if (good)
        hc_store(out == Y ? result : shape[out], operand[out], v->address[out]);
    for (uint32_t i = X; i <= Y; i++)
        free(operand[i]);
    return good;
}

/* HC_CUDNN_SLOW=ENGINE:MILLISECONDS: so much longer does an engine take. */
static void slow_down(int64_t engine)
{
    const char *text = getenv("HC_CUDNN_SLOW");
    char *end;
    if (text && strtol(text, &end, 10) == engine && *end == ':')
        usleep((useconds_t)strtol(end + 1, NULL, 10) * 1000);
}

static void run(void *argument, bool skipped)
{
    work *v = argument;
    if (!skipped) {
        slow_down(v->engine);
        hc_open_memory(v->device);
        if (v->workspace_bytes)
            memset(v->workspace, 0xff, v->workspace_bytes);
        if (!compute(v))
            hc_report("cudnnBackendExecute: no host memory for a convolution");
        hc_close_memory(v->device);
    }
    free(v);
}

/* ---- the call ---- */
static cudnnStatus_t find_address(const hc_part *pack, const hc_tensor *t, int device, void **out)
{
    const hc_attribute *ids = hc_attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *address = hc_attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->value;
    size_t left = 0;
    *out = NULL;
    for (int64_t i = 0; i < ids->count; i++)
        if (((const int64_t *)ids->value)[i] == t->id)
            *out = address[i];
    if (!*out)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the variant pack has no address for tensor %d", (int)t->id);
    if ((uintptr_t)*out % (uintptr_t)t->alignment)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "tensor %d is not aligned to %d", (int)t->id, (int)t->alignment);
    const int where = hc_locate(*out, &left);
    if (where != device)
        hc_report("cudnnBackendExecute: tensor %d at %p is not memory of device %d", (int)t->id, *out, device);
    else if (left < (size_t)hc_bytes(t))
        hc_report("cudnnBackendExecute: tensor %d at %p needs %zu bytes, its block ends after %zu", (int)t->id, *out, (size_t)hc_bytes(t),
                  left);
    else
        return CUDNN_STATUS_SUCCESS;
    return hc_cudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "tensor %d is no memory that can be used", (int)t->id);
}

static cudnnStatus_t find_workspace(const hc_part *pack, work *v)
{
    size_t left = 0;
    v->workspace = *(void *const *)hc_attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->value;
    if (v->workspace_bytes == 0)
        return CUDNN_STATUS_SUCCESS;
    if (!v->workspace)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan needs a workspace");
    const int where = hc_locate(v->workspace, &left);
    if (where == v->device && left >= v->workspace_bytes)
        return CUDNN_STATUS_SUCCESS;
    hc_report("cudnnBackendExecute: the workspace at %p is not %zu bytes of device %d", v->workspace, v->workspace_bytes, v->device);
    return hc_cudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is too small");
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const hc_part *p = plan, *from = pack;
    if (hc_planned_failure(__func__) != cudaSuccess)
        return hc_cudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "cudnnBackendExecute was asked to fail");
    if (!handle || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || from->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a handle, a plan and a variant pack are needed");
    if (!p->done || !from->done)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or variant pack is not finalized");
    if (p->handle != handle)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the plan is for another device than the handle's");
    work *v = calloc(1, sizeof *v);
    if (!v)
        return hc_cudnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a convolution");
    const hc_graph *g = &p->graph;
    v->graph = *g;
    v->bits = p->engine->bits;
    v->engine = p->engine->index;
    v->device = handle->device;
    v->workspace_bytes = (size_t)hc_workspace_of(g, p->engine);
    const hc_tensor *outer[] = {&g->x, &g->w, g->steps ? &g->step[g->steps - 1].y : &g->y};
    cudnnStatus_t s = find_workspace(from, v);
    for (uint32_t i = X; s == CUDNN_STATUS_SUCCESS && i <= Y; i++)
        s = find_address(from, outer[i], v->device, &v->address[i]);
    for (uint32_t i = 0; s == CUDNN_STATUS_SUCCESS && i < g->steps; i++)
        if (g->step[i].has_b)
            s = find_address(from, &g->step[i].b, v->device, &v->address[B + i]);
    if (s == CUDNN_STATUS_SUCCESS && hc_enqueue(handle->stream, run, v, false) == cudaSuccess)
        return s;
    free(v);
    return s != CUDNN_STATUS_SUCCESS ? s : hc_cudnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the stream does not take work");
}
