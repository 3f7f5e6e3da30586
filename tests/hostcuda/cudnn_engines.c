/* The stand-in's engines: which graphs they know, in which order lists name them, what they need. The cases are those that cuDNN 9.19 was
 * seen to make for an H200 (tests/cuda/dnn.c, tests/cuda/plans.c): a fusion without a bias, a bias of another type, an activation other than
 * ReLU behind a convolution are left to engines that are compiled at run time; float32 comes first by tensor cores; a deterministic float32
 * gradient may stand in the fallback list alone; lists lead with what must be passed over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_parts.h"

/* ---- graphs ---- */
static hc_tensor tensor_of(const hc_part *p)
{
    hc_tensor t = {.id = hc_int_of(p, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
                   .alignment = hc_int_of(p, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0),
                   .type = (cudnnDataType_t)hc_int_of(p, CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
                   .inner = hc_attribute_of(p, CUDNN_ATTR_TENSOR_IS_VIRTUAL) && hc_int_of(p, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0)};
    for (int i = 0; i < 4; i++)
        t.size[i] = hc_int_of(p, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
    return t;
}

static bool is_channels_last(const hc_part *p)
{
    const hc_tensor t = tensor_of(p);
    const int64_t c = t.size[1], h = t.size[2], w = t.size[3], stride[] = {h * w * c, 1, w * c, c};
    for (int i = 0; i < 4; i++)
        if (hc_int_of(p, CUDNN_ATTR_TENSOR_STRIDES, i) != stride[i])
            return false;
    return true;
}

static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
} parts[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static bool is_float(const hc_part *p, cudnnBackendAttributeName_t name, float value)
{
    return memcmp(hc_attribute_of(p, name)->value, &value, sizeof value) == 0;
}

/* The convolution that a graph begins with; ready: an engine may know it as it is. */
static cudnnStatus_t read_convolution(const hc_part *op, hc_graph *g)
{
    while (g->part < 3 && parts[g->part].type != op->type)
        g->part++;
    if (g->part == 3)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "a graph begins with a convolution in the stand-in");
    const hc_part *x = hc_part_of(op, parts[g->part].x, 0), *w = hc_part_of(op, parts[g->part].w, 0);
    const hc_part *y = hc_part_of(op, parts[g->part].y, 0), *c = hc_part_of(op, parts[g->part].convolution, 0);
    if (!is_float(op, parts[g->part].alpha, 1) || !is_float(op, parts[g->part].beta, 0))
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "alpha 1 and beta 0 alone are part of the stand-in");
    if (hc_int_of(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 0) != CUDNN_DATA_FLOAT ||
        hc_int_of(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0) != CUDNN_CROSS_CORRELATION)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "float32 sums and cross-correlation alone are part of the stand-in");
    if (!is_channels_last(x) || !is_channels_last(w) || !is_channels_last(y))
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "dense channels-last tensors alone are part of the stand-in");
    g->x = tensor_of(x), g->w = tensor_of(w), g->y = tensor_of(y);
    g->groups = g->x.size[1] / g->w.size[1];
    for (int i = 0; i < 2; i++) {
        g->before[i] = hc_int_of(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        g->after[i] = hc_int_of(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        g->stride[i] = hc_int_of(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        g->dilation[i] = hc_int_of(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_step(const hc_part *op, const hc_tensor *before, hc_graph *g)
{
    const hc_part *what = hc_part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
    const hc_part *x = hc_part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0),
                  *b = hc_part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    const hc_part *y = hc_part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
    uint32_t i = g->steps++;
    g->step[i].mode = (cudnnPointwiseMode_t)hc_int_of(what, CUDNN_ATTR_POINTWISE_MODE, 0);
    g->step[i].has_b = b != NULL;
    g->step[i].y = tensor_of(y);
    if (b)
        g->step[i].b = tensor_of(b);
    if (hc_int_of(what, CUDNN_ATTR_POINTWISE_MATH_PREC, 0) != CUDNN_DATA_FLOAT)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "float32 pointwise operations alone are part of the stand-in");
    if (tensor_of(x).id != before->id || !before->inner)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "an operation does not take the virtual tensor that the one before it made");
    if (!is_channels_last(x) || !is_channels_last(y) || (b && !is_channels_last(b)))
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "dense channels-last tensors alone are part of the stand-in");
    if (memcmp(g->step[i].y.size, g->y.size, sizeof g->y.size) != 0)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a pointwise operation's result has another shape than its operand");
    for (int k = 0; b && k < 4; k++)
        if (g->step[i].b.size[k] != 1 && g->step[i].b.size[k] != g->y.size[k])
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a pointwise operation's operands do not fit");
    return CUDNN_STATUS_SUCCESS;
}

/* Convolution; or convolution [+ residual] + bias [ReLU], in this order; all with one type, float32 in between. */
static bool is_ready(const hc_graph *g)
{
    const cudnnDataType_t type = g->part == 1 ? g->w.type : g->x.type;
    uint32_t i = 0;
    if (g->steps && g->part)
        return false;
    const hc_tensor *outer[] = {&g->x, &g->w, g->steps ? &g->x : &g->y};
    for (int k = 0; k < 3; k++)
        if (outer[k]->type != type)
            return false;
    if (!g->steps)
        return true;
    if (g->y.type != CUDNN_DATA_FLOAT)
        return false;
    for (uint32_t k = 0; k < g->steps; k++)
        if (g->step[k].y.type != (k + 1 < g->steps ? CUDNN_DATA_FLOAT : type) || (g->step[k].has_b && g->step[k].b.type != type))
            return false;
    if (g->steps > 1 && g->step[0].mode == CUDNN_POINTWISE_ADD && g->step[1].mode == CUDNN_POINTWISE_ADD)
        i += memcmp(g->step[0].b.size, g->y.size, sizeof g->y.size) == 0;
    const int64_t bias[] = {1, g->y.size[1], 1, 1};
    if (g->step[i].mode != CUDNN_POINTWISE_ADD || memcmp(g->step[i].b.size, bias, sizeof bias) != 0)
        return false;
    i++;
    return i == g->steps || (i + 1 == g->steps && g->step[i].mode == CUDNN_POINTWISE_RELU_FWD);
}

cudnnStatus_t hc_graph_finish(hc_part *p)
{
    hc_graph g = {0};
    const int64_t n = hc_attribute_of(p, CUDNN_ATTR_OPERATIONGRAPH_OPS)->count;
    cudnnStatus_t s = read_convolution(hc_part_of(p, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0), &g);
    const hc_tensor *last = g.part == 0 ? &g.y : g.part == 1 ? &g.x : &g.w;
    for (int64_t i = 1; s == CUDNN_STATUS_SUCCESS && i < n; i++) {
        const hc_part *op = hc_part_of(p, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        if (op->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
            return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "one convolution in a graph is all that the stand-in knows");
        s = read_step(op, last, &g);
        last = &g.step[g.steps - 1].y;
    }
    if (s == CUDNN_STATUS_SUCCESS && last->inner)
        s = hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the graph's last result is virtual");
    g.ready = is_ready(&g);
    p->graph = g;
    return s;
}

/* ---- devices ---- */
cudnnStatus_t hc_device_finish(hc_part *p)
{
    static const char *const keys[] = {"deviceName",
                                       "deviceVer",
                                       "driverVer",
                                       "cudaDeviceId",
                                       "totalGlobalMem",
                                       "multiProcessorCount",
                                       "maxGridSize",
                                       "maxBlockSize",
                                       "regsPerBlock",
                                       "smClockRateKHz",
                                       "memClockRateKHz",
                                       "l2CacheSize",
                                       "warpSize",
                                       "maxSharedMemoryPerBlock",
                                       "maxSharedMemoryPerBlockOptin",
                                       "reservedSharedMemoryPerBlock",
                                       "maxRegistersPerSM",
                                       "pciDeviceId",
                                       "maxCtasPerSM",
                                       "maxThreadsPerBlock",
                                       "maxThreadsPerSM",
                                       "isTccDriver",
                                       "supportCoopLaunch"};
    const hc_attribute *handle = hc_attribute_of(p, CUDNN_ATTR_DEVICEPROP_HANDLE);
    const hc_attribute *json = hc_attribute_of(p, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
    if (!handle == !json)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a device is told by a handle or by a description");
    if (handle) {
        p->handle = *(cudnnHandle_t *)handle->value;
        return p->handle ? CUDNN_STATUS_SUCCESS : hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", keys[i]);
        if (!memmem(json->value, (size_t)json->count, quoted, strlen(quoted)))
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "!json_object.HasMember(\"%s\")", keys[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- engines ---- */
#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)
enum { DIRECT, TENSOR, TENSOR_SPLIT, TURNING, ATOMIC, ROUNDING, COMPILED, ENGINES };
static const hc_engine engines[ENGINES] = {
    [DIRECT] = {0, NOTE(STRICT_NAN_PROP), 0, 0},
    [TENSOR] = {67, NOTE(TENSOR_CORE), 1u << CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API, 10},
    [TENSOR_SPLIT] = {46, NOTE(TENSOR_CORE), 0, 10},
    [TURNING] = {70, 0, 0, 0},
    [ATOMIC] = {20, NOTE(NONDETERMINISTIC), 0, 0},
    [ROUNDING] = {25, NOTE(REDUCED_PRECISION_REDUCTION) | NOTE(NONDETERMINISTIC), 0, 5},
    [COMPILED] = {88, NOTE(TENSOR_CORE), 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, 10},
};

static bool is_depthwise(const hc_graph *g)
{
    return g->groups > 1 && g->w.size[1] == 1;
}

/* HC_CUDNN_WITHOUT: indices of engines, by commas, that this cuDNN does not have. */
static bool is_there(const hc_engine *e)
{
    const char *text = getenv("HC_CUDNN_WITHOUT");
    for (char *end; text && *text; text = *end ? end + 1 : end)
        if (strtol(text, &end, 10) == e->index)
            return false;
    return true;
}

uint32_t hc_engine_list(const hc_graph *g, cudnnBackendHeurMode_t mode, const hc_engine *list[HC_LIST])
{
    const bool wide = (g->part == 1 ? g->w.type : g->x.type) == CUDNN_DATA_FLOAT, fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
    uint32_t n = 0;
#define LIST(engine)                                                                                                                       \
    do {                                                                                                                                   \
        list[n] = &engines[engine];                                                                                                        \
        n += is_there(list[n]);                                                                                                            \
    } while (0)
    if (mode != CUDNN_HEUR_MODE_A && !fallback)
        return 0;
    if (!g->ready) {
        if (g->steps) /* a gradient whose types differ has no engine at all */
            LIST(COMPILED);
        return n;
    }
    if (fallback) {
        if (!wide && g->part)
            LIST(ROUNDING);
        if (wide)
            LIST(TURNING);
        LIST(DIRECT);
        return n;
    }
    if (is_depthwise(g))
        LIST(COMPILED);
    else {
        LIST(TENSOR);
        LIST(TENSOR_SPLIT);
    }
    if (wide && g->part == 2)
        LIST(ATOMIC);
    else if (wide)
        LIST(TURNING);
    const bool other = wide ? g->part == 2 : g->part && is_depthwise(g); /* what may be taken then stands in the fallback list */
    if (!other)
        LIST(DIRECT);
#undef LIST
    return n;
}

int64_t hc_workspace_of(const hc_graph *g, const hc_engine *e)
{
    const int64_t all = hc_bytes(&g->x) + hc_bytes(&g->w) + hc_bytes(&g->y);
    switch (e - engines) {
    case TENSOR:
        return 131 + (g->w.size[0] % 8 || g->w.size[1] % 8 ? hc_bytes(&g->y) : 0);
    case TENSOR_SPLIT:
    case TURNING:
        return all + 16;
    case ROUNDING:
        return hc_bytes(&g->w) + 144;
    default:
        return 0;
    }
}

cudnnStatus_t hc_plan_finish(hc_part *p)
{
    const hc_part *configuration = hc_part_of(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
    if (!configuration->graph.ready)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, "there is no run-time compiler in the stand-in");
    p->graph = configuration->graph;
    p->engine = configuration->engine;
    p->handle = hc_part_of(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 0)->handle;
    return CUDNN_STATUS_SUCCESS;
}
