/* nms: greedy non-maximum suppression of each image, and the packed detections behind it.
 *
 * Candidates are those with score > score_threshold (NaN is none), in the order of falling score, equal scores by lower number; only the first
 * `candidates` of them count. Each is kept unless a kept one of its class overlaps it with IoU > iou_threshold (>= with `inclusive`), or `most_per_class`
 * of its class, or `most` in all, are kept.
 * IoU = intersection / (area + area - intersection), in float32 whatever the real type is, so that every backend keeps the same; 0 / 0 suppresses nothing.
 * plus_one: sides are x2 - x1 + 1 (VOC's pixels; wrong for coordinates of 0..1).
 *
 * Inputs: 0 boxes [N, K, 4] F32 x1 y1 x2 y2; 1 score [N, K] F32; 2 label [N, K] or [K] I32, absent: all of one class (class-agnostic).
 * Outputs: 0 index [N, M] I32: numbers of the kept, falling score, -1 behind them; 1 count [N] I32. M = most, or K if it is 0 or larger than K.
 * No derivative. Exact.
 *
 * As the systems have it (specifications, e): class-wise, > 0.45, 400 per class before and 200 in all: Caffe's SSD; >= : Detectron, NVIDIA ("keep if < 0.5");
 * agnostic: zgcr, d2l; candidates 400 over all classes: GluonCV; most_per_class 200: ssd.pytorch. */
#ifndef SODET_KERNELS_NMS_H
#define SODET_KERNELS_NMS_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero: no score threshold above 0, no limit. */
typedef struct sodet_nms_options {
    uint32_t struct_size;
    uint32_t most, most_per_class, candidates;
    uint32_t inclusive, plus_one;
    double iou_threshold, score_threshold;
} sodet_nms_options;
#define SODET_NMS(...) (&(sodet_nms_options){.struct_size = sizeof(sodet_nms_options), __VA_ARGS__})

typedef struct sodet_nms_attr {
    sodet_nms_options o;
} sodet_nms_attr;

SODET_EXPORT void sodet_nms(sodet_graph *g, sodet_value boxes, sodet_value score, sodet_value label, const sodet_nms_options *options,
                            sodet_value *index, sodet_value *count);

struct sodet_detections; /* sodet/detection.h */
/* The same, and what was kept is gathered: boxes [N, M, 4], scores [N, M], labels [N, M] (zeros behind count), count [N]. With agnostic != 0 the labels
 * take no part in suppression. */
SODET_EXPORT void sodet_nms_detections(sodet_graph *g, sodet_value boxes, sodet_value score, sodet_value label, uint32_t agnostic,
                                       const sodet_nms_options *options, struct sodet_detections *out);

#ifdef __cplusplus
}
#endif
#endif
