#include "kernels/reference.h"

static SODET_REAL value(uint32_t kind, SODET_REAL real)
{
    double x = (double)real;
    switch (kind) {
    case SODET_UNARY_EXP:
        return (SODET_REAL)exp(x);
    case SODET_UNARY_LOG:
        return (SODET_REAL)log(x);
    case SODET_UNARY_SQRT:
        return (SODET_REAL)sqrt(x);
    case SODET_UNARY_ABS:
        return (SODET_REAL)fabs(x);
    case SODET_UNARY_NEG:
        return (SODET_REAL)-x;
    case SODET_UNARY_SQUARE:
        return (SODET_REAL)(x * x);
    case SODET_UNARY_RECIPROCAL:
        return (SODET_REAL)(1 / x);
    case SODET_UNARY_SIGN:
        return (SODET_REAL)(isnan(x) ? x : (double)((x > 0) - (x < 0)));
    default:
        return (SODET_REAL)floor(x);
    }
}

static void forward(const sodet_kernel_args *a)
{
    const SODET_REAL *x = ref_in(a, 0);
    SODET_REAL *y = ref_out(a, 0);
    int64_t n = sodet_elements(&a->out[0].shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = value(((const sodet_unary_attr *)a->attr)->kind, x[i]);
}

const sodet_ref_kernel SODET_REF(unary)[] = {forward};
