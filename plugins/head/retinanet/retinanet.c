/* The head of RetinaNet (Lin et al. 2017, section 4): two towers of 3x3 convolutions, for classes and for boxes, the same on every level.
 * The last class convolution starts so that every class has the score `prior` (section 4.1): without it the background of 100,000
 * anchors drowns the first steps.
 *
 * How the systems differ (anchors, matching, coding, post-processing) is said by the options; conf/model/dialect/retinanet_*.ini sets
 * them as each system has them. Default: torchvision's first version, but for the anchors, which are not rounded. */
#include "sodet/postprocess.h"

typedef struct retinanet_cfg {
    sodet_retina_boxes boxes;
    sodet_match_options match;
    sodet_detect_options detect;
    sodet_double_list variances;
    uint32_t depth, channels;
    double prior, width, tower_std;
} retinanet_cfg;

static const sodet_opt options[] = {
    SODET_RETINA_BOXES_ROWS(retinanet_cfg, boxes),
    SODET_OPT_UINT(retinanet_cfg, depth, "4", 0, 16, "convolutions in each tower"),
    SODET_OPT_UINT(retinanet_cfg, channels, "256", 1, 4096, "channels of the towers"),
    SODET_OPT_DOUBLE(retinanet_cfg, width, "1", 0.01, 16, "factor on channels"),
    SODET_OPT_DOUBLE(retinanet_cfg, tower_std, "0.01", 0, 1,
                     "deviation of the towers' first weights; 0: [train] init (narrow towers: 0.01 starves what lies below them)"),
    SODET_OPT_DOUBLE(retinanet_cfg, prior, "0.01", 1e-6, 0.5, "score that every class starts with"),
    SODET_OPT_DOUBLES(retinanet_cfg, variances, "1 1 1 1", 4, 1e-6, 100, "what box codes are divided by (zgcr: 0.1 0.1 0.2 0.2)"),
    SODET_MATCH_ROWS(retinanet_cfg, match, "0.4", "low", "use"),
    SODET_DETECT_ROWS(retinanet_cfg, detect, "0.05", "1000", "level", "0.5", "300"),
};

static sodet_status validate(const void *cfg_, sodet_err *err)
{
    const retinanet_cfg *cfg = cfg_;
    if (cfg->match.negative > cfg->match.positive)
        return sodet_fail_option(err, "negative_iou", "above positive_iou = %g", cfg->match.positive);
    return SODET_OK;
}

static sodet_value conv(sodet_graph *g, const char *name, sodet_value x, uint32_t out, double std, sodet_param bias)
{
    const sodet_param weight = {.init = std > 0 ? SODET_INIT_NORMAL : SODET_INIT_DEFAULT, .value = (float)std};
    return sodet_conv2d(g, name, x, SODET_CONV2D(.out = out, .kernel = 3, .pad = {1, 1, 1, 1}, .weight = weight, .bias = bias));
}

/* One level through one tower: [N, boxes, columns]. */
static sodet_value tower(sodet_graph *g, const retinanet_cfg *cfg, const char *kind, sodet_value x, uint32_t columns, sodet_param bias)
{
    const uint32_t per_cell = sodet_retina_boxes_per_cell(&cfg->boxes), channels = sodet_widen(cfg->channels, cfg->width);
    sodet_enter_shared(g, "%s", kind);
    for (uint32_t i = 0; i < cfg->depth; i++) {
        const char name[] = {'c', 'o', 'n', 'v', (char)('0' + i / 10), (char)('0' + i % 10), 0};
        x = sodet_relu(g, conv(g, name, x, channels, cfg->tower_std, (sodet_param){0}));
    }
    x = conv(g, "out", x, per_cell * columns, 0.01, bias);
    sodet_leave(g);
    return sodet_reshape(g, sodet_permute(g, x, (const uint32_t[]){0, 2, 3, 1}), 3, (const int64_t[]){sodet_dim(g, x, 0), -1, columns});
}

static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, const sodet_head_context *ctx, sodet_head_out *out,
                          sodet_err *err)
{
    const retinanet_cfg *cfg = self;
    const uint32_t n = sodet_feature_count(in);
    const sodet_param class_bias = {.init = ctx->activation == SODET_SIGMOID ? SODET_INIT_PRIOR : SODET_INIT_DEFAULT,
                                    .value = (float)cfg->prior};
    sodet_value logits[SODET_MAX_LEVELS], codes[SODET_MAX_LEVELS];
    for (uint32_t l = 0; l < n; l++) {
        sodet_value x = sodet_feature(in, l);
        if (sodet_dim(g, x, 1) != sodet_dim(g, sodet_feature(in, 0), 1))
            return SODET_FAIL(err, SODET_E_INVALID,
                              "level %u has %lld channels, level 0 has %lld, and the towers are the same on every level: use neck fpn", l,
                              (long long)sodet_dim(g, x, 1), (long long)sodet_dim(g, sodet_feature(in, 0), 1));
        logits[l] = tower(g, cfg, "cls", x, ctx->columns, class_bias);
        codes[l] = tower(g, cfg, "box", x, 4, (sodet_param){0});
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
    const retinanet_cfg *cfg = self;
    sodet_retina_boxes boxes = cfg->boxes;
    boxes.struct_size = sizeof boxes;
    return sodet_retina_boxes_make(&boxes, levels, n_levels, image, out, err);
}

static sodet_status assign(const void *self, const sodet_anchors *a, const sodet_boxes *truth, int32_t *index, sodet_err *err)
{
    const retinanet_cfg *cfg = self;
    sodet_match_options match = cfg->match;
    match.struct_size = sizeof match;
    return sodet_match(&match, a, truth, index, err);
}

static sodet_status build_infer(const void *self, sodet_graph *g, const sodet_head_out *raw, sodet_value boxes, sodet_shape2d image,
                                const sodet_head_context *ctx, sodet_detections *out, sodet_err *err)
{
    const retinanet_cfg *cfg = self;
    sodet_detect_options detect = cfg->detect;
    detect.struct_size = sizeof detect;
    sodet_build_detections(g, &detect, raw, boxes, image, ctx, out);
    return sodet_graph_status(g, err);
}

static const sodet_head_ops ops = {
    .struct_size = sizeof ops, .build = build, .anchors = anchors, .assign = assign, .build_infer = build_infer};
SODET_PLUGIN(SODET_KIND_HEAD, "retinanet", "anchors on every level, towers shared by all (RetinaNet)", retinanet_cfg, options,
             .validate = validate, .ops = &ops);
