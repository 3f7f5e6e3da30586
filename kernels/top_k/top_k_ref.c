#include "kernels/reference.h"

static int before(SODET_REAL a, SODET_REAL b)
{
    return isnan(b) ? !isnan(a) : a > b;
}

/* Each element is put where it belongs in the list of the best so far, behind its equals. */
static void forward(const sodet_kernel_args *a)
{
    const sodet_shape *shape = &a->in[0].shape;
    int64_t n = shape->dim[shape->rank - 1], k = ((const sodet_top_k_attr *)a->attr)->k, rows = ref_span(&a->in[0], 0, shape->rank - 1);
    for (int64_t r = 0; r < rows; r++) {
        const SODET_REAL *x = ref_in(a, 0) + r * n;
        SODET_REAL *value = ref_out(a, 0) + r * k;
        int32_t *index = (int32_t *)a->out[1].data + r * k;
        int64_t have = 0;
        for (int64_t i = 0; i < n; i++) {
            if (have == k && (k == 0 || !before(x[i], value[k - 1])))
                continue;
            int64_t at = have < k ? have++ : k - 1;
            for (; at > 0 && before(x[i], value[at - 1]); at--) {
                value[at] = value[at - 1];
                index[at] = index[at - 1];
            }
            value[at] = x[i];
            index[at] = (int32_t)i;
        }
    }
}

const sodet_ref_kernel SODET_REF(top_k)[] = {forward};
