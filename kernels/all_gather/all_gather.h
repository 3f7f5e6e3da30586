/* all_gather: y[r, ...] = x of rank r.
 *
 * Part 0  in x [...]   out y [world, ...]
 * No derivative: who builds on it knows the whole formula and writes the gradient (batch_norm_sync).
 * A collective: backends carry it out themselves (host_group, NCCL), so the tables hold no kernel for it. */
#ifndef SODET_KERNELS_ALL_GATHER_H
#define SODET_KERNELS_ALL_GATHER_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_all_gather_attr {
    uint32_t world; /* replicas over all processes */
} sodet_all_gather_attr;

SODET_EXPORT sodet_value sodet_all_gather(sodet_graph *g, sodet_value x, uint32_t world);

#ifdef __cplusplus
}
#endif
#endif
