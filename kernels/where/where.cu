#include "kernels/device_walk.h"
#include "kernels/where/where.h"

struct where_types {
    uint32_t y, c, a, b;
};

template <class I>
static __global__ void choose(void *y, const void *c, const void *a, const void *b, where_types type, int64_t n, device_steps<I, 3> steps)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t at[3];
        steps.at((I)i, at);
        const bool yes = type.c == SODET_I32 ? static_cast<const int32_t *>(c)[at[0]] != 0 : device_real(c, type.c, at[0]) != 0;
        const void *from = yes ? a : b;
        const int64_t place = yes ? at[1] : at[2];
        if (type.y == SODET_I32)
            static_cast<int32_t *>(y)[i] = static_cast<const int32_t *>(from)[place];
        else
            device_set_real(y, type.y, i, device_real(from, yes ? type.a : type.b, place));
    }
}

static int forward(const sodet_kernel_args *k, void *stream)
{
    const sodet_tensor *y = &k->out[0], *in = k->in;
    const device_walk w = device_walk_broadcast(y, in, 3);
    const where_types type = {y->shape.dtype, in[0].shape.dtype, in[1].shape.dtype, in[2].shape.dtype};
    if (w.n == 0)
        return 0;
    return device_index(w.n, [&](auto zero) {
        typedef decltype(zero) I;
        DEVICE_TRY((choose<I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, y->data, (const void *)in[0].data,
                   (const void *)in[1].data, (const void *)in[2].data, type, w.n, (device_steps_of<I, 3>(w)));
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_where[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward}};
