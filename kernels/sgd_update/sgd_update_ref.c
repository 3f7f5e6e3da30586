#include "kernels/reference.h"
#include "kernels/update.h"

static void forward(const sodet_kernel_args *a)
{
    const sodet_sgd_update_attr *attr = a->attr;
    SODET_REAL *p = ref_out(a, 0), *v = ref_out(a, 1);
    const SODET_REAL *grad = ref_in(a, 1), *factor = ref_in(a, 4), *hyper = ref_in(a, 5), *scale = ref_in(a, 6), *ok = ref_in(a, 7);
    const int32_t *start = a->in[3].data;
    int64_t n = a->in[0].shape.dim[0], segments = a->in[3].shape.dim[0];
    double lr = (double)hyper[0], momentum = (double)hyper[1], decay = (double)hyper[2];
    if (ok && !(*ok != 0 && !isnan(*ok)))
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t s = update_segment(start, segments, i);
        double g = (scale ? (double)*scale : 1) * (double)grad[i] + decay * (double)factor[2 * s + 1] * (double)p[i];
        if (v) {
            v[i] = (SODET_REAL)(momentum * (double)v[i] + g);
            g = attr->nesterov ? g + momentum * (double)v[i] : (double)v[i];
        }
        p[i] = (SODET_REAL)((double)p[i] - lr * (double)factor[2 * s] * g);
    }
}

const sodet_ref_kernel SODET_REF(sgd_update)[] = {forward};
