/* softmax: y = exp(x - max) / sum exp(x - max) along `axis`.
 *
 * Part 0  in x   out y
 * Part 1  in y, dy   out dx = y * (dy - sum_axis(y * dy))
 * Sums in double in the reference. Tolerance: 1e-6. */
#ifndef SODET_KERNELS_SOFTMAX_H
#define SODET_KERNELS_SOFTMAX_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_softmax_attr {
    uint32_t axis;
} sodet_softmax_attr;

/* axis: from the back if negative (-1 is the last). */
SODET_EXPORT sodet_value sodet_softmax(sodet_graph *g, sodet_value x, int32_t axis);

#ifdef __cplusplus
}
#endif
#endif
