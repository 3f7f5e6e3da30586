#include "kernels/reference.h"

typedef struct sizes {
    int64_t batch, outer, rows, inner, take;
} sizes;

static sizes sizes_of(const sodet_gather_attr *attr, const sodet_shape *x, const sodet_tensor *index)
{
    sodet_tensor t = {.shape = *x};
    return (sizes){ref_span(&t, 0, attr->batch), ref_span(&t, attr->batch, attr->axis), x->dim[attr->axis],
                   ref_span(&t, attr->axis + 1, x->rank), ref_span(index, attr->batch, index->shape.rank)};
}

static void forward(const sodet_kernel_args *a)
{
    sizes s = sizes_of(a->attr, &a->in[0].shape, &a->in[1]);
    const int32_t *index = a->in[1].data;
    size_t size = ref_element_size(&a->in[0]), row = (size_t)s.inner * size;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t k = 0; k < s.take; k++) {
                int32_t r = index[b * s.take + k];
                char *to = (char *)a->out[0].data + (size_t)((b * s.outer + o) * s.take + k) * row;
                if (r >= 0 && r < s.rows)
                    memcpy(to, (const char *)a->in[0].data + (size_t)((b * s.outer + o) * s.rows + r) * row, row);
                else
                    memset(to, 0, row);
            }
}

static void backward(const sodet_kernel_args *a)
{
    const sodet_gather_attr *attr = a->attr;
    sizes s = sizes_of(attr, &attr->x, &a->in[1]);
    const int32_t *index = a->in[1].data;
    const SODET_REAL *dy = ref_in(a, 0);
    SODET_REAL *dx = ref_out(a, 0);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t o = 0; o < s.outer; o++)
            for (int64_t r = 0; r < s.rows; r++)
                for (int64_t i = 0; i < s.inner; i++) {
                    double sum = 0;
                    for (int64_t k = 0; k < s.take; k++)
                        if (index[b * s.take + k] == r)
                            sum += (double)dy[((b * s.outer + o) * s.take + k) * s.inner + i];
                    dx[((b * s.outer + o) * s.rows + r) * s.inner + i] = (SODET_REAL)sum;
                }
}

const sodet_ref_kernel SODET_REF(gather)[] = {forward, backward};
