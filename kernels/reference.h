/* kernels/reference.h: what the reference kernels (<op>_ref.c) share. SODET_REAL is float or double; I32 is int32_t in both. */
#ifndef SD_KERNELS_REFERENCE_H
#define SD_KERNELS_REFERENCE_H

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static inline const SODET_REAL *ref_in(const sodet_kernel_args *a, uint32_t i)
{
    return i < a->n_in ? a->in[i].data : NULL;
}

static inline SODET_REAL *ref_out(const sodet_kernel_args *a, uint32_t i)
{
    return i < a->n_out ? a->out[i].data : NULL;
}

static inline size_t ref_element_size(const sodet_tensor *t)
{
    return t->shape.dtype == SODET_F32 ? sizeof(SODET_REAL) : t->shape.dtype == SODET_I32 ? 4 : 2;
}

/* Product of the dims [from, to). */
static inline int64_t ref_span(const sodet_tensor *t, uint32_t from, uint32_t to)
{
    int64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= t->shape.dim[i];
    return n;
}

#endif
