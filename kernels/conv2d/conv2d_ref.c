/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/conv2d/conv2d.h"

#include "kernels/activation/activation_math.h"
#include "kernels/reference.h"

typedef struct sizes {
    int64_t n, in, h, w, out, oh, ow, kh, kw, group_in, group_out;
} sizes;

static sizes sizes_of(const sodet_shape *x, const sodet_shape *w, const sodet_shape *y, int64_t groups)
{
    return (sizes){x->dim[0], x->dim[1], x->dim[2], x->dim[3],          y->dim[1],         y->dim[2],
                   y->dim[3], w->dim[2], w->dim[3], x->dim[1] / groups, y->dim[1] / groups};
}

static void forward(const sodet_kernel_args *k)
{
    const sodet_conv2d_attr *a = k->attr;
    const sizes s = sizes_of(&k->in[0].shape, &k->in[1].shape, &k->out[0].shape, a->groups);
    const SODET_REAL *x = ref_in(k, 0), *w = ref_in(k, 1), *bias = ref_in(k, 2), *residual = ref_in(k, 3);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t o = 0; o < s.out; o++)
            for (int64_t i = 0; i < s.oh; i++)
                for (int64_t j = 0; j < s.ow; j++) {
                    int64_t at = ((n * s.out + o) * s.oh + i) * s.ow + j, c0 = o / s.group_out * s.group_in;
                    double sum = 0;
                    for (int64_t c = 0; c < s.group_in; c++)
                        for (int64_t p = 0; p < s.kh; p++)
                            for (int64_t q = 0; q < s.kw; q++) {
                                int64_t r = i * a->stride_h - a->pad_top + p * a->dilation_h,
                                        t = j * a->stride_w - a->pad_left + q * a->dilation_w;
                                if (r >= 0 && r < s.h && t >= 0 && t < s.w)
                                    sum += (double)x[((n * s.in + c0 + c) * s.h + r) * s.w + t] *
                                           (double)w[((o * s.group_in + c) * s.kh + p) * s.kw + q];
                            }
                    if (bias)
                        sum += (double)bias[o];
                    if (residual)
                        sum += (double)residual[at];
                    y[at] = (SODET_REAL)activation_of(a->activation, (double)a->slope, sum);
                }
}

static void backward_data(const sodet_kernel_args *k)
{
    const sodet_conv2d_attr *a = k->attr;
    const sizes s = sizes_of(&k->out[0].shape, &k->in[1].shape, &k->in[0].shape, a->groups);
    const SODET_REAL *dy = ref_in(k, 0), *w = ref_in(k, 1);
    SODET_REAL *dx = ref_out(k, 0);
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t c = 0; c < s.in; c++)
            for (int64_t r = 0; r < s.h; r++)
                for (int64_t t = 0; t < s.w; t++) {
                    int64_t group = c / s.group_in;
                    double sum = 0;
                    for (int64_t o = group * s.group_out; o < (group + 1) * s.group_out; o++)
                        for (int64_t p = 0; p < s.kh; p++)
                            for (int64_t q = 0; q < s.kw; q++) {
                                int64_t i = r + a->pad_top - p * a->dilation_h, j = t + a->pad_left - q * a->dilation_w;
                                if (i < 0 || j < 0 || i % a->stride_h != 0 || j % a->stride_w != 0)
                                    continue;
                                i /= a->stride_h;
                                j /= a->stride_w;
                                if (i < s.oh && j < s.ow)
                                    sum += (double)dy[((n * s.out + o) * s.oh + i) * s.ow + j] *
                                           (double)w[((o * s.group_in + c % s.group_in) * s.kh + p) * s.kw + q];
                            }
                    dx[((n * s.in + c) * s.h + r) * s.w + t] = (SODET_REAL)sum;
                }
}

static void backward_weights(const sodet_kernel_args *k)
{
    const sodet_conv2d_attr *a = k->attr;
    const sizes s = sizes_of(&k->in[0].shape, &k->out[0].shape, &k->in[1].shape, a->groups);
    const SODET_REAL *x = ref_in(k, 0), *dy = ref_in(k, 1);
    SODET_REAL *dw = ref_out(k, 0), *db = ref_out(k, 1);
    for (int64_t o = 0; o < s.out; o++)
        for (int64_t c = 0; c < s.group_in; c++)
            for (int64_t p = 0; p < s.kh; p++)
                for (int64_t q = 0; q < s.kw; q++) {
                    int64_t channel = o / s.group_out * s.group_in + c;
                    double sum = 0;
                    for (int64_t n = 0; n < s.n; n++)
                        for (int64_t i = 0; i < s.oh; i++)
                            for (int64_t j = 0; j < s.ow; j++) {
                                int64_t r = i * a->stride_h - a->pad_top + p * a->dilation_h,
                                        t = j * a->stride_w - a->pad_left + q * a->dilation_w;
                                if (r >= 0 && r < s.h && t >= 0 && t < s.w)
                                    sum += (double)x[((n * s.in + channel) * s.h + r) * s.w + t] *
                                           (double)dy[((n * s.out + o) * s.oh + i) * s.ow + j];
                            }
                    dw[((o * s.group_in + c) * s.kh + p) * s.kw + q] = (SODET_REAL)sum;
                }
    if (!db)
        return;
    for (int64_t o = 0; o < s.out; o++) {
        double sum = 0;
        for (int64_t n = 0; n < s.n; n++)
            for (int64_t i = 0; i < s.oh * s.ow; i++)
                sum += (double)dy[(n * s.out + o) * s.oh * s.ow + i];
        db[o] = (SODET_REAL)sum;
    }
}

const sodet_ref_kernel SODET_REF(conv2d)[] = {forward, backward_data, backward_weights};
