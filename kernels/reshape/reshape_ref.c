/* A backend that does not alias may copy. */
#include "kernels/reference.h"

static void forward(const sodet_kernel_args *k)
{
    memmove(k->out[0].data, k->in[0].data, (size_t)sodet_elements(&k->in[0].shape) * ref_element_size(&k->in[0]));
}

const sodet_ref_kernel SODET_REF(reshape)[] = {forward};
