/* square_sum: sums of squares of an arena by group (the gradient's norm), and whether all of it is finite; one pass.
 *
 * Inputs: 0 x [P] F32, P at least 1; 1 start [S] I32 as in sgd_update; 2 group [S] I32, 0..G-1 (a segment of another group is in no sum). 1 and 2
 * absent: all of x is group 0.
 * Outputs: 0 sum [G] F32; 1 finite F32 scalar: 1 if every element of x (of all groups) is finite, else 0.
 * Sums are made in double, in pieces whose order does not depend on the number of threads.
 * Tolerance against the reference: 1 unit in the last place. No derivative. */
#ifndef SODET_KERNELS_SQUARE_SUM_H
#define SODET_KERNELS_SQUARE_SUM_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_square_sum_attr {
    uint32_t groups; /* G, at least 1, at most SODET_SQUARE_SUM_GROUPS */
} sodet_square_sum_attr;
enum { SODET_SQUARE_SUM_GROUPS = 16 };

SODET_EXPORT sodet_value sodet_square_sum(sodet_graph *g, sodet_value x, sodet_value start, sodet_value group, uint32_t groups,
                                          sodet_value *finite /* may be NULL */);

/* min(1, limit / (norm + 1e-6)) of a sum of squares [1] that was made of a gradient still to be multiplied by `scale` (SODET_NONE: 1):
 * torch.nn.utils.clip_grad_norm_. Returns the factor for the update's `scale`, scale included; *norm (may be NULL) is the scaled norm. */
SODET_EXPORT sodet_value sodet_clip_factor(sodet_graph *g, sodet_value square_sum, sodet_value limit, sodet_value scale, sodet_value *norm);

#ifdef __cplusplus
}
#endif
#endif
