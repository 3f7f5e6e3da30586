#include "kernels/device_rows.h"
#include "kernels/softmax/softmax.h"

/* Row (o, i) is x[o, :, i]; its numbers lie `inner` apart. A NaN, which the maximum passes by, makes the sum NaN. */
static __global__ void softmax_forward(float *y, const float *x, int64_t rows, int64_t length, int64_t inner, int lanes)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < rows;
        const int64_t base = here ? r.row / inner * length * inner + r.row % inner : 0;
        float top = -INFINITY;
        for (int64_t c = r.lane; here && c < length; c += lanes)
            top = fmaxf(top, x[base + c * inner]);
        top = device_lanes_most(top, lanes);
        double sum = 0;
        for (int64_t c = r.lane; here && c < length; c += lanes)
            sum += expf(x[base + c * inner] - top);
        const float by = (float)(1 / device_lanes_sum(sum, lanes));
        for (int64_t c = r.lane; here && c < length; c += lanes)
            y[base + c * inner] = expf(x[base + c * inner] - top) * by;
    }
}

static __global__ void softmax_backward(float *dx, const float *y, const float *dy, int64_t rows, int64_t length, int64_t inner, int lanes)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < rows;
        const int64_t base = here ? r.row / inner * length * inner + r.row % inner : 0;
        double dot = 0;
        for (int64_t c = r.lane; here && c < length; c += lanes)
            dot += (double)y[base + c * inner] * dy[base + c * inner];
        const float mean = (float)device_lanes_sum(dot, lanes);
        for (int64_t c = r.lane; here && c < length; c += lanes)
            dx[base + c * inner] = y[base + c * inner] * (dy[base + c * inner] - mean);
    }
}

struct softmax_sizes {
    int64_t rows, length, inner;
    int lanes;
};

static softmax_sizes sizes_of(const sodet_kernel_args *a)
{
    const sodet_shape *s = &a->in[0].shape;
    const uint32_t axis = ((const sodet_softmax_attr *)a->attr)->axis;
    softmax_sizes z = {1, s->dim[axis], 1, 1};
    for (uint32_t i = 0; i < s->rank; i++) {
        z.rows *= i == axis ? 1 : s->dim[i];
        z.inner *= i > axis ? s->dim[i] : 1;
    }
    z.lanes = z.inner == 1 ? device_lanes(z.length) : 1; /* else neighbouring rows are neighbours in memory */
    return z;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const softmax_sizes z = sizes_of(a);
    if (z.rows == 0 || z.length == 0)
        return 0;
    DEVICE_TRY(softmax_forward, device_blocks(z.rows * z.lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, z.rows, z.length, z.inner, z.lanes);
    return 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const softmax_sizes z = sizes_of(a);
    if (z.rows == 0 || z.length == 0)
        return 0;
    DEVICE_TRY(softmax_backward, device_blocks(z.rows * z.lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const float *)a->in[1].data, z.rows, z.length, z.inner, z.lanes);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_softmax[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward},
                                                           {sizeof(sodet_cuda_kernel), 0, NULL, backward}};
