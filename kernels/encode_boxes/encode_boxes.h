/* encode_boxes: the codes that each anchor should have, from the box that head.assign gave it (Liu et al. 2016, equation 2):
 *     ((g_cx - a_cx) / a_w / v0, (g_cy - a_cy) / a_h / v1, ln(g_w / a_w + epsilon) / v2, ln(g_h / a_h + epsilon) / v3)
 * and zeros where index is below 0 or behind the table.
 *
 * index [N, A] I32; truth [N, T, 4] F32, x1 y1 x2 y2; anchors [A, 4] F32, cx cy w h; y [N, A, 4] F32.
 * v: variance, 0.1 0.1 0.2 0.2 in the SSD family, ones in RetinaNet's. epsilon: 0, or 1e-6 (d2l). plus_one: g_w = x2 - x1 + 1, g_cx = x1 + g_w / 2 (Detectron).
 * A box without area has no finite code; assignment never gives one. No derivative. Tolerance against the reference: 4e-6 (1 + |y|). */
#ifndef SODET_KERNELS_ENCODE_BOXES_H
#define SODET_KERNELS_ENCODE_BOXES_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_encode {
    uint32_t struct_size;
    uint32_t plus_one;
    double epsilon;
} sodet_encode;
#define SODET_ENCODE(...) (&(sodet_encode){.struct_size = sizeof(sodet_encode), __VA_ARGS__})

typedef struct sodet_encode_boxes_attr {
    float variance[4];
    double epsilon;
    uint32_t plus_one, reserved;
} sodet_encode_boxes_attr;

struct sodet_targets; /* sodet/detection.h */
/* options: NULL for none. */
SODET_EXPORT sodet_value sodet_encode_boxes(sodet_graph *g, const struct sodet_targets *t, const float variance[4],
                                            const sodet_encode *options);

#ifdef __cplusplus
}
#endif
#endif
