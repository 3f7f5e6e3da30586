/* avg_pool: the mean over the window at (i*stride_h - top, j*stride_w - left). Windows are counted as in max_pool.h.
 * The divisor is the window's size, clipped to the padded map (torch's count_include_pad = True), or, with SODET_POOL_EXCLUDE_PAD, the
 * number of elements that lie on the map.
 *
 * Part 0  in x [N, C, H, W]   out y [N, C, OH, OW]
 * Part 1  in dy                out dx [N, C, in_h, in_w]
 * Tolerance: 1e-6 of the largest value. */
#ifndef SODET_KERNELS_AVG_POOL_H
#define SODET_KERNELS_AVG_POOL_H

#include "sodet/ops/max_pool.h" /* sodet_pool_attr, sodet_pool_desc */

#ifdef __cplusplus
extern "C" {
#endif

struct sodet_pool_desc;
SODET_EXPORT sodet_value sodet_avg_pool(sodet_graph *g, sodet_value x, const struct sodet_pool_desc *desc); /* SODET_POOL(...) */
SODET_EXPORT sodet_value sodet_global_avg_pool(sodet_graph *g, sodet_value x);                              /* [N, C, 1, 1] */

#ifdef __cplusplus
}
#endif
#endif
