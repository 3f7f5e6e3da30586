#include "kernels/cast/cast.h"
#include "kernels/device_walk.h"

static __device__ __forceinline__ int32_t cut(float x)
{
    return x != x ? 0 : x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : (int32_t)x;
}

/* int32 maps are plain and float maps need not be, so places are walked. */
template <class I> static __global__ void cast(void *y, const void *x, uint32_t to, uint32_t from, int64_t n, device_steps<I, 1> steps)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t at[1];
        steps.at((I)i, at);
        if (to == SODET_I32)
            static_cast<int32_t *>(y)[i] = from == SODET_I32 ? static_cast<const int32_t *>(x)[at[0]] : cut(device_real(x, from, at[0]));
        else
            device_set_real(y, to, i, from == SODET_I32 ? (float)static_cast<const int32_t *>(x)[at[0]] : device_real(x, from, at[0]));
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *y = &a->out[0], *x = &a->in[0];
    const device_walk w = device_walk_broadcast(y, x, 1);
    if (w.n == 0)
        return 0;
    return device_index(w.n, [&](auto zero) {
        typedef decltype(zero) I;
        DEVICE_TRY((cast<I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, y->data, (const void *)x->data, y->shape.dtype,
                   x->shape.dtype, w.n, (device_steps_of<I, 1>(w)));
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_cast[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward}};
