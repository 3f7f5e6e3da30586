/* Dimensions of the same fate are merged, so that x is a nest of alternately kept and reduced ones. If the innermost is reduced, an output is a
 * sum over contiguous runs, and a unit is one output; if it is kept, rows are added, and a unit is a strip of LANES columns. */
#include "kernels/broadcast.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define LANES 64

typedef struct nest {
    uint32_t n;
    int64_t dim[SODET_MAX_RANK + 1], step[SODET_MAX_RANK + 1]; /* step: in x, in elements */
    int reduced[SODET_MAX_RANK + 1];
    int64_t inner;       /* length of the innermost if it is kept, else 1 */
    int64_t run;         /* length of the innermost if it is reduced, else 1 */
    int64_t kept, count; /* products over the others: outputs (strips apart), runs or rows of each */
} nest;

static nest nest_of(const sodet_shape *x, uint32_t axes)
{
    nest t = {.inner = 1, .run = 1, .kept = 1, .count = 1};
    int64_t step = 1;
    for (uint32_t k = x->rank; k-- > 0; step *= x->dim[k]) {
        int reduced = (int)(axes >> k & 1);
        if (x->dim[k] == 1)
            continue;
        if (t.n > 0 && t.reduced[t.n - 1] == reduced)
            t.dim[t.n - 1] *= x->dim[k];
        else {
            t.dim[t.n] = x->dim[k];
            t.step[t.n] = step;
            t.reduced[t.n++] = reduced;
        }
    }
    for (uint32_t k = 0; k < t.n; k++) {
        if (k == 0)
            *(t.reduced[0] ? &t.run : &t.inner) = t.dim[0];
        else
            *(t.reduced[k] ? &t.count : &t.kept) *= t.dim[k];
    }
    return t;
}

/* Place of item `i` of the dimensions of one fate, the innermost dimension apart. */
static int64_t place(const nest *t, int reduced, int64_t i)
{
    int64_t at = 0;
    for (uint32_t k = 1; k < t->n; k++)
        if (t->reduced[k] == reduced) {
            at += i % t->dim[k] * t->step[k];
            i /= t->dim[k];
        }
    return at;
}

static int64_t strips(const nest *t)
{
    return (t->inner + LANES - 1) / LANES;
}

SODET_CLONES
static double sum_run(const float *x, int64_t n)
{
    double acc[16] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            acc[j] += (double)x[i + j];
    for (; i < n; i++)
        sum += (double)x[i];
    for (int j = 0; j < 16; j++)
        sum += acc[j];
    return sum;
}

SODET_CLONES
static float max_run(const float *x, int64_t n, float m)
{
    float acc[16];
    for (int j = 0; j < 16; j++)
        acc[j] = m;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) {
            float v = x[i + j];
            acc[j] = v > acc[j] || v != v ? v : acc[j];
        }
    for (; i < n; i++)
        acc[0] = x[i] > acc[0] || x[i] != x[i] ? x[i] : acc[0];
    for (int j = 0; j < 16; j++)
        m = acc[j] > m || acc[j] != acc[j] ? acc[j] : m;
    return m;
}

SODET_CLONES
static void add_row(double *acc, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] += (double)x[i];
}

SODET_CLONES
static void max_row(float *acc, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = x[i] > acc[i] || x[i] != x[i] ? x[i] : acc[i];
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    const sodet_reduce_attr *attr = a->attr;
    nest t = nest_of(&a->in[0].shape, attr->axes);
    return t.kept * strips(&t);
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_reduce_attr *attr = a->attr;
    const float *x = a->in[0].data;
    float *y = a->out[0].data;
    nest t = nest_of(&a->in[0].shape, attr->axes);
    double scale = attr->kind == SODET_REDUCE_MEAN ? 1.0 / (double)(t.run * t.count) : 1;
    int64_t width = strips(&t);
    for (int64_t u = begin; u < end; u++) {
        int64_t r = u / width, first = u % width * LANES, n = t.inner - first < LANES ? t.inner - first : LANES;
        const float *from = x + place(&t, 0, r) + first;
        float *to = y + r * t.inner + first;
        if (t.inner == 1 && attr->kind == SODET_REDUCE_MAX) {
            float m = -INFINITY;
            for (int64_t c = 0; c < t.count; c++)
                m = max_run(from + place(&t, 1, c), t.run, m);
            *to = m;
        } else if (t.inner == 1) {
            double sum = 0;
            for (int64_t c = 0; c < t.count; c++)
                sum += sum_run(from + place(&t, 1, c), t.run);
            *to = (float)(sum * scale);
        } else if (attr->kind == SODET_REDUCE_MAX) {
            for (int64_t i = 0; i < n; i++)
                to[i] = -INFINITY;
            for (int64_t c = 0; c < t.count; c++)
                max_row(to, from + place(&t, 1, c), n);
        } else {
            double acc[LANES] = {0};
            for (int64_t c = 0; c < t.count; c++)
                add_row(acc, from + place(&t, 1, c), n);
            for (int64_t i = 0; i < n; i++)
                to[i] = (float)(acc[i] * scale);
        }
    }
}

static void fill_row(float *y, const float *x, int64_t stride, float scale, int64_t n)
{
    if (stride == 0) {
        float v = x[0] * scale;
        for (int64_t i = 0; i < n; i++)
            y[i] = v;
    } else
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] * scale;
}

/* dy as if its reduced dimensions were there with size 1 */
static sodet_tensor kept_view(const sodet_kernel_args *a)
{
    const sodet_reduce_attr *attr = a->attr;
    sodet_tensor t = a->in[0];
    t.shape = attr->x;
    for (uint32_t i = 0; i < attr->x.rank; i++)
        if (attr->axes >> i & 1)
            t.shape.dim[i] = 1;
    return t;
}

static int64_t backward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    const sodet_reduce_attr *attr = a->attr;
    if (attr->kind == SODET_REDUCE_MAX)
        return sodet_elements(&a->in[0].shape);
    sodet_tensor dy = kept_view(a);
    broadcast_walk w = broadcast_begin(&attr->x, &dy, 1);
    return w.rank == 1 ? vector_pieces(&a->out[0]) : w.rows;
}

static void max_backward(const sodet_kernel_args *a, int64_t begin, int64_t end)
{
    const sodet_reduce_attr *attr = a->attr;
    const float *dy = a->in[0].data, *x = a->in[1].data, *y = a->in[2].data;
    float *dx = a->out[0].data;
    nest t = nest_of(&attr->x, attr->axes);
    for (int64_t r = begin; r < end; r++) {
        int64_t base = place(&t, 0, r / t.inner) + r % t.inner;
        int found = 0;
        for (int64_t c = 0; c < t.count; c++)
            for (int64_t i = base + place(&t, 1, c), j = 0; j < t.run; i++, j++) {
                int here = !found && (x[i] == y[r] || (x[i] != x[i] && y[r] != y[r]));
                dx[i] = here ? dy[r] : 0;
                found |= here;
            }
    }
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_reduce_attr *attr = a->attr;
    if (attr->kind == SODET_REDUCE_MAX) {
        max_backward(a, begin, end);
        return;
    }
    sodet_tensor dy = kept_view(a);
    broadcast_walk w = broadcast_begin(&attr->x, &dy, 1);
    int64_t results = sodet_elements(&dy.shape), elements = sodet_elements(&attr->x);
    float scale = attr->kind == SODET_REDUCE_MEAN && elements ? (float)((double)results / (double)elements) : 1;
    const float *from = a->in[0].data;
    float *to = a->out[0].data;
    int64_t n = w.dim[w.rank - 1], stride = w.stride[0][w.rank - 1], at[OP_BROADCAST_MOST];
    if (w.rank == 1) {
        int64_t first, last;
        vector_range(&a->out[0], begin, end, &first, &last);
        fill_row(to + first, from + first * stride, stride, scale, last - first);
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        broadcast_row(&w, r, at);
        fill_row(to + r * n, from + at[0], stride, scale, n);
    }
}

const sodet_cpu_kernel sodet_cpu_reduce[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
