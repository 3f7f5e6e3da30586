#include "kernels/compare/compare.h"
#include "kernels/device_walk.h"

template <class N> static __device__ __forceinline__ bool holds(uint32_t kind, N a, N b)
{
    switch (kind) {
    case SODET_COMPARE_GE:
        return a >= b;
    case SODET_COMPARE_GT:
        return a > b;
    case SODET_COMPARE_LE:
        return a <= b;
    case SODET_COMPARE_LT:
        return a < b;
    case SODET_COMPARE_EQ:
        return a == b;
    default:
        return a != b;
    }
}

struct compare_types {
    uint32_t y, a, b, kind;
};

template <class I>
static __global__ void compare(void *y, const void *a, const void *b, compare_types type, int64_t n, device_steps<I, 2> steps)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t at[2];
        steps.at((I)i, at);
        bool yes;
        if (type.a != SODET_I32 && type.b != SODET_I32)
            yes = holds(type.kind, device_real(a, type.a, at[0]), device_real(b, type.b, at[1]));
        else /* a double holds both types exactly */
            yes = holds(type.kind, type.a == SODET_I32 ? (double)static_cast<const int32_t *>(a)[at[0]] : device_real(a, type.a, at[0]),
                        type.b == SODET_I32 ? (double)static_cast<const int32_t *>(b)[at[1]] : device_real(b, type.b, at[1]));
        device_set_real(y, type.y, i, yes ? 1.0f : 0.0f);
    }
}

static int forward(const sodet_kernel_args *k, void *stream)
{
    const sodet_tensor *y = &k->out[0], *a = &k->in[0], *b = &k->in[1];
    const device_walk w = device_walk_broadcast(y, k->in, 2);
    const compare_types type = {y->shape.dtype, a->shape.dtype, b->shape.dtype, ((const sodet_compare_attr *)k->attr)->kind};
    if (w.n == 0)
        return 0;
    return device_index(w.n, [&](auto zero) {
        typedef decltype(zero) I;
        DEVICE_TRY((compare<I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, y->data, (const void *)a->data,
                   (const void *)b->data, type, w.n, (device_steps_of<I, 2>(w)));
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_compare[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward}};
