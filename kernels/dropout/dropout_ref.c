/* The judge: element by element. */
#include "kernels/dropout/dropout.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_dropout_attr *a = k->attr;
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    const uint64_t stream = sodet_dropout_stream(k->seed, k->step, a->key);
    for (int64_t i = 0, n = sodet_elements(&k->in[0].shape); i < n; i++)
        y[i] = sodet_dropout_keeps(stream, (uint64_t)i, a->rate) ? (SODET_REAL)((double)x[i] / (1 - (double)a->rate)) : 0;
}

const sodet_ref_kernel SODET_REF(dropout)[] = {forward};
