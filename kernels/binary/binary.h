/* binary: y = f(a, b) element by element, with numpy's broadcasting.
 *
 * a, b, y: F32, or all I32 (not pow). I32 wraps around; div and mod round towards minus infinity, and by 0 they give 0.
 * mod is for I32 alone. min and max give NaN if an operand is NaN.
 * Gradients (F32), summed over what was repeated:
 *   add, sub, mul, div: as in school. min, max: the chosen operand's; equal operands get half each (as PyTorch has it).
 *   pow: da = dy b a^(b-1) (0 where b = 0), db = dy y ln a (0 where a = 0).
 * Source: none. Tolerance against the reference: exact for I32 and all but pow; pow 4 units in the last place. */
#ifndef SODET_KERNELS_BINARY_H
#define SODET_KERNELS_BINARY_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SODET_BINARY_ADD = 1,
    SODET_BINARY_SUB,
    SODET_BINARY_MUL,
    SODET_BINARY_DIV,
    SODET_BINARY_MIN,
    SODET_BINARY_MAX,
    SODET_BINARY_POW,
    SODET_BINARY_MOD
};
typedef struct sodet_binary_attr {
    uint32_t kind;
} sodet_binary_attr;

SODET_EXPORT sodet_value sodet_add(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_sub(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_mul(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_div(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_min(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_max(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_pow(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_mod(sodet_graph *g, sodet_value a, sodet_value b);

#ifdef __cplusplus
}
#endif
#endif
