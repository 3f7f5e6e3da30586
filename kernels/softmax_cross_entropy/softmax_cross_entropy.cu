#include "kernels/device_rows.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

/* In every lane of the row: its largest number and log(sum exp(x - largest)); NaN in a row makes the latter NaN. */
static __device__ __forceinline__ float log_sum(const float *x, int64_t classes, const device_row &r, int lanes, bool here, float *most)
{
    float top = -INFINITY;
    double sum = 0;
    for (int64_t k = r.lane; here && k < classes; k += lanes)
        top = fmaxf(top, x[r.row * classes + k]);
    top = device_lanes_most(top, lanes);
    for (int64_t k = r.lane; here && k < classes; k += lanes)
        sum += expf(x[r.row * classes + k] - top);
    *most = top;
    return logf((float)device_lanes_sum(sum, lanes));
}

static __global__ void cross_entropy_forward(float *loss, const float *x, const int32_t *label, int64_t rows, int64_t classes, int lanes)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < rows;
        float top;
        const float l = log_sum(x, classes, r, lanes, here, &top);
        if (here && r.lane == 0) {
            const int32_t own = label[r.row];
            loss[r.row] = own < 0 || own >= classes ? 0 : l - (x[r.row * classes + own] - top);
        }
    }
}

static __global__ void cross_entropy_backward(float *dx, const float *dloss, const float *x, const int32_t *label, int64_t rows,
                                              int64_t classes, int lanes)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < rows;
        float top;
        const float l = log_sum(x, classes, r, lanes, here, &top);
        if (!here)
            continue;
        const float dy = dloss[r.row];
        const int32_t own = label[r.row];
        const bool none = own < 0 || own >= classes || dy == 0;
        for (int64_t k = r.lane; k < classes; k += lanes)
            dx[r.row * classes + k] = none ? 0 : dy * (expf(x[r.row * classes + k] - top - l) - (k == own ? 1.0f : 0.0f));
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    const int lanes = device_lanes(classes);
    if (rows == 0)
        return 0;
    DEVICE_TRY(cross_entropy_forward, device_blocks(rows * lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const int32_t *)a->in[1].data, rows, classes, lanes);
    return 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape);
    const int lanes = device_lanes(classes);
    if (rows == 0)
        return 0;
    DEVICE_TRY(cross_entropy_backward, device_blocks(rows * lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const float *)a->in[1].data, (const int32_t *)a->in[2].data, rows, classes, lanes);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_softmax_cross_entropy[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward},
                                                                         {sizeof(sodet_cuda_kernel), 0, NULL, backward}};
