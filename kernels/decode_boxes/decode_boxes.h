/* decode_boxes: boxes from codes, the inverse of encode_boxes without its epsilon:
 *     cx = a_cx + c0 v0 a_w;  w = a_w exp(min(c2 v2, clamp));  x1 = cx - w / 2, x2 = cx + w / 2 (- 1 with plus_one); y likewise
 * then, with a clip, x into [0, clip_width], y into [0, clip_height].
 *
 * codes [N, K, 4] F32; anchors F32, cx cy w h, [K, 4] for all images or [N, K, 4] (gathered); y [N, K, 4] F32, x1 y1 x2 y2.
 * clamp: ln(1000 / 16) in torchvision, Detectron and Detectron2; 0: none (the SSD systems), and exp may overflow to infinity.
 * No derivative. Tolerance against the reference: 4e-6 of the largest side or coordinate. */
#ifndef SODET_KERNELS_DECODE_BOXES_H
#define SODET_KERNELS_DECODE_BOXES_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SODET_DECODE_CLAMP 4.135166556742356 /* ln(1000 / 16) */

typedef struct sodet_decode {
    uint32_t struct_size;
    uint32_t plus_one;
    double clamp;                   /* 0: none */
    double clip_height, clip_width; /* 0: none */
} sodet_decode;
#define SODET_DECODE(...) (&(sodet_decode){.struct_size = sizeof(sodet_decode), __VA_ARGS__})

typedef struct sodet_decode_boxes_attr {
    float variance[4];
    double clamp, clip_height, clip_width;
    uint32_t plus_one, reserved;
} sodet_decode_boxes_attr;

/* options: NULL for none. */
SODET_EXPORT sodet_value sodet_decode_boxes(sodet_graph *g, sodet_value codes, sodet_value anchors, const float variance[4],
                                            const sodet_decode *options);
/* Boxes [..., 4] cut to the image, for the systems that clip behind NMS. */
SODET_EXPORT sodet_value sodet_clip_boxes(sodet_graph *g, sodet_value boxes, double height, double width);

#ifdef __cplusplus
}
#endif
#endif
