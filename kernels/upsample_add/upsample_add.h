/* upsample_add: y = a + b enlarged to a's height and width, the sum of a feature pyramid's top-down path (Lin et al. 2017, "Feature Pyramid
 * Networks", section 3); the enlarged map is never made.
 *   y[n, c, i, j] = a[n, c, i, j] + b[n, c, floor(i * h / H), floor(j * w / W)]       (nearest as in resize, in exact integers)
 *   da = dy,  db[n, c, k, l] = sum of dy over the pixels that took b[n, c, k, l]      (part 1 of resize)
 *
 * Part 0  in a [N, C, H, W], b [N, C, h, w] with 1 <= h <= H and 1 <= w <= W   out y [N, C, H, W]
 * Tolerance: a float's rounding of one sum. */
#ifndef SODET_KERNELS_UPSAMPLE_ADD_H
#define SODET_KERNELS_UPSAMPLE_ADD_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

SODET_EXPORT sodet_value sodet_upsample_add(sodet_graph *g, sodet_value a, sodet_value b);

#ifdef __cplusplus
}
#endif
#endif
