/* Whole small networks on cpu against ref: values that stay blocked from layer to layer, reorders where they must, fused batch norm and relu,
 * in-place work, shared parameters, and the gradients of all of it. */
#include "rig.h"

#include "kernels/kernels.h"

static sodet_value block(sodet_graph *g, const char *name, sodet_value x, uint32_t out, bool norm)
{
    sodet_enter(g, "%s", name);
    x = sodet_conv2d(g, "conv", x,
                     SODET_CONV2D(.out = out, .kernel = 3, .pad = {1, 1, 1, 1},
                                  .flags = norm ? SODET_CONV_NO_BIAS : 0)); /* in front of a norm a bias has no gradient */
    if (norm)
        x = sodet_batch_norm(g, "norm", x, SODET_NORM(.flags = 0));
    x = sodet_relu(g, x);
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
        x = sodet_max_pool(g, x, SODET_POOL(.kernel = 2));
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
    x = sodet_relu(g, x);
    x = sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 2, .pad = 1));
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter(g, "layer%u", i);
        sodet_value y = sodet_relu(g, sodet_conv2d(g, "conv1", x, SODET_CONV2D(.out = 32, .kernel = 1, .stride = 1 + i)));
        y = sodet_relu(g, sodet_conv2d(g, "conv2", y, SODET_CONV2D(.out = 32, .kernel = 3, .pad = {1, 1, 1, 1})));
        y = sodet_conv2d(g, "conv3", y, SODET_CONV2D(.out = 64, .kernel = 1));
        sodet_value shortcut = sodet_conv2d(g, "down", x, SODET_CONV2D(.out = 64, .kernel = 1, .stride = 1 + i));
        x = levels[i] = sodet_relu(g, sodet_add(g, y, shortcut));
        sodet_leave(g);
    }
    for (uint32_t i = 0; i < 2; i++) {
        sodet_enter_shared(g, "tower");
        sodet_value y = sodet_relu(g, sodet_conv2d(g, "a", levels[i], SODET_CONV2D(.out = 32, .kernel = 3, .pad = {1, 1, 1, 1})));
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
    rig_close(&cpu);
    rig_close(&ref);
    return check_done(60);
}
