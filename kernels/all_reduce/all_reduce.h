/* all_reduce: y_i = sum over ranks of x_i, in the order of the ranks, the same bits on every rank.
 *
 * Part 0  in x_0 .. x_{n-1}   out y_0 .. y_{n-1}, shapes alike; in place (output i in the storage of input i) if the attribute says so.
 * Its gradient is all_reduce of the outputs' gradients: each rank's loss is a share of the whole.
 * A collective: backends carry it out themselves (host_group, NCCL), so the tables hold no kernel for it. */
#ifndef SODET_KERNELS_ALL_REDUCE_H
#define SODET_KERNELS_ALL_REDUCE_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_all_reduce_attr {
    uint32_t in_place;
    uint32_t bucket; /* 1 + number of the gradient bucket; 0: not one. Told to profiles alone */
} sodet_all_reduce_attr;

SODET_EXPORT sodet_value sodet_all_reduce(sodet_graph *g, sodet_value x);

#ifdef __cplusplus
}
#endif
#endif
