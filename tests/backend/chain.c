/* Whole small networks on cpu against ref: values that stay blocked from layer to layer, reorders where they must, fused batch norm and relu,
 * in-place work, shared parameters, and the gradients of all of it. And the same in bf16, where maps are narrow. */
#include "rig.h"

#include "kernels/kernels.h"

/* Relus and max pools, or where a gate that rounding sets otherwise would count as an error, their smooth kin. */
static bool smooth;

static sodet_value bend(sodet_graph *g, sodet_value x)
{
    return sodet_activation(g, smooth ? SODET_ACT_SILU : SODET_ACT_RELU, x);
}

static sodet_value shrink(sodet_graph *g, sodet_value x, const sodet_pool_desc *window)
{
    return smooth ? sodet_avg_pool(g, x, window) : sodet_max_pool(g, x, window);
}

static sodet_value block(sodet_graph *g, const char *name, sodet_value x, uint32_t out, bool norm)
{
    sodet_enter(g, "%s", name);
    x = sodet_conv2d(g, "conv", x,
                     SODET_CONV2D(.out = out, .kernel = 3, .pad = {1, 1, 1, 1},
                                  .flags = norm ? SODET_CONV_NO_BIAS : 0)); /* in front of a norm a bias has no gradient */
    if (norm)
        x = sodet_batch_norm(g, "norm", x, SODET_NORM(.flags = 0));
    x = bend(g, x);
    sodet_leave(g);
    return x;
}

static sodet_value square_loss(sodet_graph *g, sodet_value x)
{
    return sodet_mean(g, sodet_mul(g, x, x), 0);
}

/* TinySSD's way: conv, norm, relu twice, pool; heads that leave as NHWC and meet in a concat. */
static sodet_graph *tiny(bool training, int64_t batch, int64_t side, uint32_t width)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = rig_graph(training);
    sodet_value x = rig_input(g, "image", batch, 3, side, side), heads[2];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter(g, "stage%u", i);
        x = block(g, "a", x, width << i, true);
        x = block(g, "b", x, width << i, true);
        x = shrink(g, x, SODET_POOL(.kernel = 2));
        sodet_value head = sodet_conv2d(g, "head", x, SODET_CONV2D(.out = 12, .kernel = 3, .pad = {1, 1, 1, 1}));
        head = sodet_permute(g, head, (const uint32_t[]){0, 2, 3, 1});
        int64_t rows = sodet_dim(g, head, 1) * sodet_dim(g, head, 2) * 3;
        heads[n++] = sodet_reshape(g, head, 3, (const int64_t[]){batch, rows, 4});
        sodet_leave(g);
    }
    sodet_value all = sodet_concat(g, heads, 2, 1);
    if (training)
        sd_graph_add_loss(g, "l", square_loss(g, all));
    else
        sodet_output(g, "heads", all);
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_OK(sd_graph_optimize(g, &err));
    if (training)
        CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

/* ResNet's way: residuals, strides, a shared tower on two levels. */
static sodet_graph *residual(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = rig_graph(training);
    sodet_value x = rig_input(g, "image", 2, 3, 33, 35), levels[2], out[2];
    x = sodet_conv2d(g, "stem", x, SODET_CONV2D(.out = 32, .kernel = 7, .stride = 2, .pad = {3, 3, 3, 3}));
    x = bend(g, x);
    x = shrink(g, x, SODET_POOL(.kernel = 3, .stride = 2, .pad = 1));
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter(g, "layer%u", i);
        sodet_value y = bend(g, sodet_conv2d(g, "conv1", x, SODET_CONV2D(.out = 32, .kernel = 1, .stride = 1 + i)));
        y = bend(g, sodet_conv2d(g, "conv2", y, SODET_CONV2D(.out = 32, .kernel = 3, .pad = {1, 1, 1, 1})));
        y = sodet_conv2d(g, "conv3", y, SODET_CONV2D(.out = 64, .kernel = 1));
        sodet_value shortcut = sodet_conv2d(g, "down", x, SODET_CONV2D(.out = 64, .kernel = 1, .stride = 1 + i));
        x = levels[i] = bend(g, sodet_add(g, y, shortcut));
        sodet_leave(g);
    }
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter_shared(g, "tower");
        sodet_value y = bend(g, sodet_conv2d(g, "a", levels[i], SODET_CONV2D(.out = 32, .kernel = 3, .pad = {1, 1, 1, 1})));
        out[i] = sodet_conv2d(g, "b", y, SODET_CONV2D(.out = 20, .kernel = 3, .pad = {1, 1, 1, 1}));
        sodet_leave(g);
    }
    if (training) {
        sd_graph_add_loss(g, "a", square_loss(g, out[0]));
        sd_graph_add_loss(g, "b", square_loss(g, out[1]));
    } else {
        sodet_output(g, "a", out[0]);
        sodet_output(g, "b", out[1]);
    }
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_OK(sd_graph_optimize(g, &err));
    if (training)
        CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

/* A pyramid's way: a lateral and a larger map added, pools whose windows overlap and hang over, a norm in between, a head on each level. */
static sodet_graph *pyramid(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = rig_graph(training);
    sodet_value x = rig_input(g, "image", 2, 3, 22, 26), top, out[2];
    x = bend(g, sodet_conv2d(g, "a", x, SODET_CONV2D(.out = 20, .kernel = 3, .pad = {1, 1, 1, 1})));
    x = shrink(g, x, SODET_POOL(.kernel = 3, .stride = 1, .pad = 1));
    x = bend(g, sodet_conv2d(g, "b", x, SODET_CONV2D(.out = 70, .kernel = 3, .pad = {1, 1, 1, 1})));
    sodet_value low = x;
    x = shrink(g, x, SODET_POOL(.kernel = 3, .stride = 2, .flags = SODET_POOL_CEIL));
    x = sodet_dropout(g, "drop", x, 0.25f);
    x = bend(g, sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 40, .kernel = 3, .pad = {1, 1, 1, 1})));
    top = sodet_conv2d(g, "top", x, SODET_CONV2D(.out = 24, .kernel = 1));
    low = sodet_upsample_add(g, sodet_conv2d(g, "lateral", low, SODET_CONV2D(.out = 24, .kernel = 1)), top);
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter_shared(g, "head");
        sodet_value y = bend(g, sodet_conv2d(g, "a", i ? top : low, SODET_CONV2D(.out = 24, .kernel = 3, .pad = {1, 1, 1, 1})));
        y = sodet_conv2d(g, "b", y, SODET_CONV2D(.out = 9, .kernel = 3, .pad = {1, 1, 1, 1}));
        out[i] = sodet_permute(g, y, (const uint32_t[]){0, 2, 3, 1});
        sodet_leave(g);
    }
    for (uint32_t i = 0; i < 2; i++)
        if (training)
            sd_graph_add_loss(g, i ? "top" : "low", square_loss(g, out[i]));
        else
            sodet_output(g, i ? "top" : "low", out[i]);
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_OK(sd_graph_optimize(g, &err));
    if (training)
        CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

/* Nodes of the plan whose description has the text. */
static uint32_t described(rig *r, sodet_graph *g, const char *text)
{
    sodet_err err = SODET_ERR_INIT;
    rig_program p;
    uint32_t n = 0;
    CHECK_OK(rig_make(r, g, &p, &err));
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++) {
        const char *says = p.plan.describe(p.plan.handle, i);
        n += says && strstr(says, text);
    }
    rig_free(&p);
    return n;
}

/* A max pool between convolutions that want its maps narrow. Coarse inputs have many ties: the first of equals wins. */
static sodet_graph *pool(const sodet_pool_attr *window, int64_t c)
{
    enum { H = 13, W = 11 };
    sodet_pool_attr a = *window;
    sodet_conv2d_attr one = {1, 1, 1, 1, 1, 0, 0, 0, 0, SODET_ACT_NONE, 0, 1, 1, H, W};
    const int64_t oh = (H + a.pad_top + a.pad_bottom - a.kernel_h) / a.stride_h + 1,
                  ow = (W + a.pad_left + a.pad_right - a.kernel_w) / a.stride_w + 1;
    sodet_graph *g = rig_graph(true);
    sodet_value x = rig_input(g, "x", 2, c, H, W), out[2], dx, dw;
    sodet_add_node(g, &sodet_op_max_pool, 0, &a, &x, 1, out, 2);
    sodet_output(g, "y", sodet_apply(g, &sodet_op_conv2d, &one, (const sodet_value[]){out[0], rig_input(g, "w", 8, c, 1, 1)}, 2));
    a.in_h = H;
    a.in_w = W;
    sodet_add_node(g, &sodet_op_max_pool, 1, &a, (const sodet_value[]){out[1], rig_input(g, "dy", 2, c, oh, ow)}, 2, &dx, 1);
    sodet_add_node(g, &sodet_op_conv2d, 2, &one, (const sodet_value[]){dx, rig_input(g, "e", 2, 5, H, W)}, 2, &dw, 1);
    sodet_output(g, "dw", dw);
    return g;
}

/* In bf16 a map's rounding is at most 2^-8 of its value, its gradient's too, so a network of k maps one behind the other is off by some
 * sqrt(k) / 512 of the largest value: 1e-2 leaves room. Ties and gates that rounding sets otherwise are another matter: gradients are compared
 * without them, and the max pool's alone. */
static void in_bf16(bool native)
{
    rig cpu, ref;
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g;
    double off;
    sodet_status s = rig_open_as(&cpu, "cpu", 2, native ? "" : "[backend.cpu]\nbf16 = emulate\n", SODET_PRECISION_BF16, &err);
    smooth = false;
    if (native && s == SODET_E_UNSUPPORTED) { /* the processor; tests/backend/precision.c looks at the sentence */
        rig_close(&cpu);
        return;
    }
    CHECK_OK(s);
    rig_open(&ref, "ref", 1);
    ref.coarse = true;
#define NARROW(make, least, tolerance, what)                                                                                               \
    g = make;                                                                                                                              \
    off = rig_compare(&cpu, &ref, g, tolerance, what);                                                                                     \
    printf("%-28s %.3g, %u nodes in bf16\n", what, off, described(&cpu, g, "bf16"));                                                       \
    CHECK(off > 1e-4); /* or nothing was rounded */                                                                                        \
    CHECK(described(&cpu, g, "bf16") >= least);                                                                                            \
    sd_graph_free(g)
    static const sodet_pool_attr windows[] = {{3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0},
                                              {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0},
                                              {3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0},
                                              {5, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0}};
    for (uint32_t i = 0; i < 4; i++)
        for (int64_t c = 5; c < 140; c += 65) {
            g = pool(&windows[i], c);
            CHECK_EQ(described(&cpu, g, "own bf16"), 2);
            rig_compare(&cpu, &ref, g, i == 1 ? 1e-5 : 1.0 / 512, "pool, bf16"); /* where windows overlap, sums of gradients are rounded */
            sd_graph_free(g);
        }
    NARROW(tiny(false, 2, 24, 16), 5, 1e-2, "tiny, inference, bf16");
    NARROW(residual(false), 10, 1e-2, "residual, inference, bf16");
    NARROW(pyramid(false), 9, 1e-2, "pyramid, inference, bf16");
    smooth = true;
    NARROW(tiny(true, 2, 24, 16), 9, 1e-2, "tiny, training, bf16");
    NARROW(residual(true), 30, 1e-2, "residual, training, bf16");
    NARROW(pyramid(true), 30, 1e-2, "pyramid, training, bf16");
    rig_close(&cpu);
    rig_close(&ref);
}

int main(void)
{
    rig cpu, ref;
    rig_open(&cpu, "cpu", 2);
    rig_open(&ref, "ref", 1);
    sodet_graph *g;
    double off;
#define RUN(make, tolerance, what)                                                                                                         \
    g = make;                                                                                                                              \
    off = rig_compare(&cpu, &ref, g, tolerance, what);                                                                                     \
    printf("%-28s %.3g\n", what, off);                                                                                                     \
    sd_graph_free(g)
    RUN(tiny(false, 2, 24, 16), 1e-5, "tiny, inference");
    RUN(tiny(true, 2, 24, 16), 5e-5, "tiny, training");
    RUN(tiny(true, 3, 19, 10), 5e-5, "tiny, training, width 10");
    RUN(tiny(true, 1, 8, 3), 5e-5, "tiny, training, width 3");
    RUN(residual(false), 1e-5, "residual, inference");
    RUN(residual(true), 5e-5, "residual, training");
    RUN(pyramid(false), 1e-5, "pyramid, inference");
    RUN(pyramid(true), 5e-5, "pyramid, training");
    rig_close(&cpu);
    rig_close(&ref);
    in_bf16(false);
    in_bf16(true);
    return check_done(150);
}
