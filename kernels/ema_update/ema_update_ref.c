#include "kernels/reference.h"

static void forward(const sodet_kernel_args *a)
{
    SODET_REAL *average = ref_out(a, 0);
    const SODET_REAL *p = ref_in(a, 1), *ok = ref_in(a, 3);
    double decay = (double)*ref_in(a, 2);
    if (ok && !(*ok != 0 && !isnan(*ok)))
        return;
    for (int64_t i = 0; i < a->in[0].shape.dim[0]; i++)
        average[i] = decay == 0 ? p[i] : (SODET_REAL)(decay * (double)average[i] + (1 - decay) * (double)p[i]);
}

const sodet_ref_kernel SODET_REF(ema_update)[] = {forward};
