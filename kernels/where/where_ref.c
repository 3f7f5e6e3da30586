#include "kernels/broadcast.h"
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *args)
{
    const sodet_tensor *c = &args->in[0], *y = &args->out[0];
    int64_t n = sodet_elements(&y->shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t ic = broadcast_element(&c->shape, &y->shape, i);
        int yes = c->shape.dtype == SODET_I32 ? ((const int32_t *)c->data)[ic] != 0 : ((const SODET_REAL *)c->data)[ic] != 0;
        const sodet_tensor *from = &args->in[yes ? 1 : 2];
        int64_t k = broadcast_element(&from->shape, &y->shape, i);
        if (y->shape.dtype == SODET_I32)
            ((int32_t *)y->data)[i] = ((const int32_t *)from->data)[k];
        else
            ((SODET_REAL *)y->data)[i] = ((const SODET_REAL *)from->data)[k];
    }
}

const sodet_ref_kernel SODET_REF(where)[] = {forward};
