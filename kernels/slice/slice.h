/* slice: a block of x: y[i, j, ...] = x[start_0 + i, start_1 + j, ...], `size` elements along each dimension. F32 or I32.
 * Gradient (F32): dy in that block of dx, zeros elsewhere: part 1, in dy, out dx. Exact. */
#ifndef SODET_KERNELS_SLICE_H
#define SODET_KERNELS_SLICE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_slice_attr {
    int64_t start[SODET_MAX_RANK], size[SODET_MAX_RANK];
    sodet_shape x; /* part 1: shape of x */
} sodet_slice_attr;

/* Along one axis (from the back if negative): [start, start + size); size -1: to the end. */
SODET_EXPORT sodet_value sodet_slice(sodet_graph *g, sodet_value x, int32_t axis, int64_t start, int64_t size);

#ifdef __cplusplus
}
#endif
#endif
