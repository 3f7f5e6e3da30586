#include "kernels/reference.h"
#include "kernels/update.h"

static void forward(const sodet_kernel_args *a)
{
    const sodet_adam_update_attr *attr = a->attr;
    SODET_REAL *p = ref_out(a, 0), *m = ref_out(a, 1), *v = ref_out(a, 2);
    const SODET_REAL *grad = ref_in(a, 1), *factor = ref_in(a, 5), *hyper = ref_in(a, 6), *scale = ref_in(a, 7), *ok = ref_in(a, 8);
    const int32_t *start = a->in[4].data;
    int64_t n = a->in[0].shape.dim[0], segments = a->in[4].shape.dim[0];
    double beta1 = (double)hyper[1], beta2 = (double)hyper[2], epsilon = (double)hyper[3], c1 = (double)hyper[5], c2 = (double)hyper[6];
    if (ok && !(*ok != 0 && !isnan(*ok)))
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t s = update_segment(start, segments, i);
        double lr = (double)hyper[0] * (double)factor[2 * s], decay = (double)hyper[4] * (double)factor[2 * s + 1];
        double g = (scale ? (double)*scale : 1) * (double)grad[i], at = (double)p[i];
        if (attr->decoupled)
            at *= 1 - lr * decay;
        else
            g += decay * at;
        m[i] = (SODET_REAL)((double)m[i] + (1 - beta1) * (g - (double)m[i]));
        v[i] = (SODET_REAL)(beta2 * (double)v[i] + (1 - beta2) * g * g);
        p[i] = (SODET_REAL)(at - lr / c1 * (double)m[i] / (sqrt((double)v[i]) / sqrt(c2) + epsilon));
    }
}

const sodet_ref_kernel SODET_REF(adam_update)[] = {forward};
