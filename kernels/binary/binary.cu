#include "kernels/binary/binary.h"
#include "kernels/device_walk.h"

struct binary_value {
    uint32_t kind;
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        switch (kind) {
        case SODET_BINARY_ADD:
            return a + b;
        case SODET_BINARY_SUB:
            return a - b;
        case SODET_BINARY_MUL:
            return a * b;
        case SODET_BINARY_DIV:
            return a / b;
        case SODET_BINARY_MIN:
            return a != a || a < b ? a : b;
        case SODET_BINARY_MAX:
            return a != a || a > b ? a : b;
        default:
            return powf(a, b);
        }
    }
    __device__ __forceinline__ int32_t whole(int32_t a, int32_t b) const
    {
        const int64_t x = a, y = b;
        int64_t q = 0;
        if (kind == SODET_BINARY_DIV || kind == SODET_BINARY_MOD) {
            if (b == 0)
                return 0;
            q = x / y;
            if (x % y != 0 && (x < 0) != (y < 0))
                q--;
        }
        switch (kind) {
        case SODET_BINARY_ADD:
            return (int32_t)(uint32_t)(x + y);
        case SODET_BINARY_SUB:
            return (int32_t)(uint32_t)(x - y);
        case SODET_BINARY_MUL:
            return (int32_t)(uint32_t)(x * y);
        case SODET_BINARY_DIV:
            return (int32_t)(uint32_t)q;
        case SODET_BINARY_MIN:
            return a < b ? a : b;
        case SODET_BINARY_MAX:
            return a > b ? a : b;
        default:
            return (int32_t)(x - q * y);
        }
    }
};

struct binary_types {
    uint32_t y, a, b;
};

template <class I>
static __global__ void broadcast(void *y, const void *a, const void *b, binary_types type, int64_t n, device_steps<I, 2> steps,
                                 binary_value f)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t at[2];
        steps.at((I)i, at);
        if (type.y == SODET_I32)
            static_cast<int32_t *>(y)[i] = f.whole(static_cast<const int32_t *>(a)[at[0]], static_cast<const int32_t *>(b)[at[1]]);
        else
            device_set_real(y, type.y, i, f(device_real(a, type.a, at[0]), device_real(b, type.b, at[1])));
    }
}

static int forward(const sodet_kernel_args *k, void *stream)
{
    const binary_value f = {((const sodet_binary_attr *)k->attr)->kind};
    const sodet_tensor *y = &k->out[0], *a = &k->in[0], *b = &k->in[1];
    const device_walk w = device_walk_broadcast(y, k->in, 2);
    const binary_types type = {y->shape.dtype, a->shape.dtype, b->shape.dtype};
    if (w.n == 0)
        return 0;
    if (type.y != SODET_I32 && type.a == type.y && type.b == type.y && device_walk_flat(w, 0) && device_walk_flat(w, 1))
        return device_flat(y, a, b, f, stream);
    return device_index(w.n, [&](auto zero) {
        typedef decltype(zero) I;
        DEVICE_TRY((broadcast<I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, y->data, (const void *)a->data,
                   (const void *)b->data, type, w.n, (device_steps_of<I, 2>(w)), f);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_binary[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward}};
