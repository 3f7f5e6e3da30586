/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_batch_norm_attr *a = k->attr;
    const SODET_REAL *x = ref_in(k, 0), *scale = ref_in(k, 1), *shift = ref_in(k, 2), *mean = ref_in(k, 3), *var = ref_in(k, 4);
    SODET_REAL *y = ref_out(k, 0);
    const sodet_tensor *t = &k->in[0];
    const int64_t batch = t->shape.dim[0], channels = t->shape.dim[1], area = ref_span(t, 2, t->shape.rank);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t c = 0; c < channels; c++) {
            double r = 1 / sqrt((double)var[c] + (double)a->epsilon);
            for (int64_t i = 0; i < area; i++) {
                int64_t at = (n * channels + c) * area + i;
                y[at] = (SODET_REAL)((double)scale[c] * ((double)x[at] - (double)mean[c]) * r + (double)shift[c]);
            }
        }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_batch_norm_attr *a = k->attr;
    const SODET_REAL *x = ref_in(k, 0), *dy = ref_in(k, 1), *scale = ref_in(k, 2), *mean = ref_in(k, 3), *var = ref_in(k, 4);
    SODET_REAL *dx = ref_out(k, 0), *dscale = ref_out(k, 1), *dshift = ref_out(k, 2);
    const sodet_tensor *t = &k->in[0];
    const int64_t batch = t->shape.dim[0], channels = t->shape.dim[1], area = ref_span(t, 2, t->shape.rank);
    for (int64_t c = 0; c < channels; c++) {
        double r = 1 / sqrt((double)var[c] + (double)a->epsilon), along = 0, plain = 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++) {
                int64_t at = (n * channels + c) * area + i;
                along += (double)dy[at] * ((double)x[at] - (double)mean[c]) * r;
                plain += (double)dy[at];
                dx[at] = (SODET_REAL)((double)dy[at] * (double)scale[c] * r);
            }
        dscale[c] = (SODET_REAL)along;
        dshift[c] = (SODET_REAL)plain;
    }
}

const sodet_ref_kernel SODET_REF(batch_norm)[] = {forward, backward};
