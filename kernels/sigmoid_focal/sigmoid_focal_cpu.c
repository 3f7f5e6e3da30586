/* Nearly every (anchor, class) is a negative: a row is made as if all of it were, in one vector loop, and the anchor's own class is then made anew.
 * A unit is a group of rows of about BUFFER elements. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define BUFFER 4096

static int64_t group(int64_t classes)
{
    return classes >= BUFFER ? 1 : BUFFER / classes;
}

enum { GAMMA_ANY, GAMMA_0, GAMMA_1, GAMMA_2 };

static int kind_of(float gamma)
{
    return gamma == 0 ? GAMMA_0 : gamma == 1 ? GAMMA_1 : gamma == 2 ? GAMMA_2 : GAMMA_ANY;
}

/* q^gamma; `kind` is a constant where this is compiled in */
SODET_INLINE float power(float q, float gamma, int kind)
{
    return kind == GAMMA_2 ? q * q : kind == GAMMA_1 ? q : kind == GAMMA_0 ? 1 : vector_exp(gamma * vector_log(q));
}

/* Of a class that is not the anchor's own: q = 1 - p, p, and -ln p. No branches, so that loops become vectors:
 * ln(1 + e) = 2 artanh(s), s = e / (2 + e) <= 1/3, whose series is cut off where it is below float's rounding. */
SODET_INLINE void negative(float x, float *q, float *p, float *minus_log)
{
    float e = vector_exp(-fabsf(x)), r = 1.0f / (1.0f + e), s = e / (2.0f + e), z = s * s;
    float t = 1.0f / 15.0f;
    t = t * z + 1.0f / 13.0f;
    t = t * z + 1.0f / 11.0f;
    t = t * z + 1.0f / 9.0f;
    t = t * z + 1.0f / 7.0f;
    t = t * z + 1.0f / 5.0f;
    t = t * z + 1.0f / 3.0f;
    float top = x > 0 ? 1.0f : e, rest = x > 0 ? e : 1.0f, ramp = x > 0 ? x : 0.0f;
    *q = top * r;
    *p = rest * r;
    *minus_log = ramp + (2.0f * s + 2.0f * s * (t * z));
}

SODET_INLINE void loss_of(float *y, const float *x, int64_t n, float weight, float gamma, int kind)
{
    for (int64_t i = 0; i < n; i++) {
        float q, p, l;
        negative(x[i], &q, &p, &l);
        y[i] = weight * power(q, gamma, kind) * l;
    }
}

SODET_INLINE void slope_of(float *dx, const float *x, int64_t n, float weight, float gamma, float dy, int kind)
{
    for (int64_t i = 0; i < n; i++) {
        float q, p, l;
        negative(x[i], &q, &p, &l);
        dx[i] = dy * (weight * power(q, gamma, kind) * (gamma * p * l + q));
    }
}

SODET_CLONES
static void loss_row(float *y, const float *x, int64_t n, float weight, float gamma)
{
    switch (kind_of(gamma)) {
    case GAMMA_2:
        loss_of(y, x, n, weight, gamma, GAMMA_2);
        break;
    case GAMMA_1:
        loss_of(y, x, n, weight, gamma, GAMMA_1);
        break;
    case GAMMA_0:
        loss_of(y, x, n, weight, gamma, GAMMA_0);
        break;
    default:
        loss_of(y, x, n, weight, gamma, GAMMA_ANY);
    }
}

SODET_CLONES
static void slope_row(float *dx, const float *x, int64_t n, float weight, float gamma, float dy)
{
    switch (kind_of(gamma)) {
    case GAMMA_2:
        slope_of(dx, x, n, weight, gamma, dy, GAMMA_2);
        break;
    case GAMMA_1:
        slope_of(dx, x, n, weight, gamma, dy, GAMMA_1);
        break;
    case GAMMA_0:
        slope_of(dx, x, n, weight, gamma, dy, GAMMA_0);
        break;
    default:
        slope_of(dx, x, n, weight, gamma, dy, GAMMA_ANY);
    }
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    int64_t n = group(a->in[0].shape.dim[a->in[0].shape.rank - 1]);
    return (sodet_elements(&a->out[0].shape) + n - 1) / n;
}

static double sum_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    return sum;
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_sigmoid_focal_attr *attr = a->attr;
    int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape), size = group(classes);
    float buffer[BUFFER], *loss = a->out[0].data, gamma = (float)attr->gamma;
    float own = attr->alpha < 0 ? 1 : (float)attr->alpha, other = attr->alpha < 0 ? 1 : (float)(1 - attr->alpha);
    const int32_t *label = a->in[1].data;
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * size, n = first + size < rows ? size : rows - first;
        const float *x = (const float *)a->in[0].data + first * classes;
        if (size > 1)
            loss_row(buffer, x, n * classes, other, gamma);
        for (int64_t r = 0; r < n; r++) {
            int32_t at = label[first + r];
            double sum = 0, mine = 0;
            if (at < -1) {
                loss[first + r] = 0;
                continue;
            }
            if (at >= 0 && at < classes) {
                float one, negated = -x[r * classes + at];
                loss_row(&one, &negated, 1, own, gamma);
                mine = (double)one;
                if (size > 1)
                    buffer[r * classes + at] = 0;
            }
            if (size > 1)
                sum = sum_of(buffer + r * classes, classes);
            for (int64_t k = 0; size == 1 && k < classes; k += BUFFER) {
                int64_t m = classes - k < BUFFER ? classes - k : BUFFER;
                loss_row(buffer, x + k, m, other, gamma);
                if (at >= k && at < k + m)
                    buffer[at - k] = 0;
                sum += sum_of(buffer, m);
            }
            loss[first + r] = (float)(sum + mine);
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
    const sodet_sigmoid_focal_attr *attr = a->attr;
    int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape), size = group(classes);
    const float *dy = a->in[0].data;
    const int32_t *label = a->in[2].data;
    float gamma = (float)attr->gamma, own = attr->alpha < 0 ? 1 : (float)attr->alpha,
          other = attr->alpha < 0 ? 1 : (float)(1 - attr->alpha);
    int64_t last = end * size < rows ? end * size : rows;
    for (int64_t r = begin * size; r < last; r++) {
        const float *x = (const float *)a->in[1].data + r * classes;
        float *dx = (float *)a->out[0].data + r * classes;
        if (label[r] < -1 || dy[r] == 0) {
            memset(dx, 0, (size_t)classes * sizeof *dx);
            continue;
        }
        slope_row(dx, x, classes, other, gamma, dy[r]);
        if (label[r] >= 0 && label[r] < classes) {
            float negated = -x[label[r]];
            slope_row(&dx[label[r]], &negated, 1, own, gamma, -dy[r]);
        }
    }
}

const sodet_cpu_kernel sodet_cpu_sigmoid_focal[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
