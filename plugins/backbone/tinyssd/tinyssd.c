/* Small networks with their own pyramid; they need no neck.
 *
 * d2l:   "Dive into Deep Learning", section 14.7: five scales at 1/8, 1/16, 1/32, 1/64 and of the whole picture. With the ssd head and
 *        one class 1,010,376 parameters.
 * paper: Wong et al. 2018 (arXiv 1802.06488), as the Caffe port lampsonSong/tinySSD reads it: Fire modules, six scales from 37x37 at
 *        300x300. With the ssd head and 20 classes 1,134,272 parameters. */
#include "tinyssd.h"

static const char *const variants[] = {"d2l", "paper", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(tinyssd_cfg, variant, "d2l", variants, "d2l: the teaching network for 256x256; paper: Fire modules for 300x300"),
    SODET_OPT_DOUBLE(tinyssd_cfg, width, "1", 0.01, 16, "factor on every number of channels"),
};

static sodet_value down_block(sodet_graph *g, uint32_t number, sodet_value x, uint32_t channels)
{
    sodet_enter(g, "block%u", number);
    for (uint32_t i = 1; i <= 2; i++) {
        char conv[8] = {'c', 'o', 'n', 'v', (char)('0' + i)}, norm[8] = {'n', 'o', 'r', 'm', (char)('0' + i)};
        x = sodet_conv2d(g, conv, x, SODET_CONV2D(.out = channels, .kernel = 3, .pad = {1, 1, 1, 1}));
        x = sodet_relu(g, sodet_batch_norm(g, norm, x, SODET_NORM(.epsilon = 1e-5f)));
    }
    x = sodet_max_pool(g, x, SODET_POOL(.kernel = 2));
    sodet_leave(g);
    return x;
}

static void d2l(const tinyssd_cfg *cfg, sodet_graph *g, sodet_value x, sodet_features *out)
{
    static const uint32_t channels[6] = {16, 32, 64, 128, 128, 128};
    for (uint32_t i = 0; i < 6; i++) {
        x = down_block(g, i, x, sodet_widen(channels[i], cfg->width));
        if (i >= 2)
            sodet_emit_feature(g, out, x, 2u << i);
    }
    sodet_emit_global_feature(g, out, sodet_global_max_pool(g, x));
}

static sodet_status build(const void *self, sodet_graph *g, sodet_value image, sodet_features *out, sodet_err *err)
{
    const tinyssd_cfg *cfg = self;
    if (cfg->variant == TINYSSD_PAPER)
        tinyssd_paper(cfg, g, image, out);
    else
        d2l(cfg, g, image, out);
    return sodet_graph_status(g, err);
}

static const sodet_backbone_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_BACKBONE, "tinyssd", "small networks with a pyramid of their own (d2l, paper)", tinyssd_cfg, options, .ops = &ops);
