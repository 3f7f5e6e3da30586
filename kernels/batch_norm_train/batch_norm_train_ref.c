/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/batch_norm_train/batch_norm_train.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_batch_norm_attr *a = k->attr;
    const SODET_REAL *x = ref_in(k, 0), *scale = ref_in(k, 1), *shift = ref_in(k, 2), *old_mean = ref_in(k, 3), *old_var = ref_in(k, 4);
    SODET_REAL *y = ref_out(k, 0), *mean_out = ref_out(k, 1), *r_out = ref_out(k, 2), *new_mean = ref_out(k, 3), *new_var = ref_out(k, 4);
    const sodet_tensor *t = &k->in[0];
    const int64_t batch = t->shape.dim[0], channels = t->shape.dim[1], area = ref_span(t, 2, t->shape.rank), m = batch * area;
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, var = 0, keep = 1 - (double)a->momentum;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++)
                mean += (double)x[(n * channels + c) * area + i];
        mean = m > 0 ? mean / (double)m : 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++) {
                double d = (double)x[(n * channels + c) * area + i] - mean;
                var += d * d;
            }
        var = m > 0 ? var / (double)m : 0;
        double r = m > 0 ? 1 / sqrt(var + (double)a->epsilon) : 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++) {
                int64_t at = (n * channels + c) * area + i;
                y[at] = (SODET_REAL)((double)scale[c] * ((double)x[at] - mean) * r + (double)shift[c]);
            }
        mean_out[c] = (SODET_REAL)mean;
        r_out[c] = (SODET_REAL)r;
        if (m > 1)
            var *= (double)m / (double)(m - 1);
        new_mean[c] = m > 0 ? (SODET_REAL)(keep * (double)old_mean[c] + (double)a->momentum * mean) : old_mean[c];
        new_var[c] = m > 0 ? (SODET_REAL)(keep * (double)old_var[c] + (double)a->momentum * var) : old_var[c];
    }
}

static void backward(const sodet_kernel_args *k)
{
    const SODET_REAL *x = ref_in(k, 0), *dy = ref_in(k, 1), *scale = ref_in(k, 2), *mean = ref_in(k, 3), *r = ref_in(k, 4);
    SODET_REAL *dx = ref_out(k, 0), *dscale = ref_out(k, 1), *dshift = ref_out(k, 2);
    const sodet_tensor *t = &k->in[0];
    const int64_t batch = t->shape.dim[0], channels = t->shape.dim[1], area = ref_span(t, 2, t->shape.rank), m = batch * area;
    for (int64_t c = 0; c < channels; c++) {
        double along = 0, plain = 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++) {
                int64_t at = (n * channels + c) * area + i;
                along += (double)dy[at] * ((double)x[at] - (double)mean[c]) * (double)r[c];
                plain += (double)dy[at];
            }
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < area; i++) {
                int64_t at = (n * channels + c) * area + i;
                double hat = ((double)x[at] - (double)mean[c]) * (double)r[c];
                dx[at] = (SODET_REAL)((double)scale[c] * (double)r[c] * ((double)dy[at] - plain / (double)m - hat * along / (double)m));
            }
        dscale[c] = (SODET_REAL)along;
        dshift[c] = (SODET_REAL)plain;
    }
}

const sodet_ref_kernel SODET_REF(batch_norm_train)[] = {forward, backward};
