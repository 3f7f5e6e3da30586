/* A block finds the k best of a row; those alone are sorted. */
#include "kernels/device_sort.h"
#include "kernels/top_k/top_k.h"

static __global__ void select_best(uint64_t *best, const float *x, int64_t rows, int64_t n, int64_t k)
{
    __shared__ int have;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *own = x + row * n;
        const auto key = [&](int64_t i) { return select_key(own[i], i); };
        const device_selected s = device_select(key, n, k);
        if (threadIdx.x == 0)
            have = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            if (s.holds(key(i)))
                best[row * k + atomicAdd(&have, 1)] = key(i); /* in any order: they are sorted */
        __syncthreads();
    }
}

static __global__ void write_best(float *value, int32_t *index, const uint64_t *best, const float *x, int64_t rows, int64_t n, int64_t k)
{
    for (int64_t i = device_thread(); i < rows * k; i += device_threads()) {
        const int64_t at = select_index(best[i]);
        value[i] = x[i / k * n + at];
        index[i] = (int32_t)at;
    }
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return 2 * sizeof(uint64_t) * (uint64_t)sodet_elements(&a->out[0].shape);
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_shape *s = &a->in[0].shape;
    const int64_t n = s->dim[s->rank - 1], k = ((const sodet_top_k_attr *)a->attr)->k, all = sodet_elements(&a->out[0].shape);
    const float *x = (const float *)a->in[0].data;
    uint64_t *best = (uint64_t *)a->scratch, *sorted;
    if (all == 0)
        return 0;
    const int64_t rows = all / k;
    DEVICE_TRY(select_best, device_blocks(rows, 1), DEVICE_SELECT, 0, stream, best, x, rows, n, k);
    const int error = device_sort(best, best + all, rows, k, &sorted, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(write_best, device_blocks(all, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (int32_t *)a->out[1].data, (const uint64_t *)sorted, x, rows, n, k);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_top_k[] = {{sizeof(sodet_cuda_kernel), 0, scratch, forward}};
