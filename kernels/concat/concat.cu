#include "kernels/concat/concat.h"
#include "kernels/device_copy.h"

static int forward(const sodet_kernel_args *a, void *stream)
{
    const uint32_t axis = ((const sodet_concat_attr *)a->attr)->axis;
    const device_rows_along all = device_rows_of(&a->out[0], axis);
    char *to = (char *)a->out[0].data;
    for (uint32_t i = 0; i < a->n_in; i++) {
        const device_rows_along part = device_rows_of(&a->in[i], axis);
        const int error = device_copy_rows(to, all.bytes, a->in[i].data, part.bytes, part.bytes, all.rows, stream);
        if (error != 0)
            return error;
        to += part.bytes;
    }
    return 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_concat_attr *t = (const sodet_concat_attr *)a->attr;
    const device_rows_along all = device_rows_of(&a->in[0], t->axis), part = device_rows_of(&a->out[0], t->axis);
    if (part.bytes == 0 || part.rows == 0)
        return 0;
    const char *from = (const char *)a->in[0].data + part.bytes / t->length * t->begin;
    return device_copy_rows(a->out[0].data, part.bytes, from, all.bytes, part.bytes, part.rows, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_concat[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward},
                                                          {sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, backward}};
