#include "kernels/reference.h"

static int32_t cut(double x)
{
    return isnan(x) ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static void forward(const sodet_kernel_args *a)
{
    int from_int = a->in[0].shape.dtype == SODET_I32, to_int = a->out[0].shape.dtype == SODET_I32;
    const int32_t *k = a->in[0].data;
    const SODET_REAL *x = a->in[0].data;
    for (int64_t i = 0; i < sodet_elements(&a->out[0].shape); i++) {
        if (to_int)
            ((int32_t *)a->out[0].data)[i] = from_int ? k[i] : cut((double)x[i]);
        else
            ((SODET_REAL *)a->out[0].data)[i] = from_int ? (SODET_REAL)k[i] : x[i];
    }
}

const sodet_ref_kernel SODET_REF(cast)[] = {forward};
