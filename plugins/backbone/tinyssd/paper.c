/* Tiny SSD of Wong et al. 2018. The paper's tables contradict each other; the numbers are those of the port's trained network:
 * no ReLU after a squeeze; batch norm only from Fire 8 on, where the convolutions keep their bias beside it; a batch norm in front of
 * head 1 alone; max pools 3x3, stride 2, rounding up. */
#include "tinyssd.h"

typedef struct fire {
    uint32_t squeeze, expand1, expand3;
    uint32_t norm; /* 1: on the expands, 2: on the squeeze too */
    uint32_t pool; /* behind it */
} fire;

static const fire fires[10] = {
    {15, 49, 53, 0, 0},   {15, 54, 52, 0, 1},   {29, 92, 94, 0, 0}, {29, 90, 83, 0, 1}, {44, 166, 161, 0, 0},
    {45, 155, 146, 0, 0}, {49, 163, 171, 0, 0}, {25, 29, 54, 1, 1}, {37, 45, 56, 2, 1}, {38, 41, 44, 2, 0},
};

static sodet_value pool(sodet_graph *g, sodet_value x)
{
    return sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 2, .flags = SODET_POOL_CEIL));
}

static sodet_value fire_module(sodet_graph *g, uint32_t number, sodet_value x, const fire *f, double width)
{
    sodet_enter(g, "fire%u", number);
    x = sodet_conv2d(g, "squeeze", x, SODET_CONV2D(.out = sodet_widen(f->squeeze, width), .kernel = 1));
    if (f->norm >= 2)
        x = sodet_batch_norm(g, "squeeze_norm", x, SODET_NORM(.epsilon = 1e-5f));
    sodet_value e[2];
    e[0] = sodet_conv2d(g, "expand1", x, SODET_CONV2D(.out = sodet_widen(f->expand1, width), .kernel = 1));
    e[1] = sodet_conv2d(g, "expand3", x, SODET_CONV2D(.out = sodet_widen(f->expand3, width), .kernel = 3, .pad = {1, 1, 1, 1}));
    if (f->norm >= 1) {
        e[0] = sodet_batch_norm(g, "expand1_norm", e[0], SODET_NORM(.epsilon = 1e-5f));
        e[1] = sodet_batch_norm(g, "expand3_norm", e[1], SODET_NORM(.epsilon = 1e-5f));
    }
    for (uint32_t i = 0; i < 2; i++)
        e[i] = sodet_relu(g, e[i]);
    x = sodet_concat(g, e, 2, 1);
    sodet_leave(g);
    return x;
}

static sodet_value conv_norm_relu(sodet_graph *g, const char *name, sodet_value x, uint32_t channels, uint32_t kernel)
{
    sodet_enter(g, "%s", name);
    uint32_t pad = kernel / 2;
    x = sodet_conv2d(g, "conv", x,
                     SODET_CONV2D(.out = channels, .kernel = kernel, .stride = kernel == 3 ? 2 : 1, .pad = {pad, pad, pad, pad},
                                  .flags = SODET_CONV_NO_BIAS));
    x = sodet_relu(g, sodet_batch_norm(g, "norm", x, SODET_NORM(.epsilon = 1e-5f)));
    sodet_leave(g);
    return x;
}

static void emit(sodet_graph *g, sodet_features *out, sodet_value map, uint32_t stride)
{
    if (sodet_dim(g, map, 2) == 1 && sodet_dim(g, map, 3) == 1)
        sodet_emit_global_feature(g, out, map);
    else
        sodet_emit_feature(g, out, map, stride);
}

void tinyssd_paper(const tinyssd_cfg *cfg, sodet_graph *g, sodet_value x, sodet_features *out)
{
    const double w = cfg->width;
    uint32_t stride = 4;
    x = pool(g, sodet_relu(g, sodet_conv2d(g, "conv1", x, SODET_CONV2D(.out = sodet_widen(57, w), .kernel = 3, .stride = 2))));
    for (uint32_t i = 1; i <= 10; i++) {
        x = fire_module(g, i, x, &fires[i - 1], w);
        if (i == 4)
            emit(g, out, sodet_batch_norm(g, "head1_norm", x, SODET_NORM(.epsilon = 1e-5f)), stride);
        else if (i >= 8)
            emit(g, out, x, stride);
        if (fires[i - 1].pool) {
            x = pool(g, x);
            stride *= 2;
        }
    }
    x = conv_norm_relu(g, "conv12_1", x, sodet_widen(51, w), 1);
    x = conv_norm_relu(g, "conv12_2", x, sodet_widen(46, w), 3);
    emit(g, out, x, stride * 2);
    x = conv_norm_relu(g, "conv13_1", x, sodet_widen(55, w), 1);
    x = conv_norm_relu(g, "conv13_2", x, sodet_widen(85, w), 3);
    emit(g, out, x, stride * 4);
}
