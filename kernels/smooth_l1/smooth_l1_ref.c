#include "kernels/reference.h"

static void forward(const sodet_kernel_args *a)
{
    double beta = ((const sodet_smooth_l1_attr *)a->attr)->beta;
    int64_t width = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t d = 0; d < width; d++) {
            double e = fabs((double)ref_in(a, 0)[r * width + d] - (double)ref_in(a, 1)[r * width + d]);
            sum += e < beta ? e * e / (2 * beta) : e - beta / 2;
        }
        ref_out(a, 0)[r] = (SODET_REAL)sum;
    }
}

static void backward(const sodet_kernel_args *a)
{
    double beta = ((const sodet_smooth_l1_attr *)a->attr)->beta;
    int64_t width = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        double dy = (double)ref_in(a, 0)[r];
        for (int64_t d = 0; d < width; d++) {
            double e = (double)ref_in(a, 1)[r * width + d] - (double)ref_in(a, 2)[r * width + d];
            double slope = fabs(e) < beta ? e / beta : isnan(e) ? e : (double)((e > 0) - (e < 0));
            ref_out(a, 0)[r * width + d] = dy == 0 ? 0 : (SODET_REAL)(dy * slope);
        }
    }
}

const sodet_ref_kernel SODET_REF(smooth_l1)[] = {forward, backward};
