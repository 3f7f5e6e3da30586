/* Along the last axis a row is a run of memory; along another one, STRIP neighbours are taken together. */
#include "kernels/softmax/softmax.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

enum { ROWS = 32, STRIP = 64, SHORT = 128 };

typedef struct sizes {
    int64_t outer, length, inner;
} sizes;

static sizes sizes_of(const sodet_kernel_args *a)
{
    const sodet_shape *s = &a->in[0].shape;
    uint32_t axis = ((const sodet_softmax_attr *)a->attr)->axis;
    sizes z = {1, s->dim[axis], 1};
    for (uint32_t i = 0; i < axis; i++)
        z.outer *= s->dim[i];
    for (uint32_t i = axis + 1; i < s->rank; i++)
        z.inner *= s->dim[i];
    return z;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    sizes z = sizes_of(a);
    return z.inner == 1 ? (z.outer + ROWS - 1) / ROWS : z.outer * ((z.inner + STRIP - 1) / STRIP);
}

SODET_INLINE float sum_of(const float *x, int64_t n)
{
    vector16 all = {0};
    float lane[16], rest = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        all += vector16_at(x + i);
    for (; i < n; i++)
        rest += x[i];
    vector16_at(lane) = all;
    for (int half = 8; half; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] += lane[k + half];
    return lane[0] + rest;
}

/* NaN wins. */
SODET_INLINE float top_of(const float *x, int64_t n)
{
    float lane[16], top = x[0];
    int64_t i = 0;
    for (int k = 0; k < 16; k++)
        lane[k] = x[0];
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            lane[k] = x[i + k] <= lane[k] ? lane[k] : x[i + k];
    for (; i < n; i++)
        top = x[i] <= top ? top : x[i];
    for (int half = 8; half; half /= 2)
        for (int k = 0; k < half; k++)
            lane[k] = lane[k + half] <= lane[k] ? lane[k] : lane[k + half];
    return lane[0] <= top ? top : lane[0];
}

/* A short row in whole vectors: what is behind it counts as -infinity, whose exponential is 0. */
SODET_INLINE void forward_short(float *y, const float *x, int64_t length)
{
    float row[SHORT], top;
    const int64_t padded = (length + 15) / 16 * 16;
    for (int64_t c = padded - 16; c < padded; c++)
        row[c] = -INFINITY;
    memcpy(row, x, (size_t)length * sizeof *row);
    top = top_of(row, padded);
    for (int64_t c = 0; c < padded; c += 16)
        for (int k = 0; k < 16; k++)
            row[c + k] = vector_exp(row[c + k] - top);
    const float scale = 1 / sum_of(row, padded);
    for (int64_t c = 0; c < padded; c++)
        row[c] *= scale;
    memcpy(y, row, (size_t)length * sizeof *row);
}

SODET_CLONES
static void forward_rows(float *y, const float *x, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++, x += length, y += length) {
        if (length <= SHORT) {
            forward_short(y, x, length);
            continue;
        }
        float top = top_of(x, length);
        for (int64_t c = 0; c < length; c++)
            y[c] = vector_exp(x[c] - top);
        float scale = 1 / sum_of(y, length);
        for (int64_t c = 0; c < length; c++)
            y[c] *= scale;
    }
}

SODET_CLONES
static void forward_strip(float *y, const float *x, int64_t length, int64_t inner, int64_t n)
{
    float top[STRIP], sum[STRIP];
    for (int64_t i = 0; i < n; i++)
        top[i] = -INFINITY, sum[i] = 0;
    for (int64_t c = 0; c < length; c++)
        for (int64_t i = 0; i < n; i++)
            top[i] = x[c * inner + i] <= top[i] ? top[i] : x[c * inner + i];
    for (int64_t c = 0; c < length; c++)
        for (int64_t i = 0; i < n; i++) {
            float e = vector_exp(x[c * inner + i] - top[i]);
            y[c * inner + i] = e;
            sum[i] += e;
        }
    for (int64_t i = 0; i < n; i++)
        sum[i] = 1 / sum[i];
    for (int64_t c = 0; c < length; c++)
        for (int64_t i = 0; i < n; i++)
            y[c * inner + i] *= sum[i];
}

SODET_CLONES
static void backward_rows(float *dx, const float *y, const float *dy, int64_t rows, int64_t length)
{
    for (int64_t r = 0; r < rows; r++, dx += length, y += length, dy += length) {
        for (int64_t c = 0; c < length; c++)
            dx[c] = y[c] * dy[c];
        float dot = sum_of(dx, length);
        for (int64_t c = 0; c < length; c++)
            dx[c] = y[c] * (dy[c] - dot);
    }
}

SODET_CLONES
static void backward_strip(float *dx, const float *y, const float *dy, int64_t length, int64_t inner, int64_t n)
{
    float dot[STRIP];
    for (int64_t i = 0; i < n; i++)
        dot[i] = 0;
    for (int64_t c = 0; c < length; c++)
        for (int64_t i = 0; i < n; i++)
            dot[i] += y[c * inner + i] * dy[c * inner + i];
    for (int64_t c = 0; c < length; c++)
        for (int64_t i = 0; i < n; i++)
            dx[c * inner + i] = y[c * inner + i] * (dy[c * inner + i] - dot[i]);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sizes z = sizes_of(a);
    const float *in = a->in[0].data, *dy = a->part ? a->in[1].data : NULL;
    float *out = a->out[0].data;
    if (z.length == 0)
        return;
    if (z.inner == 1) {
        int64_t first = begin * ROWS, last = end * ROWS < z.outer ? end * ROWS : z.outer, at = first * z.length;
        if (a->part)
            backward_rows(out + at, in + at, dy + at, last - first, z.length);
        else
            forward_rows(out + at, in + at, last - first, z.length);
        return;
    }
    const int64_t strips = (z.inner + STRIP - 1) / STRIP;
    for (int64_t u = begin; u < end; u++) {
        int64_t i = u % strips * STRIP, at = u / strips * z.length * z.inner + i, n = z.inner - i < STRIP ? z.inner - i : STRIP;
        if (a->part)
            backward_strip(out + at, in + at, dy + at, z.length, z.inner, n);
        else
            forward_strip(out + at, in + at, z.length, z.inner, n);
    }
}

const sodet_cpu_kernel sodet_cpu_softmax[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run},
                                              {.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
