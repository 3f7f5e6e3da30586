/* labels: valgrind */
/* What layers say when they are asked for something that cannot be: the layer's path, what was given, what is wanted. And their costs. */
#include "check.h"
#include "core/graph/graph.h"
#include "kernels/kernels.h"

static sodet_graph *fresh(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(&(sd_graph_options){.training = training}, &g, &err));
    return g;
}

static sodet_value map(sodet_graph *g, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const sodet_shape s = sodet_shape_make(SODET_F32, 4, n, c, h, w);
    return sodet_input(g, "x", &s);
}

/* The call inside poisons the graph with this message. */
#define FAILS(call, part)                                                                                                                  \
    do {                                                                                                                                   \
        sodet_graph *g = fresh(true);                                                                                                      \
        sodet_value x = map(g, 2, 6, 5, 7);                                                                                                \
        sodet_err err = SODET_ERR_INIT;                                                                                                    \
        sodet_enter(g, "head");                                                                                                            \
        sodet_value y = call;                                                                                                              \
        sodet_leave(g);                                                                                                                    \
        CHECK_EQ(y.id, UINT32_MAX);                                                                                                        \
        CHECK_FAILS(sodet_graph_status(g, &err), SODET_E_INVALID, part);                                                                   \
        CHECK(strncmp(err.text, "head", 4) == 0);                                                                                          \
        sd_graph_free(g);                                                                                                                  \
    } while (0)

static void messages(void)
{
    FAILS(sodet_conv2d(g, "c", x, SODET_CONV2D(.kernel = 3)), "output channels and kernel are required");
    FAILS(sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 4)), "required");
    FAILS(sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 4, .kernel = 6)),
          "head/c: conv2d: the map's height 5 with padding 0 is less than the kernel's reach 6");
    FAILS(sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 4, .kernel = 3, .dilation = 4)), "reach 9");
    FAILS(sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 8, .kernel = 1, .groups = 4)),
          "6 input and 8 output channels cannot be dealt to 4 groups");
    FAILS(sodet_conv2d(g, "c", sodet_reshape(g, x, 1, (const int64_t[]){-1}), SODET_CONV2D(.out = 8, .kernel = 1)),
          "x is 420 f32, rank 4 in float32 expected");
    FAILS(sodet_max_pool(g, x, SODET_POOL(.kernel = 2, .pad = 2)), "paddings less than the kernel expected");
    FAILS(sodet_max_pool(g, x, SODET_POOL(.kernel_h = 6, .kernel_w = 1)), "height 5 with padding 0 is less than the kernel 6");
    FAILS(sodet_avg_pool(g, x, SODET_POOL(.stride = 2)), "kernel 0");
    FAILS(sodet_group_norm(g, "n", x, SODET_GROUP_NORM(.groups = 4)), "6 channels in 4 groups");
    FAILS(sodet_batch_norm(g, "n", sodet_reshape(g, x, 1, (const int64_t[]){-1}), SODET_NORM(.epsilon = 0)),
          "x has rank 1, at least 2 expected");
    FAILS(sodet_l2norm(g, "n", x, SODET_L2NORM(.guard = 7)), "guard 7");
    FAILS(sodet_leaky_relu(g, x, -0.5f), "slope = -0.5");
    FAILS(sodet_activation(g, 99, x), "kind 99");
    FAILS(sodet_softmax(g, x, 4), "axis 4");
    FAILS(sodet_softmax(g, x, -5), "axis -1");
    FAILS(sodet_dropout(g, "d", x, 1), "rate = 1");
    FAILS(sodet_dropout(g, "d", x, NAN), "rate = nan");
    FAILS(sodet_resize(g, x, SODET_RESIZE_BILINEAR, 0, 4), "to 0x4");
    FAILS(sodet_resize(g, x, 5, 4, 4), "kind 5");
    FAILS(sodet_upsample_add(g, sodet_max_pool(g, x, SODET_POOL(.kernel = 2)), x), "b is 2x6x5x7 f32, a is 2x6x2x3 f32");
    FAILS(sodet_upsample_add(g, x, sodet_slice(g, x, 1, 0, 1)), "the same images and channels");
    FAILS(sodet_upsample_add(g, x, sodet_reshape(g, x, 1, (const int64_t[]){-1})), "b is 420 f32, rank 4 in float32 expected");
    FAILS(sodet_concat(g, &x, 0, 1), "no inputs");
    FAILS(sodet_concat(g, ((const sodet_value[]){x, sodet_max_pool(g, x, SODET_POOL(.kernel = 2))}), 2, 1),
          "input 1 is 2x6x2x3 f32, but input 0 is 2x6x5x7 f32");
    FAILS(sodet_concat(g, ((const sodet_value[]){x, x}), 2, 4), "axis 4");
    FAILS(sodet_permute(g, x, (const uint32_t[]){0, 1, 2, 2}), "axis 2 at place 3");
    FAILS(sodet_permute(g, x, (const uint32_t[]){0, 1, 2, 4}), "axis 4 at place 3");
    FAILS(sodet_reshape(g, x, 2, (const int64_t[]){2, 100}), "2x6x5x7 f32 cannot become 2x100 f32");
    FAILS(sodet_reshape(g, x, 2, (const int64_t[]){-1, -1}), "dim 1 is -1");
    FAILS(sodet_reshape(g, x, 3, (const int64_t[]){-1, 4, 4}), "numbers of elements differ");
}

/* A shape of an output, or of a poisoned graph's, which reads 1. */
static void shapes(void)
{
    sodet_graph *g = fresh(false);
    sodet_value x = map(g, 2, 6, 5, 7);
    sodet_shape s = sodet_shape_of(g, sodet_max_pool(g, x, SODET_POOL(.kernel = 2, .flags = SODET_POOL_CEIL)));
    CHECK(s.dim[2] == 3 && s.dim[3] == 4);
    s = sodet_shape_of(g, sodet_max_pool(g, x, SODET_POOL(.kernel = 2, .stride = 3, .pad = 1, .flags = SODET_POOL_CEIL)));
    CHECK(s.dim[2] == 2 && s.dim[3] == 3); /* another row and another column of windows would begin behind the map */
    s = sodet_shape_of(g, sodet_global_avg_pool(g, x));
    CHECK(s.rank == 4 && s.dim[1] == 6 && s.dim[2] == 1 && s.dim[3] == 1);
    CHECK_EQ(sodet_dropout(g, "d", x, 0.5f).id, x.id); /* not training */
    CHECK_EQ(sodet_resize(g, x, SODET_RESIZE_NEAREST, 5, 7).id, x.id);
    CHECK_EQ(sodet_concat(g, &x, 1, 0).id, x.id);
    CHECK_EQ(sodet_activation(g, SODET_ACT_NONE, x).id, x.id);
    sd_graph_free(g);
}

/* TensorFlow's SAME: the odd pixel goes behind. */
static void same_padding(void)
{
    static const struct {
        int64_t in;
        uint32_t kernel, stride, dilation;
        int32_t before, after;
    } side[] = {{8, 3, 2, 1, 0, 1}, {7, 3, 2, 1, 1, 1}, {8, 3, 1, 1, 1, 1}, {8, 2, 1, 1, 0, 1},
                {8, 5, 3, 1, 1, 2}, {8, 1, 2, 1, 0, 0}, {9, 4, 1, 2, 3, 3}};
    for (size_t i = 0; i < sizeof side / sizeof *side; i++) {
        sodet_graph *g = fresh(false);
        sodet_err err = SODET_ERR_INIT;
        (void)sodet_conv2d(g, "c", map(g, 1, 3, side[i].in, 8),
                           SODET_CONV2D(.out = 4, .kernel = side[i].kernel, .stride = side[i].stride, .dilation = side[i].dilation,
                                        .flags = SODET_CONV_SAME));
        CHECK_OK(sodet_graph_status(g, &err));
        const sodet_conv2d_attr *a = sodet_graph_node(g, 0)->attr;
        CHECK_EQ(a->pad_top, side[i].before);
        CHECK_EQ(a->pad_bottom, side[i].after);
        sd_graph_free(g);
    }
}

static void costs(void)
{
    sodet_graph *g = fresh(true);
    sodet_err err = SODET_ERR_INIT;
    sodet_value x = map(g, 2, 6, 5, 7);
    (void)sodet_conv2d(g, "c", x, SODET_CONV2D(.out = 8, .kernel = 3, .groups = 2, .stride = 2, .pad = {1, 1, 1, 1}));
    CHECK_OK(sodet_graph_status(g, &err));
    sodet_cost c = sd_node_cost(sodet_graph_node(g, 0));
    CHECK_EQ(c.macs, 2 * 8 * 3 * 4 * 3 * 9);
    CHECK_EQ(c.flops, 2 * c.macs + 2 * 8 * 3 * 4);
    CHECK_EQ(c.bytes, 4 * (2 * 6 * 5 * 7 + 8 * 3 * 9 + 8 + 2 * 8 * 3 * 4));
    sd_graph_free(g);
}

/* The builder follows the graph's mode. */
static void modes_of_batch_norm(void)
{
    static const struct {
        bool training;
        uint32_t norm, world, flags, op;
    } mode[] = {{false, 0, 1, 0, SODET_OP_batch_norm},
                {true, SD_NORM_TRAIN, 1, 0, SODET_OP_batch_norm_train},
                {true, SD_NORM_FROZEN, 1, 0, SODET_OP_batch_norm},
                {true, SD_NORM_SYNC, 1, 0, SODET_OP_batch_norm_train},
                {true, SD_NORM_SYNC, 2, 0, SODET_OP_batch_norm_sync},
                {true, SD_NORM_SYNC, 2, SODET_NORM_FROZEN, SODET_OP_batch_norm}};
    for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
        sodet_err err = SODET_ERR_INIT;
        sodet_graph *g;
        CHECK_OK(
            sd_graph_create(&(sd_graph_options){.training = mode[i].training, .norm = mode[i].norm, .world = mode[i].world}, &g, &err));
        (void)sodet_batch_norm(g, "n", map(g, 2, 6, 5, 7), SODET_NORM(.flags = mode[i].flags));
        CHECK_OK(sodet_graph_status(g, &err));
        const sodet_node *last = sodet_graph_node(g, sodet_graph_node_count(g) - 1);
        CHECK_EQ(last->op->id, mode[i].op);
        sd_segments s;
        CHECK_OK(sd_segments_make(g, &s, &err));
        CHECK_EQ(s.n, 4);
        CHECK_EQ(s.n_trainable, mode[i].flags & SODET_NORM_FROZEN ? 0 : 2);
        CHECK_EQ(s.parameter_count, 12);
        sd_segments_free(&s);
        sd_graph_free(g);
    }
}

int main(void)
{
    messages();
    shapes();
    same_padding();
    costs();
    modes_of_batch_norm();
    return check_done(150);
}
