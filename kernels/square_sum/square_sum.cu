/* An arena is cut into pieces that lie in one segment each. Segment s has the numbers start[s] / PIECE + s and following, as many as it can
 * need; so a block finds its piece by itself, and the order of the sums depends on the segments alone. */
#include "kernels/device_sum.h"
#include "kernels/device_update.h"
#include "kernels/square_sum/square_sum.h"

enum { PIECE = 16384 };

struct squares {
    double sum;
    int finite;
    int32_t group;
    __device__ __forceinline__ void merge(const squares &b)
    {
        sum += b.sum;
        finite &= b.finite;
    }
};

static __device__ __forceinline__ int64_t first_piece(const int32_t *start, int64_t s)
{
    return start[s] / PIECE + s;
}

static __global__ void sum_pieces(squares *part, const float *x, const int32_t *start, const int32_t *group, int64_t n, int64_t segments,
                                  int64_t pieces)
{
    for (int64_t p = blockIdx.x; p < pieces; p += gridDim.x) {
        int64_t from = p * PIECE, end = n;
        squares own = {0, 1, 0};
        if (start) {
            int64_t low = 0, high = segments;
            while (high - low > 1) {
                const int64_t middle = (low + high) / 2;
                if (first_piece(start, middle) <= p)
                    low = middle;
                else
                    high = middle;
            }
            from = start[low] + (p - first_piece(start, low)) * PIECE;
            end = low + 1 < segments ? start[low + 1] : n;
            own.group = group[low];
        }
        end = from + PIECE < end ? from + PIECE : end;
        for (int64_t i = from + threadIdx.x; i < end; i += blockDim.x) {
            const float v = x[i];
            own.sum += (double)v * v;
            own.finite &= v - v == 0;
        }
        const squares all = device_block_sum(own);
        if (threadIdx.x == 0)
            part[p] = all;
    }
}

static __global__ void sum_groups(float *sum, float *finite, const squares *part, int64_t pieces, uint32_t groups)
{
    for (uint32_t g = 0; g < groups; g++) {
        squares own = {0, 1, 0};
        for (int64_t p = threadIdx.x; p < pieces; p += blockDim.x) {
            own.sum += part[p].group == (int32_t)g ? part[p].sum : 0;
            own.finite &= part[p].finite;
        }
        const squares all = device_block_sum(own);
        if (threadIdx.x == 0) {
            sum[g] = (float)all.sum;
            *finite = all.finite ? 1.0f : 0.0f;
        }
    }
}

static int64_t pieces_of(const sodet_kernel_args *a)
{
    const bool cut = a->n_in > 1 && a->in[1].shape.dtype != 0;
    return a->in[0].shape.dim[0] / PIECE + (cut ? a->in[1].shape.dim[0] : 1);
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return (uint64_t)pieces_of(a) * sizeof(squares);
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t pieces = pieces_of(a), segments = a->n_in > 1 && a->in[1].data ? a->in[1].shape.dim[0] : 0;
    squares *part = (squares *)a->scratch;
    DEVICE_TRY(sum_pieces, device_blocks(pieces, 1, 4 * DEVICE_BLOCKS), DEVICE_THREADS, 0, stream, part, (const float *)a->in[0].data,
               segments ? (const int32_t *)a->in[1].data : (const int32_t *)NULL,
               segments ? (const int32_t *)a->in[2].data : (const int32_t *)NULL, a->in[0].shape.dim[0], segments, pieces);
    DEVICE_TRY(sum_groups, 1, DEVICE_THREADS, 0, stream, (float *)a->out[0].data, (float *)a->out[1].data, (const squares *)part, pieces,
               ((const sodet_square_sum_attr *)a->attr)->groups);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_square_sum[] = {{sizeof(sodet_cuda_kernel), 0, scratch, forward}};
