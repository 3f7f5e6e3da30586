/* The judge: plain loops in the order of the formula. Never optimised. */
#include "kernels/activation/activation_math.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_activation_attr *a = k->attr;
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t i = 0, n = sodet_elements(&k->in[0].shape); i < n; i++)
        y[i] = (SODET_REAL)activation_of(a->kind, (double)a->slope, (double)x[i]);
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_activation_attr *a = k->attr;
    const SODET_REAL *r = ref_in(k, 0), *dy = ref_in(k, 1);
    SODET_REAL *dx = ref_out(k, 0);
    for (int64_t i = 0, n = sodet_elements(&k->in[0].shape); i < n; i++)
        dx[i] = (SODET_REAL)((double)dy[i] * activation_slope(a->kind, (double)a->slope, (double)r[i]));
}

const sodet_ref_kernel SODET_REF(activation)[] = {forward, backward};
