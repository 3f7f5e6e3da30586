// Kernels with one bug each; planted.c demands that it is found, and by the line where it stands.
#include "kernels/device.h"

#include "test_planted.h"

static __global__ void divergent_barrier_kernel(float *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 0.0f;
}

static __global__ void early_exit_kernel(float *out)
{
    if (threadIdx.x >= 40)
        return;
    __syncthreads();
    out[threadIdx.x] = 0.0f;
}

static __global__ void exited_lanes_kernel(float *out)
{
    if (threadIdx.x & 1)
        out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1);
}

static __global__ void foreign_mask_kernel(float *out)
{
    if (threadIdx.x & 1)
        out[threadIdx.x] = __shfl_sync(0x55555555u, 1.0f, 0);
    else
        out[threadIdx.x] = 0.0f;
}

static __global__ void outside_mask_kernel(float *out)
{
    if ((threadIdx.x & 31) < 16)
        out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 16);
}

static __global__ void warp_deadlock_kernel(float *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 16);
    else
        __syncthreads();
}

static __global__ void uninitialised_shared_kernel(float *out)
{
    __shared__ float never[64];
    out[threadIdx.x] = never[threadIdx.x];
    __syncthreads();
    never[threadIdx.x] = out[threadIdx.x];
}

// The same in a template.
template <int LENGTH> static __global__ void uninitialised_template_kernel(float *out)
{
    __shared__ float never[LENGTH];
    out[threadIdx.x] = never[threadIdx.x];
    __syncthreads();
    never[threadIdx.x] = out[threadIdx.x];
}

// What the block before has left.
static __global__ void left_by_a_block_kernel(float *out)
{
    __shared__ float line[32];
    const float left = line[threadIdx.x];
    __syncthreads();
    line[threadIdx.x] = (float)threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = left;
}

static __global__ void dynamic_kernel(float *out, int shift)
{
    SODET_DYN_SHARED(float, all);
    if (all) {
        all[(int)threadIdx.x + shift] = 1.0f;
        __syncthreads();
        out[threadIdx.x] = all[threadIdx.x];
    }
}

static __global__ void missing_barrier_kernel(float *out)
{
    __shared__ float line[64];
    line[threadIdx.x] = (float)threadIdx.x;
    out[threadIdx.x] = line[63 - threadIdx.x];
}

static __global__ void missing_syncwarp_kernel(float *out)
{
    __shared__ float line[64];
    line[threadIdx.x] = (float)threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32) {
        float other = line[threadIdx.x ^ 1];
        line[threadIdx.x] += other;
        out[threadIdx.x] = line[threadIdx.x];
    }
}

// Not inlined: the compiler would see an array's size, and what is tested here is the red zone behind it.
static __device__ __attribute__((noinline)) void store(float *at)
{
    *at = 1.0f;
}

static __global__ void shared_overflow_kernel(float *out)
{
    __shared__ float line[64];
    store(line + threadIdx.x + 1);
    __syncthreads();
    out[threadIdx.x] = line[threadIdx.x];
}

static __global__ void local_overflow_kernel(float *out)
{
    float own[4];
    float *at = own;
    for (unsigned i = 0; i < (threadIdx.x == 5 ? blockDim.x / 8 : 4); i++)
        store(at + i);
    out[threadIdx.x] = at[threadIdx.x & 3];
}

static __global__ void global_overflow_kernel(float *out)
{
    out[threadIdx.x + 1] = 1.0f;
}

static __global__ void fill_kernel(float *out, float value)
{
    out[threadIdx.x] = value;
}

static __global__ void copy_kernel(const float *x, float *out)
{
    out[threadIdx.x] = x[threadIdx.x];
}

struct table {
    const float *x;
    float *out;
};

static __global__ void copy_by_table_kernel(table t)
{
    t.out[threadIdx.x] = t.x[threadIdx.x];
}

static __global__ void blocks_overlap_kernel(float *out)
{
    out[threadIdx.x] = (float)blockIdx.x;
}

#define PLANTED(name, ...)                                                                                                                 \
    extern "C" int planted_##name(void *stream, float *out)                                                                                \
    {                                                                                                                                      \
        SODET_LAUNCH(__VA_ARGS__);                                                                                                         \
        return (int)cudaGetLastError();                                                                                                    \
    }
PLANTED(divergent_barrier, divergent_barrier_kernel, 1, 64, 0, stream, out)
PLANTED(early_exit, early_exit_kernel, 1, 64, 0, stream, out)
PLANTED(exited_lanes, exited_lanes_kernel, 1, 64, 0, stream, out)
PLANTED(foreign_mask, foreign_mask_kernel, 1, 64, 0, stream, out)
PLANTED(outside_mask, outside_mask_kernel, 1, 64, 0, stream, out)
PLANTED(warp_deadlock, warp_deadlock_kernel, 1, 64, 0, stream, out)
PLANTED(uninitialised_shared, uninitialised_shared_kernel, 1, 64, 0, stream, out)
PLANTED(uninitialised_template, (uninitialised_template_kernel<64>), 1, 64, 0, stream, out)
PLANTED(left_by_a_block, left_by_a_block_kernel, 2, 32, 0, stream, out)
PLANTED(no_dynamic_shared, dynamic_kernel, 1, 64, 0, stream, out, 0)
PLANTED(missing_barrier, missing_barrier_kernel, 1, 64, 0, stream, out)
PLANTED(missing_syncwarp, missing_syncwarp_kernel, 1, 64, 0, stream, out)
PLANTED(shared_overflow, shared_overflow_kernel, 1, 64, 0, stream, out)
PLANTED(dynamic_overflow, dynamic_kernel, 1, 64, 64 * sizeof(float), stream, out, 1)
PLANTED(local_overflow, local_overflow_kernel, 1, 64, 0, stream, out)
PLANTED(blocks_overlap, blocks_overlap_kernel, 2, 32, 0, stream, out)
PLANTED(global_overflow, global_overflow_kernel, 1, 64, 0, stream, out)

extern "C" int planted_fill(void *stream, float *out, float value)
{
    SODET_LAUNCH(fill_kernel, 1, 64, 0, stream, out, value);
    return (int)cudaGetLastError();
}

extern "C" int planted_copy(void *stream, const float *x, float *out)
{
    SODET_LAUNCH(copy_kernel, 1, 64, 0, stream, x, out);
    return (int)cudaGetLastError();
}

extern "C" int planted_copy_by_table(void *stream, const float *x, float *out)
{
    table t = {x, out};
    SODET_LAUNCH(copy_by_table_kernel, 1, 64, 0, stream, t);
    return (int)cudaGetLastError();
}

extern "C" int planted_configuration(void *stream, float *out, unsigned grid, unsigned block, unsigned long shared_bytes)
{
    SODET_LAUNCH(fill_kernel, grid, block, shared_bytes, stream, out, 1.0f);
    return (int)cudaGetLastError();
}
