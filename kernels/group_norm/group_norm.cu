/* Sums of each image and channel; a block for each image and group then merges those of its channels. */
#include "kernels/device_channels.h"
#include "kernels/device_sum.h"
#include "kernels/group_norm/group_norm.h"

static __global__ void finish_moments(float *mean, float *r, device_coefficients *table, const device_moments *part, const float *scale,
                                      const float *shift, int64_t images, int64_t blocks, int64_t channels, int64_t groups, float epsilon)
{
    __shared__ float all[2];
    const int64_t in_group = channels / groups;
    for (int64_t k = blockIdx.x; k < images * groups; k += gridDim.x) {
        const int64_t image = k / groups, first = k % groups * in_group;
        device_moments own;
        own.clear();
        for (int64_t i = threadIdx.x; i < blocks * in_group; i += blockDim.x)
            own.merge(part[(image * blocks + i / in_group) * channels + first + i % in_group]);
        const device_moments total = device_block_sum(own);
        if (threadIdx.x == 0) {
            mean[k] = all[0] = (float)total.mean;
            r[k] = all[1] = (float)(1 / sqrt(total.squares / total.count + (double)epsilon));
        }
        __syncthreads();
        for (int64_t c = first + threadIdx.x; c < first + in_group; c += blockDim.x) {
            const device_coefficients of = {all[0], scale[c] * all[1], shift[c], 0, 0};
            table[image * channels + c] = of;
        }
    }
}

static __global__ void finish_slopes(device_coefficients *table, const device_slopes *part, const float *scale, const float *mean,
                                     const float *r, int64_t images, int64_t blocks, int64_t channels, int64_t groups, double area)
{
    __shared__ float all[2];
    const int64_t in_group = channels / groups;
    for (int64_t k = blockIdx.x; k < images * groups; k += gridDim.x) {
        const int64_t image = k / groups, first = k % groups * in_group;
        device_slopes own;
        own.clear();
        for (int64_t i = threadIdx.x; i < blocks * in_group; i += blockDim.x) {
            const int64_t c = first + i % in_group;
            const device_slopes s = part[(image * blocks + i / in_group) * channels + c];
            own.plain += scale[c] * s.plain;
            own.along += scale[c] * s.along;
        }
        const device_slopes total = device_block_sum(own);
        if (threadIdx.x == 0) {
            all[0] = (float)(r[k] * total.along / (area * (double)in_group));
            all[1] = (float)(total.plain / (area * (double)in_group));
        }
        __syncthreads();
        for (int64_t c = first + threadIdx.x; c < first + in_group; c += blockDim.x) {
            const device_coefficients of = {mean[k], scale[c], all[0], all[1], r[k]};
            table[image * channels + c] = of;
        }
    }
}

static __global__ void write_slopes(float *dscale, float *dshift, const device_slopes *part, int64_t blocks, int64_t channels)
{
    const int64_t c = (int64_t)blockIdx.x * DEVICE_MERGE_X + threadIdx.x;
    device_slopes total;
    if (device_channel_total(&total, part, blocks, channels, c)) {
        dscale[c] = (float)total.along;
        dshift[c] = (float)total.plain;
    }
}

/* Scratch: the coefficients of each image, then the sums of the blocks. */
static uint64_t scratch(const sodet_kernel_args *a)
{
    const device_map m = device_map_of(&a->in[0], true);
    const size_t sum = a->part == 0 ? sizeof(device_moments) : sizeof(device_slopes);
    return (uint64_t)(m.images * m.channels) * sizeof(device_coefficients) + (uint64_t)device_channel_parts(m) * sum;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_group_norm_attr *t = (const sodet_group_norm_attr *)a->attr;
    const device_map m = device_map_of(&a->in[0], true);
    device_coefficients *table = (device_coefficients *)a->scratch;
    device_moments *part = (device_moments *)(table + m.images * m.channels);
    int64_t blocks;
    if (m.images == 0)
        return 0;
    const int error = device_moments_launch(&a->in[0], m, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(finish_moments, device_blocks(m.images * t->groups, 1), DEVICE_THREADS, 0, stream, (float *)a->out[1].data,
               (float *)a->out[2].data, table, (const device_moments *)part, (const float *)a->in[1].data, (const float *)a->in[2].data,
               m.images, blocks, m.channels, (int64_t)t->groups, t->epsilon);
    return device_pass_launch(&a->out[0], &a->in[0], NULL, m, table, stream);
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_group_norm_attr *t = (const sodet_group_norm_attr *)a->attr;
    const device_map m = device_map_of(&a->in[0], true);
    const float *scale = (const float *)a->in[2].data, *mean = (const float *)a->in[3].data, *r = (const float *)a->in[4].data;
    device_coefficients *table = (device_coefficients *)a->scratch;
    device_slopes *part = (device_slopes *)(table + m.images * m.channels);
    int64_t blocks = 0;
    const int error =
        m.images == 0 ? 0 : device_slopes_launch(&a->in[0], &a->in[1], mean, r, NULL, m, m.channels / t->groups, part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(write_slopes, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[1].data,
               (float *)a->out[2].data, (const device_slopes *)part, m.images * blocks, m.channels);
    if (m.images == 0)
        return 0;
    DEVICE_TRY(finish_slopes, device_blocks(m.images * t->groups, 1), DEVICE_THREADS, 0, stream, table, (const device_slopes *)part, scale,
               mean, r, m.images, blocks, m.channels, (int64_t)t->groups, (double)m.rows);
    return device_pass_launch(&a->out[0], &a->in[0], &a->in[1], m, table, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_group_norm[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, backward}};
