/* SSD's extra layers (Liu et al. 2016, figure 2): behind the coarsest feature map, pairs of a 1x1 and a larger convolution, each pair
 * one more feature map. With vgg16 at 300x300: 38, 19, 10, 5, 3, 1; at 512x512: 64, 32, 16, 8, 4, 2, 1.
 *
 * NVIDIA's and MLPerf's SSD300 on ResNet comes to the same six maps from the first alone (lead = yes). */
#include "sodet/detection.h"

typedef struct extras_cfg {
    uint32_t ladder, extra_levels, lead, norm;
    double width;
} extras_cfg;

static const char *const ladders[] = {"300", "512", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(extras_cfg, ladder, "300", ladders, "input size that the ladder of maps is made for"),
    SODET_OPT_UINT(extras_cfg, extra_levels, "0", 0, 6,
                   "coarser maps behind the backbone's; 0: the whole ladder (300: 4, 512: 5, one more with lead)"),
    SODET_OPT_BOOL(
        extras_cfg, lead, "no",
        "the ladder begins with one pair more, of 256 and 512 channels, that halves the map: behind a backbone whose coarsest map "
        "has stride 8 [NVIDIA, MLPerf]"),
    SODET_OPT_BOOL(extras_cfg, norm, "no", "a batch norm behind each convolution, which then has no bias [NVIDIA]"),
    SODET_OPT_DOUBLE(extras_cfg, width, "1", 0.01, 16, "factor on every number of channels"),
};

typedef struct rung {
    uint32_t middle, out, kernel, stride, pad;
} rung;
static const rung leading = {256, 512, 3, 2, 1};
static const rung for_300[] = {{256, 512, 3, 2, 1}, {128, 256, 3, 2, 1}, {128, 256, 3, 1, 0}, {128, 256, 3, 1, 0}};
static const rung for_512[] = {{256, 512, 3, 2, 1}, {128, 256, 3, 2, 1}, {128, 256, 3, 2, 1}, {128, 256, 3, 2, 1}, {128, 256, 4, 1, 1}};

/* The input pixels that a cell stands for: exact for padded strides; for maps that lose their border, what shares the same pixels out. */
static void emit(sodet_graph *g, sodet_features *out, sodet_value map, uint32_t stride)
{
    if (sodet_dim(g, map, 2) == 1 && sodet_dim(g, map, 3) == 1)
        sodet_emit_global_feature(g, out, map);
    else
        sodet_emit_feature(g, out, map, stride);
}

static sodet_value conv_relu(sodet_graph *g, const extras_cfg *cfg, char number, sodet_value x, uint32_t out, const rung *r)
{
    const char conv[] = {'c', 'o', 'n', 'v', number, 0}, norm[] = {'n', 'o', 'r', 'm', number, 0};
    x = sodet_conv2d(g, conv, x,
                     SODET_CONV2D(.out = sodet_widen(out, cfg->width), .kernel = r->kernel, .stride = r->stride,
                                  .pad = {r->pad, r->pad, r->pad, r->pad}, .flags = cfg->norm ? SODET_CONV_NO_BIAS : 0));
    return sodet_relu(g, cfg->norm ? sodet_batch_norm(g, norm, x, SODET_NORM(.epsilon = 1e-5f)) : x);
}

static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, sodet_features *out, sodet_err *err)
{
    const extras_cfg *cfg = self;
    const rung *rungs = cfg->ladder == 0 ? for_300 : for_512;
    const uint32_t whole = (cfg->ladder == 0 ? 4 : 5) + cfg->lead, n = cfg->extra_levels ? cfg->extra_levels : whole,
                   n_in = sodet_feature_count(in);
    if (n > whole)
        return SODET_FAIL(err, SODET_E_INVALID, "extra_levels = %u: the ladder of %s has %u", n, ladders[cfg->ladder], whole);
    for (uint32_t l = 0; l < n_in; l++) {
        if (sodet_feature_stride(in, l) == 0)
            return SODET_FAIL(
                err, SODET_E_INVALID,
                "the backbone's feature map %u already covers the whole picture: use neck none, or a backbone without a pyramid of its own",
                l);
        sodet_emit_feature(g, out, sodet_feature(in, l), sodet_feature_stride(in, l));
    }
    sodet_value x = sodet_feature(in, n_in - 1);
    uint32_t stride = sodet_feature_stride(in, n_in - 1);
    for (uint32_t i = 0; i < n; i++) {
        const rung *r = i < cfg->lead ? &leading : &rungs[i - cfg->lead];
        const int64_t before = sodet_dim(g, x, 2), smaller = before < sodet_dim(g, x, 3) ? before : sodet_dim(g, x, 3);
        if (smaller + 2 * (int64_t)r->pad < (int64_t)r->kernel)
            return SODET_FAIL(
                err, SODET_E_INVALID,
                "extra%u: the map has %lld cells on its shorter side, and %u are wanted: this ladder is for inputs of about %s "
                "pixels; set [input] size, fewer extra_levels, or another neck",
                i, (long long)smaller, r->kernel - 2 * r->pad, ladders[cfg->ladder]);
        sodet_enter(g, "extra%u", i);
        x = conv_relu(g, cfg, '1', x, r->middle, &(const rung){.kernel = 1, .stride = 1});
        x = conv_relu(g, cfg, '2', x, r->out, r);
        sodet_leave(g);
        const int64_t after = sodet_dim(g, x, 2);
        stride = r->stride > 1 ? stride * r->stride : (uint32_t)(((int64_t)stride * before + after / 2) / after);
        emit(g, out, x, stride);
    }
    return sodet_graph_status(g, err);
}

static const sodet_neck_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_NECK, "ssd_extras", "SSD's extra layers: coarser maps behind the backbone's", extras_cfg, options, .ops = &ops);
