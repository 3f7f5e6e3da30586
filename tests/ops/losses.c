/* Losses, the choice of hard negatives, labels of anchors, box codes. Tolerances: those of the operators' headers. */
#include "opcase.h"

/* option 0, 1: least and most label; -1 is to be ignored. */
static void cross_entropy(opcase *c)
{
    sodet_value x = op_real(c, 0);
    op_result(c, sodet_softmax_cross_entropy(op_graph(c), x, op_int(c, 1, (int32_t)op_option(c, 0), (int32_t)op_option(c, 1))));
}

/* Most rows do not count: their gradients are exact zeros although their logits are of no use. */
static void cross_entropy_masked(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value loss = sodet_softmax_cross_entropy(g, op_real(c, 0), op_int(c, 1, 0, 4));
    op_result(c, sodet_where(g, sodet_gt(g, op_fixed(c, 2), sodet_scalar(g, 0.6)), loss, sodet_scalar(g, 0)));
}

/* options: beta */
static void smooth_l1(opcase *c)
{
    sodet_value x = op_real(c, 0);
    op_result(c, sodet_smooth_l1(op_graph(c), x, op_real(c, 1), op_option(c, 0)));
}

static void smooth_l1_fixed(opcase *c)
{
    sodet_value x = op_real(c, 0);
    op_result(c, sodet_smooth_l1(op_graph(c), x, op_fixed(c, 1), op_option(c, 0)));
}

/* options: alpha, gamma; labels -2 .. C */
static void focal(opcase *c)
{
    sodet_value x = op_real(c, 0);
    int32_t classes = (int32_t)sodet_dim(op_graph(c), x, sodet_rank(op_graph(c), x) - 1);
    op_result(c, sodet_sigmoid_focal(op_graph(c), x, op_int(c, 1, -2, classes - 1), op_option(c, 0), op_option(c, 1)));
}

/* options: ratio, least, most, greatest index (few positives if it is small) */
static void hard_negatives(opcase *c)
{
    sodet_value loss = op_fixed(c, 0);
    op_result(c, sodet_hard_negatives(op_graph(c), loss, op_int(c, 1, -2, (int32_t)op_option(c, 3)), op_option(c, 0),
                                      (uint32_t)op_option(c, 1), (uint32_t)op_option(c, 2)));
}

/* One positive in ten: as an image has them. */
static void hard_negatives_rare(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value loss = op_fixed(c, 0), dice = op_int(c, 1, 0, 99), zero = sodet_cast(g, sodet_scalar(g, 0), SODET_I32);
    sodet_value background = sodet_sub(g, zero, sodet_cast(g, sodet_scalar(g, 1), SODET_I32));
    sodet_value index = sodet_where(g, sodet_lt(g, dice, sodet_scalar(g, op_option(c, 3))), dice, background);
    op_result(c, sodet_hard_negatives(g, loss, index, op_option(c, 0), (uint32_t)op_option(c, 1), (uint32_t)op_option(c, 2)));
}

/* The whole of the multibox loss: its selection is a constant to the gradient. */
static void multibox(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value logits = op_real(c, 0), codes = op_real(c, 1), zero = sodet_scalar(g, 0);
    sodet_targets t = {.index = op_int(c, 2, -1, 2), .truth = op_boxes(c, 3), .label = op_int(c, 4, 0, 2), .anchors = op_anchors(c, 5)};
    sodet_value cross = sodet_softmax_cross_entropy(g, logits, sodet_softmax_labels(g, &t));
    sodet_value keep = sodet_hard_negatives(g, cross, t.index, 0.5, 0, 0);
    sodet_value box = sodet_smooth_l1(g, codes, sodet_encode_boxes(g, &t, (const float[]){0.1f, 0.1f, 0.2f, 0.2f}, NULL), 1);
    op_result(c, sodet_sum_per_image(g, sodet_where(g, keep, cross, zero)));
    op_result(c, sodet_sum_per_image(g, sodet_where(g, sodet_ge(g, t.index, zero), box, zero)));
}

static void labels(opcase *c)
{
    sodet_targets t = {.index = op_int(c, 0, -2, (int32_t)op_option(c, 0)), .label = op_int(c, 1, 0, 20)};
    op_result(c, sodet_softmax_labels(op_graph(c), &t));
    op_result(c, sodet_sigmoid_labels(op_graph(c), &t));
}

/* options: plus_one, epsilon */
static void encode(opcase *c)
{
    sodet_targets t = {.index = op_int(c, 0, -2, 3), .truth = op_boxes(c, 1), .anchors = op_anchors(c, 2)};
    op_result(c, sodet_encode_boxes(op_graph(c), &t, (const float[]){0.1f, 0.1f, 0.2f, 0.2f},
                                    SODET_ENCODE(.plus_one = (uint32_t)op_option(c, 0), .epsilon = op_option(c, 1))));
}

/* options: plus_one, clamp, clip_height, clip_width */
static void decode(opcase *c)
{
    sodet_value codes = op_fixed(c, 0), anchors = op_anchors(c, 1);
    op_result(c, sodet_decode_boxes(op_graph(c), codes, anchors, (const float[]){0.1f, 0.1f, 0.2f, 0.2f},
                                    SODET_DECODE(.plus_one = (uint32_t)op_option(c, 0), .clamp = op_option(c, 1),
                                                 .clip_height = op_option(c, 2), .clip_width = op_option(c, 3))));
}

/* Codes of boxes lead back to the boxes. */
static void there_and_back(opcase *c)
{
    sodet_graph *g = op_graph(c);
    const float variance[4] = {0.1f, 0.1f, 0.2f, 0.2f};
    sodet_targets t = {.index = op_int(c, 0, 0, 3), .truth = op_boxes(c, 1), .anchors = op_anchors(c, 2)};
    sodet_value codes = sodet_encode_boxes(g, &t, variance, SODET_ENCODE(.plus_one = 1));
    sodet_value boxes = sodet_decode_boxes(g, codes, t.anchors, variance, SODET_DECODE(.plus_one = 1));
    op_result(c, boxes);
    op_result(c, sodet_gt(g, sodet_abs(g, sodet_sub(g, boxes, sodet_gather_per_image(g, t.truth, t.index))), sodet_scalar(g, 1e-3)));
}

static void clip_boxes(opcase *c)
{
    sodet_graph *g = op_graph(c);
    op_result(c, sodet_clip_boxes(g, sodet_mul(g, op_fixed(c, 0), sodet_scalar(g, 10)), 60, 90));
}

const opcase_entry opcases_losses[] = {
    {.name = "cross entropy", .build = cross_entropy, .shape = {"2x7x5", "2x7"}, .option = {0, 4}},
    {.name = "cross entropy, ignored", .build = cross_entropy, .shape = {"2x70x21", "2x70"}, .option = {-1, 20}},
    {.name = "cross entropy, one class", .build = cross_entropy, .shape = {"3x4x1", "3x4"}, .option = {-1, 0}},
    {.name = "cross entropy, two classes, many rows", .build = cross_entropy, .shape = {"3x5444x2", "3x5444"}, .option = {0, 1}},
    {.name = "cross entropy, wide", .build = cross_entropy, .shape = {"3x100x81", "3x100"}, .option = {0, 80}, .data = OP_WIDE},
    {.name = "cross entropy, large mean", .build = cross_entropy, .shape = {"3x100x9", "3x100"}, .option = {0, 8}, .data = OP_LARGE_MEAN},
    {.name = "cross entropy, ties", .build = cross_entropy, .shape = {"3x100x9", "3x100"}, .option = {0, 8}, .data = OP_TIES},
    {.name = "cross entropy, equal", .build = cross_entropy, .shape = {"3x100x9", "3x100"}, .option = {0, 8}, .data = OP_ZEROS},
    {.name = "cross entropy, special",
     .build = cross_entropy,
     .shape = {"3x100x9", "3x100"},
     .option = {0, 8},
     .data = OP_SPECIAL,
     .flags = OP_NO_GRADIENT},
    {.name = "cross entropy, more classes than a buffer holds", .build = cross_entropy, .shape = {"3x9001", "3"}, .option = {0, 9000}},
    {.name = "cross entropy, no rows", .build = cross_entropy, .shape = {"0x9x4", "0x9"}, .option = {0, 3}},
    {.name = "cross entropy, vector", .build = cross_entropy, .shape = {"6", ""}, .option = {0, 5}},
    {.name = "cross entropy, masked", .build = cross_entropy_masked, .shape = {"4x50x5", "4x50", "4x50"}},
    {.name = "smooth L1", .build = smooth_l1, .shape = {"2x9x4", "2x9x4"}, .option = {1}, .data = OP_WIDE, .flags = 0},
    {.name = "smooth L1, beta 1/9",
     .build = smooth_l1,
     .shape = {"2x900x4", "2x900x4"},
     .option = {1.0 / 9},
     .data = OP_SPREAD,
     .flags = OP_NO_DIFFERENCES},
    {.name = "smooth L1, inside", .build = smooth_l1, .shape = {"2x9x4", "2x9x4"}, .option = {3}},
    {.name = "L1", .build = smooth_l1, .shape = {"2x9x4", "2x9x4"}, .data = OP_WIDE},
    {.name = "L1, ties",
     .build = smooth_l1_fixed,
     .shape = {"2x90x4", "2x90x4"},
     .data = OP_TIES,
     .backward = OP_EXACT,
     .flags = OP_NO_DIFFERENCES},
    {.name = "smooth L1, large mean",
     .build = smooth_l1_fixed,
     .shape = {"2x90x4", "2x90x4"},
     .option = {1},
     .data = OP_LARGE_MEAN,
     .flags = OP_NO_DIFFERENCES},
    {.name = "smooth L1, one", .build = smooth_l1_fixed, .shape = {"3x1", "3x1"}, .option = {1}},
    {.name = "smooth L1, no rows", .build = smooth_l1_fixed, .shape = {"0x5x4", "0x5x4"}, .option = {1}},
    {.name = "smooth L1, special",
     .build = smooth_l1_fixed,
     .shape = {"3x90x4", "3x90x4"},
     .option = {1},
     .data = OP_SPECIAL,
     .flags = OP_NO_GRADIENT},
    {.name = "focal", .build = focal, .shape = {"2x40x9", "2x40"}, .option = {0.25, 2}, .forward = 4e-6, .backward = 4e-6},
    {.name = "focal, wide",
     .build = focal,
     .shape = {"2x400x9", "2x400"},
     .option = {0.25, 2},
     .data = OP_WIDE,
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, gamma 1.5",
     .build = focal,
     .shape = {"2x40x9", "2x40"},
     .option = {0.25, 1.5},
     .data = OP_WIDE,
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, gamma 0, no weighting",
     .build = focal,
     .shape = {"2x40x9", "2x40"},
     .option = {-1, 0},
     .data = OP_WIDE,
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, gamma 1", .build = focal, .shape = {"2x40x1", "2x40"}, .option = {0.5, 1}, .forward = 4e-6, .backward = 4e-6},
    {.name = "focal, zeros",
     .build = focal,
     .shape = {"2x40x7", "2x40"},
     .option = {0.25, 2},
     .data = OP_ZEROS,
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, large",
     .build = focal,
     .shape = {"2x40x7", "2x40"},
     .option = {0.25, 2},
     .data = OP_LARGE_MEAN,
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, special",
     .build = focal,
     .shape = {"2x40x7", "2x40"},
     .option = {0.25, 2},
     .data = OP_SPECIAL,
     .forward = 4e-6,
     .flags = OP_NO_GRADIENT},
    {.name = "focal, special, gamma 1.5",
     .build = focal,
     .shape = {"2x40x7", "2x40"},
     .option = {0.25, 1.5},
     .data = OP_SPECIAL,
     .forward = 4e-6,
     .flags = OP_NO_GRADIENT},
    {.name = "focal, more classes than a buffer holds",
     .build = focal,
     .shape = {"3x5001", "3"},
     .option = {0.25, 2},
     .forward = 4e-6,
     .backward = 4e-6},
    {.name = "focal, no rows", .build = focal, .shape = {"0x5x4", "0x5"}, .option = {0.25, 2}},
    {.name = "hard negatives", .build = hard_negatives_rare, .shape = {"3x500", "3x500"}, .option = {3, 0, 0, 10}, .forward = OP_EXACT},
    {.name = "hard negatives, ties",
     .build = hard_negatives_rare,
     .shape = {"3x500", "3x500"},
     .option = {3, 0, 0, 10},
     .data = OP_TIES,
     .forward = OP_EXACT},
    {.name = "hard negatives, all ties",
     .build = hard_negatives_rare,
     .shape = {"2x9000", "2x9000"},
     .option = {3, 0, 0, 2},
     .data = OP_ZEROS,
     .forward = OP_EXACT},
    {.name = "hard negatives, special",
     .build = hard_negatives_rare,
     .shape = {"3x500", "3x500"},
     .option = {2, 0, 0, 10},
     .data = OP_SPECIAL,
     .forward = OP_EXACT},
    {.name = "hard negatives, no positives",
     .build = hard_negatives_rare,
     .shape = {"3x500", "3x500"},
     .option = {3, 0, 0, 0},
     .forward = OP_EXACT},
    {.name = "hard negatives, no positives, at least 7",
     .build = hard_negatives_rare,
     .shape = {"3x500", "3x500"},
     .option = {3, 7, 0, 0},
     .forward = OP_EXACT},
    {.name = "hard negatives, more than there are",
     .build = hard_negatives,
     .shape = {"3x50", "3x50"},
     .option = {30, 0, 0, 5},
     .forward = OP_EXACT},
    {.name = "hard negatives, limited", .build = hard_negatives, .shape = {"3x50", "3x50"}, .option = {3, 0, 4, 1}, .forward = OP_EXACT},
    {.name = "hard negatives, ratio of a half",
     .build = hard_negatives,
     .shape = {"3x51", "3x51"},
     .option = {0.5, 0, 0, 1},
     .forward = OP_EXACT},
    {.name = "hard negatives, one anchor", .build = hard_negatives, .shape = {"9x1", "9x1"}, .option = {3, 1, 0, 0}, .forward = OP_EXACT},
    {.name = "hard negatives, no images", .build = hard_negatives, .shape = {"0x9", "0x9"}, .option = {3, 1, 0, 0}},
    {.name = "multibox", .build = multibox, .shape = {"2x30x4", "2x30x4", "2x30", "2x3x4", "2x3", "30x4"}, .backward = 4e-6},
    {.name = "anchor labels", .build = labels, .shape = {"3x70", "3x5"}, .option = {6}},
    {.name = "anchor labels, no boxes", .build = labels, .shape = {"3x70", "3x0"}, .option = {0}},
    {.name = "encode", .build = encode, .shape = {"3x70", "3x4x4", "70x4"}, .forward = 4e-6},
    {.name = "encode, plus one", .build = encode, .shape = {"1x3000", "1x4x4", "3000x4"}, .option = {1, 0}, .forward = 4e-6},
    {.name = "encode, epsilon", .build = encode, .shape = {"2x70", "2x4x4", "70x4"}, .option = {0, 1e-6}, .forward = 4e-6},
    {.name = "encode, no boxes", .build = encode, .shape = {"2x70", "2x0x4", "70x4"}},
    {.name = "decode", .build = decode, .shape = {"2x700x4", "700x4"}, .forward = 4e-6},
    {.name = "decode, wide, clamped, clipped",
     .build = decode,
     .shape = {"2x700x4", "700x4"},
     .option = {0, SODET_DECODE_CLAMP, 80, 120},
     .data = OP_WIDE,
     .forward = 4e-6},
    {.name = "decode, plus one, anchors of each image",
     .build = decode,
     .shape = {"2x70x4", "2x70x4"},
     .option = {1, 0, 0, 90},
     .forward = 4e-6},
    {.name = "decode, special",
     .build = decode,
     .shape = {"1x70x4", "70x4"},
     .option = {0, SODET_DECODE_CLAMP, 80, 120},
     .data = OP_SPECIAL,
     .forward = 4e-6},
    {.name = "decode, nothing", .build = decode, .shape = {"0x7x4", "7x4"}},
    {.name = "encode and decode", .build = there_and_back, .shape = {"2x50", "2x4x4", "50x4"}, .forward = 4e-6},
    {.name = "clip boxes", .build = clip_boxes, .shape = {"2x50x4"}, .data = OP_WIDE, .forward = 4e-6},
    {.name = NULL}};
