/* MobileNetV2 (Sandler et al. 2018, table 2) without its classifier: feature maps at strides 4 to 32.
 *
 * An inverted residual block widens by a 1x1, filters each channel by a 3x3 of its own, and narrows by a 1x1 without activation; its input is
 * added where stride and channels allow it. Handed on is the last narrow map of each stride; at stride 32 what the 1x1 behind the last block
 * makes of it. Channels are rounded, and blocks numbered, as in torchvision: 2,223,872 parameters at width 1. */
#include "sodet/detection.h"

typedef struct mobilenet_cfg {
    uint32_t last_conv, round_to, frozen_stages, frozen_norm, first_level;
    double width;
} mobilenet_cfg;

static const sodet_opt options[] = {
    SODET_OPT_BOOL(mobilenet_cfg, last_conv, "yes", "the coarsest map is the last 1x1's (1280 channels); no: the last block's (320)"),
    SODET_OPT_UINT(mobilenet_cfg, round_to, "8", 1, 64, "numbers of channels are multiples of this"),
    SODET_OPT_UINT(mobilenet_cfg, frozen_stages, "0", 0, 5,
                   "stages that are not trained: 1 what is at stride 2, 2 at strides 2 and 4, ... 5 all"),
    SODET_OPT_BOOL(mobilenet_cfg, frozen_norm, "no", "batch norms keep their statistics, scales and shifts (needs pretrained weights)"),
    SODET_OPT_UINT(mobilenet_cfg, first_level, "3", 2, 5, "finest feature map handed on: 3 is that at stride 8"),
    SODET_OPT_DOUBLE(mobilenet_cfg, width, "1", 0.01, 16, "factor on every number of channels; the last 1x1 has 1280 at least"),
};

/* Rows of table 2: expansion, channels, blocks, stride of the first. */
static const struct row {
    uint32_t expansion, channels, blocks, stride;
} rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
enum { ROWS = sizeof rows / sizeof rows[0], STEM = 32, LAST = 1280 };

/* What the layers of a stage share. */
typedef struct stage {
    sodet_param weight;
    uint32_t norm_flags;
} stage;

static stage stage_of(const mobilenet_cfg *cfg, uint32_t level)
{
    const uint32_t frozen = cfg->frozen_stages >= level;
    return (stage){.weight = {.init = SODET_INIT_HE, .lr = frozen ? SODET_FROZEN : 0},
                   .norm_flags = frozen || cfg->frozen_norm ? SODET_NORM_FROZEN : 0};
}

/* The nearest multiple, but never less than nine tenths of what was asked for. */
static uint32_t widen(const mobilenet_cfg *cfg, uint32_t channels, double width)
{
    const double wanted = (double)channels * width;
    const uint32_t unit = cfg->round_to, n = (uint32_t)(wanted + unit / 2) / unit * unit, least = n > unit ? n : unit;
    return least < 0.9 * wanted ? least + unit : least;
}

static sodet_value conv_norm(sodet_graph *g, const stage *s, const char *name, sodet_value x, uint32_t out, uint32_t kernel,
                             uint32_t stride, uint32_t groups)
{
    const uint32_t pad = kernel / 2;
    sodet_enter(g, "%s", name);
    x = sodet_conv2d(g, "conv", x,
                     SODET_CONV2D(.out = out, .kernel = kernel, .stride = stride, .groups = groups, .pad = {pad, pad, pad, pad},
                                  .flags = SODET_CONV_NO_BIAS, .weight = s->weight));
    x = sodet_batch_norm(g, "norm", x, SODET_NORM(.epsilon = 1e-5f, .flags = s->norm_flags));
    sodet_leave(g);
    return x;
}

static sodet_value block(sodet_graph *g, const stage *s, sodet_value x, uint32_t expansion, uint32_t out, uint32_t stride)
{
    const uint32_t in = (uint32_t)sodet_dim(g, x, 1), middle = in * expansion;
    sodet_value y = x;
    if (expansion > 1)
        y = sodet_relu6(g, conv_norm(g, s, "expand", y, middle, 1, 1, 1));
    y = sodet_relu6(g, conv_norm(g, s, "depthwise", y, middle, 3, stride, middle));
    y = conv_norm(g, s, "project", y, out, 1, 1, 1);
    return stride == 1 && in == out ? sodet_add(g, x, y) : y;
}

static sodet_status build(const void *self, sodet_graph *g, sodet_value image, sodet_features *out, sodet_err *err)
{
    const mobilenet_cfg *cfg = self;
    uint32_t level = 1, number = 0; /* the map's stride is 2^level */
    stage s = stage_of(cfg, level);
    sodet_value x = sodet_relu6(g, conv_norm(g, &s, "stem", image, widen(cfg, STEM, cfg->width), 3, 2, 1));
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t b = 0; b < rows[r].blocks; b++) {
            const uint32_t stride = b == 0 ? rows[r].stride : 1;
            if (stride > 1) {
                if (level >= cfg->first_level)
                    sodet_emit_feature(g, out, x, 1u << level);
                s = stage_of(cfg, ++level);
            }
            sodet_enter(g, "block%u", ++number);
            x = block(g, &s, x, rows[r].expansion, widen(cfg, rows[r].channels, cfg->width), stride);
            sodet_leave(g);
        }
    }
    if (cfg->last_conv)
        x = sodet_relu6(g, conv_norm(g, &s, "last", x, widen(cfg, LAST, cfg->width > 1 ? cfg->width : 1), 1, 1, 1));
    sodet_emit_feature(g, out, x, 1u << level);
    return sodet_graph_status(g, err);
}

static const sodet_backbone_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_BACKBONE, "mobilenet_v2", "MobileNetV2: inverted residual blocks with depthwise convolutions", mobilenet_cfg,
             options, .ops = &ops);
