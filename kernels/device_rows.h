/* kernels/device_rows.h: rows of few or many numbers, each row a group of lanes of a warp. */
#ifndef SD_KERNELS_DEVICE_ROWS_H
#define SD_KERNELS_DEVICE_ROWS_H

#include "kernels/device_flat.h"

/* Lanes for a row of `length` numbers: a power of 2, at most a warp. */
static inline int device_lanes(int64_t length)
{
    return (int)device_power_of_2(length, 32);
}

/* Rows that the grid works on at a time; all lanes of a warp take part in every turn, so that they can exchange values. */
struct device_row {
    int64_t row;
    int lane;
};
static __device__ __forceinline__ device_row device_row_of(int lanes)
{
    const int64_t i = device_thread();
    device_row r = {i / lanes, (int)(i % lanes)};
    return r;
}
static __device__ __forceinline__ int64_t device_row_step(int lanes)
{
    return device_threads() / lanes;
}
/* Whether any row of the warp is left; only then may lanes leave together. */
static __device__ __forceinline__ bool device_row_left(int64_t row, int64_t rows)
{
    return __any_sync(0xffffffffu, row < rows);
}

/* In every lane: the sum, the largest value. Lanes add in one order. */
template <class N> static __device__ __forceinline__ N device_lanes_sum(N v, int lanes)
{
    for (int d = lanes / 2; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
static __device__ __forceinline__ float device_lanes_most(float v, int lanes)
{
    for (int d = lanes / 2; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}

#endif
