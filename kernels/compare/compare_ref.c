#include "kernels/broadcast.h"
#include "kernels/reference.h"

static double at(const sodet_tensor *t, const sodet_shape *out, int64_t i)
{
    int64_t k = broadcast_element(&t->shape, out, i);
    return t->shape.dtype == SODET_I32 ? (double)((const int32_t *)t->data)[k] : (double)((const SODET_REAL *)t->data)[k];
}

static int holds(uint32_t kind, double a, double b)
{
    switch (kind) {
    case SODET_COMPARE_GE:
        return a >= b;
    case SODET_COMPARE_GT:
        return a > b;
    case SODET_COMPARE_LE:
        return a <= b;
    case SODET_COMPARE_LT:
        return a < b;
    case SODET_COMPARE_EQ:
        return a == b;
    default:
        return a != b;
    }
}

static void forward(const sodet_kernel_args *a)
{
    SODET_REAL *y = ref_out(a, 0);
    const sodet_shape *shape = &a->out[0].shape;
    int64_t n = sodet_elements(shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = (SODET_REAL)holds(((const sodet_compare_attr *)a->attr)->kind, at(&a->in[0], shape, i), at(&a->in[1], shape, i));
}

const sodet_ref_kernel SODET_REF(compare)[] = {forward};
