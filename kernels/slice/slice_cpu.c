/* A unit is a row along the last dimension of the larger tensor's loops; elements have four bytes. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

/* Trailing dimensions that are taken whole are merged into the row. */
typedef struct rows {
    uint32_t rank;               /* dimensions before the row */
    int64_t length, x_row, from; /* elements of y's row and of x's, and where the block begins in x's row */
} rows;

static rows rows_of(const sodet_shape *x, const sodet_slice_attr *attr)
{
    rows r = {.rank = x->rank, .length = 1, .x_row = 1};
    while (r.rank > 0) {
        uint32_t k = --r.rank;
        r.from = attr->start[k] * r.x_row;
        r.length *= attr->size[k];
        r.x_row *= x->dim[k];
        if (attr->size[k] != x->dim[k])
            break;
    }
    return r;
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    rows r = rows_of(&a->in[0].shape, a->attr);
    int64_t n = 1;
    for (uint32_t k = 0; k < r.rank; k++)
        n *= a->out[0].shape.dim[k];
    return n;
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_slice_attr *attr = a->attr;
    const sodet_shape *x = &a->in[0].shape;
    rows r = rows_of(x, attr);
    for (int64_t u = begin; u < end; u++) {
        int64_t rest = u, at = 0, step = 1;
        for (uint32_t k = r.rank; k-- > 0; step *= x->dim[k]) {
            at += (rest % attr->size[k] + attr->start[k]) * step;
            rest /= attr->size[k];
        }
        memcpy((float *)a->out[0].data + u * r.length, (const float *)a->in[0].data + at * r.x_row + r.from,
               (size_t)r.length * sizeof(float));
    }
}

static int64_t backward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    const sodet_slice_attr *attr = a->attr;
    rows r = rows_of(&attr->x, attr);
    int64_t n = 1;
    for (uint32_t k = 0; k < r.rank; k++)
        n *= attr->x.dim[k];
    return n;
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_slice_attr *attr = a->attr;
    rows r = rows_of(&attr->x, attr);
    for (int64_t u = begin; u < end; u++) {
        float *row = (float *)a->out[0].data + u * r.x_row;
        int64_t rest = u, at = 0, step = 1;
        int inside = 1;
        for (uint32_t k = r.rank; k-- > 0; step *= attr->size[k]) {
            int64_t c = rest % attr->x.dim[k] - attr->start[k];
            rest /= attr->x.dim[k];
            inside = inside && c >= 0 && c < attr->size[k];
            at += c * step;
        }
        memset(row, 0, (size_t)r.x_row * sizeof(float));
        if (inside)
            memcpy(row + r.from, (const float *)a->in[0].data + at * r.length, (size_t)r.length * sizeof(float));
    }
}

const sodet_cpu_kernel sodet_cpu_slice[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
