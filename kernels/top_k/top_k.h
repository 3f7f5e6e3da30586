/* top_k: the k largest of each row (last dimension) of x, falling, and where they were. Equal values: lower index first. NaN counts as less than
 * everything.
 *
 * x [..., n] F32. Outputs: 0 value [..., k] F32, 1 index [..., k] I32. Exact.
 * Gradient: dx is dvalue at the places taken, 0 elsewhere (gather's part 1). */
#ifndef SODET_KERNELS_TOP_K_H
#define SODET_KERNELS_TOP_K_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_top_k_attr {
    uint32_t k;
} sodet_top_k_attr;

/* A k above n is n. */
SODET_EXPORT void sodet_top_k(sodet_graph *g, sodet_value x, uint32_t k, sodet_value *value, sodet_value *index);

/* What heads select candidates with. score [N, A, C] (no background column) gives, per image, K candidates: their scores, their anchors
 * (0..A-1) and their classes (0..C-1), falling within each selection.
 * Among all (anchor, class) pairs (RetinaNet, per level): K = min(k, A C). label [N, K]. */
SODET_EXPORT void sodet_top_pairs(sodet_graph *g, sodet_value score, uint32_t k, sodet_value *value, sodet_value *anchor,
                                  sodet_value *label);
/* Of each class (SSD): K = C min(k, A), class by class. label [K]. */
SODET_EXPORT void sodet_top_per_class(sodet_graph *g, sodet_value score, uint32_t k, sodet_value *value, sodet_value *anchor,
                                      sodet_value *label);

#ifdef __cplusplus
}
#endif
#endif
