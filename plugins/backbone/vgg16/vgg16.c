/* VGG-16 (Simonyan and Zisserman 2015) as SSD cuts it (Liu et al. 2016, section 3; the weights are called "VGG16 reduced"): fc6 is a
 * 3x3 convolution with holes, fc7 a 1x1, pool5 keeps the size, no dropout, no classifier. Feature maps: conv4_3, L2-normalised over
 * channels with a learnt scale that starts at 20, at stride 8; fc7 at stride 16. 300x300 gives 38x38 and 19x19, because pool3 rounds up
 * (as ssd.pytorch and torchvision; Caffe rounds up everywhere, which is the same for 300 and 512). */
#include "sodet/detection.h"

typedef struct vgg16_cfg {
    uint32_t frozen_stages, normalise;
    double width, norm_scale;
} vgg16_cfg;

static const sodet_opt options[] = {
    SODET_OPT_UINT(vgg16_cfg, frozen_stages, "0", 0, 5, "stages (conv1_*, conv2_*, ...) that are not trained"),
    SODET_OPT_BOOL(vgg16_cfg, normalise, "yes", "L2-normalise conv4_3 over channels before it is handed on"),
    SODET_OPT_DOUBLE(vgg16_cfg, norm_scale, "20", 0.001, 1000, "start of the scale of that normalisation"),
    SODET_OPT_DOUBLE(vgg16_cfg, width, "1", 0.01, 16, "factor on every number of channels"),
};

static sodet_status build(const void *self, sodet_graph *g, sodet_value image, sodet_features *out, sodet_err *err)
{
    static const uint32_t layers[5] = {2, 2, 3, 3, 3}, channels[5] = {64, 128, 256, 512, 512};
    const vgg16_cfg *cfg = self;
    sodet_value x = image;
    for (uint32_t s = 0; s < 5; s++) {
        const sodet_param param = {.lr = s < cfg->frozen_stages ? SODET_FROZEN : 0};
        for (uint32_t i = 0; i < layers[s]; i++) {
            const char name[] = {'c', 'o', 'n', 'v', (char)('1' + s), '_', (char)('1' + i), 0};
            x = sodet_conv2d(g, name, x,
                             SODET_CONV2D(.out = sodet_widen(channels[s], cfg->width), .kernel = 3, .pad = {1, 1, 1, 1}, .weight = param,
                                          .bias = param));
            x = sodet_relu(g, x);
        }
        if (s == 3)
            sodet_emit_feature(g, out,
                               cfg->normalise
                                   ? sodet_l2norm(g, "norm4_3", x, SODET_L2NORM(.scale = (float)cfg->norm_scale, .guard = SODET_L2NORM_MAX))
                                   : x,
                               8);
        if (s == 4)
            x = sodet_max_pool(g, x, SODET_POOL(.kernel = 3, .stride = 1, .pad = 1));
        else
            x = sodet_max_pool(g, x, SODET_POOL(.kernel = 2, .flags = s == 2 ? SODET_POOL_CEIL : 0));
    }
    const uint32_t wide = sodet_widen(1024, cfg->width);
    x = sodet_relu(g, sodet_conv2d(g, "fc6", x, SODET_CONV2D(.out = wide, .kernel = 3, .dilation = 6, .pad = {6, 6, 6, 6})));
    x = sodet_relu(g, sodet_conv2d(g, "fc7", x, SODET_CONV2D(.out = wide, .kernel = 1)));
    sodet_emit_feature(g, out, x, 16);
    return sodet_graph_status(g, err);
}

static const sodet_backbone_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_BACKBONE, "vgg16", "VGG-16 reduced, with holes, as in SSD", vgg16_cfg, options, .ops = &ops);
