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
    uint32_t n_sizes, n_second, n_ratios, n_counts, n_steps;
    const double
        *sizes; /* s_k: one per level, or one more for the last level's second square. None: 10 %, then 20 % to 90 % in even steps */
    const double *second;   /* size of the second square, one per level. None: sqrt(s_k s_{k+1}) */
    const double *ratios;   /* above 1; level k uses the first (count_k - 1) / 2 of them */
    const uint32_t *counts; /* boxes per cell, one per level or one for all. None: 4 on the first level and the last two, 6 between */
    const double *steps;    /* pixels from cell to cell. None: the levels' strides; the whole input for a global level */
    double offset;          /* of a cell's centre, in steps: 0.5 */
    uint32_t unit;          /* SODET_SIZE_* of sizes and second */
    uint32_t clip;          /* SODET_CLIP_* */
    uint32_t order;         /* SODET_BOX_ORDER_* */
    uint32_t truncate;      /* 1: sizes in pixels lose their fraction before use [Caffe] */
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
    uint32_t struct_size;
    uint32_t n_sizes, n_ratios, octaves;
    const double *sizes; /* b of each level in pixels. None: base * stride */
    double base;
    const double *ratios;
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
 * it is background, between them ignored. Then boxes claim anchors, which overrides that. A claim needs an IoU above `floor`: a box
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
    float positive, negative; /* 0 < negative <= positive <= 1 */
    float floor;
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

#ifdef __cplusplus
}
#endif
#endif
