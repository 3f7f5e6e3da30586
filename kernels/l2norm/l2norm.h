/* l2norm: y[n,c,i,j] = scale[c] * x[n,c,i,j] * r, r a reciprocal of the norm q = |x[n,:,i,j]| over the channels.
 * SSD puts it on conv4_3 (Liu et al. 2016, section 3.1; ParseNet, Liu et al. 2015), scale starting at 20. The systems guard against 0
 * in three ways:
 *   SODET_L2NORM_ADD     r = 1 / (q + epsilon)         ssd.pytorch, 1e-10
 *   SODET_L2NORM_MAX     r = 1 / max(q, epsilon)       torch's normalize, torchvision, 1e-12
 *   SODET_L2NORM_INSIDE  r = 1 / sqrt(q^2 + epsilon)   caffe's Normalize, 1e-10; MXNet's L2Normalization
 *
 * Part 0  in x [N, C, H, W], scale [C]   out y
 * Part 1  in x, scale, dy                out dx, dscale [C]
 *         dscale = sum_nij dy * x * r
 *         dx = r * scale * dy - x * s * sum_c(scale * dy * x),  s = r^2 / q (ADD; 0 where q = 0), r^3 (MAX; 0 where q <= epsilon), r^3 (INSIDE)
 * Sums in float or better; dscale in double or from partial sums. Tolerance: 2e-6 of the largest |y|. */
#ifndef SODET_KERNELS_L2NORM_H
#define SODET_KERNELS_L2NORM_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_L2NORM_ADD = 0, SODET_L2NORM_MAX, SODET_L2NORM_INSIDE };
typedef struct sodet_l2norm_attr {
    uint32_t guard; /* SODET_L2NORM_* */
    float epsilon;
} sodet_l2norm_attr;

typedef struct sodet_l2norm_desc {
    uint32_t struct_size;
    float scale;        /* first value of the learned factor; 20 */
    uint32_t guard;     /* SODET_L2NORM_ADD */
    float epsilon;      /* 1e-10; 1e-12 under SODET_L2NORM_MAX */
    sodet_param weight; /* init is read if it is not the default */
} sodet_l2norm_desc;
#define SODET_L2NORM(...) (&(const sodet_l2norm_desc){.struct_size = sizeof(sodet_l2norm_desc), __VA_ARGS__})

/* Parameter "<name>/weight" (scale), [C]. */
SODET_EXPORT sodet_value sodet_l2norm(sodet_graph *g, const char *name, sodet_value x, const sodet_l2norm_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
