#include "kernels/reference.h"

static int64_t count_of(const sodet_reduce_attr *attr, const sodet_shape *x)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < x->rank; k++)
        n *= attr->axes >> k & 1 ? x->dim[k] : 1;
    return n;
}

/* Steps through the elements of x that belong to one result, in row-major order: element `c` of them. base: where the result's first lies. */
static int64_t member(const sodet_reduce_attr *attr, const sodet_shape *x, int64_t base, int64_t c)
{
    int64_t at = base, step = 1;
    for (uint32_t k = x->rank; k-- > 0; step *= x->dim[k])
        if (attr->axes >> k & 1) {
            at += c % x->dim[k] * step;
            c /= x->dim[k];
        }
    return at;
}

/* Where the first element of result `r` lies. */
static int64_t base_of(const sodet_reduce_attr *attr, const sodet_shape *x, int64_t r)
{
    int64_t at = 0, step = 1;
    for (uint32_t k = x->rank; k-- > 0; step *= x->dim[k])
        if (!(attr->axes >> k & 1)) {
            at += r % x->dim[k] * step;
            r /= x->dim[k];
        }
    return at;
}

static void forward(const sodet_kernel_args *a)
{
    const sodet_reduce_attr *attr = a->attr;
    const sodet_shape *shape = &a->in[0].shape;
    const SODET_REAL *x = ref_in(a, 0);
    SODET_REAL *y = ref_out(a, 0);
    int64_t count = count_of(attr, shape), results = sodet_elements(&a->out[0].shape);
    for (int64_t r = 0; r < results; r++) {
        int64_t base = base_of(attr, shape, r);
        double sum = 0;
        for (int64_t c = 0; c < count; c++) {
            double v = (double)x[member(attr, shape, base, c)];
            if (attr->kind != SODET_REDUCE_MAX)
                sum += v;
            else if (c == 0 || v > sum || isnan(v))
                sum = v;
            if (attr->kind == SODET_REDUCE_MAX && isnan(sum))
                break;
        }
        y[r] = (SODET_REAL)(attr->kind == SODET_REDUCE_MEAN ? sum / (double)count : sum);
    }
}

static void backward(const sodet_kernel_args *a)
{
    const sodet_reduce_attr *attr = a->attr;
    const SODET_REAL *dy = ref_in(a, 0), *x = ref_in(a, 1), *y = ref_in(a, 2);
    SODET_REAL *dx = ref_out(a, 0);
    int64_t count = count_of(attr, &attr->x), results = sodet_elements(&a->in[0].shape);
    for (int64_t r = 0; r < results; r++) {
        int64_t base = base_of(attr, &attr->x, r);
        int found = 0;
        for (int64_t c = 0; c < count; c++) {
            int64_t i = member(attr, &attr->x, base, c);
            if (attr->kind == SODET_REDUCE_SUM)
                dx[i] = dy[r];
            else if (attr->kind == SODET_REDUCE_MEAN)
                dx[i] = (SODET_REAL)((double)dy[r] / (double)count);
            else {
                int here = !found && (x[i] == y[r] || (isnan(x[i]) && isnan(y[r])));
                dx[i] = here ? dy[r] : 0;
                found |= here;
            }
        }
    }
}

const sodet_ref_kernel SODET_REF(reduce)[] = {forward, backward};
