#include "kernels/device_flat.h"
#include "kernels/smooth_l1/smooth_l1.h"

static __global__ void smooth_l1_forward(float *loss, const float *x, const float *target, int64_t rows, int64_t width, float beta)
{
    for (int64_t r = device_thread(); r < rows; r += device_threads()) {
        double sum = 0;
        for (int64_t d = 0; d < width; d++) {
            const float e = fabsf(x[r * width + d] - target[r * width + d]);
            sum += e < beta ? e * e / (2 * beta) : e - beta / 2;
        }
        loss[r] = (float)sum;
    }
}

template <class I>
static __global__ void smooth_l1_backward(float *dx, const float *dloss, const float *x, const float *target, int64_t n,
                                          device_divider<I> width, float beta)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const float dy = dloss[width.quotient((I)i)], e = x[i] - target[i];
        const float slope = fabsf(e) < beta ? e / beta : e > 0 ? 1.0f : e < 0 ? -1.0f : e;
        dx[i] = dy == 0 ? 0 : dy * slope;
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t width = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    if (rows == 0)
        return 0;
    DEVICE_TRY(smooth_l1_forward, device_blocks(rows, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const float *)a->in[1].data, rows, width,
               (float)((const sodet_smooth_l1_attr *)a->attr)->beta);
    return 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const int64_t width = a->in[1].shape.dim[a->in[1].shape.rank - 1], n = sodet_elements(&a->in[1].shape);
    if (n == 0)
        return 0;
    return device_index(n, [&](auto zero) {
        typedef decltype(zero) I;
        device_divider<I> by;
        device_divide_by(&by, width);
        DEVICE_TRY((smooth_l1_backward<I>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
                   (const float *)a->in[0].data, (const float *)a->in[1].data, (const float *)a->in[2].data, n, by,
                   (float)((const sodet_smooth_l1_attr *)a->attr)->beta);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_smooth_l1[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward},
                                                             {sizeof(sodet_cuda_kernel), 0, NULL, backward}};
