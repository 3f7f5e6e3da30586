/* From logits and codes to detections, as nodes of the graph. Candidates are chosen by score first; only their boxes are decoded. */
#include "sodet/postprocess.h"

#include <stdbool.h>

typedef struct candidates {    /* K each, of every image */
    sodet_value score, anchor; /* [N, K]; anchors count over all levels */
    sodet_value label;         /* [N, K] or, for all images, [K] */
} candidates;

/* What candidates are ranked by, without background: [N, A, C]. A sigmoid rises with its logit, so only the chosen ones are put through
 * it. */
static sodet_value ranks_of(sodet_graph *g, sodet_value logits, const sodet_head_context *ctx)
{
    if (ctx->activation == SODET_SIGMOID)
        return logits;
    return sodet_slice(g, sodet_softmax(g, logits, -1), -1, 1, ctx->n_classes);
}

/* The best k of `rank` [N, A', C], which begins at anchor `first` of all. */
static candidates choose(sodet_graph *g, const sodet_detect_options *o, sodet_value rank, int64_t first)
{
    const int64_t anchors = sodet_dim(g, rank, 1), classes = sodet_dim(g, rank, 2);
    candidates c;
    if (o->labels == SODET_LABELS_BEST) {
        sodet_value best, label;
        sodet_top_k(g, rank, 1, &best, &label); /* [N, A', 1] */
        const int64_t two[] = {sodet_dim(g, rank, 0), anchors};
        const uint32_t k = o->top_k && o->top_k < anchors ? o->top_k : (uint32_t)anchors;
        sodet_top_k(g, sodet_reshape(g, best, 2, two), k, &c.score, &c.anchor);
        c.label = sodet_gather_per_image(g, sodet_reshape(g, label, 2, two), c.anchor);
    } else if (o->top_scope == SODET_TOP_PER_CLASS) {
        sodet_top_per_class(g, rank, o->top_k ? o->top_k : (uint32_t)anchors, &c.score, &c.anchor, &c.label);
    } else {
        sodet_top_pairs(g, rank, o->top_k ? o->top_k : (uint32_t)(anchors * classes), &c.score, &c.anchor, &c.label);
    }
    if (first) {
        const sodet_shape one = sodet_shape_make(SODET_I32, 1, 1, 0, 0, 0);
        const int32_t begin = (int32_t)first;
        c.anchor = sodet_add(g, c.anchor, sodet_constant(g, &one, &begin));
    }
    return c;
}

static candidates choose_by_level(sodet_graph *g, const sodet_detect_options *o, const sodet_head_out *raw, const sodet_head_context *ctx)
{
    sodet_value score[SODET_MAX_LEVELS], anchor[SODET_MAX_LEVELS], label[SODET_MAX_LEVELS];
    int64_t first = 0;
    for (uint32_t l = 0; l < raw->n_levels; l++) {
        const int64_t boxes = raw->level_boxes[l];
        candidates c = choose(g, o, ranks_of(g, sodet_slice(g, raw->logits, 1, first, boxes), ctx), first);
        score[l] = c.score;
        anchor[l] = c.anchor;
        label[l] = c.label;
        first += boxes;
    }
    return (candidates){sodet_concat(g, score, raw->n_levels, 1), sodet_concat(g, anchor, raw->n_levels, 1),
                        sodet_concat(g, label, raw->n_levels, 1)};
}

void sodet_build_detections(sodet_graph *g, const sodet_detect_options *o, const sodet_head_out *raw, sodet_value anchors,
                            sodet_shape2d image, const sodet_head_context *ctx, sodet_detections *out)
{
    const bool by_level = o->top_scope == SODET_TOP_PER_LEVEL && raw->n_levels > 1;
    candidates c = by_level ? choose_by_level(g, o, raw, ctx) : choose(g, o, ranks_of(g, raw->logits, ctx), 0);

    if (ctx->activation == SODET_SIGMOID)
        c.score = sodet_sigmoid(g, c.score);

    sodet_decode decode = {.struct_size = sizeof decode, .clamp = o->clamp};
    if (o->clip == SODET_CLIP_BOXES_BEFORE) {
        decode.clip_height = image.height;
        decode.clip_width = image.width;
    }
    sodet_value boxes = sodet_decode_boxes(g, sodet_gather_per_image(g, raw->codes, c.anchor), sodet_gather(g, anchors, c.anchor, 0),
                                           raw->variance, &decode);
    if (o->truncate)
        boxes = sodet_cast(g, sodet_cast(g, boxes, SODET_I32), SODET_F32);

    const sodet_nms_options nms = {
        .struct_size = sizeof nms, .most = o->keep, .inclusive = o->nms_equal, .iou_threshold = o->nms, .score_threshold = o->score};
    sodet_nms_detections(g, boxes, c.score, c.label, o->nms_scope == SODET_NMS_AGNOSTIC, &nms, out);
    if (o->clip == SODET_CLIP_BOXES_AFTER)
        out->boxes = sodet_clip_boxes(g, out->boxes, image.height, image.width);
}

/* ---- names of the enums, in their order ---- */
const char *const sodet_top_names[] = {"class", "level", "all", NULL};
const char *const sodet_label_names[] = {"all", "best", NULL};
const char *const sodet_nms_names[] = {"class", "agnostic", NULL};
const char *const sodet_clip_box_names[] = {"before", "after", "never", NULL};
