#include "kernels/avg_pool/avg_pool.h"
#include "kernels/device_pixels.h"

/* Elements of window i that count: on the map, or also on its padding. */
static __device__ __forceinline__ float size_of(const device_window &w, int32_t i, bool on_map)
{
    const int32_t from = i * w.stride - w.before, end = from + w.kernel, most = on_map ? w.in : w.in + w.after;
    return (float)((end < most ? end : most) - (on_map && from < 0 ? 0 : from));
}

/* Sums are compensated (Kahan 1965): a window may be the whole map. */
template <class T, int V>
static __global__ void pool_forward(T *y, const T *x, device_pixels in, device_pixels out, device_pixel_steps steps, device_window rows,
                                    device_window columns, bool on_map)
{
    for (int64_t image = blockIdx.y; image < out.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            int32_t top, bottom, left, right;
            float sum[V] = {}, lost[V] = {};
            device_window_covers(rows, p.i, &top, &bottom);
            device_window_covers(columns, p.j, &left, &right);
            for (int32_t r = top; r < bottom; r++)
                for (int32_t t = left; t < right; t++) {
                    float v[V];
                    device_load<T, V>(v, x + image * in.image + device_pixel_place(in, p.channel, r, t));
                    SODET_UNROLL
                    for (int k = 0; k < V; k++) {
                        const float add = v[k] - lost[k], next = sum[k] + add;
                        lost[k] = next - sum[k] - add;
                        sum[k] = next;
                    }
                }
            const float by = size_of(rows, p.i, on_map) * size_of(columns, p.j, on_map);
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                sum[k] /= by;
            device_store<T, V>(y + image * out.image + device_pixel_place(out, p.channel, p.i, p.j), sum);
        }
}

template <class T, int V>
static __global__ void pool_backward(T *dx, const T *dy, device_pixels in, device_pixels out, device_pixel_steps steps, device_window rows,
                                     device_window columns, bool on_map)
{
    for (int64_t image = blockIdx.y; image < in.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            int32_t top, bottom, left, right;
            float sum[V] = {};
            device_windows_over(rows, p.i, &top, &bottom);
            device_windows_over(columns, p.j, &left, &right);
            for (int32_t i = top; i < bottom; i++)
                for (int32_t j = left; j < right; j++) {
                    const float by = size_of(rows, i, on_map) * size_of(columns, j, on_map);
                    float v[V];
                    device_load<T, V>(v, dy + image * out.image + device_pixel_place(out, p.channel, i, j));
                    SODET_UNROLL
                    for (int k = 0; k < V; k++)
                        sum[k] += v[k] / by;
                }
            device_store<T, V>(dx + image * in.image + device_pixel_place(in, p.channel, p.i, p.j), sum);
        }
}

struct windows {
    device_window rows, columns;
    bool on_map;
};

static windows windows_of(const sodet_pool_attr *t, const sodet_shape *in, const sodet_shape *out)
{
    return windows{device_window_of(t->kernel_h, t->stride_h, t->pad_top, t->pad_bottom, in->dim[2], out->dim[2]),
                   device_window_of(t->kernel_w, t->stride_w, t->pad_left, t->pad_right, in->dim[3], out->dim[3]),
                   (t->flags & SODET_POOL_EXCLUDE_PAD) != 0};
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    const windows w = windows_of((const sodet_pool_attr *)a->attr, &x->shape, &y->shape);
    return device_pixel_kind(y, x, NULL, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels in = device_pixels_of(&x->shape, x->layout), out = device_pixels_of(&y->shape, y->layout);
        const device_pixel_steps steps = device_pixel_steps_of(out, V);
        DEVICE_TRY((pool_forward<T, V>), device_pixel_grid(out, steps), DEVICE_THREADS, 0, stream, (T *)y->data, (const T *)x->data, in,
                   out, steps, w.rows, w.columns, w.on_map);
        return 0;
    });
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *dy = &a->in[0], *dx = &a->out[0];
    const windows w = windows_of((const sodet_pool_attr *)a->attr, &dx->shape, &dy->shape);
    return device_pixel_kind(dx, dy, NULL, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels in = device_pixels_of(&dx->shape, dx->layout), out = device_pixels_of(&dy->shape, dy->layout);
        const device_pixel_steps steps = device_pixel_steps_of(in, V);
        DEVICE_TRY((pool_backward<T, V>), device_pixel_grid(in, steps), DEVICE_THREADS, 0, stream, (T *)dx->data, (const T *)dy->data, in,
                   out, steps, w.rows, w.columns, w.on_map);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_avg_pool[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, backward}};
