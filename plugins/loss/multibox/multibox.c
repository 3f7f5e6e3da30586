/* The multibox loss of SSD (Liu et al. 2016, section 2.2): softmax cross-entropy over positives and hard negatives, smooth L1 over the
 * positives' box codes. What the sums are divided by (positives of the batch, the image, the device) is [loss] normaliser.
 *
 * d2l's variant: negatives = all, mean_over = anchors, beta = 0, size_epsilon = 1e-6. */
#include "sodet/detection.h"

typedef struct multibox_cfg {
    uint32_t negatives, min_negatives, mean_over;
    double negative_ratio, class_weight, box_weight, beta, size_epsilon;
} multibox_cfg;

enum { HARD, ALL, POSITIVES = 0, ANCHORS };
static const char *const negatives[] = {"hard", "all", NULL};
static const char *const means[] = {"positives", "anchors", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(multibox_cfg, negatives, "hard", negatives, "background anchors that count: the hardest of each picture, or all (d2l)"),
    SODET_OPT_DOUBLE(multibox_cfg, negative_ratio, "3", 0, 1000, "hard negatives for each positive"),
    SODET_OPT_UINT(multibox_cfg, min_negatives, "0", 0, 1000000, "hard negatives that a picture with fewer positives still gives"),
    SODET_OPT_ENUM(multibox_cfg, mean_over, "positives", means,
                   "what the sums are divided by: positives, as [loss] normaliser says, or all anchors of each picture (d2l)"),
    SODET_OPT_DOUBLE(multibox_cfg, class_weight, "1", 0, 1000, "factor of the class term"),
    SODET_OPT_DOUBLE(multibox_cfg, box_weight, "1", 0, 1000, "factor of the box term (alpha of the paper)"),
    SODET_OPT_DOUBLE(multibox_cfg, beta, "1", 0, 10, "where smooth L1 turns linear; 0 is plain L1"),
    SODET_OPT_DOUBLE(multibox_cfg, size_epsilon, "0", 0, 0.1, "added to the ratio of sizes before its logarithm (d2l: 1e-6)"),
};

static sodet_status build(const void *self, sodet_graph *g, const sodet_head_out *raw, const sodet_targets *t, sodet_err *err)
{
    const multibox_cfg *cfg = self;
    const sodet_encode encode = {.struct_size = sizeof encode, .epsilon = cfg->size_epsilon};
    const double anchors = (double)sodet_dim(g, t->index, 1);

    sodet_value zero = sodet_scalar(g, 0);
    sodet_value cls = sodet_softmax_cross_entropy(g, raw->logits, sodet_softmax_labels(g, t)); /* [N, A]; 0 where ignored */
    if (cfg->negatives == HARD)
        cls = sodet_where(g, sodet_hard_negatives(g, cls, t->index, cfg->negative_ratio, cfg->min_negatives, 0), cls, zero);
    sodet_value positive = sodet_ge(g, t->index, zero);
    sodet_value box = sodet_smooth_l1(g, raw->codes, sodet_encode_boxes(g, t, raw->variance, &encode), cfg->beta); /* [N, A] */

    cls = sodet_sum_per_image(g, cls);
    box = sodet_sum_per_image(g, sodet_where(g, positive, box, zero));
    if (cfg->mean_over == ANCHORS) {
        sodet_emit_loss_mean(g, "cls", t, cls, cfg->class_weight / anchors);
        sodet_emit_loss_mean(g, "box", t, box, cfg->box_weight / (4 * anchors));
    } else {
        sodet_emit_loss(g, "cls", t, cls, cfg->class_weight);
        sodet_emit_loss(g, "box", t, box, cfg->box_weight);
    }
    return sodet_graph_status(g, err);
}

static const sodet_loss_ops ops = {.struct_size = sizeof ops, .activation = SODET_SOFTMAX, .build = build};
SODET_PLUGIN(SODET_KIND_LOSS, "multibox", "softmax with hard negatives, and smooth L1 (SSD)", multibox_cfg, options, .ops = &ops);
