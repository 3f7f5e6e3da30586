#include "kernels/reference.h"

static void forward(const sodet_kernel_args *a)
{
    const sodet_slice_attr *attr = a->attr;
    const sodet_shape *x = &a->in[0].shape, *y = &a->out[0].shape;
    size_t size = ref_element_size(&a->in[0]);
    for (int64_t i = 0; i < sodet_elements(y); i++) {
        int64_t rest = i, at = 0, step = 1;
        for (uint32_t k = y->rank; k-- > 0; step *= x->dim[k]) {
            at += (rest % y->dim[k] + attr->start[k]) * step;
            rest /= y->dim[k];
        }
        memcpy((char *)a->out[0].data + (size_t)i * size, (const char *)a->in[0].data + (size_t)at * size, size);
    }
}

static void backward(const sodet_kernel_args *a)
{
    const sodet_slice_attr *attr = a->attr;
    const sodet_shape *x = &attr->x;
    const SODET_REAL *dy = ref_in(a, 0);
    SODET_REAL *dx = ref_out(a, 0);
    for (int64_t i = 0; i < sodet_elements(x); i++) {
        int64_t rest = i, at = 0, step = 1;
        int inside = 1;
        for (uint32_t k = x->rank; k-- > 0; step *= attr->size[k]) {
            int64_t c = rest % x->dim[k] - attr->start[k];
            rest /= x->dim[k];
            inside = inside && c >= 0 && c < attr->size[k];
            at += c * step;
        }
        dx[i] = inside ? dy[at] : 0;
    }
}

const sodet_ref_kernel SODET_REF(slice)[] = {forward, backward};
