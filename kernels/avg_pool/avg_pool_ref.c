/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/avg_pool/avg_pool.h"
#include "kernels/reference.h"

typedef struct window {
    int64_t top, bottom, left, right; /* on the map, end-exclusive */
    double divisor;
} window;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static window window_at(const sodet_pool_attr *a, int64_t h, int64_t w, int64_t i, int64_t j)
{
    int64_t top = i * a->stride_h - a->pad_top, left = j * a->stride_w - a->pad_left;
    int64_t bottom = least(top + a->kernel_h, h + a->pad_bottom), right = least(left + a->kernel_w, w + a->pad_right);
    window v = {most(top, 0), least(bottom, h), most(left, 0), least(right, w), 0};
    v.divisor =
        a->flags & SODET_POOL_EXCLUDE_PAD ? (double)((v.bottom - v.top) * (v.right - v.left)) : (double)((bottom - top) * (right - left));
    return v;
}

static void forward(const sodet_kernel_args *k)
{
    const sodet_shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    const int64_t h = in->dim[2], w = in->dim[3], oh = out->dim[2], ow = out->dim[3];
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                window v = window_at(k->attr, h, w, i, j);
                double sum = 0;
                for (int64_t r = v.top; r < v.bottom; r++)
                    for (int64_t t = v.left; t < v.right; t++)
                        sum += (double)x[(plane * h + r) * w + t];
                y[(plane * oh + i) * ow + j] = (SODET_REAL)(sum / v.divisor);
            }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_shape *in = &k->out[0].shape, *out = &k->in[0].shape;
    const int64_t h = in->dim[2], w = in->dim[3], oh = out->dim[2], ow = out->dim[3];
    const SODET_REAL *dy = ref_in(k, 0);
    SODET_REAL *dx = ref_out(k, 0);
    memset(dx, 0, (size_t)sodet_elements(in) * sizeof *dx);
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                window v = window_at(k->attr, h, w, i, j);
                SODET_REAL share = (SODET_REAL)((double)dy[(plane * oh + i) * ow + j] / v.divisor);
                for (int64_t r = v.top; r < v.bottom; r++)
                    for (int64_t t = v.left; t < v.right; t++)
                        dx[(plane * h + r) * w + t] += share;
            }
}

const sodet_ref_kernel SODET_REF(avg_pool)[] = {forward, backward};
