/* permute: axes in another order: dim i of y is dim order[i] of x. Any type.
 *
 * Part 0  in x   out y. Its gradient is permute by the inverse order.
 * Tolerance: exact. */
#ifndef SODET_KERNELS_PERMUTE_H
#define SODET_KERNELS_PERMUTE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_permute_attr {
    uint32_t order[SODET_MAX_RANK]; /* the first `rank` */
} sodet_permute_attr;

/* order: as many axes as x has. sodet_permute(g, x, (const uint32_t[]){0, 2, 3, 1}) makes NHWC of NCHW. */
SODET_EXPORT sodet_value sodet_permute(sodet_graph *g, sodet_value x, const uint32_t *order);

#ifdef __cplusplus
}
#endif
#endif
