/* kernels/device_flat.h: what every .cu needs: storage types, launches, and kernels that go through tensors element by element, in any
 * layout as long as it is the same. Sizes of grids follow from shapes alone. */
#ifndef SD_KERNELS_DEVICE_FLAT_H
#define SD_KERNELS_DEVICE_FLAT_H

#include "kernels/device.h"

enum { DEVICE_THREADS = 256, DEVICE_BLOCKS = 1024 /* most of a grid that strides over its work */ };

/* Launches, and returns the error from the function if there is one. */
#define DEVICE_TRY(...)                                                                                                                    \
    do {                                                                                                                                   \
        SODET_LAUNCH(__VA_ARGS__);                                                                                                         \
        const int device_error_ = (int)cudaGetLastError();                                                                                 \
        if (device_error_ != 0)                                                                                                            \
            return device_error_;                                                                                                          \
    } while (0)

/* Blocks for `items` pieces of work. At least 1. */
static inline unsigned device_blocks(int64_t items, int64_t per_block, int64_t most = DEVICE_BLOCKS)
{
    const int64_t n = (items + per_block - 1) / per_block;
    return (unsigned)(n < 1 ? 1 : n < most ? n : most);
}

static inline int64_t device_power_of_2(int64_t least, int64_t most) /* smallest power of 2 that is not below `least`, at most `most` */
{
    int64_t p = 1;
    while (p < least && p < most)
        p *= 2;
    return p;
}

static __device__ __forceinline__ int64_t device_thread(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t device_threads(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* ---- storage ---- */
SODET_HD float device_wide(float v)
{
    return v;
}
SODET_HD float device_wide(__half v)
{
    return __half2float(v);
}
SODET_HD float device_wide(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}

SODET_HD void device_set(float *to, float v)
{
    *to = v;
}
SODET_HD void device_set(__half *to, float v)
{
    *to = __float2half(v);
}
SODET_HD void device_set(__nv_bfloat16 *to, float v)
{
    *to = __float2bfloat16(v);
}

/* Calls f with a zero of the storage type. */
template <class F> static inline int device_storage(uint32_t dtype, F f)
{
    return dtype == SODET_BF16 ? f(__nv_bfloat16()) : dtype == SODET_F16 ? f(__half()) : f(float());
}

static inline int64_t device_size(uint32_t dtype)
{
    return dtype == SODET_BF16 || dtype == SODET_F16 ? 2 : 4;
}

/* V neighbours that are read and written at once. */
template <class T, int V> struct alignas(sizeof(T) * V) device_pack {
    T v[V];
};
template <class T, int V> static __device__ __forceinline__ void device_load(float (&to)[V], const T *from)
{
    const device_pack<T, V> p = *reinterpret_cast<const device_pack<T, V> *>(from);
    SODET_UNROLL
    for (int k = 0; k < V; k++)
        to[k] = device_wide(p.v[k]);
}
template <class T, int V> static __device__ __forceinline__ void device_store(T *to, const float (&from)[V])
{
    device_pack<T, V> p;
    SODET_UNROLL
    for (int k = 0; k < V; k++)
        device_set(&p.v[k], from[k]);
    *reinterpret_cast<device_pack<T, V> *>(to) = p;
}

static inline bool device_aligned(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

/* ---- element by element: y = f(a) and y = f(a, b). f: a struct of scalars. In place is allowed. ---- */
template <class T, int V, class F> static __global__ void device_flat_1(T *y, const T *a, int64_t n, F f)
{
    for (int64_t i = device_thread() * V; i < n; i += device_threads() * V) {
        float v[V];
        if (i + V <= n) {
            device_load<T, V>(v, a + i);
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                v[k] = f(v[k]);
            device_store<T, V>(y + i, v);
        } else
            for (int64_t k = i; k < n; k++)
                device_set(y + k, f(device_wide(a[k])));
    }
}

template <class T, int V, class F> static __global__ void device_flat_2(T *y, const T *a, const T *b, int64_t n, F f)
{
    for (int64_t i = device_thread() * V; i < n; i += device_threads() * V) {
        float v[V], w[V];
        if (i + V <= n) {
            device_load<T, V>(v, a + i);
            device_load<T, V>(w, b + i);
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                v[k] = f(v[k], w[k]);
            device_store<T, V>(y + i, v);
        } else
            for (int64_t k = i; k < n; k++)
                device_set(y + k, f(device_wide(a[k]), device_wide(b[k])));
    }
}

template <class F> static inline int device_flat(const sodet_tensor *y, const sodet_tensor *a, F f, void *stream)
{
    const int64_t n = sodet_elements(&y->shape);
    if (n == 0)
        return 0;
    return device_storage(y->shape.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        enum { V = 16 / sizeof(T) };
        if (device_aligned(y->data, 16) && device_aligned(a->data, 16))
            DEVICE_TRY((device_flat_1<T, V, F>), device_blocks(n, V * DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)y->data,
                       (const T *)a->data, n, f);
        else
            DEVICE_TRY((device_flat_1<T, 1, F>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)y->data,
                       (const T *)a->data, n, f);
        return 0;
    });
}

template <class F> static inline int device_flat(const sodet_tensor *y, const sodet_tensor *a, const sodet_tensor *b, F f, void *stream)
{
    const int64_t n = sodet_elements(&y->shape);
    if (n == 0)
        return 0;
    return device_storage(y->shape.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        enum { V = 16 / sizeof(T) };
        if (device_aligned(y->data, 16) && device_aligned(a->data, 16) && device_aligned(b->data, 16))
            DEVICE_TRY((device_flat_2<T, V, F>), device_blocks(n, V * DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)y->data,
                       (const T *)a->data, (const T *)b->data, n, f);
        else
            DEVICE_TRY((device_flat_2<T, 1, F>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)y->data,
                       (const T *)a->data, (const T *)b->data, n, f);
        return 0;
    });
}

/* ---- division by a number that the launch knows (Granlund and Montgomery 1994); uint32_t: of numbers below 2^31 ---- */
template <class I> struct device_divider;
template <> struct device_divider<uint32_t> {
    uint32_t by, factor, shift;
    __host__ __device__ uint32_t quotient(uint32_t n) const
    {
        return (uint32_t)(((uint64_t)n * factor >> 32) + n) >> shift;
    }
};
template <> struct device_divider<uint64_t> {
    uint64_t by;
    __host__ __device__ uint64_t quotient(uint64_t n) const
    {
        return n / by;
    }
};

/* by: 0 where there is nothing to be divided. */
static inline void device_divide_by(device_divider<uint32_t> *d, int64_t by)
{
    by = by > 0 ? by : 1;
    d->by = (uint32_t)by;
    d->shift = 0;
    while ((UINT64_C(1) << d->shift) < (uint64_t)by)
        d->shift++;
    d->factor = (uint32_t)(((UINT64_C(1) << 32) * ((UINT64_C(1) << d->shift) - (uint64_t)by)) / (uint64_t)by + 1);
}

static inline void device_divide_by(device_divider<uint64_t> *d, int64_t by)
{
    d->by = by > 0 ? (uint64_t)by : 1;
}

/* Calls f with a zero of the type that numbers elements 0 .. n-1. */
template <class F> static inline int device_index(int64_t n, F f)
{
    return n < INT64_C(0x7fffffff) ? f(uint32_t()) : f(uint64_t());
}

#endif
