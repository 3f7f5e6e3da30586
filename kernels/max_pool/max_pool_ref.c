/* The judge: plain loops in the order of the formula. Never optimised. */
#include "kernels/max_pool/max_pool.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_pool_attr *a = k->attr;
    const sodet_shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    const int64_t h = in->dim[2], w = in->dim[3], oh = out->dim[2], ow = out->dim[3];
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    int32_t *where = k->n_out > 1 ? k->out[1].data : NULL;
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                int64_t best = -1;
                for (int64_t r = i * a->stride_h - a->pad_top; r < i * a->stride_h - a->pad_top + a->kernel_h; r++)
                    for (int64_t t = j * a->stride_w - a->pad_left; t < j * a->stride_w - a->pad_left + a->kernel_w; t++) {
                        if (r < 0 || r >= h || t < 0 || t >= w)
                            continue;
                        SODET_REAL v = x[plane * h * w + r * w + t];
                        if (best < 0 || v > x[plane * h * w + best] || (v != v && x[plane * h * w + best] == x[plane * h * w + best]))
                            best = r * w + t;
                    }
                y[(plane * oh + i) * ow + j] = x[plane * h * w + best];
                if (where)
                    where[(plane * oh + i) * ow + j] = (int32_t)best;
            }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_shape *in = &k->out[0].shape, *out = &k->in[1].shape;
    const int64_t area = in->dim[2] * in->dim[3], windows = out->dim[2] * out->dim[3];
    const int32_t *where = k->in[0].data;
    const SODET_REAL *dy = ref_in(k, 1);
    SODET_REAL *dx = ref_out(k, 0);
    memset(dx, 0, (size_t)sodet_elements(in) * sizeof *dx);
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < windows; i++)
            dx[plane * area + where[plane * windows + i]] += dy[plane * windows + i];
}

const sodet_ref_kernel SODET_REF(max_pool)[] = {forward, backward};
