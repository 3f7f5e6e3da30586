/* kernels/update.h: what the updates of arenas share: the checks of their inputs and the walk over segments. */
#ifndef SD_KERNELS_UPDATE_H
#define SD_KERNELS_UPDATE_H

#include "sodet/op.h"

/* Elements that one unit of an update works on. */
#define UPDATE_PIECE 16384

static inline int64_t update_pieces(const sodet_kernel_args *a)
{
    return (a->in[0].shape.dim[0] + UPDATE_PIECE - 1) / UPDATE_PIECE;
}

/* Segment that element `i` lies in: the last whose start is not behind it. */
SODET_HD int64_t update_segment(const int32_t *start, int64_t segments, int64_t i)
{
    int64_t low = 0, high = segments;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (start[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* End of segment s, at most `end`. */
static inline int64_t update_segment_end(const int32_t *start, int64_t segments, int64_t s, int64_t end)
{
    return s + 1 < segments && start[s + 1] < end ? start[s + 1] : end;
}

#endif
