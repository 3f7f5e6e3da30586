/* The choice of engines by the real cuDNN, for a described H200. What it chooses may change with its version; what it may not choose, and
 * what it says then, may not. */
#include "check.h"
#include "plugins/backend/cuda/dnn.h"

static char device[8192];
static sodet_err err = SODET_ERR_INIT;

static const dnn_conv plain = {.type = SODET_F32,
                               .n = 16,
                               .c = 64,
                               .h = 80,
                               .w = 80,
                               .k = 64,
                               .r = 3,
                               .s = 3,
                               .p = 80,
                               .q = 80,
                               .groups = 1,
                               .stride = {1, 1},
                               .dilation = {1, 1},
                               .before = {1, 1},
                               .after = {1, 1}};

static dnn_context *opened(dnn_options o)
{
    dnn_context *c = NULL;
    CHECK_OK(dnn_open_described(device, &o, &c, &err));
    return c;
}

static dnn_plan planned(dnn_context *c, const dnn_conv *v)
{
    dnn_plan p;
    CHECK_OK(dnn_plan_make(c, v, &p, &err));
    return p;
}

/* The text of the plan; "" if there is none. */
static const char *engine(dnn_options o, const dnn_conv *v, uint64_t *workspace)
{
    static char text[2][64];
    static int turn;
    dnn_context *c = opened(o);
    dnn_plan p = planned(c, v);
    turn ^= 1;
    memcpy(text[turn], p.text, sizeof text[turn]);
    CHECK(strstr(p.text, "engine "));
    CHECK(p.workspace <= o.workspace_limit);
    *workspace = p.workspace;
    dnn_plan_free(&p);
    dnn_close(c);
    return text[turn];
}

/* Every fusion, part and type has a plan that is compiled nowhere. */
static void test_kinds(void)
{
    static const uint32_t types[] = {SODET_F32, SODET_BF16, SODET_F16};
    dnn_context *c = opened((dnn_options){.workspace_limit = 1u << 30});
    for (uint32_t t = 0; t < 3; t++) {
        dnn_conv v = plain;
        v.type = types[t];
        for (uint32_t fused = 0; fused < 8; fused++) {
            v.bias = fused & 1, v.residual = fused >> 1 & 1, v.relu = fused >> 2;
            dnn_plan p = planned(c, &v);
            dnn_plan_free(&p);
        }
        v.bias = v.residual = v.relu = 0;
        for (uint32_t shape = 0; shape < 6; shape++) {
            v.groups = shape == 1 ? 64 : shape == 2 ? 8 : 1;
            v.before[0] = v.before[1] = shape != 3; /* 3: padded on the right and below alone, as TensorFlow does */
            v.stride[0] = v.stride[1] = 1 + (shape == 3);
            v.p = v.q = shape == 3 ? 40 : 80;
            v.dilation[0] = v.dilation[1] = shape == 4 ? 6 : 1;
            v.before[0] = shape == 4 ? 6 : v.before[0], v.before[1] = v.before[0];
            v.after[0] = v.after[1] = shape == 4 ? 6 : 1;
            v.k = shape == 5 ? 63 : 64;
            for (v.part = DNN_FORWARD; v.part <= DNN_GRADIENT_WEIGHT; v.part++) {
                dnn_plan p = planned(c, &v);
                dnn_plan_free(&p);
            }
        }
    }
    dnn_close(c);
}

/* Precompiled fusions want a bias: where there is none, one of zeros lies at the end of the workspace. */
static void test_zeros(void)
{
    dnn_conv v = plain;
    uint64_t with, without;
    const dnn_options o = {.workspace_limit = 1u << 30};
    v.bias = v.relu = 1;
    engine(o, &v, &with);
    v.bias = 0;
    engine(o, &v, &without);
    CHECK(without >= with + 64 * 4);
    CHECK(without < with + 64 * 4 + DNN_ALIGNMENT);
}

/* A tensor core would round float32 to TF32. */
static void test_tf32(void)
{
    uint64_t bytes;
    const char *exact = engine((dnn_options){.workspace_limit = 1u << 30}, &plain, &bytes);
    const char *rounded = engine((dnn_options){.workspace_limit = 1u << 30, .tf32 = 1}, &plain, &bytes);
    CHECK(strcmp(exact, rounded) != 0);
    dnn_conv narrow = plain;
    narrow.type = SODET_BF16;
    exact = engine((dnn_options){.workspace_limit = 1u << 30}, &narrow, &bytes);
    rounded = engine((dnn_options){.workspace_limit = 1u << 30, .tf32 = 1}, &narrow, &bytes);
    CHECK_STR(rounded, exact);
}

/* The first engine for float32 weights' gradients adds in any order; the deterministic one stands in the fallback list. */
static void test_deterministic(void)
{
    uint64_t bytes;
    dnn_conv v = plain;
    v.part = DNN_GRADIENT_WEIGHT;
    const char *any = engine((dnn_options){.workspace_limit = 1u << 30}, &v, &bytes);
    CHECK(strncmp(any, "engine ", 7) == 0);
    const char *same = engine((dnn_options){.workspace_limit = 1u << 30, .deterministic = 1}, &v, &bytes);
    CHECK(strcmp(any, same) != 0);
}

static void test_workspace(void)
{
    uint64_t most, less;
    engine((dnn_options){.workspace_limit = 1u << 30}, &plain, &most);
    CHECK(most > 1u << 20);
    engine((dnn_options){.workspace_limit = most - 1}, &plain, &less);
    CHECK(less < most);
    dnn_conv v = plain;
    v.relu = 1; /* the bias of zeros needs some */
    dnn_context *c = opened((dnn_options){.workspace_limit = 100});
    dnn_plan p;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_UNSUPPORTED, "raise [backend.cuda] workspace");
    CHECK(!p.handle);
    dnn_close(c);
}

static void test_refusals(void)
{
    const dnn_options o = {.workspace_limit = 1u << 30};
    dnn_context *c = opened(o), *none;
    dnn_plan p;
    dnn_conv v = plain;
    v.p = 81;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INVALID,
                "convolution [16, 64, 80, 80] with 64 kernels 3x3 to 81x80 (stride 1x1, padding 1 1 1 1) in fp32: cuDNN refuses it: ");
    v = plain;
    v.groups = 5;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INVALID, "multiples of the groups");
    v = plain;
    v.h = 0;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INVALID, "must be positive");
    v = plain;
    v.type = SODET_I32;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INTERNAL, "there is no such");
    v = plain;
    v.part = DNN_GRADIENT_DATA, v.relu = 1;
    CHECK_FAILS(dnn_plan_make(c, &v, &p, &err), SODET_E_INTERNAL, "belong to the forward convolution");
    p = planned(c, &plain);
    CHECK_FAILS(dnn_plan_run(&p, &(dnn_tensors){0}, &err), SODET_E_INTERNAL, "a plan for a described device cannot run");
    dnn_plan_free(&p);
    dnn_plan_free(&p);
    dnn_close(c);
    dnn_close(NULL);
    CHECK_FAILS(dnn_open_described("{}", &o, &none, &err), SODET_E_INVALID, "is not one that cuDNN reads");
    CHECK(!none);
}

int main(void)
{
    FILE *f = fopen(check_source("tests/cuda/devices/h200.json"), "rb");
    CHECK(f && fread(device, 1, sizeof device - 1, f) > 100);
    if (f)
        fclose(f);
    test_kinds();
    test_zeros();
    test_tf32();
    test_deterministic();
    test_workspace();
    test_refusals();
    return check_done(100);
}
