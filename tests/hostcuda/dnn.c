/* labels: threads */
/* backend/cuda's convolutions over the stand-in for cuDNN, against the formula in double: parts, fusions, types, strides, dilations,
 * groups, paddings; the adjoint identity; the choice of engines; what is said when something fails. */
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "check.h"
#include "core/base/base.h"
#include "internal.h"
#include "kernels/narrow.h"
#include "plugins/backend/cuda/dnn.h"

static sodet_err err = SODET_ERR_INIT;
static cudaStream_t stream;

static const dnn_conv cases[] = {
    {.n = 2,
     .c = 8,
     .h = 9,
     .w = 11,
     .k = 16,
     .r = 3,
     .s = 3,
     .groups = 1,
     .stride = {1, 1},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {1, 1}},
    {.n = 1,
     .c = 3,
     .h = 17,
     .w = 13,
     .k = 19,
     .r = 7,
     .s = 7,
     .groups = 1,
     .stride = {2, 2},
     .dilation = {1, 1},
     .before = {3, 3},
     .after = {3, 3}},
    {.n = 3, .c = 5, .h = 6, .w = 7, .k = 1, .r = 1, .s = 1, .groups = 1, .stride = {1, 1}, .dilation = {1, 1}},
    {.n = 1,
     .c = 4,
     .h = 8,
     .w = 9,
     .k = 6,
     .r = 3,
     .s = 3,
     .groups = 1,
     .stride = {2, 2},
     .dilation = {1, 1},
     .before = {0, 0},
     .after = {1, 1}},
    {.n = 1,
     .c = 4,
     .h = 15,
     .w = 12,
     .k = 5,
     .r = 3,
     .s = 3,
     .groups = 1,
     .stride = {1, 1},
     .dilation = {3, 2},
     .before = {3, 2},
     .after = {3, 2}},
    {.n = 2,
     .c = 12,
     .h = 7,
     .w = 6,
     .k = 8,
     .r = 3,
     .s = 2,
     .groups = 4,
     .stride = {1, 2},
     .dilation = {1, 1},
     .before = {1, 0},
     .after = {0, 1}},
    {.n = 2,
     .c = 24,
     .h = 10,
     .w = 9,
     .k = 24,
     .r = 3,
     .s = 3,
     .groups = 24,
     .stride = {2, 1},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {1, 1}},
    {.n = 1,
     .c = 6,
     .h = 5,
     .w = 5,
     .k = 12,
     .r = 3,
     .s = 3,
     .groups = 6,
     .stride = {1, 1},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {1, 1}},
    {.n = 1,
     .c = 40,
     .h = 12,
     .w = 10,
     .k = 33,
     .r = 3,
     .s = 1,
     .groups = 1,
     .stride = {1, 3},
     .dilation = {1, 1},
     .before = {2, 0},
     .after = {1, 2}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static dnn_conv sized(dnn_conv v)
{
    v.p = (v.h + v.before[0] + v.after[0] - v.dilation[0] * (v.r - 1) - 1) / v.stride[0] + 1;
    v.q = (v.w + v.before[1] + v.after[1] - v.dilation[1] * (v.s - 1) - 1) / v.stride[1] + 1;
    return v;
}

enum { X, W, Y, BIAS, RESIDUAL, TENSORS };
static void elements(const dnn_conv *v, int64_t n[TENSORS])
{
    n[X] = v->n * v->c * v->h * v->w;
    n[W] = v->k * v->r * v->s * (v->c / v->groups);
    n[Y] = n[RESIDUAL] = v->n * v->k * v->p * v->q;
    n[BIAS] = v->k;
}

/* ---- numbers ---- */
static double noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

/* v as the type holds it. Half: what is between two numbers of 10 bits is rounded to the nearer, as in the stand-in. */
static float rounded(double v, uint32_t type)
{
    if (type == SODET_F32)
        return (float)v;
    if (type == SODET_BF16)
        return narrow_value(narrow_bits((float)v));
    int e;
    frexp(v, &e);
    const double unit = ldexp(1, (e < -13 ? -13 : e) - 11);
    return (float)(nearbyint(v / unit) * unit);
}

/* The bits of a float that the type holds exactly. */
static uint16_t bits(float v, uint32_t type)
{
    if (type == SODET_BF16)
        return narrow_bits(v);
    int e;
    const float m = frexpf(fabsf(v), &e);
    const uint32_t sign = v < 0 ? 0x8000 : 0;
    if (m == 0)
        return (uint16_t)sign;
    if (e < -13)
        return (uint16_t)(sign | (uint32_t)ldexpf(fabsf(v), 24));
    return (uint16_t)(sign | (uint32_t)(e + 14) << 10 | ((uint32_t)ldexpf(m, 11) & 0x3ff));
}

static float value(uint16_t b, uint32_t type)
{
    if (type == SODET_BF16)
        return narrow_value(b);
    const int e = b >> 10 & 31;
    const float m = (float)(b & 0x3ff), v = e == 31 ? (m > 0 ? NAN : INFINITY) : e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24);
    return b & 0x8000 ? -v : v;
}

/* ---- device memory ---- */
static void *put(const float *from, int64_t n, uint32_t type)
{
    const size_t size = type == SODET_F32 ? 4 : 2;
    void *p = NULL;
    uint16_t *narrow = malloc((size_t)n * 2);
    CHECK_EQ(cudaMalloc(&p, (size_t)n * size), cudaSuccess);
    for (int64_t i = 0; type != SODET_F32 && i < n; i++)
        narrow[i] = bits(from[i], type);
    CHECK_EQ(cudaMemcpyAsync(p, type == SODET_F32 ? (const void *)from : narrow, (size_t)n * size, cudaMemcpyHostToDevice, stream),
             cudaSuccess);
    free(narrow);
    return p;
}

static void take(float *to, const void *from, int64_t n, uint32_t type)
{
    uint16_t *narrow = malloc((size_t)n * 2);
    CHECK_EQ(cudaMemcpyAsync(type == SODET_F32 ? (void *)to : narrow, from, (size_t)n * (type == SODET_F32 ? 4 : 2), cudaMemcpyDeviceToHost,
                             stream),
             cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (int64_t i = 0; type != SODET_F32 && i < n; i++)
        to[i] = value(narrow[i], type);
    free(narrow);
}

/* ---- the formula ---- */
typedef struct data {
    float *of[TENSORS];
} data;

static data drawn(const dnn_conv *v, uint32_t seed)
{
    data d;
    int64_t n[TENSORS];
    elements(v, n);
    for (uint32_t t = 0; t < TENSORS; t++) {
        d.of[t] = malloc((size_t)n[t] * sizeof(float));
        for (int64_t i = 0; i < n[t]; i++)
            d.of[t][i] = rounded(noise(&seed), v->type);
    }
    return d;
}

static void free_data(data *d)
{
    for (uint32_t t = 0; t < TENSORS; t++)
        free(d->of[t]);
}

/* The part's result in double, dense and channels last. */
static double *expected(const dnn_conv *v, const data *d)
{
    int64_t size[TENSORS];
    elements(v, size);
    const uint32_t out = v->part == DNN_FORWARD ? Y : v->part == DNN_GRADIENT_DATA ? X : W;
    double *result = calloc((size_t)size[out], sizeof *result);
    const int64_t c = v->c / v->groups, k = v->k / v->groups;
    for (int64_t n = 0; n < v->n; n++)
        for (int64_t o = 0; o < v->k; o++)
            for (int64_t p = 0; p < v->p; p++)
                for (int64_t q = 0; q < v->q; q++)
                    for (int64_t r = 0; r < v->r; r++)
                        for (int64_t s = 0; s < v->s; s++)
                            for (int64_t i = 0; i < c; i++) {
                                const int64_t h = p * v->stride[0] - v->before[0] + r * v->dilation[0];
                                const int64_t w = q * v->stride[1] - v->before[1] + s * v->dilation[1];
                                if (h < 0 || h >= v->h || w < 0 || w >= v->w)
                                    continue;
                                const int64_t x = ((n * v->h + h) * v->w + w) * v->c + o / k * c + i;
                                const int64_t wt = ((o * v->r + r) * v->s + s) * c + i, y = ((n * v->p + p) * v->q + q) * v->k + o;
                                if (out == Y)
                                    result[y] += (double)d->of[X][x] * d->of[W][wt];
                                else if (out == X)
                                    result[x] += (double)d->of[Y][y] * d->of[W][wt];
                                else
                                    result[wt] += (double)d->of[Y][y] * d->of[X][x];
                            }
    for (int64_t i = 0; out == Y && i < size[Y]; i++) {
        result[i] += v->residual ? d->of[RESIDUAL][i] : 0;
        result[i] += v->bias ? d->of[BIAS][i % v->k] : 0;
        result[i] = v->relu && result[i] < 0 ? 0 : result[i];
    }
    return result;
}

/* Runs the part on the device; the result is malloc'd. text: the plan's. */
static float *computed(dnn_context *c, const dnn_conv *v, const data *d, char text[64])
{
    int64_t n[TENSORS];
    elements(v, n);
    const uint32_t out = v->part == DNN_FORWARD ? Y : v->part == DNN_GRADIENT_DATA ? X : W;
    float *result = malloc((size_t)n[out] * sizeof *result);
    dnn_plan p;
    CHECK_OK(dnn_plan_make(c, v, &p, &err));
    if (!p.handle) {
        free(result);
        return NULL;
    }
    memcpy(text, p.text, 64);
    void *at[TENSORS], *workspace = NULL;
    for (uint32_t t = 0; t < TENSORS; t++)
        at[t] = put(d->of[t], n[t], v->type);
    CHECK_EQ(cudaMemsetAsync(at[out], 0xff, (size_t)n[out] * (v->type == SODET_F32 ? 4 : 2), stream), cudaSuccess);
    if (p.workspace)
        CHECK_EQ(cudaMalloc(&workspace, p.workspace), cudaSuccess);
    const dnn_tensors t = {.x = at[X],
                           .w = at[W],
                           .y = at[Y],
                           .bias = v->bias ? at[BIAS] : NULL,
                           .residual = v->residual ? at[RESIDUAL] : NULL,
                           .workspace = workspace};
    dnn_tensors other = t;
    void *elsewhere = put(d->of[out], n[out], v->type);
    *(out == X ? &other.x : out == W ? &other.w : &other.y) = elsewhere;
    CHECK_OK(dnn_plan_run(&p, &other, &err));
    CHECK_OK(dnn_plan_run(&p, &t, &err)); /* to another place */
    CHECK_OK(dnn_plan_run(&p, &t, &err)); /* and over its own result */
    cudaFree(elsewhere);
    take(result, at[out], n[out], v->type);
    for (uint32_t i = 0; i < TENSORS; i++)
        cudaFree(at[i]);
    cudaFree(workspace);
    dnn_plan_free(&p);
    return result;
}

static dnn_context *opened(dnn_options o)
{
    dnn_context *c = NULL;
    if (!o.workspace_limit)
        o.workspace_limit = 1u << 30;
    CHECK_OK(dnn_open(stream, &o, &c, &err));
    return c;
}

/* ---- tests ---- */
/* Worst difference over the largest value. float32: sums of t products in any order, and one rounding of the type. */
static void compare(dnn_context *c, const dnn_conv *v, uint32_t seed)
{
    static const double unit[] = {[SODET_F32] = 0x1p-24, [SODET_BF16] = 0x1p-8, [SODET_F16] = 0x1p-11};
    int64_t n[TENSORS];
    char text[64] = "";
    elements(v, n);
    const uint32_t out = v->part == DNN_FORWARD ? Y : v->part == DNN_GRADIENT_DATA ? X : W;
    const double terms = (double)(v->part == DNN_GRADIENT_WEIGHT ? v->n * v->p * v->q : v->r * v->s * (v->part ? v->k : v->c) / v->groups);
    data d = drawn(v, seed);
    double *want = expected(v, &d), largest = 0, worst = 0;
    float *got = computed(c, v, &d, text);
    for (int64_t i = 0; got && i < n[out]; i++) {
        largest = fmax(largest, fabs(want[i]));
        const double off = fabs(got[i] - want[i]);
        worst = off > worst || isnan(off) ? off : worst;
    }
    CHECK(got && largest > 0 && worst <= largest * (unit[v->type] + (terms + 4) * 0x1p-24));
    if (got && !(worst <= largest * (unit[v->type] + (terms + 4) * 0x1p-24)))
        printf("  part %u type %u c %d k %d groups %d bias %u residual %u relu %u (%s): off by %g of %g\n", v->part, v->type, (int)v->c,
               (int)v->k, (int)v->groups, v->bias, v->residual, v->relu, text, worst, largest);
    free(want);
    free(got);
    free_data(&d);
}

static void test_kinds(void)
{
    static const uint32_t types[] = {SODET_F32, SODET_BF16, SODET_F16};
    dnn_context *c = opened((dnn_options){0}), *same = opened((dnn_options){.deterministic = 1});
    for (uint32_t i = 0; i < CASES; i++)
        for (uint32_t t = 0; t < 3; t++) {
            dnn_conv v = sized(cases[i]);
            v.type = types[t];
            for (uint32_t fused = 0; fused < 8; fused++) {
                v.bias = fused & 1, v.residual = fused >> 1 & 1, v.relu = fused >> 2;
                compare(c, &v, i * 8 + fused);
            }
            v.bias = v.residual = v.relu = 0;
            for (v.part = DNN_GRADIENT_DATA; v.part <= DNN_GRADIENT_WEIGHT; v.part++) {
                compare(c, &v, i);
                compare(same, &v, i + 100);
            }
        }
    dnn_close(c);
    dnn_close(same);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

/* <y(x, w), dy> = <x, dx(dy, w)> = <w, dw(dy, x)>. */
static void test_adjoint(void)
{
    dnn_context *c = opened((dnn_options){0});
    for (uint32_t i = 0; i < CASES; i++) {
        dnn_conv v = sized(cases[i]);
        v.type = SODET_F32;
        int64_t n[TENSORS];
        char text[64];
        elements(&v, n);
        data d = drawn(&v, 1000 + i);
        double scale = sqrt(dot(d.of[Y], d.of[Y], n[Y]) * dot(d.of[X], d.of[X], n[X]) * dot(d.of[W], d.of[W], n[W])), product[3];
        for (v.part = DNN_FORWARD; v.part <= DNN_GRADIENT_WEIGHT; v.part++) {
            const uint32_t out = v.part == DNN_FORWARD ? Y : v.part == DNN_GRADIENT_DATA ? X : W;
            float *got = computed(c, &v, &d, text);
            product[v.part] = got ? dot(got, d.of[out], n[out]) : NAN;
            free(got);
        }
        CHECK(fabs(product[0] - product[1]) <= 1e-6 * scale);
        CHECK(fabs(product[0] - product[2]) <= 1e-6 * scale);
        free_data(&d);
    }
    dnn_close(c);
}

/* Which engine is taken, and what it costs in digits. */
static void test_choice(void)
{
    dnn_conv v = sized(cases[0]);
    char text[64] = "";
    v.type = SODET_F32;
    data d = drawn(&v, 7);
    dnn_context *exact = opened((dnn_options){0}), *tf32 = opened((dnn_options){.tf32 = 1});
    free(computed(exact, &v, &d, text));
    CHECK_STR(text, "engine 70"); /* neither tensor cores nor the run-time compiler */
    float *got = computed(tf32, &v, &d, text);
    CHECK_STR(text, "engine 67");
    double *want = expected(&v, &d), worst = 0, largest = 0;
    int64_t n[TENSORS];
    elements(&v, n);
    for (int64_t i = 0; got && i < n[Y]; i++) {
        worst = fmax(worst, fabs(got[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    CHECK(worst > largest * 1e-5 && worst < largest * 1e-2); /* operands of 10 bits */
    free(got);
    free(want);

    v.part = DNN_GRADIENT_WEIGHT;
    free(computed(exact, &v, &d, text));
    CHECK_STR(text, "engine 20");
    dnn_context *same = opened((dnn_options){.deterministic = 1});
    free(computed(same, &v, &d, text));
    CHECK_STR(text, "fallback engine 70");

    v = sized(cases[6]); /* depthwise: the list begins with what is compiled at run time */
    v.type = SODET_BF16;
    data deep = drawn(&v, 8);
    free(computed(exact, &v, &deep, text));
    CHECK_STR(text, "engine 0");
    dnn_context *small = opened((dnn_options){.workspace_limit = 64});
    v.type = SODET_F32; /* 70 wants more */
    free(computed(small, &v, &deep, text));
    CHECK_STR(text, "engine 0");
    free_data(&d);
    free_data(&deep);
    dnn_close(exact);
    dnn_close(tf32);
    dnn_close(same);
    dnn_close(small);
}

/* ReLU or residual without a bias: a bias of zeros stands in the workspace, which the engine writes over. */
static void test_zeros(void)
{
    dnn_conv v = sized(cases[0]);
    v.type = SODET_BF16, v.relu = 1;
    dnn_context *c = opened((dnn_options){0});
    dnn_plan with, without;
    CHECK_OK(dnn_plan_make(c, &v, &without, &err));
    v.bias = 1;
    CHECK_OK(dnn_plan_make(c, &v, &with, &err));
    CHECK_STR(without.text, with.text);
    CHECK_EQ(without.workspace, (with.workspace + DNN_ALIGNMENT - 1) / DNN_ALIGNMENT * DNN_ALIGNMENT + 16 * 2);
    dnn_plan_free(&with);
    dnn_plan_free(&without);
    dnn_close(c);
}

static void test_limit(void)
{
    dnn_conv v = sized(cases[0]);
    v.type = SODET_F32, v.part = DNN_GRADIENT_WEIGHT;
    dnn_context *c = opened((dnn_options){.workspace_limit = 100, .deterministic = 1});
    dnn_plan p;
    CHECK_OK(dnn_plan_make(c, &v, &p, &err));
    CHECK_STR(p.text, "fallback engine 0");
    dnn_plan_free(&p);
    v.part = DNN_FORWARD, v.relu = 1, v.bias = 0;
    dnn_close(c);
    c = opened((dnn_options){.workspace_limit = 16});
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_UNSUPPORTED,
                "convolution [2, 8, 9, 11] with 16 kernels 3x3 to 9x11 (stride 1x1, padding 1 1 1 1) + bias + ReLU in fp32: the engine of "
                "cuDNN 9.");
    CHECK(strstr(err.text, "raise [backend.cuda] workspace"));
    CHECK(!p.handle);
    dnn_close(c);
}

/* Where nothing is left that may be taken, the message says which option would allow what there is. */
static void test_nothing_left(void)
{
    static const struct {
        const char *without;
        uint32_t part, type, deterministic, groups;
        const char *says;
    } rows[] = {
        {"0,70,20", DNN_FORWARD, SODET_F32, 0, 1, "round operands or sums): [backend.cuda] tf32 = yes, or another [run] precision"},
        {"0,67,46", DNN_GRADIENT_DATA, SODET_BF16, 0, 1,
         "has no engine for it that keeps its precision (of 1 configurations 1 round operands or sums): another [run] precision"},
        {"0,70", DNN_GRADIENT_WEIGHT, SODET_F32, 1, 1, "are not): [backend.cuda] deterministic = no, or another [run] precision"},
        {"0", DNN_FORWARD, SODET_F16, 0, 8,
         "has no ready engine for it (of 1 configurations 1 are compiled at run time, 0 refused): another [run] precision"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dnn_conv v = sized(cases[0]);
        dnn_context *c = opened((dnn_options){.deterministic = rows[i].deterministic});
        dnn_plan p;
        v.part = rows[i].part, v.type = rows[i].type, v.groups = rows[i].groups;
        setenv("HC_CUDNN_WITHOUT", rows[i].without, 1);
        CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_UNSUPPORTED, rows[i].says);
        unsetenv("HC_CUDNN_WITHOUT");
        CHECK(!p.handle);
        dnn_close(c);
    }
}

static void test_refusals(void)
{
    dnn_conv v = sized(cases[0]);
    v.type = SODET_F32, v.bias = 1;
    dnn_context *c = opened((dnn_options){0});
    dnn_plan p;
    int64_t n[TENSORS];
    elements(&v, n);
    v.q++;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INVALID,
                "to 9x12 (stride 1x1, padding 1 1 1 1) + bias in fp32: cuDNN refuses it: ");
    v.q--;
    CHECK_OK(dnn_plan_make(c, &v, &p, &err));
    data d = drawn(&v, 3);
    dnn_tensors t = {.x = put(d.of[X], n[X], v.type), .w = put(d.of[W], n[W], v.type), .y = put(d.of[Y], n[Y], v.type)};
    CHECK(p.workspace > 0);
    CHECK_FAILS(dnn_plan_run(&p, &t, &err), SODET_E_INTERNAL, "needs a workspace of ");
    CHECK_EQ(cudaMalloc(&t.workspace, p.workspace), cudaSuccess);
    CHECK_FAILS(dnn_plan_run(&p, &t, &err), SODET_E_INTERNAL, "its bias lies at ");
    t.bias = (char *)t.x + 4;
    CHECK_FAILS(dnn_plan_run(&p, &t, &err), SODET_E_INTERNAL, "a multiple of 16 is needed");
    t.bias = put(d.of[BIAS], n[BIAS], v.type);
    CHECK_OK(dnn_plan_run(&p, &t, &err));
    setenv("HC_FAIL", "cudnnBackendExecute:1", 1);
    hc_configure();
    CHECK_FAILS(dnn_plan_run(&p, &t, &err), SODET_E_DEVICE, "engine 70 failed: CUDNN_STATUS_EXECUTION_FAILED");
    unsetenv("HC_FAIL");
    hc_configure();
    void *all[] = {t.x, t.w, t.y, t.bias, t.workspace};
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(cudaFree(all[i]), cudaSuccess);
    dnn_plan_free(&p);
    dnn_plan_free(&p);
    free_data(&d);
    dnn_close(c);
    dnn_close(NULL);
}

/* Another library than the program was built for, and none that starts. */
static void test_versions(void)
{
    static const struct {
        const char *variable, *value;
        const char *says;
    } rows[] = {
        {"HC_CUDNN_VERSION", "8907", "cuDNN 8.9.7 was loaded, and this program was built for cuDNN 9"},
        {"HC_CUDNN_VERSION", "100203", "cuDNN 10.2.3 was loaded, and this program was built for cuDNN 9"},
        {"HC_CUDNN_VERSION", "90701", "cuDNN 9.7.1 was loaded, and 9.8.0 is the oldest"},
        {"HC_FAIL", "cudnnGraphVersionCheck:1", "they come from different installations"},
        {"HC_FAIL", "cudnnCnnVersionCheck:1", "they come from different installations"},
        {"HC_FAIL", "cudnnCreate:1", "cuDNN cannot start on this device: CUDNN_STATUS_NOT_INITIALIZED"},
        {"HC_FAIL", "cudnnBackendFinalize:1", "cuDNN cannot start on this device: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dnn_context *c = (dnn_context *)1;
        setenv(rows[i].variable, rows[i].value, 1);
        hc_configure();
        CHECK_FAILS(dnn_open(stream, &(dnn_options){0}, &c, &err), i == 6 ? SODET_E_MEMORY : SODET_E_DEVICE, rows[i].says);
        CHECK(!c);
        unsetenv(rows[i].variable);
    }
    hc_configure();
}

/* Each call of cuDNN may fail for want of memory: an error, no plan, nothing leaked (the address sanitizer looks). */
static void test_injection(void)
{
    dnn_conv v = sized(cases[0]);
    v.type = SODET_F32, v.bias = v.residual = v.relu = 1;
    dnn_context *c = opened((dnn_options){0});
    static const char *const function[] = {"cudnnBackendCreateDescriptor", "cudnnBackendFinalize"};
    for (uint32_t f = 0; f < 2; f++) {
        uint32_t failed = 0, nth = 1;
        for (;; nth++) {
            char text[64];
            dnn_plan p;
            snprintf(text, sizeof text, "%s:%u", function[f], nth);
            setenv("HC_FAIL", text, 1);
            hc_configure();
            sodet_status s = dnn_plan_make(c, &v, &p, &err);
            CHECK((s == SODET_OK) == (p.handle != NULL));
            failed += s != SODET_OK;
            dnn_plan_free(&p);
            if (nth > 60)
                break;
        }
        CHECK(failed >= 10); /* a later one is passed over: another engine is taken */
    }
    unsetenv("HC_FAIL");
    hc_configure();
    dnn_close(c);
}

int main(void)
{
    CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    test_kinds();
    test_adjoint();
    test_choice();
    test_zeros();
    test_limit();
    test_nothing_left();
    test_refusals();
    test_versions();
    test_injection();
    CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    CHECK_EQ(hc_reports, 0);
    return check_done(800);
}
