#include "kernels/device_walk.h"
#include "kernels/dropout/dropout.h"

/* places: where the element would lie in a plain tensor, which is its number. */
template <class T, class I>
static __global__ void dropout(T *y, const T *x, int64_t n, device_steps<I, 1> places, uint64_t stream, float rate, float scale)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t logical[1];
        places.at((I)i, logical);
        device_set(y + i, sodet_dropout_keeps(stream, (uint64_t)logical[0], rate) ? device_wide(x[i]) * scale : 0.0f);
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_dropout_attr *t = (const sodet_dropout_attr *)a->attr;
    const sodet_tensor *y = &a->out[0];
    sodet_tensor plain = *y;
    plain.layout = SODET_PLAIN;
    const device_walk w = device_walk_broadcast(y, &plain, 1);
    if (w.n == 0)
        return 0;
    return device_storage(y->shape.dtype, [&](auto value) {
        return device_index(w.n, [&](auto zero) {
            typedef decltype(value) T;
            typedef decltype(zero) I;
            DEVICE_TRY((dropout<T, I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)y->data,
                       (const T *)a->in[0].data, w.n, (device_steps_of<I, 1>(w)), sodet_dropout_stream(a->seed, a->step, t->key), t->rate,
                       (float)(1 / (1 - (double)t->rate)));
            return 0;
        });
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_dropout[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward}};
