/* The head of SSD (Liu et al. 2016, section 2): on each feature map one convolution for the classes and one for the boxes of every
 * default box. Works on any number of maps; sizes, ratios and steps are options with defaults for each number.
 *
 * How the systems differ (boxes, matching, post-processing) is said by the options; conf/model/dialect/ssd_*.ini sets them as each
 * system has them. Default: torchvision's post-processing, and the paper's one-to-one matching. */
#include "sodet/postprocess.h"

typedef struct ssd_cfg {
    sodet_ssd_boxes boxes;
    sodet_match_options match;
    sodet_detect_options detect;
    sodet_double_list variances;
    uint32_t kernel;
    double prior;
} ssd_cfg;

static const sodet_opt options[] = {
    SODET_SSD_BOXES_ROWS(ssd_cfg, boxes),
    SODET_OPT_UINT(ssd_cfg, kernel, "3", 1, 7, "side of the head's convolutions; odd (MobileNet-SSD: 1)"),
    SODET_OPT_DOUBLES(ssd_cfg, variances, "0.1 0.1 0.2 0.2", 4, 1e-6, 100, "what box codes are divided by"),
    SODET_OPT_DOUBLE(ssd_cfg, prior, "0.01", 1e-6, 0.5, "score that every class starts with, where the loss is a sigmoid's"),
    SODET_MATCH_ROWS(ssd_cfg, match, "0.5", "greedy", "use"),
    SODET_DETECT_ROWS(ssd_cfg, detect, "0.01", "400", "class", "0.45", "200"),
};

static sodet_status validate(const void *cfg_, sodet_err *err)
{
    const ssd_cfg *cfg = cfg_;
    if (cfg->kernel % 2 == 0)
        return sodet_fail_option(err, "kernel", "an odd side is wanted: 1, 3, 5 or 7");
    if (cfg->match.negative > cfg->match.positive)
        return sodet_fail_option(err, "negative_iou", "above positive_iou = %g", cfg->match.positive);
    return SODET_OK;
}

/* A map [N, per_cell * columns, H, W] as [N, boxes, columns]. Channels: shape by shape, the columns of each together; under order =
 * shape column by column, the shapes of each together. */
static sodet_value rows_of(sodet_graph *g, const ssd_cfg *cfg, sodet_value map, int64_t columns)
{
    const int64_t n = sodet_dim(g, map, 0);
    if (cfg->boxes.order == SODET_BOX_ORDER_SHAPE) {
        sodet_value flat = sodet_reshape(g, map, 3, (const int64_t[]){n, columns, -1});
        return sodet_permute(g, flat, (const uint32_t[]){0, 2, 1});
    }
    return sodet_reshape(g, sodet_permute(g, map, (const uint32_t[]){0, 2, 3, 1}), 3, (const int64_t[]){n, -1, columns});
}

static sodet_value conv(sodet_graph *g, const ssd_cfg *cfg, const char *kind, uint32_t level, sodet_value x, uint32_t out, sodet_param bias)
{
    const uint32_t pad = cfg->kernel / 2;
    sodet_enter(g, "%s", kind);
    const char name[] = {(char)(level < 10 ? '0' + level : 'a' + level - 10), 0};
    x = sodet_conv2d(g, name, x, SODET_CONV2D(.out = out, .kernel = cfg->kernel, .pad = {pad, pad, pad, pad}, .bias = bias));
    sodet_leave(g);
    return x;
}

static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, const sodet_head_context *ctx, sodet_head_out *out,
                          sodet_err *err)
{
    const ssd_cfg *cfg = self;
    const uint32_t n = sodet_feature_count(in);
    const sodet_param class_bias = {.init = ctx->activation == SODET_SIGMOID ? SODET_INIT_PRIOR : SODET_INIT_DEFAULT,
                                    .value = (float)cfg->prior};
    sodet_value logits[SODET_MAX_LEVELS], codes[SODET_MAX_LEVELS];
    for (uint32_t l = 0; l < n; l++) {
        const uint32_t per_cell = sodet_ssd_boxes_per_cell(&cfg->boxes, n, l, err);
        if (per_cell == 0)
            return SODET_E_INVALID;
        sodet_value x = sodet_feature(in, l);
        logits[l] = rows_of(g, cfg, conv(g, cfg, "cls", l, x, per_cell * ctx->columns, class_bias), ctx->columns);
        codes[l] = rows_of(g, cfg, conv(g, cfg, "box", l, x, per_cell * 4, (sodet_param){0}), 4);
        out->level_boxes[l] = (uint32_t)sodet_dim(g, codes[l], 1);
    }
    out->n_levels = n;
    out->logits = sodet_concat(g, logits, n, 1);
    out->codes = sodet_concat(g, codes, n, 1);
    for (uint32_t c = 0; c < 4; c++)
        out->variance[c] = (float)cfg->variances.v[c];
    return sodet_graph_status(g, err);
}

static sodet_status anchors(const void *self, const sodet_shape2d *levels, uint32_t n_levels, sodet_shape2d image, sodet_anchors *out,
                            sodet_err *err)
{
    const ssd_cfg *cfg = self;
    sodet_ssd_boxes boxes = cfg->boxes;
    boxes.struct_size = sizeof boxes;
    return sodet_ssd_boxes_make(&boxes, levels, n_levels, image, out, err);
}

static sodet_status assign(const void *self, const sodet_anchors *a, const sodet_boxes *truth, int32_t *index, sodet_err *err)
{
    const ssd_cfg *cfg = self;
    sodet_match_options match = cfg->match;
    match.struct_size = sizeof match;
    return sodet_match(&match, a, truth, index, err);
}

static sodet_status build_infer(const void *self, sodet_graph *g, const sodet_head_out *raw, sodet_value boxes, sodet_shape2d image,
                                const sodet_head_context *ctx, sodet_detections *out, sodet_err *err)
{
    const ssd_cfg *cfg = self;
    sodet_detect_options detect = cfg->detect;
    detect.struct_size = sizeof detect;
    sodet_build_detections(g, &detect, raw, boxes, image, ctx, out);
    return sodet_graph_status(g, err);
}

static const sodet_head_ops ops = {
    .struct_size = sizeof ops, .build = build, .anchors = anchors, .assign = assign, .build_infer = build_infer};
SODET_PLUGIN(SODET_KIND_HEAD, "ssd", "default boxes on every feature map (SSD)", ssd_cfg, options, .validate = validate, .ops = &ops);
