/* adam_update: one step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) over a whole arena, in the sequence of
 * torch.optim.Adam and AdamW (no amsgrad):
 *     g = scale grad;   Adam: g = g + decay d p;   AdamW: p = p (1 - lr l decay d)
 *     m = m + (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2
 *     p = p - lr l / c1 * m / (sqrt(v) / sqrt(c2) + epsilon)              with c1 = 1 - beta1^t, c2 = 1 - beta2^t of step t = 1, 2, ...
 *
 * Inputs: 0 p [P], 1 grad [P], 2 m [P], 3 v [P], 4 start [S] I32, 5 factor [S, 2], 6 hyper [7] F32, 7 scale, 8 ok; the table, scale and
 * ok as in sgd_update. hyper: lr, beta1, beta2, epsilon, decay, c1, c2 (the host counts the steps).
 * Outputs, in place: 0 new p, 1 new m, 2 new v. Tolerance against the reference: 4 units in the last place of p. */
#ifndef SODET_KERNELS_ADAM_UPDATE_H
#define SODET_KERNELS_ADAM_UPDATE_H

#include "sodet/ops/sgd_update.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_adam_update_attr {
    uint32_t decoupled; /* 1: AdamW */
} sodet_adam_update_attr;

/* Returns the new p; the new state is written in place. */
SODET_EXPORT sodet_value sodet_adam_update(sodet_graph *g, const sodet_update *u, sodet_value m, sodet_value v, uint32_t decoupled);

#ifdef __cplusplus
}
#endif
#endif
