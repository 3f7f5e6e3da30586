/* The judge: plain loops in the order of the formula, sums in double. Never optimised. */
#include "kernels/softmax/softmax.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_softmax_attr *a = k->attr;
    const sodet_tensor *t = &k->in[0];
    const int64_t outer = ref_span(t, 0, a->axis), length = t->shape.dim[a->axis], inner = ref_span(t, a->axis + 1, t->shape.rank);
    const SODET_REAL *x = ref_in(k, 0);
    SODET_REAL *y = ref_out(k, 0);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t base = o * length * inner + i;
            double top = -INFINITY, sum = 0;
            for (int64_t c = 0; c < length; c++)
                if (!((double)x[base + c * inner] <= top))
                    top = (double)x[base + c * inner];
            for (int64_t c = 0; c < length; c++)
                sum += exp((double)x[base + c * inner] - top);
            for (int64_t c = 0; c < length; c++)
                y[base + c * inner] = (SODET_REAL)(exp((double)x[base + c * inner] - top) / sum);
        }
}

static void backward(const sodet_kernel_args *k)
{
    const sodet_softmax_attr *a = k->attr;
    const sodet_tensor *t = &k->in[0];
    const int64_t outer = ref_span(t, 0, a->axis), length = t->shape.dim[a->axis], inner = ref_span(t, a->axis + 1, t->shape.rank);
    const SODET_REAL *y = ref_in(k, 0), *dy = ref_in(k, 1);
    SODET_REAL *dx = ref_out(k, 0);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t base = o * length * inner + i;
            double dot = 0;
            for (int64_t c = 0; c < length; c++)
                dot += (double)y[base + c * inner] * (double)dy[base + c * inner];
            for (int64_t c = 0; c < length; c++)
                dx[base + c * inner] = (SODET_REAL)((double)y[base + c * inner] * ((double)dy[base + c * inner] - dot));
        }
}

const sodet_ref_kernel SODET_REF(softmax)[] = {forward, backward};
