/* The judge: plain loops, sums in double, each with its terms in the order of the formula. The loop along a row is the innermost one, so
 * that memory is walked in its order: the full-size networks are judged too, in minutes instead of hours. Not optimised otherwise. */
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

typedef struct span {
    int64_t begin, end;
} span;

/* The outputs j of a row of `outputs` for which the input j * stride + offset lies within [0, inputs). */
static span inside(int64_t offset, int64_t stride, int64_t inputs, int64_t outputs)
{
    int64_t begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t end = offset < inputs ? (inputs - offset + stride - 1) / stride : 0;
    return (span){begin, end < outputs ? end : outputs};
}

enum { COLUMNS = 256 }; /* of a row, summed side by side */

static int64_t columns_from(int64_t begin, int64_t width)
{
    return width - begin < COLUMNS ? width - begin : COLUMNS;
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
                for (int64_t j0 = 0; j0 < s.ow; j0 += COLUMNS) {
                    int64_t count = columns_from(j0, s.ow), c0 = o / s.group_out * s.group_in;
                    double sum[COLUMNS] = {0};
                    for (int64_t c = 0; c < s.group_in; c++)
                        for (int64_t p = 0; p < s.kh; p++)
                            for (int64_t q = 0; q < s.kw; q++) {
                                int64_t r = i * a->stride_h - a->pad_top + p * a->dilation_h,
                                        t = j0 * a->stride_w - a->pad_left + q * a->dilation_w;
                                if (r < 0 || r >= s.h)
                                    continue;
                                const SODET_REAL *row = x + ((n * s.in + c0 + c) * s.h + r) * s.w;
                                double weight = (double)w[((o * s.group_in + c) * s.kh + p) * s.kw + q];
                                span in = inside(t, a->stride_w, s.w, count);
                                for (int64_t j = in.begin; j < in.end; j++)
                                    sum[j] += (double)row[t + j * a->stride_w] * weight;
                            }
                    for (int64_t j = 0; j < count; j++) {
                        int64_t at = ((n * s.out + o) * s.oh + i) * s.ow + j0 + j;
                        if (bias)
                            sum[j] += (double)bias[o];
                        if (residual)
                            sum[j] += (double)residual[at];
                        y[at] = (SODET_REAL)activation_of(a->activation, (double)a->slope, sum[j]);
                    }
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
                for (int64_t t0 = 0; t0 < s.w; t0 += COLUMNS) {
                    int64_t count = columns_from(t0, s.w), group = c / s.group_in;
                    double sum[COLUMNS] = {0};
                    for (int64_t o = group * s.group_out; o < (group + 1) * s.group_out; o++)
                        for (int64_t p = 0; p < s.kh; p++)
                            for (int64_t q = 0; q < s.kw; q++) {
                                int64_t i = r + a->pad_top - p * a->dilation_h, t = q * a->dilation_w - a->pad_left - t0;
                                if (i < 0 || i % a->stride_h != 0 || i / a->stride_h >= s.oh)
                                    continue;
                                const SODET_REAL *row = dy + ((n * s.out + o) * s.oh + i / a->stride_h) * s.ow;
                                double weight = (double)w[((o * s.group_in + c % s.group_in) * s.kh + p) * s.kw + q];
                                span out = inside(t, a->stride_w, count, s.ow);
                                for (int64_t j = out.begin; j < out.end; j++)
                                    sum[t + j * a->stride_w] += (double)row[j] * weight;
                            }
                    for (int64_t t = 0; t < count; t++)
                        dx[((n * s.in + c) * s.h + r) * s.w + t0 + t] = (SODET_REAL)sum[t];
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
                    double total = 0;
                    for (int64_t j0 = 0; j0 < s.ow; j0 += COLUMNS) {
                        double sum[COLUMNS] = {0};
                        int64_t count = columns_from(j0, s.ow), t = j0 * a->stride_w - a->pad_left + q * a->dilation_w;
                        span in = inside(t, a->stride_w, s.w, count);
                        for (int64_t n = 0; n < s.n; n++)
                            for (int64_t i = 0; i < s.oh; i++) {
                                int64_t r = i * a->stride_h - a->pad_top + p * a->dilation_h;
                                if (r < 0 || r >= s.h)
                                    continue;
                                const SODET_REAL *from = x + ((n * s.in + channel) * s.h + r) * s.w,
                                                 *row = dy + ((n * s.out + o) * s.oh + i) * s.ow + j0;
                                for (int64_t j = in.begin; j < in.end; j++)
                                    sum[j] += (double)from[t + j * a->stride_w] * (double)row[j];
                            }
                        for (int64_t j = 0; j < count; j++)
                            total += sum[j];
                    }
                    dw[((o * s.group_in + c) * s.kh + p) * s.kw + q] = (SODET_REAL)total;
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
