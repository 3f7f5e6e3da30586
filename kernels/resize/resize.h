/* resize: a map at another height and width, as torch's interpolate(size = (out_h, out_w)) does it.
 *   nearest   y[i, j] = x[floor(i * H / out_h), floor(j * W / out_w)]                       (in exact integers)
 *   bilinear  the source position of row i is max((i + 0.5) * H / out_h - 0.5, 0): between rows floor and floor + 1 (clamped), columns
 *             alike; align_corners = False, no antialias
 *
 * Part 0  in x [N, C, H, W]   out y [N, C, out_h, out_w]
 * Part 1  in dy                out dx [N, C, in_h, in_w]
 * Tolerance: nearest exact forward; else 2e-6 of the largest value. */
#ifndef SODET_KERNELS_RESIZE_H
#define SODET_KERNELS_RESIZE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_RESIZE_NEAREST = 0, SODET_RESIZE_BILINEAR };
typedef struct sodet_resize_attr {
    uint32_t kind;
    int32_t out_h, out_w;
    int32_t in_h, in_w; /* part 1; 0 in part 0 */
} sodet_resize_attr;

SODET_EXPORT sodet_value sodet_resize(sodet_graph *g, sodet_value x, uint32_t kind, int64_t out_h, int64_t out_w);

#ifdef __cplusplus
}
#endif
#endif
