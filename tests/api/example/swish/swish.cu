/* The neck swish on GPUs: neck/swish.cuda.so beside neck/swish.so. sodet/cuda.h is the contract; nvcc or CMakeLists.txt builds it. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "sodet/cuda.h"

enum { VALUE, GRADIENT_OF_X, GRADIENT_OF_BETA, PARTS }; // as in swish.c
static constexpr int THREADS = 256, BLOCKS = 512;

// T: maps are float32 or, under precision = bf16 and fp16, 16 bits wide; sums are not. x and dy lie in any layout, the same for both: the
// place of an element does not matter.
template <class T> static __global__ void swish_each(int part, T *out, const T *x, const float *beta, const T *dy, long long n)
{
    const float b = *beta;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += (long long)gridDim.x * THREADS) {
        const float v = static_cast<float>(x[i]), s = 1 / (1 + expf(-b * v));
        out[i] = static_cast<T>(part == VALUE ? v * s : static_cast<float>(dy[i]) * (s + b * v * s * (1 - s)));
    }
}

// The sum over a block, in one order; thread 0 gets it.
static __device__ double swish_block_sum(double own)
{
    __shared__ double part[THREADS];
    part[threadIdx.x] = own;
    for (unsigned step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
    }
    return part[threadIdx.x];
}

template <class T> static __global__ void swish_slope(double *sums, const T *x, const float *beta, const T *dy, long long n)
{
    const float b = *beta;
    double sum = 0;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += (long long)gridDim.x * THREADS) {
        const float v = static_cast<float>(x[i]), s = 1 / (1 + expf(-b * v));
        sum += static_cast<double>(static_cast<float>(dy[i]) * v * v * s * (1 - s));
    }
    sum = swish_block_sum(sum);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

static __global__ void swish_total(float *out, const double *sums, unsigned n)
{
    double sum = 0;
    for (unsigned i = threadIdx.x; i < n; i += THREADS)
        sum += sums[i];
    sum = swish_block_sum(sum);
    if (threadIdx.x == 0)
        *out = static_cast<float>(sum);
}

// From the shape alone: the same sums in every run.
static unsigned blocks_for(const sodet_tensor *map)
{
    const long long n = (sodet_elements(&map->shape) + THREADS - 1) / THREADS;
    return static_cast<unsigned>(n < 1 ? 1 : n < BLOCKS ? n : BLOCKS);
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return blocks_for(&a->in[0]) * sizeof(double);
}

template <class T> static int run(const sodet_kernel_args *a, void *stream)
{
    const long long n = sodet_elements(&a->in[0].shape);
    const T *x = static_cast<const T *>(a->in[0].data), *dy = a->part == VALUE ? nullptr : static_cast<const T *>(a->in[2].data);
    const float *beta = static_cast<const float *>(a->in[1].data);
    const unsigned blocks = blocks_for(&a->in[0]);
    if (a->part == GRADIENT_OF_BETA) {
        double *sums = static_cast<double *>(a->scratch);
        SODET_LAUNCH(swish_slope<T>, blocks, THREADS, 0, stream, sums, x, beta, dy, n);
        const int error = static_cast<int>(cudaGetLastError());
        if (error)
            return error;
        SODET_LAUNCH(swish_total, 1, THREADS, 0, stream, static_cast<float *>(a->out[0].data), sums, blocks);
    } else if (n > 0) {
        SODET_LAUNCH(swish_each<T>, blocks, THREADS, 0, stream, static_cast<int>(a->part), static_cast<T *>(a->out[0].data), x, beta, dy,
                     n);
    }
    return static_cast<int>(cudaGetLastError());
}

static int launch(const sodet_kernel_args *a, void *stream)
{
    switch (a->in[0].shape.dtype) {
    case SODET_BF16:
        return run<__nv_bfloat16>(a, stream);
    case SODET_F16:
        return run<__half>(a, stream);
    default:
        return run<float>(a, stream);
    }
}

static const sodet_cuda_kernel swish[PARTS] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, launch},
                                               {sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, launch},
                                               {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, launch}};
static const sodet_cuda_op ops[] = {{"swish", PARTS, swish}};
SODET_CUDA_PLUGIN("swish", ops)
