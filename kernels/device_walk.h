/* kernels/device_walk.h: loops over tensors of up to five dimensions, each with strides of its own. A walk goes through the output as it
 * lies in memory; broadcast, transposed, cut and differently laid out inputs are strides. */
#ifndef SD_KERNELS_DEVICE_WALK_H
#define SD_KERNELS_DEVICE_WALK_H

#include "kernels/device_flat.h"

enum { DEVICE_WALK_MOST = 3 /* inputs of a walk */ };

/* Elements from neighbour to neighbour along each logical dimension, as `t` lies; 0 along those of size 1. */
static inline void device_strides(const sodet_tensor *t, int64_t stride[SODET_MAX_RANK])
{
    static const uint32_t last[4] = {1, 3, 2, 0}; /* dimensions from the innermost, [N][H][W][C] */
    int64_t step = 1;
    for (uint32_t i = 0; i < t->shape.rank; i++) {
        const uint32_t k = t->layout == SODET_CHANNELS_LAST ? last[i] : t->shape.rank - 1 - i;
        stride[k] = t->shape.dim[k] == 1 ? 0 : step;
        step *= t->shape.dim[k];
    }
}

struct device_walk {
    uint32_t rank;
    int64_t n, dim[SODET_MAX_RANK];
    int64_t stride[DEVICE_WALK_MOST][SODET_MAX_RANK];
};

/* A walk over `y` in the order of its memory; strides[k]: along y's logical dimensions. Neighbouring dimensions that can be are one. */
static inline device_walk device_walk_over(const sodet_tensor *y, int64_t strides[][SODET_MAX_RANK], uint32_t n)
{
    static const uint32_t last[4] = {0, 2, 3, 1};
    device_walk w = {};
    w.n = sodet_elements(&y->shape);
    for (uint32_t i = 0; i < y->shape.rank; i++) {
        const uint32_t d = y->layout == SODET_CHANNELS_LAST ? last[i] : i;
        if (y->shape.dim[d] == 1)
            continue;
        bool merge = w.rank > 0;
        for (uint32_t k = 0; k < n && merge; k++)
            merge = w.stride[k][w.rank - 1] == strides[k][d] * y->shape.dim[d];
        if (!merge)
            w.rank++;
        w.dim[w.rank - 1] = merge ? w.dim[w.rank - 1] * y->shape.dim[d] : y->shape.dim[d];
        for (uint32_t k = 0; k < n; k++)
            w.stride[k][w.rank - 1] = strides[k][d];
    }
    if (w.rank == 0) {
        w.rank = 1;
        w.dim[0] = 1;
    }
    return w;
}

/* numpy's broadcasting of inputs in[0, n) to y. */
static inline device_walk device_walk_broadcast(const sodet_tensor *y, const sodet_tensor *in, uint32_t n)
{
    int64_t strides[DEVICE_WALK_MOST][SODET_MAX_RANK] = {};
    for (uint32_t k = 0; k < n; k++) {
        int64_t own[SODET_MAX_RANK] = {};
        device_strides(&in[k], own);
        for (uint32_t i = 0; i < in[k].shape.rank; i++)
            strides[k][i + y->shape.rank - in[k].shape.rank] = own[i];
    }
    return device_walk_over(y, strides, n);
}

/* The walk of K inputs as kernels take it. */
template <class I, int K> struct device_steps {
    uint32_t rank;
    device_divider<I> dim[SODET_MAX_RANK];
    int64_t stride[K][SODET_MAX_RANK];
    __device__ __forceinline__ void at(I i, int64_t (&place)[K]) const
    {
        SODET_UNROLL
        for (int k = 0; k < K; k++)
            place[k] = 0;
        SODET_UNROLL
        for (int d = SODET_MAX_RANK - 1; d >= 0; d--)
            if ((uint32_t)d < rank) {
                const I rest = dim[d].quotient(i), c = i - rest * dim[d].by;
                i = rest;
                SODET_UNROLL
                for (int k = 0; k < K; k++)
                    place[k] += (int64_t)c * stride[k][d];
            }
    }
};

template <class I, int K> static inline device_steps<I, K> device_steps_of(const device_walk &w)
{
    device_steps<I, K> s = {};
    s.rank = w.rank;
    for (uint32_t d = 0; d < w.rank; d++) {
        device_divide_by(&s.dim[d], w.dim[d]);
        for (int k = 0; k < K; k++)
            s.stride[k][d] = w.stride[k][d];
    }
    return s;
}

/* Whether input k is as y, element for element. */
static inline bool device_walk_flat(const device_walk &w, uint32_t k)
{
    return w.rank == 1 && (w.stride[k][0] == 1 || w.dim[0] == 1);
}

/* An element of a tensor whose type the kernel reads from its arguments. */
static __device__ __forceinline__ float device_real(const void *p, uint32_t dtype, int64_t i)
{
    return dtype == SODET_F32    ? static_cast<const float *>(p)[i]
           : dtype == SODET_BF16 ? device_wide(static_cast<const __nv_bfloat16 *>(p)[i])
                                 : device_wide(static_cast<const __half *>(p)[i]);
}

static __device__ __forceinline__ void device_set_real(void *p, uint32_t dtype, int64_t i, float v)
{
    if (dtype == SODET_F32)
        static_cast<float *>(p)[i] = v;
    else if (dtype == SODET_BF16)
        device_set(static_cast<__nv_bfloat16 *>(p) + i, v);
    else
        device_set(static_cast<__half *>(p) + i, v);
}

#endif
