/* Layers. Maps are tried plain and, under the name "..., between convolutions", as the operator meets them in a network: what comes in was made by
 * a convolution and what goes out is read by one, so the CPU backend may keep them blocked. */
#include "kernels/kernels.h"
#include "opcase.h"

/* ---- around an operator ---- */
/* No bias: in front of a normalisation its gradient would be nothing but rounding. */
static sodet_value pointwise(opcase *c, const char *name, sodet_value x, uint32_t out)
{
    return sodet_conv2d(op_graph(c), name, x, SODET_CONV2D(.out = out, .kernel = 1, .flags = SODET_CONV_NO_BIAS));
}

/* Operand 0; option 7: through a convolution with that many channels. */
static sodet_value map(opcase *c)
{
    sodet_value x = op_real(c, 0);
    return op_option(c, 7) > 0 ? pointwise(c, "before", x, (uint32_t)op_option(c, 7)) : x;
}

static void result(opcase *c, sodet_value y)
{
    op_result(c, op_option(c, 7) > 0 ? pointwise(c, "behind", y, 5) : y);
}

/* ---- convolution ---- */
enum { OUT, KERNEL_H, KERNEL_W, STRIDE, DILATION, GROUPS, PAD };
static sodet_conv2d_desc conv_of(opcase *c)
{
    const uint32_t pad = (uint32_t)op_option(c, PAD);
    return (sodet_conv2d_desc){.struct_size = sizeof(sodet_conv2d_desc),
                               .out = (uint32_t)op_option(c, OUT),
                               .kernel_h = (uint32_t)op_option(c, KERNEL_H),
                               .kernel_w = (uint32_t)op_option(c, KERNEL_W),
                               .stride = (uint32_t)op_option(c, STRIDE),
                               .dilation = (uint32_t)op_option(c, DILATION),
                               .groups = (uint32_t)op_option(c, GROUPS),
                               .pad = {pad, pad, pad, pad}};
}

static void conv(opcase *c)
{
    sodet_conv2d_desc d = conv_of(c);
    op_result(c, sodet_conv2d(op_graph(c), "conv", op_real(c, 0), &d));
}

static void conv_no_bias(opcase *c)
{
    sodet_conv2d_desc d = conv_of(c);
    d.flags = SODET_CONV_NO_BIAS;
    op_result(c, sodet_conv2d(op_graph(c), "conv", op_real(c, 0), &d));
}

static void conv_same(opcase *c)
{
    sodet_conv2d_desc d = conv_of(c);
    d.flags = SODET_CONV_SAME;
    sodet_value x = op_real(c, 0), y = sodet_conv2d(op_graph(c), "conv", x, &d);
    const int64_t s = (int64_t)d.stride;
    CHECK_EQ(sodet_dim(op_graph(c), y, 2), (sodet_dim(op_graph(c), x, 2) + s - 1) / s);
    CHECK_EQ(sodet_dim(op_graph(c), y, 3), (sodet_dim(op_graph(c), x, 3) + s - 1) / s);
    op_result(c, y);
}

static void conv_uneven(opcase *c)
{
    op_result(c, sodet_conv2d(op_graph(c), "conv", op_real(c, 0),
                              SODET_CONV2D(.out = 3, .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad = {0, 1, 2, 3})));
}

/* Two uses of one weight: gradients add up. */
static void conv_shared(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x[2] = {op_real(c, 0), op_real(c, 1)};
    for (int i = 0; i < 2; i++) {
        sodet_enter_shared(g, "tower");
        op_result(c, sodet_conv2d(g, "conv", x[i], SODET_CONV2D(.out = 4, .kernel = 3, .pad = {1, 1, 1, 1})));
        sodet_leave(g);
    }
}

/* What the fusion pass makes: option 0 the activation, 1 the slope, 2 whether there is a residual, 3 whether there is a bias. */
static void conv_fused(opcase *c)
{
    const sodet_conv2d_attr a = {.stride_h = 1,
                                 .stride_w = 1,
                                 .dilation_h = 1,
                                 .dilation_w = 1,
                                 .groups = 1,
                                 .pad_top = 1,
                                 .pad_left = 1,
                                 .pad_bottom = 1,
                                 .pad_right = 1,
                                 .activation = (uint32_t)op_option(c, 0),
                                 .slope = (float)op_option(c, 1)};
    sodet_value in[4] = {op_real(c, 0), op_real(c, 1), SODET_NONE, SODET_NONE};
    if (op_option(c, 3) > 0)
        in[2] = op_real(c, 2);
    if (op_option(c, 2) > 0)
        in[3] = op_real(c, 3);
    sodet_value y = sodet_apply(op_graph(c), &sodet_op_conv2d, &a, in, 4);
    if (op_option(c, 4) > 0) /* the residual is used elsewhere too, so it may not be overwritten */
        op_result(c, sodet_add(op_graph(c), y, in[3]));
    op_result(c, y);
}

/* ---- normalisation ---- */
static void batch_norm(opcase *c)
{
    result(c, sodet_batch_norm(op_graph(c), "norm", map(c),
                               SODET_NORM(.epsilon = 1e-3f, .momentum = 0.3f, .flags = (uint32_t)op_option(c, 0))));
}

static void batch_norm_given(opcase *c)
{
    const sodet_batch_norm_attr a = {.epsilon = 1e-3f};
    sodet_value in[5] = {map(c), op_real(c, 1), op_real(c, 2), op_fixed(c, 3), op_fixed(c, 4)};
    result(c, sodet_apply(op_graph(c), &sodet_op_batch_norm, &a, in, 5));
}

/* With all_gather over one device: part by part as sodet_batch_norm puts them together. */
static void batch_norm_sync(opcase *c)
{
    sodet_graph *g = op_graph(c);
    const sodet_batch_norm_attr a = {.epsilon = 1e-3f, .momentum = 0.3f};
    sodet_value x = map(c), scale = op_real(c, 1), shift = op_real(c, 2), own, merged[5], y;
    sodet_add_node(g, &sodet_op_batch_norm_sync, 0, &a, &x, 1, &own, 1);
    sodet_value all = sodet_all_gather(g, own, 1);
    sodet_add_node(g, &sodet_op_batch_norm_sync, 1, &a, (const sodet_value[]){all, op_state(c, 3), op_state(c, 4)}, 3, merged, 5);
    sodet_add_node(g, &sodet_op_batch_norm_sync, 2, &a, (const sodet_value[]){x, scale, shift, merged[0], merged[1], merged[2]}, 6, &y, 1);
    result(c, y);
}

static void group_norm(opcase *c)
{
    result(c, sodet_group_norm(op_graph(c), "norm", map(c), SODET_GROUP_NORM(.groups = (uint32_t)op_option(c, 0))));
}

static void l2norm(opcase *c)
{
    result(c, sodet_l2norm(op_graph(c), "norm", map(c),
                           SODET_L2NORM(.guard = (uint32_t)op_option(c, 0), .epsilon = (float)op_option(c, 1), .scale = 20)));
}

/* ---- activation, softmax, dropout ---- */
static void activation(opcase *c)
{
    sodet_value x = map(c);
    if (op_option(c, 1) > 0) /* over the points where the function bends */
        x = sodet_mul(op_graph(c), x, sodet_scalar(op_graph(c), op_option(c, 1)));
    if ((uint32_t)op_option(c, 0) == SODET_ACT_LEAKY_RELU)
        result(c, sodet_leaky_relu(op_graph(c), x, 0.1f));
    else
        result(c, sodet_activation(op_graph(c), (uint32_t)op_option(c, 0), x));
}

static void softmax(opcase *c)
{
    op_result(c, sodet_softmax(op_graph(c), op_real(c, 0), (int32_t)op_option(c, 0)));
}

static void dropout(opcase *c)
{
    result(c, sodet_dropout(op_graph(c), "drop", map(c), (float)op_option(c, 0)));
}

/* ---- pools and resize ---- */
static sodet_pool_desc pool_of(opcase *c)
{
    return (sodet_pool_desc){.struct_size = sizeof(sodet_pool_desc),
                             .kernel_h = (uint32_t)op_option(c, 0),
                             .kernel_w = (uint32_t)op_option(c, 1),
                             .stride = (uint32_t)op_option(c, 2),
                             .pad = (uint32_t)op_option(c, 3),
                             .flags = (uint32_t)op_option(c, 4)};
}

static void max_pool(opcase *c)
{
    sodet_pool_desc d = pool_of(c);
    result(c, sodet_max_pool(op_graph(c), map(c), &d));
}

static void avg_pool(opcase *c)
{
    sodet_pool_desc d = pool_of(c);
    result(c, sodet_avg_pool(op_graph(c), map(c), &d));
}

static void uneven_pools(opcase *c)
{
    sodet_value x = map(c);
    op_result(c,
              sodet_max_pool(op_graph(c), x, SODET_POOL(.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 2, .pads = {0, 1, 2, 0})));
    op_result(c,
              sodet_avg_pool(op_graph(c), x, SODET_POOL(.kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 2, .pads = {0, 1, 2, 0})));
}

static void global_pools(opcase *c)
{
    sodet_value x = map(c);
    op_result(c, sodet_global_max_pool(op_graph(c), x));
    op_result(c, sodet_global_avg_pool(op_graph(c), x));
}

static void resize(opcase *c)
{
    result(c, sodet_resize(op_graph(c), map(c), (uint32_t)op_option(c, 0), (int64_t)op_option(c, 1), (int64_t)op_option(c, 2)));
}

/* ---- moving data ---- */
static void concat(opcase *c)
{
    sodet_value x[3] = {op_real(c, 0), op_real(c, 1), op_real(c, 2)};
    op_result(c, sodet_concat(op_graph(c), x, 3, (int32_t)op_option(c, 0)));
}

/* Options 1..3: channels of the three maps. */
static void concat_maps(opcase *c)
{
    sodet_value x = op_real(c, 0), y[3];
    const char *const names[3] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++)
        y[i] = pointwise(c, names[i], x, (uint32_t)op_option(c, 1 + i));
    op_result(c, pointwise(c, "behind", sodet_concat(op_graph(c), y, 3, (int32_t)op_option(c, 0)), 6));
}

static void concat_ints(opcase *c)
{
    sodet_value x[2] = {op_int(c, 0, -9, 9), op_int(c, 1, -9, 9)};
    op_result(c, sodet_concat(op_graph(c), x, 2, 1));
}

/* Options 0..: the order. */
static void permute(opcase *c)
{
    sodet_value x = map(c);
    uint32_t order[SODET_MAX_RANK] = {0};
    for (uint32_t i = 0; i < sodet_rank(op_graph(c), x); i++)
        order[i] = (uint32_t)op_option(c, i);
    op_result(c, sodet_permute(op_graph(c), x, order));
}

/* As a head does it: to [N, H * W * C / 3, 3]; and back into a map that a convolution reads. */
static void permute_head(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = map(c), rows = sodet_permute(g, x, (const uint32_t[]){0, 2, 3, 1});
    const int64_t n = sodet_dim(g, x, 0), ch = sodet_dim(g, x, 1), h = sodet_dim(g, x, 2), w = sodet_dim(g, x, 3);
    rows = sodet_reshape(g, rows, 3, (const int64_t[]){n, -1, 3});
    op_result(c, rows);
    sodet_value back = sodet_permute(g, sodet_reshape(g, rows, 4, (const int64_t[]){n, h, w, ch}), (const uint32_t[]){0, 3, 1, 2});
    op_result(c, pointwise(c, "behind", back, 4));
}

static void permute_ints(opcase *c)
{
    op_result(c, sodet_permute(op_graph(c), op_int(c, 0, -99, 99), (const uint32_t[]){2, 0, 1}));
}

/* Of a parameter, of a result, of a reshape; one that is an output, and one that another operator reads. */
static void reshape(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = op_real(c, 0), flat = sodet_reshape(g, x, 1, (const int64_t[]){-1});
    op_result(c, flat);
    op_result(c, sodet_square(g, sodet_reshape(g, flat, 2, (const int64_t[]){3, -1})));
    op_result(c, sodet_reshape(g, sodet_neg(g, sodet_reshape(g, x, 3, (const int64_t[]){2, 1, -1})), 2, (const int64_t[]){-1, 2}));
}

/* ---- a pyramid's step: upsampled, added, read twice ---- */
static void top_down(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value fine = pointwise(c, "fine", op_real(c, 0), 20), coarse = pointwise(c, "coarse", op_real(c, 1), 20);
    sodet_value sum = sodet_add(g, fine, sodet_resize(g, coarse, SODET_RESIZE_NEAREST, sodet_dim(g, fine, 2), sodet_dim(g, fine, 3)));
    op_result(c, sodet_conv2d(g, "out", sum, SODET_CONV2D(.out = 7, .kernel = 3, .pad = {1, 1, 1, 1})));
    op_result(c, sodet_relu(g, sum));
}

static void upsample_add(opcase *c)
{
    op_result(c, sodet_upsample_add(op_graph(c), op_real(c, 0), op_real(c, 1)));
}

/* Option 0: the finer map is read again, so the sum may not take its place. */
static void upsample_add_between(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value fine = pointwise(c, "fine", op_real(c, 0), 20),
                sum = sodet_upsample_add(g, fine, pointwise(c, "coarse", op_real(c, 1), 20));
    op_result(c, sodet_conv2d(g, "out", sum, SODET_CONV2D(.out = 7, .kernel = 3, .pad = {1, 1, 1, 1})));
    op_result(c, op_option(c, 0) > 0 ? sodet_mul(g, sum, fine) : sodet_relu(g, sum));
}

#define SPREAD .data = OP_SPREAD
#define FUSED(name_, ...)                                                                                                                  \
    {                                                                                                                                      \
        .name = "conv2d fused, " name_, .build = conv_fused, .shape = {"2x3x6x5", "20x3x3x3", "20", "2x20x6x5"}, .option = { __VA_ARGS__ } \
    }
const opcase_entry opcases_layers[] = {
    {.name = "conv2d 3x3", .build = conv, .shape = {"2x3x6x7"}, .option = {5, 3, 3, 1, 1, 1, 1}},
    {.name = "conv2d 3x3 stride 2", .build = conv, .shape = {"2x4x7x8"}, .option = {6, 3, 3, 2, 1, 1, 1}},
    {.name = "conv2d 1x1", .build = conv, .shape = {"2x20x5x4"}, .option = {17, 1, 1, 1, 1, 1, 0}},
    {.name = "conv2d 1x1, many places", .build = conv, .shape = {"3x5x20x21"}, .option = {6, 1, 1, 1, 1, 1, 0}},
    {.name = "conv2d 1x1 stride 2 without bias", .build = conv_no_bias, .shape = {"1x16x7x7"}, .option = {8, 1, 1, 2, 1, 1, 0}},
    {.name = "conv2d 7x7 stride 2", .build = conv, .shape = {"1x3x17x15"}, .option = {8, 7, 7, 2, 1, 1, 3}},
    {.name = "conv2d 3x3 dilation 6", .build = conv, .shape = {"1x4x9x9"}, .option = {6, 3, 3, 1, 6, 1, 6}},
    {.name = "conv2d depthwise 3x3", .build = conv_no_bias, .shape = {"2x18x6x6"}, .option = {18, 3, 3, 1, 1, 18, 1}},
    {.name = "conv2d depthwise 5x5 stride 2", .build = conv, .shape = {"1x8x9x8"}, .option = {8, 5, 5, 2, 1, 8, 2}},
    {.name = "conv2d depthwise with 2 outputs each", .build = conv, .shape = {"1x4x6x6"}, .option = {8, 3, 3, 1, 1, 4, 1}},
    {.name = "conv2d two groups", .build = conv, .shape = {"2x6x5x5"}, .option = {8, 3, 3, 1, 1, 2, 1}},
    {.name = "conv2d 1x3", .build = conv, .shape = {"1x3x5x7"}, .option = {4, 1, 3, 1, 1, 1, 0}},
    {.name = "conv2d 3x3 on one pixel", .build = conv, .shape = {"2x5x1x1"}, .option = {4, 3, 3, 1, 1, 1, 1}},
    {.name = "conv2d 3x3 on a column", .build = conv, .shape = {"2x5x7x1"}, .option = {4, 3, 3, 2, 1, 1, 1}},
    {.name = "conv2d without padding to one pixel", .build = conv, .shape = {"1x6x3x3"}, .option = {4, 3, 3, 1, 1, 1, 0}},
    {.name = "conv2d 32 to 48 channels at 12x13",
     .build = conv,
     .shape = {"1x32x12x13"},
     .option = {48, 3, 3, 1, 1, 1, 1},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "conv2d SAME stride 2 even", .build = conv_same, .shape = {"1x3x8x6"}, .option = {4, 3, 3, 2, 1, 1, 0}},
    {.name = "conv2d SAME stride 2 odd", .build = conv_same, .shape = {"1x3x7x5"}, .option = {4, 3, 3, 2, 1, 1, 0}},
    {.name = "conv2d SAME even kernel, dilated", .build = conv_same, .shape = {"1x3x9x8"}, .option = {4, 4, 2, 1, 2, 1, 0}},
    {.name = "conv2d SAME stride 3 kernel 2", .build = conv_same, .shape = {"1x3x10x9"}, .option = {4, 2, 2, 3, 1, 1, 0}},
    {.name = "conv2d uneven padding and strides", .build = conv_uneven, .shape = {"2x3x6x5"}},
    {.name = "conv2d of an empty batch", .build = conv, .shape = {"0x3x6x7"}, .option = {5, 3, 3, 1, 1, 1, 1}},
    {.name = "conv2d shared by two maps", .build = conv_shared, .shape = {"2x3x6x5", "2x3x3x4"}},
    FUSED("bias", SODET_ACT_NONE, 0, 0, 1),
    FUSED("relu", SODET_ACT_RELU, 0, 0, 0),
    FUSED("bias and relu", SODET_ACT_RELU, 0, 0, 1),
    FUSED("bias and relu6", SODET_ACT_RELU6, 0, 0, 1),
    FUSED("bias and leaky relu", SODET_ACT_LEAKY_RELU, 0.1, 0, 1),
    FUSED("bias and sigmoid", SODET_ACT_SIGMOID, 0, 0, 1),
    FUSED("bias and hard sigmoid", SODET_ACT_HARD_SIGMOID, 0, 0, 1),
    FUSED("residual", SODET_ACT_NONE, 0, 1, 0),
    FUSED("bias and residual", SODET_ACT_NONE, 0, 1, 1),
    FUSED("bias, residual and relu", SODET_ACT_RELU, 0, 1, 1),
    FUSED("bias, residual and leaky relu", SODET_ACT_LEAKY_RELU, 0.2, 1, 1),
    FUSED("residual that is used again, relu", SODET_ACT_RELU, 0, 1, 1, 1),
    {.name = "conv2d fused, hard swish, inference",
     .build = conv_fused,
     .shape = {"2x3x6x5", "20x3x3x3", "20", "2x20x6x5"},
     .option = {SODET_ACT_HARD_SWISH, 0, 0, 1},
     .flags = OP_INFERENCE},
    {.name = "conv2d fused, silu with residual, inference",
     .build = conv_fused,
     .shape = {"2x3x6x5", "20x3x3x3", "20", "2x20x6x5"},
     .option = {SODET_ACT_SILU, 0, 1, 1},
     .flags = OP_INFERENCE},

    {.name = "batch_norm train", .build = batch_norm, .shape = {"3x5x4x3"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "batch_norm train, 20 channels", .build = batch_norm, .shape = {"2x20x3x3"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "batch_norm train, rank 2", .build = batch_norm, .shape = {"7x5"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "batch_norm train, rank 3", .build = batch_norm, .shape = {"3x5x6"}, .forward = 5e-6, .backward = 5e-6},
    /* x itself carries 3e-5 of the deviation there */
    {.name = "batch_norm train, large mean",
     .build = batch_norm,
     .shape = {"2x4x9x8"},
     .data = OP_LARGE_MEAN,
     .forward = 2e-4,
     .backward = 2e-4,
     .slope = 1e-5},
    {.name = "batch_norm train, one number a channel", .build = batch_norm, .shape = {"1x6x1x1"}, .flags = OP_NO_DIFFERENCES},
    {.name = "batch_norm train, without scale and shift",
     .build = batch_norm,
     .shape = {"3x5x4x3"},
     .option = {SODET_NORM_NO_SCALE | SODET_NORM_NO_SHIFT},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "batch_norm train, between convolutions",
     .build = batch_norm,
     .shape = {"2x3x7x5"},
     .option = {[7] = 20},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "batch_norm train, wide, between convolutions",
     .build = batch_norm,
     .shape = {"2x3x19x17"},
     .option = {[7] = 32},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "batch_norm frozen", .build = batch_norm, .shape = {"3x5x4x3"}, .option = {SODET_NORM_FROZEN}},
    {.name = "batch_norm frozen, between convolutions",
     .build = batch_norm,
     .shape = {"2x3x4x3"},
     .option = {SODET_NORM_FROZEN, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "batch_norm inference", .build = batch_norm, .shape = {"3x5x4x3"}, .flags = OP_INFERENCE},
    {.name = "batch_norm inference, between convolutions",
     .build = batch_norm,
     .shape = {"2x3x4x3"},
     .option = {[7] = 20},
     .flags = OP_INFERENCE,
     .forward = 5e-6},
    {.name = "batch_norm given statistics",
     .build = batch_norm_given,
     .shape = {"3x5x4x3", "5", "5", "5", "5"},
     .data_of = {[4] = 1 + OP_POSITIVE}},
    {.name = "batch_norm given statistics, between convolutions",
     .build = batch_norm_given,
     .shape = {"2x3x5x5", "20", "20", "20", "20"},
     .data_of = {[4] = 1 + OP_POSITIVE},
     .option = {[7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "batch_norm_sync", .build = batch_norm_sync, .shape = {"3x5x4x3", "5", "5", "5", "5"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "batch_norm_sync, area 35, 20 channels",
     .build = batch_norm_sync,
     .shape = {"2x20x5x7", "20", "20", "20", "20"},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "batch_norm_sync, rank 2", .build = batch_norm_sync, .shape = {"7x5", "5", "5", "5", "5"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "batch_norm_sync, large mean",
     .build = batch_norm_sync,
     .shape = {"2x4x9x8", "4", "4", "4", "4"},
     .data_of = {1 + OP_LARGE_MEAN},
     .forward = 2e-4,
     .backward = 2e-4,
     .slope = 1e-5},
    {.name = "batch_norm_sync, between convolutions",
     .build = batch_norm_sync,
     .shape = {"2x3x7x5", "20", "20", "20", "20"},
     .option = {[7] = 20},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "batch_norm_sync, wide, between convolutions",
     .build = batch_norm_sync,
     .shape = {"2x3x19x17", "32", "32", "32", "32"},
     .option = {[7] = 32},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "group_norm 4 groups", .build = group_norm, .shape = {"2x8x3x4"}, .option = {4}, .forward = 5e-6, .backward = 5e-6},
    {.name = "group_norm 1 group", .build = group_norm, .shape = {"2x5x3x4"}, .option = {1}, .forward = 5e-6, .backward = 5e-6},
    {.name = "group_norm each channel", .build = group_norm, .shape = {"2x6x5x7"}, .option = {6}, .forward = 5e-6, .backward = 5e-6},
    {.name = "group_norm rank 3", .build = group_norm, .shape = {"2x6x35"}, .option = {3}, .forward = 5e-6, .backward = 5e-6},
    {.name = "group_norm large mean",
     .build = group_norm,
     .shape = {"2x6x5x7"},
     .option = {3},
     .data = OP_LARGE_MEAN,
     .forward = 2e-4,
     .backward = 2e-4,
     .slope = 1e-5},
    {.name = "group_norm groups across blocks, between convolutions",
     .build = group_norm,
     .shape = {"2x3x5x6"},
     .option = {3, [7] = 36},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "group_norm groups in a block, between convolutions",
     .build = group_norm,
     .shape = {"2x3x9x9"},
     .option = {8, [7] = 32},
     .forward = 1e-5,
     .backward = 1e-5},
    {.name = "l2norm add", .build = l2norm, .shape = {"2x6x4x9"}, .option = {SODET_L2NORM_ADD, 1e-3}},
    {.name = "l2norm max", .build = l2norm, .shape = {"2x6x4x9"}, .option = {SODET_L2NORM_MAX, 1e-3}},
    {.name = "l2norm max, below epsilon", .build = l2norm, .shape = {"2x6x4x9"}, .option = {SODET_L2NORM_MAX, 100}},
    {.name = "l2norm inside", .build = l2norm, .shape = {"2x6x4x9"}, .option = {SODET_L2NORM_INSIDE, 1e-3}},
    {.name = "l2norm add of zeros",
     .build = l2norm,
     .shape = {"1x6x2x3"},
     .option = {SODET_L2NORM_ADD},
     .data = OP_ZEROS,
     .flags = OP_NO_DIFFERENCES},
    {.name = "l2norm max of zeros",
     .build = l2norm,
     .shape = {"1x6x2x3"},
     .option = {SODET_L2NORM_MAX},
     .data = OP_ZEROS,
     .flags = OP_NO_DIFFERENCES},
    {.name = "l2norm inside of zeros",
     .build = l2norm,
     .shape = {"1x6x2x3"},
     .option = {SODET_L2NORM_INSIDE},
     .data = OP_ZEROS,
     .flags = OP_NO_DIFFERENCES},
    {.name = "l2norm add, 40 channels, between convolutions",
     .build = l2norm,
     .shape = {"2x3x7x9"},
     .option = {SODET_L2NORM_ADD, 1e-3, [7] = 40},
     .forward = 5e-6,
     .backward = 1e-5},
    {.name = "l2norm max, 32 channels, between convolutions",
     .build = l2norm,
     .shape = {"2x3x12x11"},
     .option = {SODET_L2NORM_MAX, 1e-3, [7] = 32},
     .forward = 5e-6,
     .backward = 1e-5},

#define ACTIVATION(name_, kind)                                                                                                            \
    {.name = name_, .build = activation, .shape = {"3x7x5x4"}, .option = {kind, 7}, SPREAD},                                               \
        {.name = name_ " of NaN and infinities",                                                                                           \
         .build = activation,                                                                                                              \
         .shape = {"60"},                                                                                                                  \
         .option = {kind},                                                                                                                 \
         .data = OP_SPECIAL,                                                                                                               \
         .flags = OP_NO_GRADIENT},                                                                                                         \
    {                                                                                                                                      \
        .name = name_ ", between convolutions", .build = activation, .shape = {"2x3x5x4"}, .option = {kind, 4, [7] = 20}, .forward = 5e-6, \
        .backward = 5e-6                                                                                                                   \
    }
    ACTIVATION("relu", SODET_ACT_RELU),
    ACTIVATION("relu6", SODET_ACT_RELU6),
    ACTIVATION("leaky relu", SODET_ACT_LEAKY_RELU),
    ACTIVATION("hard swish", SODET_ACT_HARD_SWISH),
    ACTIVATION("hard sigmoid", SODET_ACT_HARD_SIGMOID),
    ACTIVATION("sigmoid", SODET_ACT_SIGMOID),
    ACTIVATION("silu", SODET_ACT_SILU),
    {.name = "relu at 0",
     .build = activation,
     .shape = {"40"},
     .option = {SODET_ACT_RELU},
     .data = OP_TIES,
     .forward = OP_EXACT,
     .backward = OP_EXACT,
     .flags = OP_NO_DIFFERENCES},
    {.name = "hard swish at its bends",
     .build = activation,
     .shape = {"40"},
     .option = {SODET_ACT_HARD_SWISH, 6},
     .data = OP_TIES,
     .flags = OP_NO_DIFFERENCES},
    {.name = "softmax last axis", .build = softmax, .shape = {"5x7x21"}, .option = {-1}},
    {.name = "softmax 81 columns", .build = softmax, .shape = {"40x81"}, .option = {-1}, .data = OP_WIDE},
    {.name = "softmax one column", .build = softmax, .shape = {"6x1"}, .option = {-1}},
    {.name = "softmax middle axis", .build = softmax, .shape = {"3x5x70"}, .option = {1}},
    {.name = "softmax first axis", .build = softmax, .shape = {"6x4"}, .option = {0}},
    {.name = "softmax over channels", .build = softmax, .shape = {"2x20x3x5"}, .option = {1}},
    {.name = "softmax large mean",
     .build = softmax,
     .shape = {"6x9"},
     .option = {-1},
     .data = OP_LARGE_MEAN,
     .forward = 2e-4,
     .backward = 2e-4},
    {.name = "dropout", .build = dropout, .shape = {"3x5x4x9"}, .option = {0.3}},
    {.name = "dropout, between convolutions",
     .build = dropout,
     .shape = {"2x3x4x9"},
     .option = {0.5, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "dropout long", .build = dropout, .shape = {"9001"}, .option = {0.5}, .slope = 1e-5},

    {.name = "max_pool 2x2", .build = max_pool, .shape = {"2x3x6x8"}, .option = {2, 2, 0, 0, 0}, SPREAD, .forward = OP_EXACT},
    {.name = "max_pool 2x2 floor", .build = max_pool, .shape = {"2x3x5x7"}, .option = {2, 2, 2, 0, 0}, SPREAD, .forward = OP_EXACT},
    {.name = "max_pool 2x2 ceil",
     .build = max_pool,
     .shape = {"2x3x5x7"},
     .option = {2, 2, 2, 0, SODET_POOL_CEIL},
     SPREAD,
     .forward = OP_EXACT},
    {.name = "max_pool 3x3 stride 2 pad 1",
     .build = max_pool,
     .shape = {"2x3x7x6"},
     .option = {3, 3, 2, 1, 0},
     SPREAD,
     .forward = OP_EXACT},
    {.name = "max_pool 3x3 stride 2 pad 1 ceil",
     .build = max_pool,
     .shape = {"2x3x8x6"},
     .option = {3, 3, 2, 1, SODET_POOL_CEIL},
     SPREAD,
     .forward = OP_EXACT},
    {.name = "max_pool 3x3 stride 1", .build = max_pool, .shape = {"2x3x5x5"}, .option = {3, 3, 1, 1, 0}, SPREAD, .forward = OP_EXACT},
    {.name = "max_pool stride beyond the kernel, ceil",
     .build = max_pool,
     .shape = {"1x2x7x10"},
     .option = {2, 2, 3, 0, SODET_POOL_CEIL},
     SPREAD,
     .forward = OP_EXACT},
    {.name = "max_pool of equals",
     .build = max_pool,
     .shape = {"1x4x6x6"},
     .option = {3, 3, 2, 1, 0},
     .data = OP_TIES,
     .forward = OP_EXACT,
     .flags = OP_NO_DIFFERENCES},
    {.name = "max_pool of negatives at the edge",
     .build = max_pool,
     .shape = {"1x2x4x4"},
     .option = {3, 3, 2, 1, SODET_POOL_CEIL},
     .data = OP_UNIFORM,
     .forward = OP_EXACT},
    {.name = "max_pool, between convolutions",
     .build = max_pool,
     .shape = {"2x3x9x8"},
     .option = {3, 3, 2, 1, 0, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "max_pool 2x2 ceil, between convolutions",
     .build = max_pool,
     .shape = {"2x3x9x7"},
     .option = {2, 2, 2, 0, SODET_POOL_CEIL, [7] = 32},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "max_pool inference",
     .build = max_pool,
     .shape = {"2x3x7x6"},
     .option = {3, 3, 2, 1, 0},
     .forward = OP_EXACT,
     .flags = OP_INFERENCE},
    {.name = "avg_pool 2x2", .build = avg_pool, .shape = {"2x3x6x8"}, .option = {2, 2, 0, 0, 0}},
    {.name = "avg_pool 3x3 stride 2 pad 1", .build = avg_pool, .shape = {"2x3x7x6"}, .option = {3, 3, 2, 1, 0}},
    {.name = "avg_pool 3x3 stride 2 pad 1 on the map",
     .build = avg_pool,
     .shape = {"2x3x7x6"},
     .option = {3, 3, 2, 1, SODET_POOL_EXCLUDE_PAD}},
    {.name = "avg_pool 3x3 stride 2 pad 1 ceil", .build = avg_pool, .shape = {"2x3x8x6"}, .option = {3, 3, 2, 1, SODET_POOL_CEIL}},
    {.name = "avg_pool 2x2 ceil", .build = avg_pool, .shape = {"2x3x5x7"}, .option = {2, 2, 2, 0, SODET_POOL_CEIL}},
    {.name = "avg_pool 2x2 ceil on the map",
     .build = avg_pool,
     .shape = {"2x3x5x7"},
     .option = {2, 2, 2, 0, SODET_POOL_CEIL | SODET_POOL_EXCLUDE_PAD}},
    {.name = "avg_pool, between convolutions",
     .build = avg_pool,
     .shape = {"2x3x7x6"},
     .option = {3, 3, 2, 1, 0, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "pools with uneven padding and strides", .build = uneven_pools, .shape = {"2x3x6x5"}, SPREAD},
    {.name = "global pools", .build = global_pools, .shape = {"2x5x4x3"}, SPREAD},
    {.name = "global pools behind a convolution",
     .build = global_pools,
     .shape = {"2x3x4x5"},
     .option = {[7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},

    {.name = "resize nearest up", .build = resize, .shape = {"2x3x3x4"}, .option = {SODET_RESIZE_NEAREST, 6, 8}},
    {.name = "resize nearest uneven", .build = resize, .shape = {"2x3x3x4"}, .option = {SODET_RESIZE_NEAREST, 5, 7}},
    {.name = "resize nearest down", .build = resize, .shape = {"2x3x7x9"}, .option = {SODET_RESIZE_NEAREST, 3, 4}},
    {.name = "resize bilinear up", .build = resize, .shape = {"2x3x3x4"}, .option = {SODET_RESIZE_BILINEAR, 6, 8}},
    {.name = "resize bilinear uneven", .build = resize, .shape = {"2x3x3x4"}, .option = {SODET_RESIZE_BILINEAR, 5, 7}},
    {.name = "resize bilinear down", .build = resize, .shape = {"2x3x7x9"}, .option = {SODET_RESIZE_BILINEAR, 4, 5}},
    {.name = "resize bilinear of one pixel", .build = resize, .shape = {"2x3x1x1"}, .option = {SODET_RESIZE_BILINEAR, 4, 5}},
    {.name = "resize to the same size",
     .build = resize,
     .shape = {"2x3x3x4"},
     .option = {SODET_RESIZE_BILINEAR, 3, 4},
     .forward = OP_EXACT},
    {.name = "resize nearest, between convolutions",
     .build = resize,
     .shape = {"2x3x3x4"},
     .option = {SODET_RESIZE_NEAREST, 5, 7, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "resize bilinear, between convolutions",
     .build = resize,
     .shape = {"2x3x3x4"},
     .option = {SODET_RESIZE_BILINEAR, 5, 7, [7] = 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "top-down step of a pyramid", .build = top_down, .shape = {"2x3x7x5", "2x4x4x3"}, .forward = 5e-6, .backward = 5e-6},
    {.name = "upsample_add", .build = upsample_add, .shape = {"2x3x6x8", "2x3x3x4"}},
    {.name = "upsample_add uneven", .build = upsample_add, .shape = {"2x3x7x5", "2x3x4x3"}},
    {.name = "upsample_add along one side", .build = upsample_add, .shape = {"2x3x4x9", "2x3x4x2"}},
    {.name = "upsample_add of one pixel", .build = upsample_add, .shape = {"2x3x4x5", "2x3x1x1"}},
    {.name = "upsample_add of the same size", .build = upsample_add, .shape = {"2x3x4x5", "2x3x4x5"}},
    {.name = "upsample_add, between convolutions",
     .build = upsample_add_between,
     .shape = {"2x3x7x5", "2x4x4x3"},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "upsample_add, between convolutions, whose finer map is kept",
     .build = upsample_add_between,
     .shape = {"2x3x8x6", "2x4x4x3"},
     .option = {1},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "upsample_add of the same size, between convolutions",
     .build = upsample_add_between,
     .shape = {"2x3x4x3", "2x4x4x3"},
     .forward = 5e-6,
     .backward = 5e-6},

    {.name = "concat last axis",
     .build = concat,
     .shape = {"2x3x4", "2x3x1", "2x3x5"},
     .option = {-1},
     .forward = OP_EXACT,
     .backward = OP_EXACT},
    {.name = "concat middle axis",
     .build = concat,
     .shape = {"2x30x4", "2x1x4", "2x5x4"},
     .option = {1},
     .forward = OP_EXACT,
     .backward = OP_EXACT},
    {.name = "concat first axis",
     .build = concat,
     .shape = {"2x3", "1x3", "4x3"},
     .option = {0},
     .forward = OP_EXACT,
     .backward = OP_EXACT},
    {.name = "concat with an empty one",
     .build = concat,
     .shape = {"2x3x4", "2x0x4", "2x5x4"},
     .option = {1},
     .forward = OP_EXACT,
     .backward = OP_EXACT},
    {.name = "concat long",
     .build = concat,
     .shape = {"2x9000", "2x17000", "2x3"},
     .option = {1},
     .forward = OP_EXACT,
     .backward = OP_EXACT,
     .flags = OP_NO_DIFFERENCES},
    {.name = "concat of int32", .build = concat_ints, .shape = {"2x3", "2x4"}},
    {.name = "concat of channels in whole blocks",
     .build = concat_maps,
     .shape = {"2x3x4x5"},
     .option = {1, 16, 32, 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "concat of channels in parts of blocks",
     .build = concat_maps,
     .shape = {"2x3x4x5"},
     .option = {1, 5, 20, 18},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "concat of rows of maps",
     .build = concat_maps,
     .shape = {"2x3x4x5"},
     .option = {2, 20, 20, 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "concat of columns of maps",
     .build = concat_maps,
     .shape = {"2x3x4x5"},
     .option = {3, 20, 20, 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "concat of samples of maps",
     .build = concat_maps,
     .shape = {"2x3x4x5"},
     .option = {0, 20, 20, 20},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "permute to NHWC", .build = permute, .shape = {"2x21x5x7"}, .option = {0, 2, 3, 1}, .forward = OP_EXACT, .backward = OP_EXACT},
    {.name = "permute to NCHW", .build = permute, .shape = {"2x5x7x21"}, .option = {0, 3, 1, 2}, .forward = OP_EXACT, .backward = OP_EXACT},
    {.name = "permute rows", .build = permute, .shape = {"4x3x17"}, .option = {1, 0, 2}, .forward = OP_EXACT, .backward = OP_EXACT},
    {.name = "permute turned over",
     .build = permute,
     .shape = {"2x3x4x5x6"},
     .option = {4, 3, 2, 1, 0},
     .forward = OP_EXACT,
     .backward = OP_EXACT},
    {.name = "permute nothing", .build = permute, .shape = {"2x3x4"}, .option = {0, 1, 2}, .forward = OP_EXACT, .backward = OP_EXACT},
    {.name = "permute of ones", .build = permute, .shape = {"1x5x1x3"}, .option = {2, 3, 0, 1}, .forward = OP_EXACT, .backward = OP_EXACT},
    {.name = "permute behind a convolution",
     .build = permute,
     .shape = {"2x3x5x7"},
     .option = {0, 2, 3, 1, [7] = 36},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "permute of a head and back",
     .build = permute_head,
     .shape = {"2x3x5x7"},
     .option = {[7] = 36},
     .forward = 5e-6,
     .backward = 5e-6},
    {.name = "permute of int32", .build = permute_ints, .shape = {"3x4x5"}},
    {.name = "reshape", .build = reshape, .shape = {"2x3x4"}},
    {.name = NULL}};
