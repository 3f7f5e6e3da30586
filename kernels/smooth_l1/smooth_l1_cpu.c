/* A unit is GROUP rows. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define GROUP 512

SODET_CLONES
static void forward_rows(float *loss, const float *x, const float *t, int64_t rows, int64_t width, float beta)
{
    float half = beta > 0 ? 0.5f / beta : 0;
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        for (int64_t d = 0; d < width; d++) {
            float e = fabsf(x[r * width + d] - t[r * width + d]);
            sum += e < beta ? e * e * half : e - 0.5f * beta;
        }
        loss[r] = sum;
    }
}

SODET_CLONES
static void backward_rows(float *dx, const float *dy, const float *x, const float *t, int64_t rows, int64_t width, float beta)
{
    float slope = beta > 0 ? 1 / beta : 0;
    for (int64_t r = 0; r < rows; r++) {
        float g = dy[r];
        for (int64_t d = 0; d < width; d++) {
            float e = x[r * width + d] - t[r * width + d];
            float s = fabsf(e) < beta ? e * slope : e > 0 ? 1.0f : e < 0 ? -1.0f : e;
            dx[r * width + d] = g == 0 ? 0 : g * s;
        }
    }
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return (sodet_elements(&a->out[0].shape) + GROUP - 1) / GROUP;
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t width = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape), first = begin * GROUP;
    int64_t last = end * GROUP < rows ? end * GROUP : rows;
    forward_rows((float *)a->out[0].data + first, (const float *)a->in[0].data + first * width,
                 (const float *)a->in[1].data + first * width, last - first, width, (float)((const sodet_smooth_l1_attr *)a->attr)->beta);
}

static int64_t backward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return (sodet_elements(&a->in[0].shape) + GROUP - 1) / GROUP;
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t width = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape), first = begin * GROUP;
    int64_t last = end * GROUP < rows ? end * GROUP : rows;
    backward_rows((float *)a->out[0].data + first * width, (const float *)a->in[0].data + first,
                  (const float *)a->in[1].data + first * width, (const float *)a->in[2].data + first * width, last - first, width,
                  (float)((const sodet_smooth_l1_attr *)a->attr)->beta);
}

const sodet_cpu_kernel sodet_cpu_smooth_l1[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
