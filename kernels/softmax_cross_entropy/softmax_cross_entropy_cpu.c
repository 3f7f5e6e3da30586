/* A unit is a group of rows of about BUFFER elements: their exponentials are made in one vector loop, whatever the number of classes. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define BUFFER 4096

static int64_t group(int64_t classes)
{
    return classes >= BUFFER ? 1 : BUFFER / classes;
}

SODET_CLONES
static float max_of(const float *x, int64_t n)
{
    float m = x[0];
    for (int64_t k = 1; k < n; k++)
        m = x[k] > m ? x[k] : m;
    return m;
}

/* y = exp(x - shift), y may be x; returns the sum */
SODET_CLONES
static double exp_row(float *y, const float *x, int64_t n, float shift)
{
    double sum = 0;
    for (int64_t first = 0; first < n; first += 256) {
        int64_t last = first + 256 < n ? first + 256 : n;
        for (int64_t k = first; k < last; k++)
            y[k] = vector_exp(x[k] - shift);
        for (int64_t k = first; k < last; k++)
            sum += (double)y[k];
    }
    return sum;
}

SODET_CLONES
static void exp_all(float *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = vector_exp(x[k]);
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    int64_t n = group(a->in[0].shape.dim[a->in[0].shape.rank - 1]);
    return (sodet_elements(&a->out[0].shape) + n - 1) / n;
}

/* One row in pieces of the buffer. */
static double long_row(const float *x, int64_t classes, float m)
{
    float piece[BUFFER];
    double sum = 0;
    for (int64_t k = 0; k < classes; k += BUFFER)
        sum += exp_row(piece, x + k, classes - k < BUFFER ? classes - k : BUFFER, m);
    return sum;
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape), size = group(classes);
    const int32_t *label = a->in[1].data;
    float *loss = a->out[0].data, buffer[BUFFER], most[BUFFER];
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * size, n = first + size < rows ? size : rows - first;
        const float *x = (const float *)a->in[0].data + first * classes;
        for (int64_t r = 0; r < n; r++) {
            float m = most[r] = max_of(x + r * classes, classes);
            for (int64_t k = 0; size > 1 && k < classes; k++)
                buffer[r * classes + k] = x[r * classes + k] - m;
        }
        if (size > 1)
            exp_all(buffer, n * classes);
        for (int64_t r = 0; r < n; r++) {
            int32_t at = label[first + r];
            double sum = 0;
            if (at < 0 || at >= classes) {
                loss[first + r] = 0;
                continue;
            }
            if (size == 1)
                sum = long_row(x, classes, most[r]);
            for (int64_t k = 0; size > 1 && k < classes; k++)
                sum += (double)buffer[r * classes + k];
            loss[first + r] = (float)(log(sum) - ((double)x[r * classes + at] - (double)most[r]));
        }
    }
}

static int64_t backward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    int64_t n = group(a->in[1].shape.dim[a->in[1].shape.rank - 1]);
    return (sodet_elements(&a->in[0].shape) + n - 1) / n;
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape), size = group(classes);
    const float *dy = a->in[0].data;
    const int32_t *label = a->in[2].data;
    int64_t last = end * size < rows ? end * size : rows;
    for (int64_t r = begin * size; r < last; r++) {
        const float *x = (const float *)a->in[1].data + r * classes;
        float *dx = (float *)a->out[0].data + r * classes;
        if (label[r] < 0 || label[r] >= classes || dy[r] == 0) {
            memset(dx, 0, (size_t)classes * sizeof *dx);
            continue;
        }
        double sum = exp_row(dx, x, classes, max_of(x, classes));
        float scale = (float)((double)dy[r] / sum);
        for (int64_t k = 0; k < classes; k++)
            dx[k] *= scale;
        dx[label[r]] -= dy[r];
    }
}

const sodet_cpu_kernel sodet_cpu_softmax_cross_entropy[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
