// Kernels of kernels.c: one for each part of the language. They are written as an operator's are.
#include "kernels/device.h"

#include "test_kernels.h"

SODET_HD float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static __global__ void silu_kernel(const float *__restrict__ x, float *__restrict__ y, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        y[i] = silu(x[i]);
}

static __device__ float block_sum(float v)
{
    __shared__ float warps[32];
    for (int o = 16; o > 0; o >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, o);
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x >> 5) ? warps[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32)
        for (int o = 16; o > 0; o >>= 1)
            v += __shfl_down_sync(0xffffffffu, v, o);
    return v;
}

static __global__ void sum_kernel(const float *__restrict__ x, float *partial, size_t n)
{
    float v = 0.0f;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = v;
}

static __global__ void histogram_kernel(const int32_t *labels, int32_t *bins, size_t n, int32_t n_bins)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n && labels[i] >= 0 && labels[i] < n_bins)
        atomicAdd(&bins[labels[i]], 1);
}

static __device__ inline float wide(float x)
{
    return x;
}
static __device__ inline float wide(__half x)
{
    return __half2float(x);
}
static __device__ inline float wide(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <typename T> static __global__ void column_sum_kernel(const T *x, float *out, int rows, int columns)
{
    SODET_DYN_SHARED(float, sum);
    __shared__ int first;
    if (threadIdx.x == 0)
        first = (int)(blockIdx.x * blockDim.x);
    __syncthreads();
    int c = first + (int)threadIdx.x;
    sum[threadIdx.x] = 0.0f;
    if (c < columns)
        for (int r = 0; r < rows; r++)
            sum[threadIdx.x] += wide(x[(size_t)r * (size_t)columns + (size_t)c]);
    __syncthreads();
    int other = (int)(blockDim.x - 1 - threadIdx.x); // a neighbour writes it out
    if (first + other < columns)
        out[first + other] = sum[other];
}

static __global__ void warp_kernel(int32_t *out)
{
    int t = (int)threadIdx.x, lane = t & 31;
    int v = t * 3;
    out[t] = __shfl_sync(0xffffffffu, v, 5);
    out[64 + t] = __shfl_up_sync(0xffffffffu, v, 3);
    out[128 + t] = __shfl_down_sync(0xffffffffu, v, 7);
    out[192 + t] = __shfl_xor_sync(0xffffffffu, v, 6);
    out[256 + t] = __shfl_sync(0xffffffffu, v, 9, 8);
    out[320 + t] = __shfl_up_sync(0xffffffffu, v, 3, 16);
    out[384 + t] = __shfl_down_sync(0xffffffffu, v, 3, 16);
    // The halves part, and the first goes twice over its own before the other's results are read.
    if (lane < 16) {
        v = __shfl_xor_sync(0x0000ffffu, v, 1);
        v = __shfl_xor_sync(0x0000ffffu, v, 2);
    } else {
        v = __shfl_xor_sync(0xffff0000u, v, 8);
    }
    __syncwarp();
    out[448 + t] = v;
}

static __global__ void votes_kernel(int32_t *out, int threshold)
{
    int t = (int)threadIdx.x;
    int yes = t < threshold;
    out[t] = (int32_t)__ballot_sync(0xffffffffu, yes);
    out[64 + t] = __any_sync(0xffffffffu, yes);
    out[128 + t] = __all_sync(0xffffffffu, yes);
    out[192 + t] = __syncthreads_count(yes);
    out[256 + t] = __syncthreads_or(t == threshold);
    out[320 + t] = __syncthreads_and(t >= 0);
}

static __global__ void atomics_kernel(int32_t *i, uint32_t *u, unsigned long long *w)
{
    int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(&i[0], t);
    atomicSub(&i[1], 1);
    atomicMax(&i[2], t);
    atomicMin(&i[3], -t);
    atomicOr(&u[0], 1u << (t & 31));
    atomicAnd(&u[1], ~(1u << (t & 7)));
    atomicXor(&u[2], (unsigned)t);
    atomicAdd(&w[0], 1ull << 32);
    unsigned long long seen = atomicAdd(&w[1], 0ull), before;
    do {
        before = seen;
        seen = atomicCAS(&w[1], before, before + 2);
    } while (seen != before);
    if (t == 77)
        atomicExch(&u[3], 123u);
}

static __global__ void convert_kernel(const float *x, uint16_t *narrow, uint16_t *bf, float *back, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    __half h = __float2half(x[i]);
    __nv_bfloat16 b = __float2bfloat16(x[i]);
    narrow[i] = __half_as_ushort(h);
    bf[i] = __bfloat16_as_ushort(b);
    back[i] = __half2float(__hfma(h, h, h)) + __bfloat162float(__hfma(b, b, b));
}

static __global__ void indices_kernel(int32_t *out)
{
    size_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    size_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] =
        (int32_t)(blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y + 100000 * threadIdx.z);
}

static __global__ void vectors_kernel(const float4 *x, float4 *y, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    float4 v = __ldg(&x[i]);
    y[i] = make_float4(v.w, v.z, min(v.y, 0.0f), max(v.x, 0.0f) * rsqrtf(4.0f));
}

static __global__ void big_shared_kernel(float *out, int n)
{
    SODET_DYN_SHARED(float, all);
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        all[i] = (float)i;
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = all[n - 1];
}

extern "C" int launch_silu(void *stream, const float *x, float *y, size_t n)
{
    SODET_LAUNCH(silu_kernel, 64, 256, 0, stream, x, y, n);
    return (int)cudaGetLastError();
}

extern "C" float silu_on_host(float x)
{
    return silu(x);
}

extern "C" int launch_sum(void *stream, const float *x, float *partial, float *sum, size_t n)
{
    SODET_LAUNCH(sum_kernel, 256, 256, 0, stream, x, partial, n);
    SODET_LAUNCH(sum_kernel, 1, 256, 0, stream, partial, sum, (size_t)256);
    return (int)cudaGetLastError();
}

extern "C" int launch_histogram(void *stream, const int32_t *labels, int32_t *bins, size_t n, int32_t n_bins)
{
    SODET_LAUNCH(histogram_kernel, (unsigned)((n + 255) / 256), 256, 0, stream, labels, bins, n, n_bins);
    return (int)cudaGetLastError();
}

extern "C" int launch_column_sum(void *stream, int type, const void *x, float *out, int rows, int columns)
{
    unsigned blocks = (unsigned)((columns + 63) / 64);
    if (type == 0)
        SODET_LAUNCH((column_sum_kernel<float>), blocks, 64, 64 * sizeof(float), stream, (const float *)x, out, rows, columns);
    else if (type == 1)
        SODET_LAUNCH((column_sum_kernel<__half>), blocks, 64, 64 * sizeof(float), stream, (const __half *)x, out, rows, columns);
    else
        SODET_LAUNCH((column_sum_kernel<__nv_bfloat16>), blocks, 64, 64 * sizeof(float), stream, (const __nv_bfloat16 *)x, out, rows,
                     columns);
    return (int)cudaGetLastError();
}

extern "C" int launch_warp_work(void *stream, int32_t *out)
{
    SODET_LAUNCH(warp_kernel, 1, 64, 0, stream, out);
    return (int)cudaGetLastError();
}

extern "C" int launch_votes(void *stream, int32_t *out, int threshold)
{
    SODET_LAUNCH(votes_kernel, 1, 64, 0, stream, out, threshold);
    return (int)cudaGetLastError();
}

extern "C" int launch_atomics(void *stream, int32_t *i, uint32_t *u, unsigned long long *w)
{
    SODET_LAUNCH(atomics_kernel, 8, 64, 0, stream, i, u, w);
    return (int)cudaGetLastError();
}

extern "C" int launch_convert(void *stream, const float *x, uint16_t *narrow, uint16_t *bf, float *back, int n)
{
    SODET_LAUNCH(convert_kernel, (unsigned)((n + 127) / 128), 128, 0, stream, x, narrow, bf, back, n);
    return (int)cudaGetLastError();
}

extern "C" int launch_indices(void *stream, int32_t *out)
{
    SODET_LAUNCH(indices_kernel, dim3(3, 2, 2), dim3(4, 3, 2), 0, stream, out);
    return (int)cudaGetLastError();
}

extern "C" int launch_vectors(void *stream, const float *x, float *y, int n4)
{
    SODET_LAUNCH(vectors_kernel, (unsigned)((n4 + 31) / 32), 32, 0, stream, (const float4 *)x, (float4 *)y, n4);
    return (int)cudaGetLastError();
}

extern "C" int launch_big_shared(void *stream, float *out, int n)
{
    SODET_LAUNCH(big_shared_kernel, 1, 96, (size_t)n * sizeof(float), stream, out, n);
    return (int)cudaGetLastError();
}

extern "C" int allow_big_shared(int bytes)
{
    return (int)cudaFuncSetAttribute((const void *)big_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
