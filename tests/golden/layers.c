/* layers.json: every layer operator forward and backward against torch in double, on the reference in double and in float and on the CPU. */
#include "golden.h"
#include "runner.h"

typedef sodet_value (*layer)(sodet_graph *g, sodet_value x);

static sodet_value bn(sodet_graph *g, sodet_value x)
{
    return sodet_batch_norm(g, "l", x, SODET_NORM(.epsilon = 1e-5f, .momentum = 0.1f));
}
static sodet_value bn_lite(sodet_graph *g, sodet_value x)
{
    return sodet_batch_norm(g, "l", x, SODET_NORM(.epsilon = 1e-3f, .momentum = 0.03f));
}
static sodet_value gn(sodet_graph *g, sodet_value x)
{
    return sodet_group_norm(g, "l", x, SODET_GROUP_NORM(.groups = 4));
}
static sodet_value l2norm(sodet_graph *g, sodet_value x)
{
    return sodet_l2norm(g, "l", x, SODET_L2NORM(.guard = SODET_L2NORM_MAX));
}
static sodet_value maxpool_ceil(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 2, .stride = 2, .flags = SODET_POOL_CEIL));
}
static sodet_value maxpool_floor(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 2));
}
static sodet_value maxpool_s1p1(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 1, .pad = 1));
}
static sodet_value maxpool_s2p1(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 2, .pad = 1));
}
static sodet_value maxpool_s2_ceil(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 2, .flags = SODET_POOL_CEIL));
}
static sodet_value bilinear2(sodet_graph *g, sodet_value x)
{
    return sodet_resize(g, x, SODET_RESIZE_BILINEAR, 6, 8);
}
static sodet_value bilinear_5x7(sodet_graph *g, sodet_value x)
{
    return sodet_resize(g, x, SODET_RESIZE_BILINEAR, 5, 7);
}
static sodet_value bilinear_down(sodet_graph *g, sodet_value x)
{
    return sodet_resize(g, x, SODET_RESIZE_BILINEAR, 4, 5);
}
static sodet_value nearest2(sodet_graph *g, sodet_value x)
{
    return sodet_resize(g, x, SODET_RESIZE_NEAREST, 6, 8);
}
static sodet_value nearest_5x7(sodet_graph *g, sodet_value x)
{
    return sodet_resize(g, x, SODET_RESIZE_NEAREST, 5, 7);
}
static sodet_value conv3_p1(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 3, .pad = {1, 1, 1, 1}));
}
static sodet_value conv3_s2_p1(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 3, .stride = 2, .pad = {1, 1, 1, 1}));
}
static sodet_value conv3_d6_p6(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 3, .kernel = 3, .dilation = 6, .pad = {6, 6, 6, 6}));
}
static sodet_value conv3_valid(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 3));
}
static sodet_value conv1(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 1));
}
static sodet_value conv1_s2(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 1, .stride = 2, .flags = SODET_CONV_NO_BIAS));
}
static sodet_value conv7_s2_p3(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 2, .kernel = 7, .stride = 2, .pad = {3, 3, 3, 3}, .flags = SODET_CONV_NO_BIAS));
}
static sodet_value dw3_p1(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 4, .kernel = 3, .groups = 4, .pad = {1, 1, 1, 1}, .flags = SODET_CONV_NO_BIAS));
}
static sodet_value dw5_s2_p2(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x,
                        SODET_CONV2D(.out = 4, .kernel = 5, .stride = 2, .groups = 4, .pad = {2, 2, 2, 2}, .flags = SODET_CONV_NO_BIAS));
}
static sodet_value group2(sodet_graph *g, sodet_value x)
{
    return sodet_conv2d(g, "l", x, SODET_CONV2D(.out = 6, .kernel = 3, .groups = 2, .pad = {1, 1, 1, 1}));
}
static sodet_value softmax(sodet_graph *g, sodet_value x)
{
    return sodet_softmax(g, x, -1);
}

static const struct {
    const char *name;
    layer build;
} layers[] = {{"bn", bn},
              {"bn_lite", bn_lite},
              {"gn", gn},
              {"l2norm", l2norm},
              {"maxpool_ceil", maxpool_ceil},
              {"maxpool_floor", maxpool_floor},
              {"maxpool_s1p1", maxpool_s1p1},
              {"maxpool_s2p1", maxpool_s2p1},
              {"maxpool_s2_ceil", maxpool_s2_ceil},
              {"bilinear2", bilinear2},
              {"bilinear_5x7", bilinear_5x7},
              {"bilinear_down", bilinear_down},
              {"nearest2", nearest2},
              {"nearest_5x7", nearest_5x7},
              {"conv3_p1", conv3_p1},
              {"conv3_s2_p1", conv3_s2_p1},
              {"conv3_d6_p6", conv3_d6_p6},
              {"conv3_valid", conv3_valid},
              {"conv1", conv1},
              {"conv1_s2", conv1_s2},
              {"conv7_s2_p3", conv7_s2_p3},
              {"dw3_p1", dw3_p1},
              {"dw5_s2_p2", dw5_s2_p2},
              {"group2", group2},
              {"relu6", sodet_relu6},
              {"hardswish", sodet_hard_swish},
              {"hardsigmoid", sodet_hard_sigmoid},
              {"silu", sodet_silu},
              {"sigmoid", sodet_sigmoid},
              {"softmax", softmax},
              {"avgpool_1x1", sodet_global_avg_pool},
              {"maxpool_1x1", sodet_global_max_pool}};

static sodet_shape shape_of(const gold *dims)
{
    sodet_shape s = {.dtype = SODET_F32, .rank = (uint32_t)gold_size(dims)};
    for (uint32_t i = 0; i < s.rank; i++)
        s.dim[i] = (int64_t)gold_number(gold_at(dims, i));
    return s;
}

/* float32((u - 0.5) * 2 * scale) + added, the sum in float32. */
static void set(running *p, const char *value, const char *stream, uint64_t n, double scale, double added)
{
    float *v = malloc(n * sizeof *v);
    gold_fill(v, n, stream, scale);
    for (uint64_t i = 0; i < n; i++)
        v[i] += (float)added;
    CHECK(running_set_f32(p, value, v, n));
    free(v);
}

static void compare(gold_tally *t, const char *backend, const char *name, const char *what, const gold *list, const double *got, uint64_t n,
                    double tolerance)
{
    char text[96];
    snprintf(text, sizeof text, "%s/%s/%s", backend, name, what);
    gold_compare_list(t, text, list, got, n, tolerance, 0);
}

static void check_layer(runner *r, gold_tally *t, const gold *record, const char *name, layer build, double tolerance)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(true);
    sodet_shape shape = shape_of(gold_get(record, "x_shape"));
    sodet_value x = sodet_parameter(g, "x", &shape, NULL), y = build(g, x);
    sodet_shape out = sodet_shape_of(g, y), want = shape_of(gold_get(record, "y_shape"));
    sodet_output(g, "y", y);
    sd_graph_add_loss(g, "along", sodet_sum(g, sodet_mul(g, y, sodet_input(g, "dy", &out)), (1u << out.rank) - 1));
    CHECK_OK(sd_graph_backward(g, &err));
    CHECK(memcmp(&out, &want, sizeof out) == 0);
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK_OK(err.code);
    if (!p)
        return;

    const uint64_t n = (uint64_t)sodet_elements(&shape), n_out = (uint64_t)sodet_elements(&out);
    char stream[64];
    snprintf(stream, sizeof stream, "%s.x", name);
    set(p, "x", stream, n, gold_number(gold_get(record, "x_scale")), 0);
    snprintf(stream, sizeof stream, "%s.dy", name);
    set(p, "dy", stream, n_out, 1, 0);
    const gold *params = gold_get(record, "params");
    for (uint64_t i = 0; i < gold_size(params); i++) {
        const gold *param = gold_at(params, i);
        sodet_shape s = shape_of(gold_get(param, "shape"));
        snprintf(stream, sizeof stream, "%s.%s", name, gold_key(params, i));
        set(p, gold_key(params, i)[0] == 'w' ? "l/weight" : "l/bias", stream, (uint64_t)sodet_elements(&s),
            gold_number(gold_get(param, "scale")), gold_number(gold_get(param, "added")));
    }
    const bool statistics = gold_try(record, "running_var") != NULL;
    const double zeros[8] = {0}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t channels = statistics ? (uint64_t)shape.dim[1] : 0;
    if (statistics)
        CHECK(running_set(p, "l/running_mean", zeros, channels) && running_set(p, "l/running_var", ones, channels));
    CHECK_OK(running_run(p, &err));

    double *got = malloc((n + n_out + 1024) * sizeof *got);
    CHECK(running_get(p, "y", got, n_out));
    compare(t, runner_name(r), name, "y", gold_get(record, "y"), got, n_out, tolerance);
    CHECK(running_grad(p, "x", got, n));
    compare(t, runner_name(r), name, "dx", gold_get(record, "dx"), got, n, tolerance);
    for (uint64_t i = 0; i < gold_size(params); i++) {
        char key[16];
        snprintf(key, sizeof key, "d%s", gold_key(params, i));
        const gold *list = gold_get(record, key);
        CHECK(running_grad(p, key[1] == 'w' ? "l/weight" : "l/bias", got, gold_size(list)));
        compare(t, runner_name(r), name, key, list, got, gold_size(list), tolerance);
    }
    if (statistics) {
        CHECK(running_get(p, "l/running_mean", got, channels));
        compare(t, runner_name(r), name, "running_mean", gold_get(record, "running_mean"), got, channels, tolerance);
        CHECK(running_get(p, "l/running_var", got, channels));
        compare(t, runner_name(r), name, "running_var", gold_get(record, "running_var"), got, channels, tolerance);
    }
    const char *damage = running_damage(p);
    if (damage)
        check_fail(__FILE__, __LINE__, "%s on %s: %s", name, runner_name(r), damage);
    free(got);
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    static const struct {
        const char *backend;
        bool real64;
        double tolerance;
    } runs[] = {{"ref", true, 2e-7 /* epsilon is a float */}, {"ref", false, 1e-6}, {"cpu", false, 4e-6}};
    const gold *root = gold_open("layers.json"), *cases = gold_get(root, "cases");
    gold_tally t = GOLD_TALLY("layers");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        runner *r = runner_open(runs[i].backend, runs[i].real64, 2);
        for (size_t k = 0; k < sizeof layers / sizeof *layers; k++)
            check_layer(r, &t, gold_get(cases, layers[k].name), layers[k].name, layers[k].build, runs[i].tolerance);
        runner_close(r);
    }
    CHECK_EQ(gold_size(cases), sizeof layers / sizeof *layers + 1); /* bilinear_down_aa is the data pipeline's */
    gold_done(&t);
    gold_close(root);
    return check_done(600);
}
