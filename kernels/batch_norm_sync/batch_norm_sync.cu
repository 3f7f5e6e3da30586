#include "kernels/batch_norm_sync/batch_norm_sync.h"
#include "kernels/device_channels.h"

static __global__ void finish_own(float *own, const device_moments *part, int64_t blocks, int64_t channels)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_moments m;
    if (device_channel_total(&m, part, blocks, channels, c)) {
        own[c] = (float)m.count;
        own[channels + c] = (float)m.mean;
        own[2 * channels + c] = (float)m.squares;
    }
}

/* In the order of the formula: every device does the same and so gets the same bits. */
static __global__ void merge_ranks(float *mean_out, float *r_out, float *count_out, float *new_mean, float *new_var, const float *all,
                                   const float *old_mean, const float *old_var, int64_t ranks, int64_t channels, sodet_batch_norm_attr attr)
{
    for (int64_t c = device_thread(); c < channels; c += device_threads()) {
        const double keep = 1 - (double)attr.momentum;
        double count = 0, mean = 0, squares = 0;
        for (int64_t i = 0; i < ranks; i++) {
            count += all[3 * i * channels + c];
            mean += (double)all[3 * i * channels + c] * all[(3 * i + 1) * channels + c];
        }
        mean = count > 0 ? mean / count : 0;
        for (int64_t i = 0; i < ranks; i++) {
            const double d = all[(3 * i + 1) * channels + c] - mean;
            squares += all[(3 * i + 2) * channels + c] + all[3 * i * channels + c] * d * d;
        }
        const double var = count > 1 ? squares / (count - 1) : squares;
        mean_out[c] = (float)mean;
        r_out[c] = (float)(count > 0 ? 1 / sqrt(squares / count + (double)attr.epsilon) : 0);
        new_mean[c] = count > 0 ? (float)(keep * old_mean[c] + (double)attr.momentum * mean) : old_mean[c];
        new_var[c] = count > 0 ? (float)(keep * old_var[c] + (double)attr.momentum * var) : old_var[c];
        if (c == 0)
            *count_out = (float)count;
    }
}

static __global__ void forward_coefficients(device_coefficients *table, const float *scale, const float *shift, const float *mean,
                                            const float *r, int64_t channels)
{
    for (int64_t c = device_thread(); c < channels; c += device_threads()) {
        const device_coefficients own = {mean[c], scale[c] * r[c], shift[c], 0, 0};
        table[c] = own;
    }
}

static __global__ void finish_sums(float *sums, const device_slopes *part, int64_t blocks, int64_t channels)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_slopes s;
    if (device_channel_total(&s, part, blocks, channels, c)) {
        sums[c] = (float)s.plain;
        sums[channels + c] = (float)s.along;
    }
}

static __global__ void backward_coefficients(device_coefficients *table, float *dscale, float *dshift, const float *scale,
                                             const float *mean, const float *r, const float *count, const float *all, const float *own,
                                             int64_t channels)
{
    for (int64_t c = device_thread(); c < channels; c += device_threads()) {
        const device_coefficients k = {mean[c], 1, r[c] * all[channels + c] / *count, all[c] / *count, scale[c] * r[c]};
        table[c] = k;
        dscale[c] = own[channels + c];
        dshift[c] = own[c];
    }
}

/* ---- parts ---- */
static uint64_t scratch_sums(const sodet_kernel_args *a)
{
    const size_t sum = a->part == 0 ? sizeof(device_moments) : sizeof(device_slopes);
    return (uint64_t)device_channel_parts(device_map_of(&a->in[0], false)) * sum;
}

static uint64_t scratch_table(const sodet_kernel_args *a)
{
    return (uint64_t)a->in[0].shape.dim[1] * sizeof(device_coefficients);
}

static int statistics(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    device_moments *part = (device_moments *)a->scratch;
    int64_t blocks;
    const int error = device_moments_launch(&a->in[0], m, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(finish_own, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[0].data,
               (const device_moments *)part, blocks, m.channels);
    return 0;
}

static int merge(const sodet_kernel_args *a, void *stream)
{
    const int64_t channels = a->in[0].shape.dim[2];
    DEVICE_TRY(merge_ranks, device_blocks(channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (float *)a->out[1].data, (float *)a->out[2].data, (float *)a->out[3].data, (float *)a->out[4].data,
               (const float *)a->in[0].data, (const float *)a->in[1].data, (const float *)a->in[2].data, a->in[0].shape.dim[0], channels,
               *(const sodet_batch_norm_attr *)a->attr);
    return 0;
}

static int apply(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    device_coefficients *table = (device_coefficients *)a->scratch;
    DEVICE_TRY(forward_coefficients, device_blocks(m.channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, table,
               (const float *)a->in[1].data, (const float *)a->in[2].data, (const float *)a->in[3].data, (const float *)a->in[4].data,
               m.channels);
    return device_pass_launch(&a->out[0], &a->in[0], NULL, m, table, stream);
}

static int backward_sums(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    device_slopes *part = (device_slopes *)a->scratch;
    int64_t blocks;
    const int error = device_slopes_launch(&a->in[0], &a->in[1], (const float *)a->in[2].data, (const float *)a->in[3].data, NULL, m, 0,
                                           part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(finish_sums, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[0].data,
               (const device_slopes *)part, blocks, m.channels);
    return 0;
}

static int backward_data(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    device_coefficients *table = (device_coefficients *)a->scratch;
    DEVICE_TRY(backward_coefficients, device_blocks(m.channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, table, (float *)a->out[1].data,
               (float *)a->out[2].data, (const float *)a->in[2].data, (const float *)a->in[3].data, (const float *)a->in[4].data,
               (const float *)a->in[5].data, (const float *)a->in[6].data, (const float *)a->in[7].data, m.channels);
    return device_pass_launch(&a->out[0], &a->in[0], &a->in[1], m, table, stream);
}

enum { MAPS = SODET_CUDA_LAST | SODET_CUDA_NARROW };
extern "C" const sodet_cuda_kernel sodet_cuda_batch_norm_sync[] = {{sizeof(sodet_cuda_kernel), MAPS, scratch_sums, statistics},
                                                                   {sizeof(sodet_cuda_kernel), MAPS, NULL, merge},
                                                                   {sizeof(sodet_cuda_kernel), MAPS, scratch_table, apply},
                                                                   {sizeof(sodet_cuda_kernel), MAPS, scratch_sums, backward_sums},
                                                                   {sizeof(sodet_cuda_kernel), MAPS, scratch_table, backward_data}};
