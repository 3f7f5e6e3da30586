/* Feature pyramid (Lin et al. 2017, "Feature Pyramid Networks", section 3), with the two coarser levels that RetinaNet adds.
 *
 * Each map goes through a 1x1 convolution to `channels`; from the coarsest down, the sum with the next one, enlarged by nearest
 * neighbour to exactly its size; a 3x3 convolution smooths each. P6 is a 3x3 of stride 2 on the coarsest map of the backbone (C5:
 * Detectron, Detectron2, zgcr) or on its smoothed level (P5: torchvision's first version, MLPerf); P7 the same on ReLU(P6).
 * Inputs of any size: a level is ceil(previous / 2), and the enlargement goes by the finer map's size. */
#include "sodet/detection.h"

typedef struct fpn_cfg {
    uint32_t channels, extra_from, extra_levels, relu_before_p7;
    double width;
} fpn_cfg;

enum { FROM_C5, FROM_P5 };
static const char *const sources[] = {"c5", "p5", NULL};
static const sodet_opt options[] = {
    SODET_OPT_UINT(fpn_cfg, channels, "256", 1, 4096, "channels of every level"),
    SODET_OPT_UINT(fpn_cfg, extra_levels, "2", 0, 4, "coarser levels behind the backbone's: P6, P7"),
    SODET_OPT_ENUM(fpn_cfg, extra_from, "c5", sources, "what P6 is made from: the backbone's coarsest map, or its level of the pyramid"),
    SODET_OPT_BOOL(fpn_cfg, relu_before_p7, "yes", "ReLU between P6 and P7 (mmdetection: no)"),
    SODET_OPT_DOUBLE(fpn_cfg, width, "1", 0.01, 16, "factor on channels"),
};

static sodet_value conv(sodet_graph *g, const char *name, sodet_value x, uint32_t channels, uint32_t kernel, uint32_t stride)
{
    const uint32_t pad = kernel / 2;
    return sodet_conv2d(g, name, x,
                        SODET_CONV2D(.out = channels, .kernel = kernel, .stride = stride, .pad = {pad, pad, pad, pad},
                                     .weight = {.init = SODET_INIT_XAVIER}));
}

static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, sodet_features *out, sodet_err *err)
{
    enum { MOST = 8 };
    const fpn_cfg *cfg = self;
    const uint32_t n = sodet_feature_count(in), channels = sodet_widen(cfg->channels, cfg->width);
    sodet_value level[MOST];
    if (n > MOST)
        return SODET_FAIL(err, SODET_E_INVALID, "%u feature maps, at most %d are taken", n, MOST);
    for (uint32_t l = 0; l < n; l++) {
        if (sodet_feature_stride(in, l) == 0)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "feature map %u covers the whole picture, and a pyramid needs maps with a stride: use neck none", l);
    }

    for (uint32_t l = n; l-- > 0;) {
        sodet_enter(g, "level%u", l);
        sodet_value lateral = conv(g, "lateral", sodet_feature(in, l), channels, 1, 1);
        level[l] = l + 1 < n ? sodet_upsample_add(g, lateral, level[l + 1]) : lateral;
        sodet_leave(g);
    }
    for (uint32_t l = 0; l < n; l++) {
        sodet_enter(g, "level%u", l);
        level[l] = conv(g, "smooth", level[l], channels, 3, 1);
        sodet_leave(g);
        sodet_emit_feature(g, out, level[l], sodet_feature_stride(in, l));
    }

    sodet_value x = cfg->extra_from == FROM_C5 ? sodet_feature(in, n - 1) : level[n - 1];
    uint32_t stride = sodet_feature_stride(in, n - 1);
    for (uint32_t e = 0; e < cfg->extra_levels; e++) {
        const char name[] = {'e', 'x', 't', 'r', 'a', (char)('0' + e), 0};
        if (e > 0 && cfg->relu_before_p7)
            x = sodet_relu(g, x);
        x = conv(g, name, x, channels, 3, 2);
        stride *= 2;
        sodet_emit_feature(g, out, x, stride);
    }
    return sodet_graph_status(g, err);
}

static const sodet_neck_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_NECK, "fpn", "feature pyramid with RetinaNet's coarser levels", fpn_cfg, options, .ops = &ops);
