#include "kernels/reference.h"
#include "kernels/update.h"

static void forward(const sodet_kernel_args *a)
{
    const sodet_square_sum_attr *attr = a->attr;
    const SODET_REAL *x = ref_in(a, 0);
    const int32_t *start = a->in[1].data, *group = a->in[2].data;
    SODET_REAL *sum = ref_out(a, 0), *finite = ref_out(a, 1);
    double total[SODET_SQUARE_SUM_GROUPS] = {0};
    *finite = 1;
    for (int64_t i = 0; i < a->in[0].shape.dim[0]; i++) {
        int32_t at = start ? group[update_segment(start, a->in[1].shape.dim[0], i)] : 0;
        if (!isfinite(x[i]))
            *finite = 0;
        if (at >= 0 && at < (int32_t)attr->groups)
            total[at] += (double)x[i] * (double)x[i];
    }
    for (uint32_t k = 0; k < attr->groups; k++)
        sum[k] = (SODET_REAL)total[k];
}

const sodet_ref_kernel SODET_REF(square_sum)[] = {forward};
