/* hostcuda.h: CUDA's device language for a C++17 compiler; kernels/device.h includes it where nvcc is not the compiler. NVIDIA's own
 * headers give the types (dim3, float4, __half, __nv_bfloat16 and their host arithmetic); this file gives the qualifiers, the built-in
 * variables and functions, and the launch. exec.cpp runs the threads.
 *
 * Deliberately absent, so that using them does not compile: atomics on floats, shuffles without _sync, cooperative groups, textures,
 * symbols, `extern __shared__` (SODET_DYN_SHARED instead). Other variables of functions that keep their value (static, not const) do not
 * belong into a .cu file: before each block they are overwritten with 0xff, as shared arrays are. */
#ifndef HOSTCUDA_H
#define HOSTCUDA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
/* One block runs at a time, so a block's shared arrays can be static; shared.ld lets exec.cpp find them all. */
#define __shared__                   static
#define SODET_HD                     static inline
#define SODET_DYN_SHARED(type, name) type *name = (type *)hc_dynamic_shared()
#define SODET_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                                       \
    hc_launch(#kernel, (grid), (block), (shared_bytes), (stream), kernel, __VA_ARGS__)

/* What .cu files need of the rig is visible, so that those of a plugin's own operators can be an object of their own that uses the backend's
 * rig (HC_BORROWED: hostcuda.cmake). Protected: the rig's own object goes the short way. */
#ifdef HC_BORROWED
#define HC_RIG __attribute__((visibility("default")))
#else
#define HC_RIG __attribute__((visibility("protected")))
#endif

/* A place in a kernel's source: threads that meet must meet at the same one. */
struct hc_site {
    const char *file;
    int line;
};
#define HC_SITE                                                                                                                            \
    ([]() -> const hc_site * {                                                                                                             \
        static const hc_site hc_site_here = {__FILE__, __LINE__};                                                                          \
        return &hc_site_here;                                                                                                              \
    }())

struct hc_thread {
    uint3 index;
    unsigned lane, warp;
};
/* Of the thread that runs. Plain globals: one grid runs at a time (exec.cpp). */
extern HC_RIG hc_thread *hc_current;
extern HC_RIG uint3 hc_block_index;
extern HC_RIG dim3 hc_block_size, hc_grid_size;
#define threadIdx (hc_current->index)
#define blockIdx  hc_block_index
#define blockDim  hc_block_size
#define gridDim   hc_grid_size
#define warpSize  32

enum hc_vote { HC_PLAIN, HC_COUNT, HC_OR, HC_AND };
typedef void (*hc_closure)(void *);
HC_RIG void *hc_dynamic_shared(void);
HC_RIG int hc_block_barrier(const hc_site *site, int predicate, hc_vote vote);
/* All lanes of the mask meet. Returns what lane `source` brought as value; votes: bit per lane whose predicate held. */
HC_RIG uint64_t hc_warp_meet(const hc_site *site, uint32_t mask, uint64_t value, unsigned source, int predicate, uint32_t *votes);
HC_RIG void hc_check_pointer(const char *kernel, int argument, cudaStream_t stream, const void *p);
HC_RIG void hc_check_words(const char *kernel, int argument, cudaStream_t stream, const void *data, size_t bytes);
/* The shared arrays of the object that this is linked into: shared.ld. */
extern "C" char hc_shared_begin[] __attribute__((visibility("hidden")));
extern "C" char hc_shared_end[] __attribute__((visibility("hidden")));
struct hc_arrays {
    char *begin, *end;
};
HC_RIG void hc_launch_grid(const char *name, const void *kernel, hc_arrays shared, dim3 grid, dim3 block, size_t shared_bytes,
                           cudaStream_t stream, hc_closure run, hc_closure drop, void *closure);

#define __syncthreads()        ((void)hc_block_barrier(HC_SITE, 0, HC_PLAIN))
#define __syncthreads_count(p) hc_block_barrier(HC_SITE, (p) != 0, HC_COUNT)
#define __syncthreads_or(p)    hc_block_barrier(HC_SITE, (p) != 0, HC_OR)
#define __syncthreads_and(p)   hc_block_barrier(HC_SITE, (p) != 0, HC_AND)
#define __syncwarp(...)        ((void)hc_ballot(HC_SITE, hc_mask_or_all(__VA_ARGS__), 0))
#define __ballot_sync(mask, p) hc_ballot(HC_SITE, (mask), (p) != 0)
#define __any_sync(mask, p)    ((int)(hc_ballot(HC_SITE, (mask), (p) != 0) != 0))
#define __all_sync(mask, p)    ((int)(hc_ballot(HC_SITE, (mask), (p) == 0) == 0))
#define __activemask()         hc_use_an_explicit_mask
#define __threadfence()        __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block()  __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __shfl_sync(...)       hc_shuffle(HC_SITE, __VA_ARGS__)
#define __shfl_up_sync(...)    hc_shuffle_up(HC_SITE, __VA_ARGS__)
#define __shfl_down_sync(...)  hc_shuffle_down(HC_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...)   hc_shuffle_xor(HC_SITE, __VA_ARGS__)

static inline uint32_t hc_mask_or_all(uint32_t mask = 0xffffffffu)
{
    return mask;
}

static inline uint32_t hc_ballot(const hc_site *site, uint32_t mask, int predicate)
{
    uint32_t votes;
    hc_warp_meet(site, mask, 0, hc_current->lane, predicate, &votes);
    return votes;
}

template <class T> static inline T hc_move(const hc_site *site, uint32_t mask, T value, int source)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle moves up to 8 bytes");
    uint64_t bits = 0;
    uint32_t votes;
    memcpy(&bits, &value, sizeof value);
    bits = hc_warp_meet(site, mask, bits, (unsigned)source, 0, &votes);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A width below 32 cuts the warp into sections; a source outside the own section is the own lane (CUDA C++ Programming Guide, Warp
 * Shuffle Functions). */
template <class T> static inline T hc_shuffle(const hc_site *site, uint32_t mask, T value, int source, int width = 32)
{
    return hc_move(site, mask, value, ((int)hc_current->lane & ~(width - 1)) | (source & (width - 1)));
}

template <class T> static inline T hc_shuffle_up(const hc_site *site, uint32_t mask, T value, unsigned delta, int width = 32)
{
    int lane = (int)hc_current->lane, source = lane - (int)delta;
    return hc_move(site, mask, value, source >= (lane & ~(width - 1)) ? source : lane);
}

template <class T> static inline T hc_shuffle_down(const hc_site *site, uint32_t mask, T value, unsigned delta, int width = 32)
{
    int lane = (int)hc_current->lane, source = lane + (int)delta;
    return hc_move(site, mask, value, source <= (lane | (width - 1)) ? source : lane);
}

template <class T> static inline T hc_shuffle_xor(const hc_site *site, uint32_t mask, T value, int bits, int width = 32)
{
    int lane = (int)hc_current->lane, source = lane ^ bits;
    return hc_move(site, mask, value, source <= (lane | (width - 1)) ? source : lane);
}

/* Atomics, relaxed as CUDA's are. A sum of floats would depend on the order of the threads: it does not compile. */
template <class T, class F> static inline T hc_update(T *p, F next)
{
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "atomics are for 32 and 64-bit integers");
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, next(old), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}
template <class T> struct hc_same {
    using type = T;
};
template <class T> using hc_same_t = typename hc_same<T>::type; /* a parameter that takes no part in deducing T */

template <class T> static inline T atomicAdd(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return (T)((std::make_unsigned_t<T>)old + (std::make_unsigned_t<T>)v); });
}
template <class T> static inline T atomicSub(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return (T)((std::make_unsigned_t<T>)old - (std::make_unsigned_t<T>)v); });
}
template <class T> static inline T atomicMax(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return old > v ? old : v; });
}
template <class T> static inline T atomicMin(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return old < v ? old : v; });
}
template <class T> static inline T atomicAnd(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return (T)(old & v); });
}
template <class T> static inline T atomicOr(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return (T)(old | v); });
}
template <class T> static inline T atomicXor(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T old) { return (T)(old ^ v); });
}
template <class T> static inline T atomicExch(T *p, hc_same_t<T> v)
{
    return hc_update(p, [v](T) { return v; });
}
template <class T> static inline T atomicCAS(T *p, hc_same_t<T> expected, hc_same_t<T> v)
{
    return hc_update(p, [expected, v](T old) { return old == expected ? v : old; });
}

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}

template <class To, class From> static inline To hc_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __float_as_int(x)  hc_bits<int>((float)(x))
#define __float_as_uint(x) hc_bits<unsigned>((float)(x))
#define __int_as_float(x)  hc_bits<float>((int)(x))
#define __uint_as_float(x) hc_bits<float>((unsigned)(x))
#define __popc(x)          __builtin_popcount((unsigned)(x))
#define __popcll(x)        __builtin_popcountll((unsigned long long)(x))
#define __ffs(x)           __builtin_ffs((int)(x))
#define __ffsll(x)         __builtin_ffsll((long long)(x))

static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    __extension__ typedef unsigned __int128 wide;
    return (unsigned long long)((wide)a * b >> 64);
}

/* The fast forms, at the precision of libm: macros, since glibc owns some of the names. */
#define __expf(x)          expf(x)
#define __exp10f(x)        powf(10.0f, (x))
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __log10f(x)        log10f(x)
#define __powf(x, y)       powf((x), (y))
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __fdividef(a, b)   ((float)(a) / (float)(b))
#define __fadd_rn(a, b)    ((float)(a) + (float)(b))
#define __fsub_rn(a, b)    ((float)(a) - (float)(b))
#define __fmul_rn(a, b)    ((float)(a) * (float)(b))
#define __fdiv_rn(a, b)    ((float)(a) / (float)(b))
#define __fmaf_rn(a, b, c) fmaf((a), (b), (c))
#define __fsqrt_rn(x)      sqrtf(x)
#define __frcp_rn(x)       (1.0f / (float)(x))
#define __saturatef(x)     fminf(fmaxf((x), 0.0f), 1.0f)
#define __float2int_rn(x)  ((int)rintf(x))
#define __float2int_rd(x)  ((int)floorf(x))
#define __float2int_ru(x)  ((int)ceilf(x))
#define __float2int_rz(x)  ((int)(float)(x))
#define __int2float_rn(x)  ((float)(int)(x))
#define __uint2float_rn(x) ((float)(unsigned)(x))

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

#define HC_MIN_MAX(type)                                                                                                                   \
    static inline type min(type a, type b)                                                                                                 \
    {                                                                                                                                      \
        return a < b ? a : b;                                                                                                              \
    }                                                                                                                                      \
    static inline type max(type a, type b)                                                                                                 \
    {                                                                                                                                      \
        return a > b ? a : b;                                                                                                              \
    }
HC_MIN_MAX(int)
HC_MIN_MAX(unsigned)
HC_MIN_MAX(long)
HC_MIN_MAX(unsigned long)
HC_MIN_MAX(long long)
HC_MIN_MAX(unsigned long long)
#undef HC_MIN_MAX
/* Of a NaN and a number, the number. */
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

/* What NVIDIA's headers do not define for the host: one rounding, as the device has. The product of two is exact in double. */
static inline __half __hfma(__half a, __half b, __half c)
{
    return __double2half((double)__half2float(a) * (double)__half2float(b) + (double)__half2float(c));
}
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return __double2bfloat16((double)__bfloat162float(a) * (double)__bfloat162float(b) + (double)__bfloat162float(c));
}

template <class T> static inline void hc_check_argument(const char *kernel, int argument, cudaStream_t stream, const T &value)
{
    static_assert(std::is_trivially_copyable_v<T>, "kernels take plain values");
    if constexpr (std::is_pointer_v<T>)
        hc_check_pointer(kernel, argument, stream, (const void *)value);
    else if constexpr (std::is_class_v<T> && sizeof(T) >= sizeof(void *))
        hc_check_words(kernel, argument, stream, &value, sizeof value);
}

/* The arguments are converted as in a call of the kernel, copied, and looked at. */
template <class... P>
static inline void hc_launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, void *stream, void (*kernel)(P...),
                             hc_same_t<P>... arguments)
{
    struct closure {
        void (*kernel)(P...);
        std::tuple<P...> arguments;
    };
    closure *c = new closure{kernel, std::tuple<P...>(arguments...)};
    int at = 0;
    (hc_check_argument(name, at++, (cudaStream_t)stream, arguments), ...);
    hc_launch_grid(
        name, reinterpret_cast<const void *>(kernel), {hc_shared_begin, hc_shared_end}, grid, block, shared_bytes, (cudaStream_t)stream,
        [](void *self) { std::apply(((closure *)self)->kernel, ((closure *)self)->arguments); }, [](void *self) { delete (closure *)self; },
        c);
}

#endif
