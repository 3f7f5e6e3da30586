/* The focal loss of RetinaNet (Lin et al. 2017, section 3) over all anchors that are not ignored, and L1 or smooth L1 over the
 * positives' box codes. Works on logits: nothing is clamped, so no gradient is lost where a score is near 0 or 1. What the sums are
 * divided by is [loss] normaliser; a picture without positives still teaches background. */
#include "sodet/detection.h"

typedef struct focal_cfg {
    double alpha, gamma, class_weight, box_weight, beta;
} focal_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(focal_cfg, alpha, "0.25", -1, 1, "weight of the anchor's own class, 1 - alpha of the others; below 0: both 1"),
    SODET_OPT_DOUBLE(focal_cfg, gamma, "2", 0, 10, "how much easy anchors count less; 0 is plain cross-entropy"),
    SODET_OPT_DOUBLE(focal_cfg, class_weight, "1", 0, 1000, "factor of the class term"),
    SODET_OPT_DOUBLE(focal_cfg, box_weight, "1", 0, 1000, "factor of the box term (0.25 is a mean over the four codes)"),
    SODET_OPT_DOUBLE(focal_cfg, beta, "0.1111111111111111", 0, 10,
                     "where smooth L1 turns linear (Detectron: 1/9); 0 is plain L1 (torchvision)"),
};

static sodet_status build(const void *self, sodet_graph *g, const sodet_head_out *raw, const sodet_targets *t, sodet_err *err)
{
    const focal_cfg *cfg = self;
    sodet_value zero = sodet_scalar(g, 0);
    sodet_value cls = sodet_sigmoid_focal(g, raw->logits, sodet_sigmoid_labels(g, t), cfg->alpha, cfg->gamma);  /* [N, A] */
    sodet_value box = sodet_smooth_l1(g, raw->codes, sodet_encode_boxes(g, t, raw->variance, NULL), cfg->beta); /* [N, A] */
    box = sodet_where(g, sodet_ge(g, t->index, zero), box, zero);

    sodet_emit_loss(g, "cls", t, sodet_sum_per_image(g, cls), cfg->class_weight);
    sodet_emit_loss(g, "box", t, sodet_sum_per_image(g, box), cfg->box_weight);
    return sodet_graph_status(g, err);
}

static const sodet_loss_ops ops = {.struct_size = sizeof ops, .activation = SODET_SIGMOID, .build = build};
SODET_PLUGIN(SODET_KIND_LOSS, "focal", "focal loss on sigmoids, and L1 or smooth L1 (RetinaNet)", focal_cfg, options, .ops = &ops);
