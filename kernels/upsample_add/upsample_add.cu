#include "kernels/device_pixels.h"
#include "kernels/upsample_add/upsample_add.h"

template <class T, int V>
static __global__ void upsample_add(T *y, const T *a, const T *b, device_pixels small, device_pixels large, device_pixel_steps steps,
                                    device_divider<uint32_t> height, device_divider<uint32_t> width)
{
    for (int64_t image = blockIdx.y; image < large.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            const int32_t i = (int32_t)height.quotient((uint32_t)(p.i * small.height)),
                          j = (int32_t)width.quotient((uint32_t)(p.j * small.width));
            const int64_t at = image * large.image + device_pixel_place(large, p.channel, p.i, p.j);
            float v[V], w[V];
            device_load<T, V>(v, a + at);
            device_load<T, V>(w, b + image * small.image + device_pixel_place(small, p.channel, i, j));
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                v[k] += w[k];
            device_store<T, V>(y + at, v);
        }
}

static int forward(const sodet_kernel_args *k, void *stream)
{
    const sodet_tensor *a = &k->in[0], *b = &k->in[1], *y = &k->out[0];
    return device_pixel_kind(y, b, a->data, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels small = device_pixels_of(&b->shape, b->layout), large = device_pixels_of(&y->shape, y->layout);
        const device_pixel_steps steps = device_pixel_steps_of(large, V);
        device_divider<uint32_t> height, width;
        device_divide_by(&height, large.height);
        device_divide_by(&width, large.width);
        DEVICE_TRY((upsample_add<T, V>), device_pixel_grid(large, steps), DEVICE_THREADS, 0, stream, (T *)y->data, (const T *)a->data,
                   (const T *)b->data, small, large, steps, height, width);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_upsample_add[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward}};
