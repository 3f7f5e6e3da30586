/* reduce: sum, mean or maximum of x (F32) over the dimensions in `axes`; those in `drop` leave the shape, the others stay with size 1.
 *
 * Sums are made in double. The sum over nothing is 0; mean and maximum over nothing are refused when the node is added. The maximum is NaN if
 * any element is.
 * Gradients: sum: dy repeated; mean: dy / count repeated; max: dy to the first maximum in row-major order, 0 to the others. Part 1 makes them:
 * in dy [, x, y for max], out dx.
 * Tolerance against the reference: 1 unit in the last place for sum and mean (in order to hold, sums are in double), max exact. */
#ifndef SODET_KERNELS_REDUCE_H
#define SODET_KERNELS_REDUCE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_REDUCE_SUM = 1, SODET_REDUCE_MEAN, SODET_REDUCE_MAX };
typedef struct sodet_reduce_attr {
    uint32_t kind;
    uint32_t axes, drop; /* bit i: dimension i */
    sodet_shape x;       /* part 1: shape of x */
} sodet_reduce_attr;

/* Over the dimensions whose bits are set (0: all), which leave the shape. */
SODET_EXPORT sodet_value sodet_sum(sodet_graph *g, sodet_value x, uint32_t axes);
SODET_EXPORT sodet_value sodet_mean(sodet_graph *g, sodet_value x, uint32_t axes);
SODET_EXPORT sodet_value sodet_reduce_max(sodet_graph *g, sodet_value x, uint32_t axes);
/* [N, ...] -> [N]; [N] stays as it is. */
SODET_EXPORT sodet_value sodet_sum_per_image(sodet_graph *g, sodet_value x);

#ifdef __cplusplus
}
#endif
#endif
