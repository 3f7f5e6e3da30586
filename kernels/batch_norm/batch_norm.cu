#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device_channels.h"

/* Of each channel: r, and the coefficients of y = scale r (x - mean) + shift, or without a shift those of dx = scale r dy. */
static __global__ void coefficients(device_coefficients *table, float *r, const float *scale, const float *shift, const float *mean,
                                    const float *var, int64_t channels, float epsilon)
{
    for (int64_t c = device_thread(); c < channels; c += device_threads()) {
        const double by = 1 / sqrt((double)var[c] + (double)epsilon);
        r[c] = (float)by;
        const device_coefficients own = {shift ? mean[c] : 0, (float)(scale[c] * by), shift ? shift[c] : 0, 0, 0};
        table[c] = own;
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

/* ---- scratch ---- */
struct places {
    device_coefficients *table;
    device_slopes *part;
    float *r;
    uint64_t bytes;
};

static places places_of(const sodet_kernel_args *a)
{
    const device_map m = device_map_of(&a->in[0], false);
    const int64_t parts = a->part == 1 ? device_channel_parts(m) : 0;
    places p;
    p.table = (device_coefficients *)a->scratch;
    p.part = (device_slopes *)(p.table + m.channels);
    p.r = (float *)(p.part + parts);
    p.bytes = (uint64_t)m.channels * (sizeof *p.table + sizeof *p.r) + (uint64_t)parts * sizeof *p.part;
    return p;
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return places_of(a).bytes;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    const places p = places_of(a);
    DEVICE_TRY(coefficients, device_blocks(m.channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, p.table, p.r,
               (const float *)a->in[1].data, (const float *)a->in[2].data, (const float *)a->in[3].data, (const float *)a->in[4].data,
               m.channels, ((const sodet_batch_norm_attr *)a->attr)->epsilon);
    return device_pass_launch(&a->out[0], &a->in[0], NULL, m, p.table, stream);
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const device_map m = device_map_of(&a->in[0], false);
    const places p = places_of(a);
    const float *mean = (const float *)a->in[3].data;
    int64_t blocks;
    DEVICE_TRY(coefficients, device_blocks(m.channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, p.table, p.r,
               (const float *)a->in[2].data, (const float *)NULL, mean, (const float *)a->in[4].data, m.channels,
               ((const sodet_batch_norm_attr *)a->attr)->epsilon);
    const int error = device_slopes_launch(&a->in[0], &a->in[1], mean, p.r, NULL, m, 0, p.part, &blocks, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(write_slopes, device_merge_grid(m.channels), dim3(DEVICE_MERGE_X, DEVICE_MERGE_Y), 0, stream, (float *)a->out[1].data,
               (float *)a->out[2].data, (const device_slopes *)p.part, blocks, m.channels);
    return device_pass_launch(&a->out[0], &a->in[1], NULL, m, p.table, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_batch_norm[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, scratch, backward}};
