/* activation: y = f(x), element by element.
 *   relu          max(x, 0)                                 derivative 0 at 0
 *   relu6         min(max(x, 0), 6)                         derivative 0 at 0 and at 6
 *   leaky_relu    x > 0 ? x : slope * x, slope >= 0         derivative `slope` at 0
 *   hard_swish    x * min(max(x + 3, 0), 6) / 6             (Howard et al. 2019; derivative 0 at -3, 1 at 3)
 *   hard_sigmoid  min(max(x + 3, 0), 6) / 6                 derivative 0 at -3 and 3
 *   sigmoid       1 / (1 + exp(-x))
 *   silu          x * sigmoid(x)
 * NaN stays NaN.
 *
 * Part 0  in x   out y
 * Part 1  in r, dy   out dx = dy * f'; r is the output y where sodet_activation_from_output(kind), else the input x
 * Tolerance: exact but for sigmoid and silu (4 ulp). */
#ifndef SODET_KERNELS_ACTIVATION_H
#define SODET_KERNELS_ACTIVATION_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SODET_ACT_NONE = 0,
    SODET_ACT_RELU,
    SODET_ACT_RELU6,
    SODET_ACT_LEAKY_RELU,
    SODET_ACT_HARD_SWISH,
    SODET_ACT_HARD_SIGMOID,
    SODET_ACT_SIGMOID,
    SODET_ACT_SILU,
    SODET_ACT_COUNT
};

typedef struct sodet_activation_attr {
    uint32_t kind;
    float slope; /* of leaky_relu */
} sodet_activation_attr;

/* Whether the derivative is a function of the output, so that the input need not be kept. */
static inline int sodet_activation_from_output(uint32_t kind)
{
    return kind != SODET_ACT_HARD_SWISH && kind != SODET_ACT_SILU;
}

/* SODET_ACT_NONE gives x itself. */
SODET_EXPORT sodet_value sodet_activation(sodet_graph *g, uint32_t kind, sodet_value x);
/* Part 1: `kept` is the output or the input, see above. */
SODET_EXPORT sodet_value sodet_activation_gradient(sodet_graph *g, uint32_t kind, float slope, sodet_value kept, sodet_value dy);
SODET_EXPORT sodet_value sodet_relu(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_relu6(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_leaky_relu(sodet_graph *g, sodet_value x, float slope);
SODET_EXPORT sodet_value sodet_hard_swish(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_hard_sigmoid(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_sigmoid(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_silu(sodet_graph *g, sodet_value x);

#ifdef __cplusplus
}
#endif
#endif
