/* unary: y = f(x) element by element, F32.
 *
 * exp, log (natural), sqrt, abs, neg, square, reciprocal, sign (-1, 0, 1; NaN for NaN), floor.
 * Gradients: dy y; dy / x; dy / (2 y); dy sign(x); -dy; 2 x dy; -dy y^2; sign and floor have none.
 * Tolerance against the reference: exp and log 4 units in the last place, all others exact. */
#ifndef SODET_KERNELS_UNARY_H
#define SODET_KERNELS_UNARY_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SODET_UNARY_EXP = 1,
    SODET_UNARY_LOG,
    SODET_UNARY_SQRT,
    SODET_UNARY_ABS,
    SODET_UNARY_NEG,
    SODET_UNARY_SQUARE,
    SODET_UNARY_RECIPROCAL,
    SODET_UNARY_SIGN,
    SODET_UNARY_FLOOR
};
typedef struct sodet_unary_attr {
    uint32_t kind;
} sodet_unary_attr;

SODET_EXPORT sodet_value sodet_exp(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_log(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_sqrt(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_abs(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_neg(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_square(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_reciprocal(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_sign(sodet_graph *g, sodet_value x);
SODET_EXPORT sodet_value sodet_floor(sodet_graph *g, sodet_value x);

#ifdef __cplusplus
}
#endif
#endif
