/* `where` holds row * W + column, in the order of the output's memory; the complement of it (so all are negative) where that order is
 * channels-last, which part 1 reads from the first one: gradients may come in another layout. */
#include "kernels/device_pixels.h"
#include "kernels/max_pool/max_pool.h"

template <class T, int V>
static __global__ void pool_forward(T *y, int32_t *where, const T *x, device_pixels in, device_pixels out, device_pixel_steps steps,
                                    device_window rows, device_window columns)
{
    for (int64_t image = blockIdx.y; image < out.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            int32_t top, bottom, left, right, best[V];
            float most[V];
            device_window_covers(rows, p.i, &top, &bottom);
            device_window_covers(columns, p.j, &left, &right);
            SODET_UNROLL
            for (int k = 0; k < V; k++) {
                best[k] = top * in.width + left;
                most[k] = -INFINITY;
            }
            for (int32_t r = top; r < bottom; r++)
                for (int32_t t = left; t < right; t++) {
                    float v[V];
                    device_load<T, V>(v, x + image * in.image + device_pixel_place(in, p.channel, r, t));
                    SODET_UNROLL
                    for (int k = 0; k < V; k++)
                        if (v[k] > most[k] || (v[k] != v[k] && most[k] == most[k])) {
                            most[k] = v[k];
                            best[k] = r * in.width + t;
                        }
                }
            const int64_t at = image * out.image + device_pixel_place(out, p.channel, p.i, p.j);
            device_store<T, V>(y + at, most);
            if (where) {
                device_pack<int32_t, V> code;
                SODET_UNROLL
                for (int k = 0; k < V; k++)
                    code.v[k] = steps.last ? ~best[k] : best[k];
                *reinterpret_cast<device_pack<int32_t, V> *>(where + at) = code;
            }
        }
}

template <class T, int V>
static __global__ void pool_backward(T *dx, const int32_t *where, const T *dy, device_pixels in, device_pixels out,
                                     device_pixel_steps steps, device_window rows, device_window columns)
{
    const int32_t turn = where[0] < 0 ? -1 : 0;
    const int64_t channel = turn ? 1 : (int64_t)out.height * out.width, column = turn ? out.channels : 1, row = column * out.width;
    for (int64_t image = blockIdx.y; image < in.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            const int32_t own = (p.i * in.width + p.j) ^ turn;
            int32_t top, bottom, left, right;
            float sum[V] = {};
            device_windows_over(rows, p.i, &top, &bottom);
            device_windows_over(columns, p.j, &left, &right);
            for (int32_t i = top; i < bottom; i++)
                for (int32_t j = left; j < right; j++) {
                    const int32_t *from = where + image * out.image + p.channel * channel + i * row + j * column;
                    device_pack<int32_t, V> code;
                    float v[V];
                    if (channel == 1) {
                        code = *reinterpret_cast<const device_pack<int32_t, V> *>(from);
                    } else {
                        SODET_UNROLL
                        for (int k = 0; k < V; k++)
                            code.v[k] = from[k * channel];
                    }
                    device_load<T, V>(v, dy + image * out.image + device_pixel_place(out, p.channel, i, j));
                    SODET_UNROLL
                    for (int k = 0; k < V; k++)
                        sum[k] += code.v[k] == own ? v[k] : 0;
                }
            device_store<T, V>(dx + image * in.image + device_pixel_place(in, p.channel, p.i, p.j), sum);
        }
}

struct windows {
    device_window rows, columns;
};

static windows windows_of(const sodet_pool_attr *t, const sodet_shape *in, const sodet_shape *out)
{
    return windows{device_window_of(t->kernel_h, t->stride_h, t->pad_top, t->pad_bottom, in->dim[2], out->dim[2]),
                   device_window_of(t->kernel_w, t->stride_w, t->pad_left, t->pad_right, in->dim[3], out->dim[3])};
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    int32_t *where = a->n_out > 1 ? (int32_t *)a->out[1].data : NULL;
    const windows w = windows_of((const sodet_pool_attr *)a->attr, &x->shape, &y->shape);
    return device_pixel_kind(y, x, where, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels in = device_pixels_of(&x->shape, x->layout), out = device_pixels_of(&y->shape, y->layout);
        const device_pixel_steps steps = device_pixel_steps_of(out, V);
        DEVICE_TRY((pool_forward<T, V>), device_pixel_grid(out, steps), DEVICE_THREADS, 0, stream, (T *)y->data, where, (const T *)x->data,
                   in, out, steps, w.rows, w.columns);
        return 0;
    });
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *dy = &a->in[1], *dx = &a->out[0];
    const windows w = windows_of((const sodet_pool_attr *)a->attr, &dx->shape, &dy->shape);
    return device_pixel_kind(dx, dy, a->in[0].data, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels in = device_pixels_of(&dx->shape, dx->layout), out = device_pixels_of(&dy->shape, dy->layout);
        const device_pixel_steps steps = device_pixel_steps_of(in, V);
        DEVICE_TRY((pool_backward<T, V>), device_pixel_grid(in, steps), DEVICE_THREADS, 0, stream, (T *)dx->data,
                   (const int32_t *)a->in[0].data, (const T *)dy->data, in, out, steps, w.rows, w.columns);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_max_pool[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, backward}};
