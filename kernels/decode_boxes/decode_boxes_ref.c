#include "kernels/reference.h"

static double clip(double x, double most)
{
    return most == 0 ? x : x < 0 ? 0 : x > most ? most : x;
}

static void forward(const sodet_kernel_args *args)
{
    const sodet_decode_boxes_attr *attr = args->attr;
    int64_t n = args->in[0].shape.dim[0] * args->in[0].shape.dim[1], table = args->in[1].shape.rank == 3 ? n : args->in[1].shape.dim[0];
    double most[2] = {attr->clip_width, attr->clip_height};
    for (int64_t i = 0; i < n; i++) {
        const SODET_REAL *c = ref_in(args, 0) + 4 * i, *a = ref_in(args, 1) + 4 * (i % table);
        SODET_REAL *y = ref_out(args, 0) + 4 * i;
        for (int k = 0; k < 2; k++) {
            double grow = (double)c[k + 2] * (double)attr->variance[k + 2];
            if (attr->clamp > 0 && grow > attr->clamp)
                grow = attr->clamp;
            double centre = (double)a[k] + (double)c[k] * (double)attr->variance[k] * (double)a[k + 2], size = (double)a[k + 2] * exp(grow);
            y[k] = (SODET_REAL)clip(centre - size / 2, most[k]);
            y[k + 2] = (SODET_REAL)clip(centre + size / 2 - (attr->plus_one ? 1 : 0), most[k]);
        }
    }
}

const sodet_ref_kernel SODET_REF(decode_boxes)[] = {forward};
