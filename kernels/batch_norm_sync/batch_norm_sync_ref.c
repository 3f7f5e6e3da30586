/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/batch_norm_sync/batch_norm_sync.h"
#include "kernels/reference.h"

typedef struct sizes {
    int64_t batch, channels, area;
} sizes;

static sizes sizes_of(const sodet_tensor *t)
{
    return (sizes){t->shape.dim[0], t->shape.dim[1], ref_span(t, 2, t->shape.rank)};
}

static void statistics(const sodet_kernel_args *k)
{
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *own = ref_out(k, 0);
    const sizes s = sizes_of(&k->in[0]);
    const int64_t m = s.batch * s.area;
    for (int64_t c = 0; c < s.channels; c++) {
        double mean = 0, squares = 0;
        for (int64_t n = 0; n < s.batch; n++)
            for (int64_t i = 0; i < s.area; i++)
                mean += (double)x[(n * s.channels + c) * s.area + i];
        mean = m > 0 ? mean / (double)m : 0;
        for (int64_t n = 0; n < s.batch; n++)
            for (int64_t i = 0; i < s.area; i++) {
                double d = (double)x[(n * s.channels + c) * s.area + i] - mean;
                squares += d * d;
            }
        own[c] = (SODET_REAL)m;
        own[s.channels + c] = (SODET_REAL)mean;
        own[2 * s.channels + c] = (SODET_REAL)squares;
    }
}

static void merge(const sodet_kernel_args *k)
{
    const sodet_batch_norm_attr *a = k->attr;
    const SODET_REAL *all = ref_in(k, 0), *old_mean = ref_in(k, 1), *old_var = ref_in(k, 2);
    SODET_REAL *mean_out = ref_out(k, 0), *r_out = ref_out(k, 1), *count_out = ref_out(k, 2), *new_mean = ref_out(k, 3),
               *new_var = ref_out(k, 4);
    const int64_t ranks = k->in[0].shape.dim[0], channels = k->in[0].shape.dim[2];
    for (int64_t c = 0; c < channels; c++) {
        double count = 0, mean = 0, squares = 0, keep = 1 - (double)a->momentum;
        for (int64_t i = 0; i < ranks; i++) {
            count += (double)all[3 * i * channels + c];
            mean += (double)all[3 * i * channels + c] * (double)all[(3 * i + 1) * channels + c];
        }
        mean = count > 0 ? mean / count : 0;
        for (int64_t i = 0; i < ranks; i++) {
            double d = (double)all[(3 * i + 1) * channels + c] - mean;
            squares += (double)all[(3 * i + 2) * channels + c] + (double)all[3 * i * channels + c] * d * d;
        }
        double var = count > 1 ? squares / (count - 1) : squares;
        mean_out[c] = (SODET_REAL)mean;
        r_out[c] = (SODET_REAL)(count > 0 ? 1 / sqrt(squares / count + (double)a->epsilon) : 0);
        count_out[0] = (SODET_REAL)count;
        new_mean[c] = count > 0 ? (SODET_REAL)(keep * (double)old_mean[c] + (double)a->momentum * mean) : old_mean[c];
        new_var[c] = count > 0 ? (SODET_REAL)(keep * (double)old_var[c] + (double)a->momentum * var) : old_var[c];
    }
}

static void apply(const sodet_kernel_args *k)
{
    const SODET_REAL *x = ref_in(k, 0), *scale = ref_in(k, 1), *shift = ref_in(k, 2), *mean = ref_in(k, 3), *r = ref_in(k, 4);
    SODET_REAL *y = ref_out(k, 0);
    const sizes s = sizes_of(&k->in[0]);
    for (int64_t n = 0; n < s.batch; n++)
        for (int64_t c = 0; c < s.channels; c++)
            for (int64_t i = 0; i < s.area; i++) {
                int64_t at = (n * s.channels + c) * s.area + i;
                y[at] = (SODET_REAL)((double)scale[c] * ((double)x[at] - (double)mean[c]) * (double)r[c] + (double)shift[c]);
            }
}

static void backward_sums(const sodet_kernel_args *k)
{
    const SODET_REAL *x = ref_in(k, 0), *dy = ref_in(k, 1), *mean = ref_in(k, 2), *r = ref_in(k, 3);
    SODET_REAL *sums = ref_out(k, 0);
    const sizes s = sizes_of(&k->in[0]);
    for (int64_t c = 0; c < s.channels; c++) {
        double plain = 0, along = 0;
        for (int64_t n = 0; n < s.batch; n++)
            for (int64_t i = 0; i < s.area; i++) {
                int64_t at = (n * s.channels + c) * s.area + i;
                plain += (double)dy[at];
                along += (double)dy[at] * ((double)x[at] - (double)mean[c]) * (double)r[c];
            }
        sums[c] = (SODET_REAL)plain;
        sums[s.channels + c] = (SODET_REAL)along;
    }
}

static void backward_data(const sodet_kernel_args *k)
{
    const SODET_REAL *x = ref_in(k, 0), *dy = ref_in(k, 1), *scale = ref_in(k, 2), *mean = ref_in(k, 3), *r = ref_in(k, 4),
                     *count = ref_in(k, 5), *all = ref_in(k, 6), *own = ref_in(k, 7);
    SODET_REAL *dx = ref_out(k, 0), *dscale = ref_out(k, 1), *dshift = ref_out(k, 2);
    const sizes s = sizes_of(&k->in[0]);
    for (int64_t c = 0; c < s.channels; c++) {
        for (int64_t n = 0; n < s.batch; n++)
            for (int64_t i = 0; i < s.area; i++) {
                int64_t at = (n * s.channels + c) * s.area + i;
                double hat = ((double)x[at] - (double)mean[c]) * (double)r[c], m = (double)count[0];
                dx[at] = (SODET_REAL)((double)scale[c] * (double)r[c] *
                                      ((double)dy[at] - (double)all[c] / m - hat * (double)all[s.channels + c] / m));
            }
        dscale[c] = own[s.channels + c];
        dshift[c] = own[c];
    }
}

const sodet_ref_kernel SODET_REF(batch_norm_sync)[] = {statistics, merge, apply, backward_sums, backward_data};
