#include "kernels/device_rows.h"
#include "kernels/sigmoid_focal/sigmoid_focal.h"

struct focal {
    float alpha, gamma;
    __device__ __forceinline__ float weight(bool own) const
    {
        return alpha < 0 ? 1.0f : own ? alpha : 1 - alpha;
    }
    __device__ __forceinline__ float power(float q) const
    {
        return gamma == 2 ? q * q : gamma == 0 ? 1.0f : powf(q, gamma);
    }
};

/* Of one class, with s = x if it is the anchor's own, else -x: -ln p, and 1 - p. */
static __device__ __forceinline__ float minus_log_p(float s)
{
    return s > 0 ? log1pf(expf(-s)) : -s + log1pf(expf(s));
}

static __device__ __forceinline__ float one_minus_p(float s)
{
    return 1 / (1 + expf(s));
}

static __global__ void focal_forward(float *loss, const float *x, const int32_t *label, int64_t rows, int64_t classes, int lanes, focal f)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < rows;
        const int32_t own = here ? label[r.row] : -2;
        double sum = 0;
        for (int64_t c = r.lane; here && c < classes; c += lanes) {
            const float v = x[r.row * classes + c], s = c == own ? v : -v;
            sum += f.weight(c == own) * f.power(one_minus_p(s)) * minus_log_p(s);
        }
        sum = device_lanes_sum(sum, lanes);
        if (here && r.lane == 0)
            loss[r.row] = own < -1 ? 0 : (float)sum;
    }
}

template <class I>
static __global__ void focal_backward(float *dx, const float *dloss, const float *x, const int32_t *label, int64_t n,
                                      device_divider<I> classes, focal f)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const I row = classes.quotient((I)i);
        const int64_t c = i - (int64_t)row * classes.by;
        const bool own = c == label[row];
        const float dy = dloss[row], s = own ? x[i] : -x[i], q = one_minus_p(s);
        const float ds = -f.weight(own) * f.power(q) * (f.gamma * (1 - q) * minus_log_p(s) + q);
        dx[i] = label[row] < -1 || dy == 0 ? 0 : dy * (own ? ds : -ds);
    }
}

static focal focal_of(const sodet_kernel_args *a)
{
    const sodet_sigmoid_focal_attr *t = (const sodet_sigmoid_focal_attr *)a->attr;
    return focal{(float)t->alpha, (float)t->gamma};
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    const int lanes = device_lanes(classes);
    if (rows == 0)
        return 0;
    DEVICE_TRY(focal_forward, device_blocks(rows * lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const int32_t *)a->in[1].data, rows, classes, lanes, focal_of(a));
    return 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], n = sodet_elements(&a->in[1].shape);
    if (n == 0)
        return 0;
    return device_index(n, [&](auto zero) {
        typedef decltype(zero) I;
        device_divider<I> by;
        device_divide_by(&by, classes);
        DEVICE_TRY((focal_backward<I>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
                   (const float *)a->in[0].data, (const float *)a->in[1].data, (const int32_t *)a->in[2].data, n, by, focal_of(a));
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_sigmoid_focal[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward},
                                                                 {sizeof(sodet_cuda_kernel), 0, NULL, backward}};
