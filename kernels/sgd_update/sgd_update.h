/* sgd_update: one step of stochastic gradient descent over a whole arena, in the sequence of torch.optim.SGD (dampening 0):
 *     g = scale grad + decay d p;   v = momentum v + g;   g = nesterov ? g + momentum v : v;   p = p - lr l g
 * with the factors l and d of the segment that the element lies in. (A first step on v = 0 equals PyTorch's, which sets v = g.)
 *
 * Inputs:
 *   0 p       [P] F32   parameter arena
 *   1 grad    [P] F32
 *   2 v       [P] F32   momentum state; absent: plain descent, p = p - lr l g
 *   3 start   [S] I32   first element of each segment, rising, start[0] = 0; a segment ends where the next begins
 *   4 factor  [S, 2] F32  l and d of each segment
 *   5 hyper   [3] F32   lr, momentum, decay
 *   6 scale   F32, one element; absent: 1 (clipping, loss scale)
 *   7 ok      F32, one element; absent: 1. Where it is 0 or NaN nothing changes.
 * Outputs: 0 new p (in place), 1 new v (in place; only if v is given).
 * Parameters whose l is 0 stay as they are, but their v moves. Tolerance against the reference: 2 units in the last place of p. */
#ifndef SODET_KERNELS_SGD_UPDATE_H
#define SODET_KERNELS_SGD_UPDATE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_sgd_update_attr {
    uint32_t nesterov;
} sodet_sgd_update_attr;

/* What every update of an arena is told beside the gradient. */
typedef struct sodet_update {
    uint32_t struct_size;
    sodet_value p, grad;
    sodet_value start, factor; /* the segment table */
    sodet_value hyper;
    sodet_value scale, ok; /* SODET_NONE: 1 */
} sodet_update;

/* Returns the new p; the new state is written in place. */
SODET_EXPORT sodet_value sodet_sgd_update(sodet_graph *g, const sodet_update *u, sodet_value v, uint32_t nesterov);

#ifdef __cplusplus
}
#endif
#endif
