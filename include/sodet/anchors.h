/* sodet/anchors.h: what the heads of single-shot detectors share on the host: grids of anchors, and the matching of anchors with
 * ground truth. Plain code without state: any thread. Where the reference systems differ, the difference is an option here; the names
 * in brackets say who does it so.
 *
 * Arithmetic: anchors are computed in double and rounded to float once. An intersection over union is computed in float from the
 * corners: inter / (area a + area b - inter), 0 where the boxes do not overlap. */
#ifndef SODET_ANCHORS_H
#define SODET_ANCHORS_H

#include "sodet/detection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- default boxes of SSD (Liu et al. 2016, section 2.2) ----
 * A cell of level k has, in this order: a square of s_k; a square of sqrt(s_k s_{k+1}) (none where the count is odd); then for each
 * ratio r a box of s_k sqrt(r) x s_k / sqrt(r) and one of s_k / sqrt(r) x s_k sqrt(r). A square is a square in pixels, whatever the
 * input's shape. */
enum { SODET_BOX_ORDER_CELL = 0, /* row, column, shape */ SODET_BOX_ORDER_SHAPE /* shape, row, column [NVIDIA, MLPerf] */ };
enum {
    SODET_CLIP_NONE = 0, /* [Caffe's VOC models, GluonCV, d2l] */
    SODET_CLIP_CORNERS,  /* corners to the picture [Caffe's clip] */
    SODET_CLIP_CENTRE,   /* cx and w to 0..width, cy and h to 0..height [ssd.pytorch, NVIDIA, MLPerf] */
    SODET_CLIP_SIZE      /* w and h alone [torchvision] */
};
enum { SODET_SIZE_PIXELS = 0, SODET_SIZE_FRACTION /* of the input's shorter side */ };
typedef struct sodet_ssd_boxes {
    uint32_t struct_size;
    sodet_double_list
        sizes; /* s_k: one per level, or one more for the last level's second square. None: 10 %, then 20 % to 90 % in even steps */
    sodet_double_list second; /* size of the second square, one per level. None: sqrt(s_k s_{k+1}) */
    sodet_double_list ratios; /* above 1; level k uses the first (count_k - 1) / 2 of them */
    sodet_uint_list counts;   /* boxes per cell, one per level or one for all. None: 4 on the first level and the last two, 6 between */
    sodet_double_list steps;  /* pixels from cell to cell. None: the levels' strides; the whole input for a global level */
    double offset;            /* of a cell's centre, in steps: 0.5 */
    uint32_t unit;            /* SODET_SIZE_* of sizes and second */
    uint32_t clip;            /* SODET_CLIP_* */
    uint32_t order;           /* SODET_BOX_ORDER_* */
    uint32_t truncate;        /* 1: sizes in pixels lose their fraction before use [Caffe] */
} sodet_ssd_boxes;
/* Boxes per cell of a level; 0 (and an error) where lists and levels do not fit. */
SODET_EXPORT uint32_t sodet_ssd_boxes_per_cell(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t level, sodet_err *err);
SODET_EXPORT sodet_status sodet_ssd_boxes_make(const sodet_ssd_boxes *b, const sodet_shape2d *levels, uint32_t n_levels,
                                               sodet_shape2d image, sodet_anchors *out, sodet_err *err);

/* ---- anchors of RetinaNet (Lin et al. 2017, section 4) ----
 * A cell of a level with base size b has for each of `octaves` sizes b 2^(i / octaves) and each ratio one anchor of area size^2. */
enum { SODET_RATIO_HEIGHT_BY_WIDTH = 0, SODET_RATIO_WIDTH_BY_HEIGHT /* [zgcr] */ };
enum {
    SODET_ANCHOR_SIZE_FASTEST = 0,
    /* ratio by ratio [torchvision, zgcr, fizyr] */ SODET_ANCHOR_RATIO_FASTEST /* [Detectron, Detectron2] */
};
enum {
    SODET_ROUND_NONE = 0,
    SODET_ROUND_CORNERS, /* sizes are truncated, corners about the centre are rounded to the nearest integer, halves to even [torchvision] */
    SODET_ROUND_CELL     /* w and h of a box of the stride's size are rounded, then scaled [Detectron] */
};
enum {
    SODET_CENTRE_HALF = 0, /* (i + 1/2) stride [zgcr, fizyr] */
    SODET_CENTRE_CORNER,   /* i stride [Detectron2, torchvision] */
    SODET_CENTRE_PIXEL     /* i stride + (stride - 1) / 2 [Detectron] */
};
typedef struct sodet_retina_boxes {
    uint32_t struct_size, octaves;
    sodet_double_list sizes; /* b of each level in pixels. None: base * stride */
    double base;
    sodet_double_list ratios;
    uint32_t ratio_means; /* SODET_RATIO_* */
    uint32_t order;       /* SODET_ANCHOR_* */
    uint32_t round;       /* SODET_ROUND_* */
    uint32_t centre;      /* SODET_CENTRE_* */
    uint32_t divide;      /* 1: the step is input size / cells, rounded down [torchvision]; 0: the level's stride */
} sodet_retina_boxes;
SODET_EXPORT uint32_t sodet_retina_boxes_per_cell(const sodet_retina_boxes *b);
SODET_EXPORT sodet_status sodet_retina_boxes_make(const sodet_retina_boxes *b, const sodet_shape2d *levels, uint32_t n_levels,
                                                  sodet_shape2d image, sodet_anchors *out, sodet_err *err);

/* ---- matching ----
 * First every anchor takes the box with which its IoU is largest (the first on a tie), if that is `positive` or more; below `negative`
 * it is background, between them ignored; where both are equal nothing is ignored. Then boxes claim anchors, which overrides that. A claim needs an IoU above `floor`: a box
 * that nothing overlaps gets no anchor. (ssd.pytorch, NVIDIA and torchvision's SSD then force anchor 0, and Detectron2 and torchvision's
 * RetinaNet every anchor with IoU 0; that is not offered.) */
enum {
    SODET_CLAIM_NONE = 0, /* [zgcr, fizyr] */
    SODET_CLAIM_GREEDY,   /* largest IoU of the whole table, its row and column struck out, and again [Caffe, d2l]; ties: the lower
                             anchor, then the lower box */
    SODET_CLAIM_BEST,     /* each box its best anchor (the lowest on a tie); of two that want the same, the later box gets it
                             [ssd.pytorch, NVIDIA, torchvision's SSD] */
    SODET_CLAIM_LOW       /* every anchor whose IoU with some box is that box's largest becomes positive, for its own best box
                             ("low quality matches") [Detectron2, torchvision's RetinaNet] */
};
enum { SODET_TRUTH_USE = 0, SODET_TRUTH_DROP, SODET_TRUTH_IGNORE /* dropped, and background anchors half covered by it are ignored */ };
enum {
    SODET_BORDER_KEEP = 0,
    SODET_BORDER_INSIDE, /* anchors that are not strictly inside the input are ignored [zgcr] */
    SODET_BORDER_CENTRE  /* anchors whose centre is outside the input are ignored [fizyr] */
};
typedef struct sodet_match_options {
    uint32_t struct_size;
    double positive, negative; /* 0 < negative <= positive <= 1; compared as float */
    double floor;
    uint32_t strict;       /* 1: positive above `positive` alone [NVIDIA, MLPerf] */
    uint32_t claim;        /* SODET_CLAIM_* */
    uint32_t difficult;    /* SODET_TRUTH_* of boxes flagged difficult */
    uint32_t crowd;        /* SODET_TRUTH_* of boxes flagged crowd */
    uint32_t border;       /* SODET_BORDER_* */
    uint32_t ignore_empty; /* 1: all anchors of a picture without boxes are ignored [zgcr]; 0: background */
} sodet_match_options;
/* index[a->n]: row of truth, SODET_INDEX_BACKGROUND or SODET_INDEX_IGNORE. About 0.3 ms for 8,732 anchors and 30 boxes, 3 to 6 ms for
 * 200,000. */
SODET_EXPORT sodet_status sodet_match(const sodet_match_options *o, const sodet_anchors *a, const sodet_boxes *truth, int32_t *index,
                                      sodet_err *err);

/* Intersection over union of two boxes, as matching computes it. */
SODET_EXPORT float sodet_box_iou(const sodet_box *a, const sodet_box *b);

/* ---- option rows ----
 * A head's configuration struct T has one of the structs above as member `m`, and these rows among its own: the options of all heads are
 * then called alike. d_*: defaults, as text. struct_size is left at 0 and is set by the head on its copy. */
SODET_EXPORT extern const char *const sodet_clip_names[], *const sodet_size_unit_names[], *const sodet_box_order_names[];
SODET_EXPORT extern const char *const sodet_ratio_names[], *const sodet_anchor_order_names[], *const sodet_round_names[],
                                                                                                  *const sodet_centre_names[];
SODET_EXPORT extern const char *const sodet_claim_names[], *const sodet_truth_names[], *const sodet_border_names[];
/* clang-format off */
#define SODET_ROW_(T, name, type, ctype, field, def, lo, hi, choices, help) \
    SODET_FLAGGED_ROW_(T, 0, name, type, ctype, field, def, lo, hi, choices, help)
#define SODET_FLAGGED_ROW_(T, flags, name, type, ctype, field, def, lo, hi, choices, help) \
    { name, help, type, flags, SODET_OFFSET(T, field, ctype), def, lo, hi, 0, choices }

#define SODET_SSD_BOXES_ROWS(T, m) \
    SODET_ROW_(T, "sizes", SODET_T_DOUBLE_LIST, sodet_double_list, m.sizes, NULL, 0.0001, 100000, NULL, \
               "side of each level's square, one more for the last level's second square; default: 10 %, then 20 to 90 % of the shorter side"), \
        SODET_ROW_(T, "second_sizes", SODET_T_DOUBLE_LIST, sodet_double_list, m.second, NULL, 0.0001, 100000, NULL, \
                   "side of each level's second square; default: geometric mean with the next level's size"), \
        SODET_ROW_(T, "size_unit", SODET_T_ENUM, uint32_t, m.unit, "pixels", 0, 0, sodet_size_unit_names, \
                   "what sizes are given in: pixels of the input, or fractions of its shorter side"), \
        SODET_ROW_(T, "ratios", SODET_T_DOUBLE_LIST, sodet_double_list, m.ratios, "2 3", 1.0001, 100, NULL, \
                   "width by height of the oblong boxes; each also upright"), \
        SODET_ROW_(T, "per_cell", SODET_T_UINT_LIST, sodet_uint_list, m.counts, NULL, 1, 64, NULL, \
                   "boxes per cell of each level (2 squares, then 2 per ratio), or one number for all; default: 4 on the first and last two, else 6"), \
        SODET_ROW_(T, "steps", SODET_T_DOUBLE_LIST, sodet_double_list, m.steps, NULL, 0.5, 100000, NULL, \
                   "pixels from cell to cell on each level; default: the feature maps' strides"), \
        SODET_ROW_(T, "offset", SODET_T_DOUBLE, double, m.offset, "0.5", 0, 1, NULL, "place of a box's centre in its cell"), \
        SODET_ROW_(T, "clip", SODET_T_ENUM, uint32_t, m.clip, "none", 0, 0, sodet_clip_names, \
                   "boxes that leave the picture: none; corners (Caffe's clip); centre (ssd.pytorch, NVIDIA); size (torchvision)"), \
        SODET_ROW_(T, "order", SODET_T_ENUM, uint32_t, m.order, "cell", 0, 0, sodet_box_order_names, \
                   "order of a level's boxes: cell by cell, or shape by shape (NVIDIA, MLPerf)"), \
        SODET_ROW_(T, "truncate_sizes", SODET_T_BOOL, uint32_t, m.truncate, "no", 0, 1, NULL, "sizes lose their fraction (Caffe)")

#define SODET_RETINA_BOXES_ROWS(T, m) \
    SODET_ROW_(T, "sizes", SODET_T_DOUBLE_LIST, sodet_double_list, m.sizes, NULL, 0.5, 100000, NULL, \
               "side of each level's smallest anchor in pixels; default: base x stride"), \
        SODET_ROW_(T, "base", SODET_T_DOUBLE, double, m.base, "4", 0.1, 1000, NULL, "side of a level's smallest anchor in strides"), \
        SODET_ROW_(T, "octaves", SODET_T_UINT, uint32_t, m.octaves, "3", 1, 16, NULL, "sizes per level: base size times 2^(i / octaves)"), \
        SODET_ROW_(T, "ratios", SODET_T_DOUBLE_LIST, sodet_double_list, m.ratios, "0.5 1 2", 0.01, 100, NULL, "shapes of the anchors"), \
        SODET_ROW_(T, "ratio_means", SODET_T_ENUM, uint32_t, m.ratio_means, "height/width", 0, 0, sodet_ratio_names, \
                   "what a ratio is (zgcr: width/height)"), \
        SODET_ROW_(T, "anchor_order", SODET_T_ENUM, uint32_t, m.order, "size", 0, 0, sodet_anchor_order_names, \
                   "what changes fastest among a cell's anchors: size (torchvision, zgcr, fizyr) or ratio (Detectron, Detectron2)"), \
        SODET_ROW_(T, "anchor_round", SODET_T_ENUM, uint32_t, m.round, "none", 0, 0, sodet_round_names, \
                   "none; corners (torchvision: whole corners, whole sizes); cell (Detectron: whole sides of a stride-sized box, then scaled)"), \
        SODET_ROW_(T, "anchor_centre", SODET_T_ENUM, uint32_t, m.centre, "half", 0, 0, sodet_centre_names, \
                   "centre of cell i: half, (i + 1/2) stride (zgcr, fizyr); corner, i stride (Detectron2, torchvision); pixel (Detectron)"), \
        SODET_ROW_(T, "divide_input", SODET_T_BOOL, uint32_t, m.divide, "no", 0, 1, NULL, \
                   "the step is input size / cells, rounded down (torchvision), not the stride")

#define SODET_MATCH_ROWS(T, m, d_negative, d_claim, d_difficult) \
    SODET_ROW_(T, "positive_iou", SODET_T_DOUBLE, double, m.positive, "0.5", 0.01, 1, NULL, "an anchor is positive from this IoU on"), \
        SODET_ROW_(T, "negative_iou", SODET_T_DOUBLE, double, m.negative, d_negative, 0.01, 1, NULL, \
                   "an anchor is background below this IoU; between the two it is ignored"), \
        SODET_ROW_(T, "match_strict", SODET_T_BOOL, uint32_t, m.strict, "no", 0, 1, NULL, "positive only above positive_iou (NVIDIA, MLPerf)"), \
        SODET_ROW_(T, "claim", SODET_T_ENUM, uint32_t, m.claim, d_claim, 0, 0, sodet_claim_names, \
                   "how objects get anchors below the threshold: none (zgcr); greedy, one each (Caffe, d2l); best, the later object wins " \
                   "(ssd.pytorch, torchvision's SSD); low, all that tie (Detectron2, torchvision's RetinaNet)"), \
        SODET_ROW_(T, "claim_floor", SODET_T_DOUBLE, double, m.floor, "0", 0, 1, NULL, "a claim needs an IoU above this (Caffe: 1e-6)"), \
        SODET_ROW_(T, "difficult", SODET_T_ENUM, uint32_t, m.difficult, d_difficult, 0, 0, sodet_truth_names, \
                   "difficult objects while training: use, drop, or ignore the anchors they cover"), \
        SODET_ROW_(T, "crowd", SODET_T_ENUM, uint32_t, m.crowd, "drop", 0, 0, sodet_truth_names, \
                   "crowd boxes while training: use, drop, or ignore the anchors they cover"), \
        SODET_ROW_(T, "border", SODET_T_ENUM, uint32_t, m.border, "keep", 0, 0, sodet_border_names, \
                   "anchors at the border: keep; inside, ignore what is not inside the input (zgcr); centre, ignore centres outside (fizyr)"), \
        SODET_ROW_(T, "ignore_empty", SODET_T_BOOL, uint32_t, m.ignore_empty, "no", 0, 1, NULL, \
                   "a picture without objects teaches nothing (zgcr), instead of being all background")

/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
