/* sodet/postprocess.h: from logits and box codes to detections, as the heads of single-shot detectors do it: scores, threshold, the best
 * k, decoding, non-maximum suppression. Where the reference systems differ, the difference is an option; names in brackets say who. */
#ifndef SODET_POSTPROCESS_H
#define SODET_POSTPROCESS_H

#include "sodet/anchors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SODET_TOP_PER_CLASS = 0, /* over all levels, class by class [Caffe, ssd.pytorch, torchvision's SSD, NVIDIA] */
    SODET_TOP_PER_LEVEL,     /* over all classes, level by level [Detectron, Detectron2, torchvision's RetinaNet, zgcr's first version] */
    SODET_TOP_OVER_ALL       /* over everything [GluonCV, SimpleAICV] */
};
enum { SODET_LABELS_ALL = 0, /* every class above the threshold */ SODET_LABELS_BEST /* each anchor's best class alone [d2l, zgcr] */ };
enum { SODET_NMS_PER_CLASS = 0, SODET_NMS_AGNOSTIC /* boxes of all classes suppress each other [d2l, zgcr] */ };
enum {
    SODET_CLIP_BOXES_BEFORE = 0, /* to the input, before suppression [torchvision] */
    SODET_CLIP_BOXES_AFTER,      /* [Caffe, Detectron2] */
    SODET_CLIP_BOXES_NEVER       /* [ssd.pytorch, NVIDIA, d2l] */
};
typedef struct sodet_detect_options {
    uint32_t struct_size;
    uint32_t top_k;     /* candidates; 0: all */
    double score;       /* only scores above it */
    double nms;         /* a box is dropped that has an IoU above this with a better one */
    double clamp;       /* upper bound of the size codes before exp: ln(1000 / 16) [torchvision, Detectron, Detectron2]; 0: none */
    uint32_t top_scope; /* SODET_TOP_* */
    uint32_t labels;    /* SODET_LABELS_* */
    uint32_t nms_equal; /* 1: with an IoU of this or above [NVIDIA, Detectron, zgcr] */
    uint32_t nms_scope; /* SODET_NMS_* */
    uint32_t keep;      /* K, detections per picture */
    uint32_t clip;      /* SODET_CLIP_BOXES_* */
    uint32_t truncate;  /* 1: corners lose their fraction before suppression [zgcr] */
} sodet_detect_options;

SODET_EXPORT void sodet_build_detections(sodet_graph *g, const sodet_detect_options *o, const sodet_head_out *raw, sodet_value anchors,
                                         sodet_shape2d image, const sodet_head_context *ctx, sodet_detections *out);

/* ---- option rows, as in sodet/anchors.h ---- */
/* clang-format off */
SODET_EXPORT extern const char *const sodet_top_names[], *const sodet_label_names[], *const sodet_nms_names[], *const sodet_clip_box_names[];
#define SODET_DETECT_ROWS(T, m, d_score, d_top, d_scope, d_nms, d_keep) \
    SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "score_threshold", SODET_T_DOUBLE, double, m.score, d_score, 0, 1, NULL, "detections have a score above this"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "top_k", SODET_T_UINT, uint32_t, m.top_k, d_top, 0, 10000000, NULL, "candidates that go into suppression; 0 is all"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "top_k_of", SODET_T_ENUM, uint32_t, m.top_scope, d_scope, 0, 0, sodet_top_names, \
                   "top_k of each class (Caffe, torchvision's SSD), each level (Detectron2, torchvision's RetinaNet), or all together (GluonCV)"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "labels", SODET_T_ENUM, uint32_t, m.labels, "all", 0, 0, sodet_label_names, \
                   "an anchor's labels: all above the threshold, or its best one (d2l, zgcr)"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "nms_iou", SODET_T_DOUBLE, double, m.nms, d_nms, 0, 1, NULL, \
                   "a box is dropped that has an IoU above this with a better one; 1 keeps all"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "nms_equal", SODET_T_BOOL, uint32_t, m.nms_equal, "no", 0, 1, NULL, "dropped at exactly nms_iou too (NVIDIA, Detectron, zgcr)"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "nms_scope", SODET_T_ENUM, uint32_t, m.nms_scope, "class", 0, 0, sodet_nms_names, \
                   "boxes suppress each other within a class, or whatever their class (agnostic: d2l, zgcr)"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "max_detections", SODET_T_UINT, uint32_t, m.keep, d_keep, 1, 100000, NULL, "detections kept per picture"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "clip_boxes", SODET_T_ENUM, uint32_t, m.clip, "before", 0, 0, sodet_clip_box_names, \
                   "boxes are clipped to the picture before suppression (torchvision), after it (Caffe, Detectron2), or never"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "size_clamp", SODET_T_DOUBLE, double, m.clamp, "4.135166556742356", 0, 80, NULL, \
                   "upper bound of the size codes, ln(1000 / 16); 0 is none"), \
        SODET_FLAGGED_ROW_(T, SODET_OPT_LATER, "truncate_boxes", SODET_T_BOOL, uint32_t, m.truncate, "no", 0, 1, NULL, "boxes lose their fraction before suppression (zgcr)")
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
