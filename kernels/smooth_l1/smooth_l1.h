/* smooth_l1: loss[r] = sum_d f(x[r, d] - target[r, d]) over the last dimension; with e = |x - target|:
 *     f = e^2 / (2 beta) where e < beta, else e - beta / 2       (Girshick 2015 with beta 1; beta 0: plain L1)
 *
 * x, target [..., D] F32; loss [...] F32.
 * Gradient: dx = dloss (e < beta ? (x - target) / beta : sign(x - target)): part 1, in dloss, x, target, out dx; dtarget = -dx. Where dloss is 0
 * it is exactly 0, whatever x and target hold. Tolerance against the reference: 1e-6 of the loss; 2 units in the last place backward. */
#ifndef SODET_KERNELS_SMOOTH_L1_H
#define SODET_KERNELS_SMOOTH_L1_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_smooth_l1_attr {
    double beta;
} sodet_smooth_l1_attr;

SODET_EXPORT sodet_value sodet_smooth_l1(sodet_graph *g, sodet_value x, sodet_value target, double beta);

#ifdef __cplusplus
}
#endif
#endif
