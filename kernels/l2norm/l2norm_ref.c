/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/l2norm/l2norm.h"
#include "kernels/reference.h"

/* r, and in *along the factor s of the part of dx that lies along x. */
static double reciprocal(const sodet_l2norm_attr *a, const SODET_REAL *x, int64_t channels, int64_t area, double *along)
{
    double squares = 0, epsilon = (double)a->epsilon;
    for (int64_t c = 0; c < channels; c++)
        squares += (double)x[c * area] * (double)x[c * area];
    double q = sqrt(squares), r;
    switch (a->guard) {
    case SODET_L2NORM_ADD:
        r = 1 / (q + epsilon);
        *along = q > 0 ? r * r / q : 0;
        return r;
    case SODET_L2NORM_MAX:
        r = 1 / (q > epsilon ? q : epsilon);
        *along = q > epsilon ? r * r * r : 0;
        return r;
    default:
        r = 1 / sqrt(squares + epsilon);
        *along = r * r * r;
        return r;
    }
}

static void forward(const sodet_kernel_args *k)
{
    const sodet_shape *s = &k->in[0].shape;
    const int64_t channels = s->dim[1], area = s->dim[2] * s->dim[3];
    const SODET_REAL *x = ref_in(k, 0), *scale = ref_in(k, 1);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t n = 0; n < s->dim[0]; n++)
        for (int64_t i = 0; i < area; i++) {
            const int64_t base = n * channels * area + i;
            double along, r = reciprocal(k->attr, x + base, channels, area, &along);
            for (int64_t c = 0; c < channels; c++)
                y[base + c * area] = (SODET_REAL)((double)scale[c] * (double)x[base + c * area] * r);
        }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_shape *s = &k->in[0].shape;
    const int64_t channels = s->dim[1], area = s->dim[2] * s->dim[3];
    const SODET_REAL *x = ref_in(k, 0), *scale = ref_in(k, 1), *dy = ref_in(k, 2);
    SODET_REAL *dx = ref_out(k, 0), *dscale = ref_out(k, 1);
    for (int64_t n = 0; n < s->dim[0]; n++)
        for (int64_t i = 0; i < area; i++) {
            const int64_t base = n * channels * area + i;
            double along, r = reciprocal(k->attr, x + base, channels, area, &along), dot = 0;
            for (int64_t c = 0; c < channels; c++)
                dot += (double)scale[c] * (double)dy[base + c * area] * (double)x[base + c * area];
            for (int64_t c = 0; c < channels; c++) {
                int64_t at = base + c * area;
                dx[at] = (SODET_REAL)(r * (double)scale[c] * (double)dy[at] - (double)x[at] * along * dot);
            }
        }
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < s->dim[0]; n++)
            for (int64_t i = 0; i < area; i++) {
                const int64_t base = n * channels * area + i;
                double along, r = reciprocal(k->attr, x + base, channels, area, &along);
                sum += (double)dy[base + c * area] * (double)x[base + c * area] * r;
            }
        dscale[c] = (SODET_REAL)sum;
    }
}

const sodet_ref_kernel SODET_REF(l2norm)[] = {forward, backward};
