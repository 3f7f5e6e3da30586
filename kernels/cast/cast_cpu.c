#include "kernels/kernels.h"
#include "kernels/vector.h"

SODET_CLONES
static void to_int(int32_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] != x[i] ? 0.0f : x[i];
        float low = v < -2147483648.0f ? -2147483648.0f : v;
        y[i] = v >= 2147483648.0f ? INT32_MAX : (int32_t)(low >= 2147483648.0f ? 0.0f : low);
    }
}

SODET_CLONES
static void to_real(float *y, const int32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return vector_pieces(&a->out[0]);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t first, last;
    vector_range(&a->out[0], begin, end, &first, &last);
    if (a->in[0].shape.dtype == a->out[0].shape.dtype)
        memcpy((char *)a->out[0].data + first * 4, (const char *)a->in[0].data + first * 4, (size_t)(last - first) * 4);
    else if (a->out[0].shape.dtype == SODET_I32)
        to_int((int32_t *)a->out[0].data + first, (const float *)a->in[0].data + first, last - first);
    else
        to_real((float *)a->out[0].data + first, (const int32_t *)a->in[0].data + first, last - first);
}

const sodet_cpu_kernel sodet_cpu_cast[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
