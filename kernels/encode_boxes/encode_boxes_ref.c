#include "kernels/reference.h"

static void forward(const sodet_kernel_args *args)
{
    const sodet_encode_boxes_attr *attr = args->attr;
    const int32_t *index = args->in[0].data;
    int64_t anchors = args->in[0].shape.dim[1], boxes = args->in[1].shape.dim[1], n = sodet_elements(&args->in[0].shape);
    double one = attr->plus_one ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        SODET_REAL *y = ref_out(args, 0) + 4 * i;
        if (index[i] < 0 || index[i] >= boxes) {
            for (int k = 0; k < 4; k++)
                y[k] = 0;
            continue;
        }
        const SODET_REAL *t = ref_in(args, 1) + 4 * (i / anchors * boxes + index[i]), *a = ref_in(args, 2) + 4 * (i % anchors);
        for (int k = 0; k < 2; k++) {
            double size = (double)t[k + 2] - (double)t[k] + one, centre = (double)t[k] + size / 2;
            y[k] = (SODET_REAL)((centre - (double)a[k]) / (double)a[k + 2] / (double)attr->variance[k]);
            y[k + 2] = (SODET_REAL)(log(size / (double)a[k + 2] + attr->epsilon) / (double)attr->variance[k + 2]);
        }
    }
}

const sodet_ref_kernel SODET_REF(encode_boxes)[] = {forward};
