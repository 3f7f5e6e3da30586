/* What the CPU kernels of max_pool and avg_pool share: planes, windows, and a way to add into a map whose windows may overlap. A plane is the
 * map of one channel, or of one block of channels, whose lanes are then the vector. */
#ifndef SD_KERNELS_POOL_VECTOR_H
#define SD_KERNELS_POOL_VECTOR_H

#include "kernels/max_pool/max_pool.h"
#include "kernels/vector.h"

typedef struct pool_plane {
    int64_t planes, lanes, h, w, oh, ow; /* h, w: of the larger map; oh, ow: of the windows */
} pool_plane;

static inline pool_plane pool_plane_of(const sodet_tensor *map, const sodet_shape *windows)
{
    int64_t lanes = map->layout == SODET_BLOCKED ? map->block : 1, groups = (map->shape.dim[1] + lanes - 1) / lanes;
    return (pool_plane){map->shape.dim[0] * groups, lanes, map->shape.dim[2], map->shape.dim[3], windows->dim[2], windows->dim[3]};
}

typedef struct pool_range { /* rows or columns of a window, clipped to the map */
    int64_t first, begin, end;
} pool_range;

static inline pool_range pool_range_of(int64_t window, int32_t stride, int32_t before, int32_t kernel, int64_t side)
{
    int64_t first = window * stride - before, end = first + kernel;
    return (pool_range){first, first < 0 ? 0 : first, end < side ? end : side};
}

#endif
