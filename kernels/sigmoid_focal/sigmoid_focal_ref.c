#include "kernels/reference.h"

/* Of one class, with s = x if it is the anchor's own, else -x. */
static double minus_log_p(double s)
{
    return s > 0 ? log1p(exp(-s)) : -s + log1p(exp(s));
}

static double one_minus_p(double s)
{
    return 1 / (1 + exp(s));
}

static double weight(const sodet_sigmoid_focal_attr *attr, int own)
{
    return attr->alpha < 0 ? 1 : own ? attr->alpha : 1 - attr->alpha;
}

static void forward(const sodet_kernel_args *a)
{
    const sodet_sigmoid_focal_attr *attr = a->attr;
    int64_t classes = a->in[0].shape.dim[a->in[0].shape.rank - 1], rows = sodet_elements(&a->out[0].shape);
    const int32_t *label = a->in[1].data;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < classes; c++) {
            double x = (double)ref_in(a, 0)[r * classes + c], s = c == label[r] ? x : -x;
            sum += weight(attr, c == label[r]) * pow(one_minus_p(s), attr->gamma) * minus_log_p(s);
        }
        ref_out(a, 0)[r] = label[r] < -1 ? 0 : (SODET_REAL)sum;
    }
}

static void backward(const sodet_kernel_args *a)
{
    const sodet_sigmoid_focal_attr *attr = a->attr;
    int64_t classes = a->in[1].shape.dim[a->in[1].shape.rank - 1], rows = sodet_elements(&a->in[0].shape);
    const int32_t *label = a->in[2].data;
    for (int64_t r = 0; r < rows; r++) {
        double dy = (double)ref_in(a, 0)[r];
        for (int64_t c = 0; c < classes; c++) {
            int own = c == label[r];
            double x = (double)ref_in(a, 1)[r * classes + c], s = own ? x : -x, q = one_minus_p(s);
            double ds = -weight(attr, own) * pow(q, attr->gamma) * (attr->gamma * (1 - q) * minus_log_p(s) + q);
            ref_out(a, 0)[r * classes + c] = label[r] < -1 || dy == 0 ? 0 : (SODET_REAL)(dy * (own ? ds : -ds));
        }
    }
}

const sodet_ref_kernel SODET_REF(sigmoid_focal)[] = {forward, backward};
