/* concat: the inputs one behind the other along `axis`. Any type, the same for all; the other dims are equal.
 *
 * Part 0  in x_0 .. x_{n-1}   out y
 * Part 1  in dy                out dx = dy[.., begin : begin + length, ..] along axis; one node for each input that needs it
 * Tolerance: exact. */
#ifndef SODET_KERNELS_CONCAT_H
#define SODET_KERNELS_CONCAT_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_concat_attr {
    int64_t begin, length; /* part 1 */
    uint32_t axis, reserved;
} sodet_concat_attr;

/* axis: from the back if negative (-1 is the last). */
SODET_EXPORT sodet_value sodet_concat(sodet_graph *g, const sodet_value *x, uint32_t n, int32_t axis);

#ifdef __cplusplus
}
#endif
#endif
