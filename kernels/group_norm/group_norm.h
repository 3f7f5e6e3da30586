/* group_norm: the channels of each sample in G groups, each normalised over its channels and positions (Wu and He 2018).
 *   mean, var over the group (biased),  r = 1 / sqrt(var + epsilon),  y = scale[c] * (x - mean) * r + shift[c]
 *
 * Part 0  in  x [N, C, ...], scale [C], shift [C]   out y, mean [N, G], r [N, G]
 * Part 1  in  x, dy, scale, mean, r                 out dx, dscale [C], dshift [C]
 *         with g = dy * scale, h = (x - mean) * r and averages over the group:  dx = r * (g - avg(g) - h * avg(g * h))
 * The variance must be summed from deviations. Tolerance: 5e-6 of the largest value. */
#ifndef SODET_KERNELS_GROUP_NORM_H
#define SODET_KERNELS_GROUP_NORM_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_group_norm_attr {
    uint32_t groups;
    float epsilon;
} sodet_group_norm_attr;

typedef struct sodet_group_norm_desc {
    uint32_t struct_size;
    uint32_t groups;          /* 32; must divide the channels */
    float epsilon;            /* 1e-5 */
    sodet_param weight, bias; /* scale starts at 1, shift at 0 */
} sodet_group_norm_desc;
#define SODET_GROUP_NORM(...) (&(const sodet_group_norm_desc){.struct_size = sizeof(sodet_group_norm_desc), __VA_ARGS__})

/* Parameters "<name>/weight" (scale) and "<name>/bias" (shift), [C]. */
SODET_EXPORT sodet_value sodet_group_norm(sodet_graph *g, const char *name, sodet_value x, const sodet_group_norm_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
