/* sigmoid_focal: the focal loss of RetinaNet (Lin et al. 2017), of each anchor, summed over its classes:
 *     loss[r] = sum_c -a_c (1 - p_c)^gamma ln p_c
 * with, for the class c = label[r]: p_c = sigmoid(x_c), a_c = alpha; for all others: p_c = 1 - sigmoid(x_c), a_c = 1 - alpha.
 * label -1: background, no class is the anchor's own; -2 (and less): ignored, loss 0; a label of C or more: background.
 * alpha < 0: no weighting, a_c = 1.
 *
 * x [..., C] F32 logits, label [...] I32; loss [...] F32. Computed from logits: -ln p = log(1 + exp(-s)), s = x or -x, so that nothing overflows and
 * no gradient is cut off.
 * Gradient, with q = 1 - p: d(-(q^gamma) ln p)/ds = -q^gamma (gamma p (-ln p) + q): part 1, in dloss, x, label, out dx. Exactly 0 where dloss is 0 or the
 * anchor is ignored.
 * Tolerance against the reference: 4e-6 of the loss (relative), 4e-6 |dloss| backward. */
#ifndef SODET_KERNELS_SIGMOID_FOCAL_H
#define SODET_KERNELS_SIGMOID_FOCAL_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_sigmoid_focal_attr {
    double alpha, gamma;
} sodet_sigmoid_focal_attr;

SODET_EXPORT sodet_value sodet_sigmoid_focal(sodet_graph *g, sodet_value x, sodet_value label, double alpha, double gamma);

#ifdef __cplusplus
}
#endif
#endif
