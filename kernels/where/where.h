/* where: y = a where condition != 0 (NaN is not 0), else b; element by element, with numpy's broadcasting of all three.
 *
 * condition: F32 or I32. a, b, y: of one type, F32 or I32.
 * Gradients: da = dy where condition != 0, else 0; db the other way round; summed over what was repeated. An operand that was not chosen
 * may be infinite or NaN. (The operator that made it may still turn its gradient of 0 into 0 * infinity: choose a harmless operand
 * first, then compute, then choose the result.) Exact. */
#ifndef SODET_KERNELS_WHERE_H
#define SODET_KERNELS_WHERE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

SODET_EXPORT sodet_value sodet_where(sodet_graph *g, sodet_value condition, sodet_value a, sodet_value b);

#ifdef __cplusplus
}
#endif
#endif
