#include "kernels/device_copy.h"
#include "kernels/slice/slice.h"

/* y is cut from x along one dimension at most: its number, or the rank if along more. */
static uint32_t cut_along(const sodet_shape *x, const sodet_shape *y)
{
    uint32_t axis = 0, cuts = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i]) {
            axis = i;
            cuts++;
        }
    return cuts > 1 ? x->rank : axis;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_slice_attr *t = (const sodet_slice_attr *)a->attr;
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    int64_t strides[1][SODET_MAX_RANK] = {}, first = 0;
    if (sodet_elements(&y->shape) == 0)
        return 0;
    device_strides(x, strides[0]);
    for (uint32_t i = 0; i < x->shape.rank; i++)
        first += t->start[i] * strides[0][i];
    const int64_t size = device_size(x->shape.dtype);
    const uint32_t axis = cut_along(&x->shape, &y->shape);
    if (axis == x->shape.rank)
        return device_take(y->data, x->data, first, device_walk_over(y, strides, 1), size, stream);
    const device_rows_along from = device_rows_of(x, axis), to = device_rows_of(y, axis);
    return device_copy_rows(y->data, to.bytes, (const char *)x->data + first * size, from.bytes, to.bytes, to.rows, stream);
}

/* Elements of dx, along each of its dimensions: a place in dy, or none where it was not taken. */
struct slice_window {
    int64_t start[SODET_MAX_RANK], size[SODET_MAX_RANK], stride[SODET_MAX_RANK];
};
template <class U, class I> static __global__ void put_back(U *dx, const U *dy, int64_t n, device_steps<I, 1> dims, slice_window w, U zero)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        I rest = (I)i;
        int64_t at = 0;
        bool inside = true;
        SODET_UNROLL
        for (int d = SODET_MAX_RANK - 1; d >= 0; d--)
            if ((uint32_t)d < dims.rank) {
                const I q = dims.dim[d].quotient(rest);
                const int64_t c = (int64_t)(rest - q * dims.dim[d].by) - w.start[d];
                rest = q;
                inside = inside && c >= 0 && c < w.size[d];
                at += c * w.stride[d];
            }
        dx[i] = inside ? dy[at] : zero;
    }
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    static const uint32_t last[4] = {0, 2, 3, 1};
    const sodet_slice_attr *t = (const sodet_slice_attr *)a->attr;
    const sodet_tensor *dy = &a->in[0], *dx = &a->out[0];
    const int64_t n = sodet_elements(&dx->shape);
    int64_t stride[SODET_MAX_RANK] = {};
    slice_window w = {};
    if (n == 0)
        return 0;
    device_strides(dy, stride);
    return device_index(n, [&](auto zero) {
        typedef decltype(zero) I;
        device_steps<I, 1> dims = {};
        dims.rank = dx->shape.rank;
        for (uint32_t i = 0; i < dims.rank; i++) { /* in the order of memory */
            const uint32_t d = dx->layout == SODET_CHANNELS_LAST ? last[i] : i;
            device_divide_by(&dims.dim[i], dx->shape.dim[d]);
            w.start[i] = t->start[d];
            w.size[i] = t->size[d];
            w.stride[i] = stride[d];
        }
        const unsigned blocks = device_blocks(n, DEVICE_THREADS);
        if (device_size(dx->shape.dtype) == 4)
            DEVICE_TRY((put_back<float, I>), blocks, DEVICE_THREADS, 0, stream, (float *)dx->data, (const float *)dy->data, n, dims, w,
                       0.0f);
        else
            DEVICE_TRY((put_back<uint16_t, I>), blocks, DEVICE_THREADS, 0, stream, (uint16_t *)dx->data, (const uint16_t *)dy->data, n,
                       dims, w, (uint16_t)0);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_slice[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
                                                         {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, backward}};
