/* Backward gathers: a pixel adds up the output pixels that took from it, in their order. Bilinear does so along the height first and then
 * along the width, with floats between the two. */
#include "kernels/device_pixels.h"
#include "kernels/resize/resize.h"
#include "kernels/resize/resize_math.h"

/* resize_nearest() of sides below 2^15, and the first output pixel that takes from `r`. */
struct sides {
    int32_t in, out;
    device_divider<uint32_t> by_in, by_out;
    __device__ __forceinline__ int32_t from(int32_t i) const
    {
        return (int32_t)by_out.quotient((uint32_t)(i * in));
    }
    __device__ __forceinline__ int32_t first(int32_t r) const
    {
        return (int32_t)by_in.quotient((uint32_t)(r * out + in - 1));
    }
    /* Bilinear: no output pixels but [*begin, *end) take from r. */
    __device__ __forceinline__ void around(int32_t r, int32_t *begin, int32_t *end) const
    {
        const int32_t low = (int32_t)by_in.quotient((uint32_t)((r > 0 ? r - 1 : 0) * out)) - 1, high = first(r + 2) + 1;
        *begin = low > 0 ? low : 0;
        *end = r + 2 < in && high < out ? high : out;
    }
    /* How much of r output pixel i took. */
    __device__ __forceinline__ float share(int32_t i, int32_t r) const
    {
        const resize_pair p = resize_bilinear(i, in, out);
        return (p.low == r ? (float)(1 - p.weight) : 0.0f) + (p.high == r ? (float)p.weight : 0.0f);
    }
};

static sides sides_of(int64_t in, int64_t out)
{
    sides s = {(int32_t)in, (int32_t)out, {}, {}};
    device_divide_by(&s.by_in, in);
    device_divide_by(&s.by_out, out);
    return s;
}

template <class T, int V>
static __global__ void nearest_forward(T *y, const T *x, device_pixels in, device_pixels out, device_pixel_steps steps, sides rows,
                                       sides columns)
{
    for (int64_t image = blockIdx.y; image < out.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            float v[V];
            device_load<T, V>(v, x + image * in.image + device_pixel_place(in, p.channel, rows.from(p.i), columns.from(p.j)));
            device_store<T, V>(y + image * out.image + device_pixel_place(out, p.channel, p.i, p.j), v);
        }
}

template <class T, int V>
static __global__ void nearest_backward(T *dx, const T *dy, device_pixels in, device_pixels out, device_pixel_steps steps, sides rows,
                                        sides columns)
{
    for (int64_t image = blockIdx.y; image < in.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            const int32_t bottom = rows.first(p.i + 1), left = columns.first(p.j), right = columns.first(p.j + 1);
            float sum[V] = {};
            for (int32_t i = rows.first(p.i); i < bottom; i++)
                for (int32_t j = left; j < right; j++) {
                    float v[V];
                    device_load<T, V>(v, dy + image * out.image + device_pixel_place(out, p.channel, i, j));
                    SODET_UNROLL
                    for (int k = 0; k < V; k++)
                        sum[k] += v[k];
                }
            device_store<T, V>(dx + image * in.image + device_pixel_place(in, p.channel, p.i, p.j), sum);
        }
}

template <class T, int V>
static __global__ void bilinear_forward(T *y, const T *x, device_pixels in, device_pixels out, device_pixel_steps steps)
{
    for (int64_t image = blockIdx.y; image < out.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            const resize_pair r = resize_bilinear(p.i, in.height, out.height), c = resize_bilinear(p.j, in.width, out.width);
            const T *map = x + image * in.image;
            const float down = (float)r.weight, right = (float)c.weight;
            float v[4][V];
            device_load<T, V>(v[0], map + device_pixel_place(in, p.channel, (int32_t)r.low, (int32_t)c.low));
            device_load<T, V>(v[1], map + device_pixel_place(in, p.channel, (int32_t)r.low, (int32_t)c.high));
            device_load<T, V>(v[2], map + device_pixel_place(in, p.channel, (int32_t)r.high, (int32_t)c.low));
            device_load<T, V>(v[3], map + device_pixel_place(in, p.channel, (int32_t)r.high, (int32_t)c.high));
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                v[0][k] = (1 - down) * ((1 - right) * v[0][k] + right * v[1][k]) + down * ((1 - right) * v[2][k] + right * v[3][k]);
            device_store<T, V>(y + image * out.image + device_pixel_place(out, p.channel, p.i, p.j), v[0]);
        }
}

/* From dy to maps of the input's height and the output's width. */
template <class T, int V>
static __global__ void bilinear_rows(float *middle_map, const T *dy, device_pixels middle, device_pixels out, device_pixel_steps steps,
                                     sides rows)
{
    for (int64_t image = blockIdx.y; image < middle.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            int32_t begin, end;
            float sum[V] = {};
            rows.around(p.i, &begin, &end);
            for (int32_t i = begin; i < end; i++) {
                const float by = rows.share(i, p.i);
                float v[V];
                if (by == 0)
                    continue;
                device_load<T, V>(v, dy + image * out.image + device_pixel_place(out, p.channel, i, p.j));
                SODET_UNROLL
                for (int k = 0; k < V; k++)
                    sum[k] += by * v[k];
            }
            device_store<float, V>(middle_map + image * middle.image + device_pixel_place(middle, p.channel, p.i, p.j), sum);
        }
}

template <class T, int V>
static __global__ void bilinear_columns(T *dx, const float *middle_map, device_pixels in, device_pixels middle, device_pixel_steps steps,
                                        sides columns)
{
    for (int64_t image = blockIdx.y; image < in.images; image += gridDim.y)
        for (int64_t e = device_thread(); e < steps.n; e += device_threads()) {
            const device_pixel p = device_pixel_at(steps, (uint32_t)e);
            int32_t begin, end;
            float sum[V] = {};
            columns.around(p.j, &begin, &end);
            for (int32_t j = begin; j < end; j++) {
                const float by = columns.share(j, p.j);
                float v[V];
                if (by == 0)
                    continue;
                device_load<float, V>(v, middle_map + image * middle.image + device_pixel_place(middle, p.channel, p.i, j));
                SODET_UNROLL
                for (int k = 0; k < V; k++)
                    sum[k] += by * v[k];
            }
            device_store<T, V>(dx + image * in.image + device_pixel_place(in, p.channel, p.i, p.j), sum);
        }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    return device_pixel_kind(y, x, NULL, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_pixels in = device_pixels_of(&x->shape, x->layout), out = device_pixels_of(&y->shape, y->layout);
        const device_pixel_steps steps = device_pixel_steps_of(out, V);
        if (((const sodet_resize_attr *)a->attr)->kind == SODET_RESIZE_NEAREST)
            DEVICE_TRY((nearest_forward<T, V>), device_pixel_grid(out, steps), DEVICE_THREADS, 0, stream, (T *)y->data, (const T *)x->data,
                       in, out, steps, sides_of(in.height, out.height), sides_of(in.width, out.width));
        else
            DEVICE_TRY((bilinear_forward<T, V>), device_pixel_grid(out, steps), DEVICE_THREADS, 0, stream, (T *)y->data, (const T *)x->data,
                       in, out, steps);
        return 0;
    });
}

static sodet_shape middle_of(const sodet_kernel_args *a)
{
    sodet_shape s = a->in[0].shape;
    s.dim[2] = a->out[0].shape.dim[2];
    return s;
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    const sodet_shape middle = middle_of(a);
    return ((const sodet_resize_attr *)a->attr)->kind == SODET_RESIZE_BILINEAR ? (uint64_t)sodet_elements(&middle) * sizeof(float) : 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *dy = &a->in[0], *dx = &a->out[0];
    return device_pixel_kind(dx, dy, NULL, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const sodet_shape between = middle_of(a);
        const device_pixels in = device_pixels_of(&dx->shape, dx->layout), out = device_pixels_of(&dy->shape, dy->layout);
        const device_pixels middle = device_pixels_of(&between, dy->layout);
        const device_pixel_steps steps = device_pixel_steps_of(in, V), half_steps = device_pixel_steps_of(middle, V);
        const sides rows = sides_of(in.height, out.height), columns = sides_of(in.width, out.width);
        float *middle_map = (float *)a->scratch;
        if (((const sodet_resize_attr *)a->attr)->kind == SODET_RESIZE_NEAREST) {
            DEVICE_TRY((nearest_backward<T, V>), device_pixel_grid(in, steps), DEVICE_THREADS, 0, stream, (T *)dx->data,
                       (const T *)dy->data, in, out, steps, rows, columns);
            return 0;
        }
        DEVICE_TRY((bilinear_rows<T, V>), device_pixel_grid(middle, half_steps), DEVICE_THREADS, 0, stream, middle_map, (const T *)dy->data,
                   middle, out, half_steps, rows);
        DEVICE_TRY((bilinear_columns<T, V>), device_pixel_grid(in, steps), DEVICE_THREADS, 0, stream, (T *)dx->data,
                   (const float *)middle_map, in, middle, steps, columns);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_resize[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, backward}};
