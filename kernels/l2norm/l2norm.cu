/* A pixel's channels are a row: of the lanes of a warp where they are neighbours, else of one thread, whose neighbours have the next pixels. */
#include "kernels/device_channels.h"
#include "kernels/device_rows.h"
#include "kernels/l2norm/l2norm.h"

/* r, and in *along the factor s of the part of dx that lies along x. */
static __device__ __forceinline__ float reciprocal(const sodet_l2norm_attr &attr, double squares, float *along)
{
    const float q = (float)sqrt(squares), epsilon = attr.epsilon;
    float r;
    switch (attr.guard) {
    case SODET_L2NORM_ADD:
        r = 1 / (q + epsilon);
        *along = q > 0 ? r * r / q : 0;
        return r;
    case SODET_L2NORM_MAX:
        r = 1 / (q > epsilon ? q : epsilon);
        *along = q > epsilon ? r * r * r : 0;
        return r;
    default:
        r = (float)(1 / sqrt(squares + (double)epsilon));
        *along = r * r * r;
        return r;
    }
}

static __device__ __forceinline__ int64_t pixel(const device_map &m, int64_t row)
{
    return m.channel == 1 ? row * m.channels : row + row / m.area * m.jump;
}

template <class T>
static __global__ void l2norm_forward(T *y, const T *x, const float *scale, device_map m, int lanes, sodet_l2norm_attr attr)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, m.rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < m.rows;
        const int64_t base = here ? pixel(m, r.row) : 0;
        double squares = 0;
        for (int64_t c = r.lane; here && c < m.channels; c += lanes) {
            const float v = device_wide(x[base + c * m.channel]);
            squares += (double)v * v;
        }
        float along;
        const float by = reciprocal(attr, device_lanes_sum(squares, lanes), &along);
        for (int64_t c = r.lane; here && c < m.channels; c += lanes)
            device_set(y + base + c * m.channel, scale[c] * device_wide(x[base + c * m.channel]) * by);
    }
}

template <class T>
static __global__ void l2norm_backward(T *dx, float *of_row, const T *x, const float *scale, const T *dy, device_map m, int lanes,
                                       sodet_l2norm_attr attr)
{
    device_row r = device_row_of(lanes);
    for (; device_row_left(r.row, m.rows); r.row += device_row_step(lanes)) {
        const bool here = r.row < m.rows;
        const int64_t base = here ? pixel(m, r.row) : 0;
        double squares = 0, dot = 0;
        for (int64_t c = r.lane; here && c < m.channels; c += lanes) {
            const float v = device_wide(x[base + c * m.channel]);
            squares += (double)v * v;
            dot += (double)(scale[c] * device_wide(dy[base + c * m.channel])) * v;
        }
        float along;
        const float by = reciprocal(attr, device_lanes_sum(squares, lanes), &along);
        const float back = (float)(along * device_lanes_sum(dot, lanes));
        for (int64_t c = r.lane; here && c < m.channels; c += lanes) {
            const int64_t at = base + c * m.channel;
            device_set(dx + at, by * scale[c] * device_wide(dy[at]) - device_wide(x[at]) * back);
        }
        if (here && r.lane == 0)
            of_row[r.row] = by;
    }
}

static __global__ void write_scale(float *dscale, const device_slopes *part, int64_t blocks, int64_t channels)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_slopes total;
    if (device_channel_total(&total, part, blocks, channels, c))
        dscale[c] = (float)total.along;
}

/* Scratch: the sums of the blocks, then r of each pixel. */
static uint64_t scratch(const sodet_kernel_args *a)
{
    const device_map m = device_map_of(&a->in[0], false);
    return (uint64_t)device_channel_parts(m) * sizeof(device_slopes) + (uint64_t)m.rows * sizeof(float);
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    const int lanes = m.channel == 1 ? device_lanes(m.channels) : 1;
    if (m.rows == 0)
        return 0;
    return device_storage(a->in[0].shape.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        DEVICE_TRY((l2norm_forward<T>), device_blocks(m.rows * lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)a->out[0].data,
                   (const T *)a->in[0].data, (const float *)a->in[1].data, m, lanes, *(const sodet_l2norm_attr *)a->attr);
        return 0;
    });
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    const int lanes = m.channel == 1 ? device_lanes(m.channels) : 1;
    device_slopes *part = (device_slopes *)a->scratch;
    float *of_row = (float *)(part + device_channel_parts(m));
    int64_t blocks = 0;
    int error = m.rows == 0 ? 0 : device_storage(a->in[0].shape.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        DEVICE_TRY((l2norm_backward<T>), device_blocks(m.rows * lanes, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (T *)a->out[0].data,
                   of_row, (const T *)a->in[0].data, (const float *)a->in[1].data, (const T *)a->in[2].data, m, lanes,
                   *(const sodet_l2norm_attr *)a->attr);
        return 0;
    });
    if (error == 0)
        error = device_slopes_launch(&a->in[0], &a->in[2], NULL, NULL, of_row, m, 0, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(write_scale, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[1].data,
               (const device_slopes *)part, blocks, m.channels);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_l2norm[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, backward}};
