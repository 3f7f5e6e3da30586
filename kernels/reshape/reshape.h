/* reshape: the same elements in the same (row-major) order under another shape. No work: a view. Any type.
 *
 * Part 0  in x   out y. Its gradient is reshape to the shape of x. */
#ifndef SODET_KERNELS_RESHAPE_H
#define SODET_KERNELS_RESHAPE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_reshape_attr {
    int64_t dim[SODET_MAX_RANK];
    uint32_t rank, reserved;
} sodet_reshape_attr;

/* One dim may be -1: what is left. sodet_reshape(g, x, 3, (const int64_t[]){n, -1, 4}). */
SODET_EXPORT sodet_value sodet_reshape(sodet_graph *g, sodet_value x, uint32_t rank, const int64_t *dim);

#ifdef __cplusplus
}
#endif
#endif
