#include "kernels/reference.h"

static double log_sum(const SODET_REAL *x, int64_t n, double *max)
{
    double m = (double)x[0], sum = 0;
    for (int64_t k = 1; k < n; k++)
        m = (double)x[k] > m ? (double)x[k] : m;
    for (int64_t k = 0; k < n; k++)
        sum += exp((double)x[k] - m);
    *max = m;
    return log(sum);
}

static void forward(const sodet_kernel_args *a)
{
    int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    const int32_t *label = a->in[1].data;
    for (int64_t r = 0; r < rows; r++) {
        const SODET_REAL *x = ref_in(a, 0) + r * classes;
        double m, l = log_sum(x, classes, &m);
        ref_out(a, 0)[r] = label[r] < 0 || label[r] >= classes ? 0 : (SODET_REAL)(l - ((double)x[label[r]] - m));
    }
}

static void backward(const sodet_kernel_args *a)
{
    int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape);
    const int32_t *label = a->in[2].data;
    for (int64_t r = 0; r < rows; r++) {
        const SODET_REAL *x = ref_in(a, 1) + r * classes;
        SODET_REAL *dx = ref_out(a, 0) + r * classes;
        double m, l = log_sum(x, classes, &m), dy = (double)ref_in(a, 0)[r];
        int none = label[r] < 0 || label[r] >= classes || dy == 0;
        for (int64_t k = 0; k < classes; k++)
            dx[k] = none ? 0 : (SODET_REAL)(dy * (exp((double)x[k] - m - l) - (k == label[r])));
    }
}

const sodet_ref_kernel SODET_REF(softmax_cross_entropy)[] = {forward, backward};
