/* What cuDNN's graph API refuses, and which graphs its ready engines know. One text over two libraries: cuda/rules is the real one and a
 * described H200, hostcuda/rules the stand-in of tests/hostcuda, which therefore is no more generous. Where the real one lets a mistake
 * through, the stand-in alone is asked (STANDIN). */
#include <stdbool.h>

#include "check.h"
#include "plugins/backend/cuda/dnn_graph.h"

#ifdef HOSTCUDA_RULES
#define STANDIN true
#else
#define STANDIN false
#endif

typedef cudnnBackendDescriptor_t part;
static dnn_parts kept; /* every descriptor of the test; refilled by fresh() */
static part device;
static char json[8192];

static void fresh(void)
{
    dnn_parts_free(&kept);
    kept = (dnn_parts){0};
    device = dnn_part(&kept, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    dnn_set(&kept, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    dnn_finish(&kept, device);
    CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
}

/* ---- parts with one thing wrong ---- */
typedef struct tensor_of {
    int64_t id, n, c, h, w;
    cudnnDataType_t type;
    bool inner;
    int64_t alignment;                 /* 0: 16 */
    cudnnBackendAttributeName_t lacks; /* 0: nothing */
} tensor_of;

/* Made, not finished. */
static part begin_tensor(tensor_of t)
{
    const int64_t size[] = {t.n, t.c, t.h, t.w}, stride[] = {t.h * t.w * t.c, 1, t.w * t.c, t.c},
                  alignment = t.alignment ? t.alignment : 16;
    part d = dnn_part(&kept, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        int64_t count;
        const void *value;
    } set[] = {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t.id},
               {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t.type},
               {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size},
               {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride},
               {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
               {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t.inner}};
    for (uint32_t i = 0; i < sizeof set / sizeof set[0]; i++)
        if (set[i].name != t.lacks)
            dnn_set(&kept, d, set[i].name, set[i].type, set[i].count, set[i].value);
    return d;
}

static part tensor(tensor_of t)
{
    part d = begin_tensor(t);
    dnn_finish(&kept, d);
    return d;
}

static part begin_convolution(cudnnBackendAttributeName_t lacks)
{
    const int64_t one[] = {1, 1}, dims = 2;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    part d = dnn_part(&kept, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, one);
    dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, one);
    if (lacks != CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)
        dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    if (lacks != CUDNN_ATTR_CONVOLUTION_DILATIONS)
        dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
    if (lacks != CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)
        dnn_set(&kept, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, one);
    return d;
}

static part begin_forward(part x, part w, part y)
{
    const float one = 1, zero = 0;
    part c = begin_convolution(0), d;
    dnn_finish(&kept, c);
    d = dnn_part(&kept, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, c);
    dnn_set(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    dnn_set(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    return d;
}

static part begin_graph(int64_t n, const part *op)
{
    part g = dnn_part(&kept, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (n)
        dnn_set(&kept, g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, op);
    return g;
}

static const tensor_of map_x = {.id = 1, .n = 2, .c = 8, .h = 9, .w = 9}, map_w = {.id = 2, .n = 16, .c = 8, .h = 3, .w = 3},
                       map_y = {.id = 3, .n = 2, .c = 16, .h = 9, .w = 9};

static void refuse_finish(part d, const char *what)
{
    CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
    cudnnStatus_t s = cudnnBackendFinalize(d);
    CHECK_EQ(CUDNN_STATUS_CATEGORY((int)s), CUDNN_STATUS_BAD_PARAM);
    if (CUDNN_STATUS_CATEGORY((int)s) != CUDNN_STATUS_BAD_PARAM)
        printf("  %s was finished: status %d\n", what, (int)s);
}

static void test_tensors(void)
{
    const float f = 1;
    const int64_t two[] = {1, 2};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    tensor_of t = map_x;
    fresh();
    t.lacks = CUDNN_ATTR_TENSOR_DIMENSIONS;
    refuse_finish(begin_tensor(t), "a tensor without dimensions");
    t.lacks = CUDNN_ATTR_TENSOR_STRIDES;
    refuse_finish(begin_tensor(t), "a tensor without strides");
    t.lacks = CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT;
    refuse_finish(begin_tensor(t), "a tensor without alignment");
    t = map_x, t.alignment = 3;
    refuse_finish(begin_tensor(t), "a tensor aligned to 3");
    if (STANDIN) { /* seen to pass in the real one: an id, a type or a size of 0 */
        t = map_x, t.lacks = CUDNN_ATTR_TENSOR_UNIQUE_ID;
        refuse_finish(begin_tensor(t), "a tensor without an id");
        t.lacks = CUDNN_ATTR_TENSOR_DATA_TYPE;
        refuse_finish(begin_tensor(t), "a tensor without a type");
        t = map_x, t.c = 0;
        refuse_finish(begin_tensor(t), "an empty tensor");
    }
    part d = begin_tensor(map_x);
    const cudnnBackendAttributeName_t id = CUDNN_ATTR_TENSOR_UNIQUE_ID;
    CHECK_EQ(cudnnBackendSetAttribute(d, id, CUDNN_TYPE_FLOAT, 1, &f), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    CHECK_EQ(cudnnBackendSetAttribute(d, id, CUDNN_TYPE_INT64, 2, two), CUDNN_STATUS_BAD_PARAM);
    CHECK_EQ(cudnnBackendSetAttribute(d, id, CUDNN_TYPE_INT64, 1, NULL), CUDNN_STATUS_BAD_PARAM);
    CHECK_EQ(cudnnBackendSetAttribute(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type), CUDNN_STATUS_BAD_PARAM);
    CHECK_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_SUCCESS);
    CHECK_EQ(cudnnBackendSetAttribute(d, id, CUDNN_TYPE_INT64, 1, two), CUDNN_STATUS_BAD_PARAM);
    CHECK_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_BAD_PARAM);
}

static void test_operations(void)
{
    static const struct {
        const char *what;
        int64_t y[4], w[4];
    } wrong[] = {
        {"a map too high", {2, 16, 10, 9}, {16, 8, 3, 3}},
        {"a map too narrow", {2, 16, 9, 8}, {16, 8, 3, 3}},
        {"another batch", {3, 16, 9, 9}, {16, 8, 3, 3}},
        {"other channels", {2, 17, 9, 9}, {16, 8, 3, 3}},
        {"channels without groups", {2, 16, 9, 9}, {16, 5, 3, 3}},
        {"kernels that groups do not divide", {2, 15, 9, 9}, {15, 4, 3, 3}},
        {"a kernel larger than the map", {2, 16, 1, 1}, {16, 8, 12, 12}},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const int64_t *y = wrong[i].y, *w = wrong[i].w;
        fresh();
        refuse_finish(begin_forward(tensor(map_x), tensor((tensor_of){.id = 2, .n = w[0], .c = w[1], .h = w[2], .w = w[3]}),
                                    tensor((tensor_of){.id = 3, .n = y[0], .c = y[1], .h = y[2], .w = y[3]})),
                      wrong[i].what);
    }
    fresh();
    refuse_finish(begin_convolution(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS), "a convolution without dimensions");
    refuse_finish(begin_convolution(CUDNN_ATTR_CONVOLUTION_DILATIONS), "a convolution without dilations");
    refuse_finish(begin_convolution(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), "a convolution without strides");
    refuse_finish(begin_graph(0, NULL), "an empty graph");
    if (STANDIN) { /* the real one takes what is unfinished, and reads it */
        part d = dnn_part(&kept, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR), unfinished = begin_tensor(map_x);
        CHECK_EQ(cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &unfinished),
                 CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
        CHECK_EQ(cudnnBackendSetAttribute(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device),
                 CUDNN_STATUS_BAD_PARAM);
        refuse_finish(d, "an operation without operands");
    }
}

static part begin_list(part graph, cudnnBackendHeurMode_t mode, bool with_device)
{
    part d = dnn_part(&kept, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    dnn_set_part(&kept, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    dnn_set(&kept, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (with_device)
        dnn_set_part(&kept, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    return d;
}

/* Devices, lists, plans and packs. */
static void test_plans(void)
{
    fresh();
    part op = begin_forward(tensor(map_x), tensor(map_w), tensor(map_y));
    dnn_finish(&kept, op);
    part graph = begin_graph(1, &op);
    dnn_finish(&kept, graph);
    if (STANDIN)
        refuse_finish(begin_list(graph, CUDNN_HEUR_MODE_A, false), "a list for no device");
    part list = begin_list(graph, CUDNN_HEUR_MODE_A, true), configuration[64];
    dnn_finish(&kept, list);
    CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
    int64_t n = 0, filled = 0;
    CHECK_EQ(cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL),
             CUDNN_STATUS_SUCCESS);
    CHECK(n > 1 && n <= 64);
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configuration[i]), CUDNN_STATUS_SUCCESS);
    CHECK_EQ(cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &filled, configuration),
             CUDNN_STATUS_SUCCESS);
    CHECK(filled > 0 && filled <= n);
    part engine = dnn_part(&kept, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (filled < n)
        CHECK(cudnnBackendGetAttribute(configuration[n - 1], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &filled,
                                       &engine) != CUDNN_STATUS_SUCCESS);
    part plan = dnn_part(&kept, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dnn_set_part(&kept, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    refuse_finish(plan, "a plan without a configuration");
    dnn_set_part(&kept, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration[0]);
    dnn_finish(&kept, plan);
    int64_t ids[] = {1, 2, 3};
    void *address[] = {(void *)16, (void *)32, (void *)48}, *none = NULL;
    part pack = dnn_part(&kept, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_set(&kept, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    dnn_set(&kept, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, address);
    dnn_set(&kept, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &none);
    refuse_finish(pack, "a pack with an id without an address");
    dnn_set(&kept, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, address);
    dnn_finish(&kept, pack);
    CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
    CHECK_EQ(cudnnBackendExecute(NULL, plan, pack), CUDNN_STATUS_BAD_PARAM);
    for (int64_t i = 0; i < n; i++)
        cudnnBackendDestroyDescriptor(configuration[i]);
    part bare = dnn_part(&kept, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    char less[8192];
    snprintf(less, sizeof less, "%s", json);
    memcpy(strstr(less, "\"warpSize\""), "\"warpsize\"", 10);
    dnn_set(&kept, bare, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(less), less);
    refuse_finish(bare, "a device without its warps' size");
}

/* ---- which graphs have an engine that is ready ---- */
static bool is_compiled(part configuration)
{
    cudnnBackendBehaviorNote_t note[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t n = 0;
    bool compiled = false;
    part engine = NULL;
    CHECK_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine), CUDNN_STATUS_SUCCESS);
    CHECK_EQ(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine),
             CUDNN_STATUS_SUCCESS);
    CHECK_EQ(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n,
                                      note),
             CUDNN_STATUS_SUCCESS);
    for (int64_t i = 0; i < n; i++)
        compiled |= note[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    cudnnBackendDestroyDescriptor(engine);
    return compiled;
}

/* Configurations of one list that are not compiled at run time; -1: cuDNN refuses the list. */
static int64_t ready_in(part graph, cudnnBackendHeurMode_t mode)
{
    part list = begin_list(graph, mode, true), configuration[64] = {NULL};
    int64_t n = 0, filled = 0, ready = 0;
    if (cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL) != CUDNN_STATUS_SUCCESS)
        return -1;
    n = n < 64 ? n : 64;
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configuration[i]), CUDNN_STATUS_SUCCESS);
    if (n && cudnnBackendGetAttribute(list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &filled, configuration) !=
                 CUDNN_STATUS_SUCCESS)
        filled = 0;
    for (int64_t i = 0; i < filled; i++)
        ready += !is_compiled(configuration[i]);
    for (int64_t i = 0; i < n; i++)
        cudnnBackendDestroyDescriptor(configuration[i]);
    return ready;
}

static part pointwise(cudnnPointwiseMode_t mode, part x, part b, part y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    part what = dnn_part(&kept, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), d;
    dnn_set(&kept, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dnn_set(&kept, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dnn_finish(&kept, what);
    d = dnn_part(&kept, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    dnn_finish(&kept, d);
    return d;
}

/* steps, one letter each behind the convolution: b bias, f float32 bias, r residual, R ReLU, S SiLU, m multiplication by a scale. */
static int64_t ready(const char *steps, cudnnDataType_t type, cudnnBackendHeurMode_t mode)
{
    const tensor_of map = {.n = 16, .c = 64, .h = 80, .w = 80, .type = type};
    part op[4], y;
    int64_t n = 0, id = 10;
    tensor_of x = map, w = {.id = 2, .n = 64, .c = 64, .h = 3, .w = 3, .type = type}, inner = map, out = map, row;
    x.id = 1, out.id = 3;
    inner.inner = true, inner.type = CUDNN_DATA_FLOAT;
    row = (tensor_of){.id = 4, .n = 1, .c = 64, .h = 1, .w = 1, .type = type};
    fresh();
    inner.id = id++;
    y = tensor(*steps ? inner : out);
    op[n++] = begin_forward(tensor(x), tensor(w), y);
    dnn_finish(&kept, op[0]);
    for (const char *s = steps; *s; s++, row.id++) {
        part before = y, b = NULL;
        tensor_of other = *s == 'r' ? map : row;
        other.id = row.id;
        other.type = *s == 'f' || *s == 'm' ? CUDNN_DATA_FLOAT : type;
        if (*s != 'R' && *s != 'S')
            b = tensor(other);
        inner.id = id++;
        y = tensor(s[1] ? inner : out);
        op[n++] = pointwise(*s == 'R'   ? CUDNN_POINTWISE_RELU_FWD
                            : *s == 'S' ? CUDNN_POINTWISE_SWISH_FWD
                            : *s == 'm' ? CUDNN_POINTWISE_MUL
                                        : CUDNN_POINTWISE_ADD,
                            before, b, y);
    }
    part graph = begin_graph(n, op);
    dnn_finish(&kept, graph);
    CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
    return ready_in(graph, mode);
}

static void test_ready(void)
{
    static const struct {
        const char *steps;
        bool wide, narrow; /* float32; bf16 and fp16 */
    } rows[] = {{"", true, true},     {"b", true, true},    {"bR", true, true},  {"rb", true, true},
                {"rbR", true, true},  {"R", false, false},  {"r", false, false}, {"rR", false, false},
                {"bS", false, false}, {"mb", false, false}, {"fR", true, false}};
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF};
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint32_t t = 0; t < 3; t++) {
            const bool want = t ? rows[i].narrow : rows[i].wide;
            int64_t a = ready(rows[i].steps, types[t], CUDNN_HEUR_MODE_A), f = ready(rows[i].steps, types[t], CUDNN_HEUR_MODE_FALLBACK);
            CHECK((a > 0) == want && (f > 0) == want);
            if ((a > 0) != want || (f > 0) != want)
                printf("  convolution + \"%s\" in type %d: %d and %d engines\n", rows[i].steps, (int)types[t], (int)a, (int)f);
        }
}

/* A gradient of the weights does not come out wider than the maps. */
static void test_wide_gradient(void)
{
    const float one = 1, zero = 0;
    for (uint32_t wide = 0; wide < 2; wide++) {
        fresh();
        tensor_of x = map_x, w = map_w, y = map_y;
        x.type = y.type = CUDNN_DATA_BFLOAT16;
        w.type = wide ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
        part c = begin_convolution(0);
        dnn_finish(&kept, c);
        part d = dnn_part(&kept, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
        dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, tensor(x));
        dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, tensor(w));
        dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, tensor(y));
        dnn_set_part(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, c);
        dnn_set(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
        dnn_set(&kept, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
        dnn_finish(&kept, d);
        part graph = begin_graph(1, &d);
        dnn_finish(&kept, graph);
        CHECK_EQ(kept.status, CUDNN_STATUS_SUCCESS);
        CHECK_EQ(ready_in(graph, CUDNN_HEUR_MODE_A) > 0, !wide);
        CHECK_EQ(ready_in(graph, CUDNN_HEUR_MODE_FALLBACK) > 0, !wide);
    }
}

int main(void)
{
    FILE *f = fopen(check_source("tests/cuda/devices/h200.json"), "rb");
    CHECK(f && fread(json, 1, sizeof json - 1, f) > 100);
    if (f)
        fclose(f);
    test_tensors();
    test_operations();
    test_plans();
    test_ready();
    test_wide_gradient();
    dnn_parts_free(&kept);
    return check_done(150);
}
