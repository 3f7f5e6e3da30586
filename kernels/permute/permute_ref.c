/* The judge: element by element in the order of the output. */
#include "kernels/permute/permute.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    const sodet_permute_attr *a = k->attr;
    const sodet_tensor *x = &k->in[0], *y = &k->out[0];
    const size_t size = ref_element_size(x);
    for (int64_t i = 0, n = sodet_elements(&y->shape); i < n; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t d = y->shape.rank; d-- > 0;) {
            int64_t index = rest % y->shape.dim[d];
            rest /= y->shape.dim[d];
            at += index * ref_span(x, a->order[d] + 1, x->shape.rank);
        }
        memcpy((char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)at * size, size);
    }
}

const sodet_ref_kernel SODET_REF(permute)[] = {forward};
