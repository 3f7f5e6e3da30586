/* ResNet (He et al. 2016) without its classifier: feature maps C2 to C5 at strides 4 to 32.
 *
 * Where a bottleneck that halves the map has its stride is a matter of style: on the 3x3 (torchvision; "v1.5") or on the first 1x1
 * (the authors' Caffe models, Detectron). The shapes are the same, so weights of the wrong style load and cost several points of AP.
 * last_level = 4 with last_stride = 1 is the cut that NVIDIA's and MLPerf's SSD take: C4 at stride 8, no C5.
 * Convolution and norm parameters of the backbone alone: 11,176,512 (18), 21,284,672 (34), 23,508,032 (50), 42,500,160 (101). */
#include "sodet/detection.h"

typedef struct resnet_cfg {
    uint32_t depth, stride_on, frozen_stages, frozen_norm, first_level, last_level, last_stride;
    double width;
} resnet_cfg;

enum { DEPTH_18, DEPTH_34, DEPTH_50, DEPTH_101, STRIDE_ON_3X3 = 0, STRIDE_ON_1X1 };
static const char *const depths[] = {"18", "34", "50", "101", NULL};
static const char *const styles[] = {"3x3", "1x1", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(resnet_cfg, depth, "50", depths, "number of layers; 18 and 34 have basic blocks, 50 and 101 bottlenecks"),
    SODET_OPT_ENUM(
        resnet_cfg, stride_on, "3x3", styles,
        "which convolution of a bottleneck halves the map: 3x3 as torchvision, 1x1 as Caffe and Detectron; must be the weights' own"),
    SODET_OPT_UINT(resnet_cfg, frozen_stages, "0", 0, 5,
                   "stages that are not trained: 1 the stem, 2 stem and C2 (usual when fine-tuning), ... 5 all"),
    SODET_OPT_BOOL(resnet_cfg, frozen_norm, "no", "batch norms keep their statistics, scales and shifts (needs pretrained weights)"),
    SODET_OPT_UINT(resnet_cfg, first_level, "3", 2, 5, "finest feature map handed on: 3 is C3 at stride 8"),
    SODET_OPT_UINT(resnet_cfg, last_level, "5", 2, 5, "coarsest feature map; the stages behind it are left out"),
    SODET_OPT_UINT(resnet_cfg, last_stride, "2", 1, 2,
                   "what last_level's stage divides its map by; 1 leaves it as fine as that of the stage before [NVIDIA, MLPerf]"),
    SODET_OPT_DOUBLE(resnet_cfg, width, "1", 0.01, 16, "factor on every number of channels"),
};

/* What all layers of a stage share. */
typedef struct stage {
    const resnet_cfg *cfg;
    sodet_param weight;
    uint32_t norm_flags;
} stage;

static sodet_status validate(const void *cfg_, sodet_err *err)
{
    const resnet_cfg *cfg = cfg_;
    if (cfg->first_level > cfg->last_level)
        return sodet_fail_option(err, "last_level", "below first_level = %u: no feature map would be left", cfg->first_level);
    return SODET_OK;
}

static sodet_value conv_norm(sodet_graph *g, const stage *s, const char *conv, const char *norm, sodet_value x, uint32_t out,
                             uint32_t kernel, uint32_t stride)
{
    uint32_t pad = kernel / 2;
    x = sodet_conv2d(g, conv, x,
                     SODET_CONV2D(.out = out, .kernel = kernel, .stride = stride, .pad = {pad, pad, pad, pad}, .flags = SODET_CONV_NO_BIAS,
                                  .weight = s->weight));
    return sodet_batch_norm(g, norm, x, SODET_NORM(.epsilon = 1e-5f, .flags = s->norm_flags));
}

static sodet_value shortcut(sodet_graph *g, const stage *s, sodet_value x, uint32_t out, uint32_t stride)
{
    if (stride == 1 && sodet_dim(g, x, 1) == (int64_t)out)
        return x;
    return conv_norm(g, s, "downsample/conv", "downsample/norm", x, out, 1, stride);
}

static sodet_value basic_block(sodet_graph *g, const stage *s, sodet_value x, uint32_t channels, uint32_t stride)
{
    sodet_value y = sodet_relu(g, conv_norm(g, s, "conv1", "norm1", x, channels, 3, stride));
    y = conv_norm(g, s, "conv2", "norm2", y, channels, 3, 1);
    return sodet_relu(g, sodet_add(g, y, shortcut(g, s, x, channels, stride)));
}

static sodet_value bottleneck(sodet_graph *g, const stage *s, sodet_value x, uint32_t channels, uint32_t stride)
{
    const uint32_t on_3x3 = s->cfg->stride_on == STRIDE_ON_3X3 ? stride : 1, out = 4 * channels;
    sodet_value y = sodet_relu(g, conv_norm(g, s, "conv1", "norm1", x, channels, 1, stride / on_3x3));
    y = sodet_relu(g, conv_norm(g, s, "conv2", "norm2", y, channels, 3, on_3x3));
    y = conv_norm(g, s, "conv3", "norm3", y, out, 1, 1);
    return sodet_relu(g, sodet_add(g, y, shortcut(g, s, x, out, stride)));
}

static sodet_status build(const void *self, sodet_graph *g, sodet_value image, sodet_features *out, sodet_err *err)
{
    static const uint32_t blocks[4][4] = {{2, 2, 2, 2}, {3, 4, 6, 3}, {3, 4, 6, 3}, {3, 4, 23, 3}};
    const resnet_cfg *cfg = self;
    const uint32_t norm_flags = cfg->frozen_norm ? SODET_NORM_FROZEN : 0;
    stage s = {.cfg = cfg, .norm_flags = norm_flags, .weight = {.init = SODET_INIT_HE}};

    if (cfg->frozen_stages >= 1) {
        s.weight.lr = SODET_FROZEN;
        s.norm_flags |= SODET_NORM_FROZEN;
    }
    sodet_value x = sodet_relu(g, conv_norm(g, &s, "conv1", "norm1", image, sodet_widen(64, cfg->width), 7, 2));
    x = sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 2, .pad = 1));

    uint32_t cell = 4; /* input pixels from one to the next */
    for (uint32_t level = 2; level <= cfg->last_level; level++) {
        const uint32_t frozen = cfg->frozen_stages >= level;
        s.weight.lr = frozen ? SODET_FROZEN : 0;
        s.norm_flags = frozen ? SODET_NORM_FROZEN : norm_flags;
        const uint32_t channels = sodet_widen(32u << (level - 1), cfg->width);
        const uint32_t shrink = level == 2 ? 1 : level == cfg->last_level ? cfg->last_stride : 2;
        for (uint32_t b = 0; b < blocks[cfg->depth][level - 2]; b++) {
            const uint32_t stride = b == 0 ? shrink : 1;
            sodet_enter(g, "layer%u/%u", level - 1, b);
            x = cfg->depth >= DEPTH_50 ? bottleneck(g, &s, x, channels, stride) : basic_block(g, &s, x, channels, stride);
            sodet_leave(g);
        }
        cell *= shrink;
        if (level >= cfg->first_level)
            sodet_emit_feature(g, out, x, cell);
    }
    return sodet_graph_status(g, err);
}

static const sodet_backbone_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_BACKBONE, "resnet", "ResNet 18, 34, 50, 101: feature maps C2 to C5", resnet_cfg, options, .validate = validate,
             .ops = &ops);
