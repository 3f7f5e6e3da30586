/* gather: rows of x by number. The first `batch` dimensions of x and index are the same and go together; then, along `axis` of x:
 *     y[b, o, k, i] = x[b, o, index[b, k], i]        b: batch dims; o: dims between batch and axis; k: index's other dims; i: dims behind axis
 * A number outside [0, rows) gives zeros: so -1 is "none".
 *
 * x: F32 or I32; index: I32; y: x's type and shape with `axis` replaced by index's dims behind batch.
 * Gradient of x (F32): rows of dy are added up: part 1, in dy, index, out dx; in rising k, in double on the reference. Exact forward;
 * backward 1 unit in the last place for each repetition. */
#ifndef SODET_KERNELS_GATHER_H
#define SODET_KERNELS_GATHER_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_gather_attr {
    uint32_t axis, batch;
    sodet_shape x; /* part 1: shape of x */
} sodet_gather_attr;

/* x [R, ...] with index [...]: y[k...] = x[index[k...]]; along another axis likewise. */
SODET_EXPORT sodet_value sodet_gather(sodet_graph *g, sodet_value x, sodet_value index, uint32_t axis);
/* Each image its own: x [N, R, ...], index [N, K...]: y [N, K..., ...]. */
SODET_EXPORT sodet_value sodet_gather_per_image(sodet_graph *g, sodet_value x, sodet_value index);

#ifdef __cplusplus
}
#endif
#endif
