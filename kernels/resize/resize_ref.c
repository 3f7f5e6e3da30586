/* The judge: plain loops in the order of the formula. Never optimised. */
#include "kernels/resize/resize.h"
#include "kernels/reference.h"
#include "kernels/resize/resize_math.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_resize_attr *a = k->attr;
    const sodet_shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    const int64_t h = in->dim[2], w = in->dim[3], oh = out->dim[2], ow = out->dim[3];
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                const SODET_REAL *map = x + plane * h * w;
                double value;
                if (a->kind == SODET_RESIZE_NEAREST) {
                    value = (double)map[resize_nearest(i, h, oh) * w + resize_nearest(j, w, ow)];
                } else {
                    resize_pair r = resize_bilinear(i, h, oh), c = resize_bilinear(j, w, ow);
                    value =
                        (1 - r.weight) * ((1 - c.weight) * (double)map[r.low * w + c.low] + c.weight * (double)map[r.low * w + c.high]) +
                        r.weight * ((1 - c.weight) * (double)map[r.high * w + c.low] + c.weight * (double)map[r.high * w + c.high]);
                }
                y[(plane * oh + i) * ow + j] = (SODET_REAL)value;
            }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_resize_attr *a = k->attr;
    const sodet_shape *in = &k->out[0].shape, *out = &k->in[0].shape;
    const int64_t h = in->dim[2], w = in->dim[3], oh = out->dim[2], ow = out->dim[3];
    const SODET_REAL *dy = ref_in(k, 0);
    SODET_REAL *dx = ref_out(k, 0);
    memset(dx, 0, (size_t)sodet_elements(in) * sizeof *dx);
    for (int64_t plane = 0; plane < in->dim[0] * in->dim[1]; plane++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                SODET_REAL *map = dx + plane * h * w;
                const double slope = (double)dy[(plane * oh + i) * ow + j];
                if (a->kind == SODET_RESIZE_NEAREST) {
                    map[resize_nearest(i, h, oh) * w + resize_nearest(j, w, ow)] += (SODET_REAL)slope;
                    continue;
                }
                resize_pair r = resize_bilinear(i, h, oh), c = resize_bilinear(j, w, ow);
                map[r.low * w + c.low] += (SODET_REAL)((1 - r.weight) * (1 - c.weight) * slope);
                map[r.low * w + c.high] += (SODET_REAL)((1 - r.weight) * c.weight * slope);
                map[r.high * w + c.low] += (SODET_REAL)(r.weight * (1 - c.weight) * slope);
                map[r.high * w + c.high] += (SODET_REAL)(r.weight * c.weight * slope);
            }
}

const sodet_ref_kernel SODET_REF(resize)[] = {forward, backward};
