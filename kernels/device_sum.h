/* kernels/device_sum.h: sums over a block, in one order. What is summed is a struct with merge(). */
#ifndef SD_KERNELS_DEVICE_SUM_H
#define SD_KERNELS_DEVICE_SUM_H

#include "kernels/device_flat.h"

struct device_total {
    double v;
    __device__ __forceinline__ void merge(const device_total &b)
    {
        v += b.v;
    }
};

/* All threads of a block of one dimension and at most DEVICE_THREADS threads; the result is thread 0's. */
template <class P> static __device__ __forceinline__ P device_block_sum(const P &own)
{
    enum { RUN = 16 };
    __shared__ P part[DEVICE_THREADS];
    const unsigned t = threadIdx.x, n = blockDim.x;
    __syncthreads(); /* a sum before this one has been read */
    part[t] = own;
    __syncthreads();
    if (t % RUN == 0)
        for (unsigned k = 1; k < RUN && t + k < n; k++)
            part[t].merge(part[t + k]);
    __syncthreads();
    if (t == 0)
        for (unsigned k = RUN; k < n; k += RUN)
            part[0].merge(part[k]);
    return part[t]; /* not part[0], which thread 0 is still adding to */
}

#endif
