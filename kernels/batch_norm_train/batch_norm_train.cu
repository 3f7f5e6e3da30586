#include "kernels/batch_norm_train/batch_norm_train.h"
#include "kernels/device_channels.h"

static __global__ void finish_moments(float *mean, float *r, float *new_mean, float *new_var, device_coefficients *table,
                                      const device_moments *part, const float *scale, const float *shift, const float *old_mean,
                                      const float *old_var, int64_t blocks, int64_t channels, sodet_batch_norm_attr attr)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_moments m;
    if (!device_channel_total(&m, part, blocks, channels, c))
        return;
    const double keep = 1 - (double)attr.momentum, var = m.count > 0 ? m.squares / m.count : 0;
    const double by = m.count > 0 ? 1 / sqrt(var + (double)attr.epsilon) : 0, unbiased = m.count > 1 ? m.squares / (m.count - 1) : var;
    const device_coefficients own = {(float)m.mean, (float)(scale[c] * by), shift[c], 0, 0};
    mean[c] = (float)m.mean;
    r[c] = (float)by;
    new_mean[c] = m.count > 0 ? (float)(keep * old_mean[c] + (double)attr.momentum * m.mean) : old_mean[c];
    new_var[c] = m.count > 0 ? (float)(keep * old_var[c] + (double)attr.momentum * unbiased) : old_var[c];
    table[c] = own;
}

static __global__ void finish_slopes(float *dscale, float *dshift, device_coefficients *table, const device_slopes *part,
                                     const float *scale, const float *mean, const float *r, int64_t blocks, int64_t channels, double count)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_slopes s;
    if (!device_channel_total(&s, part, blocks, channels, c))
        return;
    const double m = count > 0 ? count : 1;
    const device_coefficients own = {mean[c], 1, (float)(r[c] * s.along / m), (float)(s.plain / m), scale[c] * r[c]};
    dscale[c] = (float)s.along;
    dshift[c] = (float)s.plain;
    table[c] = own;
}

/* Scratch: the coefficients, then the sums of the blocks. */
static uint64_t scratch(const sodet_kernel_args *a)
{
    const device_map m = device_map_of(&a->in[0], false);
    const size_t sum = a->part == 0 ? sizeof(device_moments) : sizeof(device_slopes);
    return (uint64_t)m.channels * sizeof(device_coefficients) + (uint64_t)device_channel_parts(m) * sum;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    device_coefficients *table = (device_coefficients *)a->scratch;
    device_moments *part = (device_moments *)(table + m.channels);
    int64_t blocks;
    const int error = device_moments_launch(&a->in[0], m, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(finish_moments, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[1].data,
               (float *)a->out[2].data, (float *)a->out[3].data, (float *)a->out[4].data, table, (const device_moments *)part,
               (const float *)a->in[1].data, (const float *)a->in[2].data, (const float *)a->in[3].data, (const float *)a->in[4].data,
               blocks, m.channels, *(const sodet_batch_norm_attr *)a->attr);
    return device_pass_launch(&a->out[0], &a->in[0], NULL, m, table, stream);
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    const float *mean = (const float *)a->in[3].data, *r = (const float *)a->in[4].data;
    device_coefficients *table = (device_coefficients *)a->scratch;
    device_slopes *part = (device_slopes *)(table + m.channels);
    int64_t blocks;
    const int error = device_slopes_launch(&a->in[0], &a->in[1], mean, r, NULL, m, 0, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(finish_slopes, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[1].data,
               (float *)a->out[2].data, table, (const device_slopes *)part, (const float *)a->in[2].data, mean, r, blocks, m.channels,
               (double)m.rows);
    return device_pass_launch(&a->out[0], &a->in[0], &a->in[1], m, table, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_batch_norm_train[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, backward}};
