/* Carried out by the backend; a kernel of one rank sees nothing to add. */
#include "kernels/reference.h"

const sodet_ref_kernel SODET_REF(all_reduce)[] = {NULL};
