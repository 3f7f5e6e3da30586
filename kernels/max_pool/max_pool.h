/* max_pool: y[n,c,i,j] = max over the window at (i*stride_h - top, j*stride_w - left) of x[n,c,...]; positions outside the map do not take part.
 *
 * Number of windows along an axis: floor((in + before + after - kernel) / stride) + 1. With SODET_POOL_CEIL the division rounds up, and
 * a last window that would begin behind in + before is dropped. That is torch's rule; caffe drops it only where there is padding, which
 * makes no difference unless stride > kernel.
 *
 * Part 0  in x [N, C, H, W]   out y [N, C, OH, OW] and, if there are two outputs, where [N, C, OH, OW] int32
 *         `where` tells part 1 which element won: the first in rows, then columns; a NaN wins. Its code is each backend's own (the
 *         reference: row * W + column); it means nothing to others.
 * Part 1  in where, dy         out dx [N, C, in_h, in_w]
 * Tolerance: exact. */
#ifndef SODET_KERNELS_MAX_POOL_H
#define SODET_KERNELS_MAX_POOL_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_pool_attr { /* of max_pool and avg_pool */
    int32_t kernel_h, kernel_w, stride_h, stride_w;
    int32_t pad_top, pad_left, pad_bottom, pad_right;
    uint32_t flags;     /* SODET_POOL_* */
    int32_t in_h, in_w; /* part 1; 0 in part 0 */
} sodet_pool_attr;

enum {
    SODET_POOL_CEIL = 1,
    SODET_POOL_EXCLUDE_PAD = 2 /* avg_pool divides by the elements that lie on the map (torch's count_include_pad = False) */
};
typedef struct sodet_pool_desc {
    uint32_t struct_size;
    uint32_t kernel;             /* square side */
    uint32_t kernel_h, kernel_w; /* kernel; one of the two ways is required */
    uint32_t stride;             /* the kernel, along each axis */
    uint32_t stride_h, stride_w; /* stride */
    uint32_t pad;                /* on all sides */
    uint32_t pads[4];            /* top, left, bottom, right; read instead of pad if one of them is not 0 */
    uint32_t flags;
} sodet_pool_desc;
#define SODET_POOL(...) (&(const sodet_pool_desc){.struct_size = sizeof(sodet_pool_desc), __VA_ARGS__})

SODET_EXPORT sodet_value sodet_max_pool(sodet_graph *g, sodet_value x, const sodet_pool_desc *desc);
SODET_EXPORT sodet_value sodet_global_max_pool(sodet_graph *g, sodet_value x); /* [N, C, 1, 1] */

#ifdef __cplusplus
}
#endif
#endif
