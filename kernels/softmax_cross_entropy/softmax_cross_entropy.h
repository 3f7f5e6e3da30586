/* softmax_cross_entropy: loss[r] = log(sum_k exp(x[r, k])) - x[r, label[r]], and 0 where label is outside [0, K) (-1: to be ignored).
 *
 * x [..., K] F32, label [...] I32; loss [...] F32. With m = max_k x: log(sum exp(x - m)) - (x[label] - m), so no overflow.
 * Gradient: dx = dloss (softmax(x) - onehot(label)), one pass: part 1, in dloss, x, label, out dx. Rows whose dloss is 0 or that are ignored
 * get exact zeros, whatever x holds. No gradient to label.
 * Tolerance against the reference: 1e-6 (1 + |loss|) forward, 2e-6 |dloss| backward (float exp and log, sums of K floats). */
#ifndef SODET_KERNELS_SOFTMAX_CROSS_ENTROPY_H
#define SODET_KERNELS_SOFTMAX_CROSS_ENTROPY_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

SODET_EXPORT sodet_value sodet_softmax_cross_entropy(sodet_graph *g, sodet_value x, sodet_value label);

#ifdef __cplusplus
}
#endif
#endif
