/* compare: y = 1 where a stands in the relation to b, else 0; element by element, with numpy's broadcasting.
 *
 * a, b: F32 or I32, each by itself (compared as numbers, exactly); y: F32. With NaN only `ne` is 1. No derivative. Exact. */
#ifndef SODET_KERNELS_COMPARE_H
#define SODET_KERNELS_COMPARE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_COMPARE_GE = 1, SODET_COMPARE_GT, SODET_COMPARE_LE, SODET_COMPARE_LT, SODET_COMPARE_EQ, SODET_COMPARE_NE };
typedef struct sodet_compare_attr {
    uint32_t kind;
} sodet_compare_attr;

SODET_EXPORT sodet_value sodet_ge(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_gt(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_le(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_lt(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_eq(sodet_graph *g, sodet_value a, sodet_value b);
SODET_EXPORT sodet_value sodet_ne(sodet_graph *g, sodet_value a, sodet_value b);

#ifdef __cplusplus
}
#endif
#endif
