/* What nvcc made of a plugin's own operator (tests/api/example/swish), without a device: the file loads with what it was linked to, shows its
 * table and nothing of the CUDA runtime in it, and its probe answers what the runtime says of this machine. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "check.h"
#include "sodet/cuda.h"

int main(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/plugins/neck/swish.cuda.so", getenv("SODET_BUILD"));
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(file != NULL);
    if (!file) {
        fprintf(stderr, "%s\n", dlerror());
        return check_done(1);
    }
    const sodet_cuda_part *d = dlsym(file, "sodet_cuda_desc");
    CHECK(d != NULL && !dlsym(file, "cudaMalloc") && !dlsym(file, "cudaLaunchKernel"));
    if (!d)
        return check_done(1);
    CHECK_EQ(d->magic, SODET_CUDA_MAGIC);
    CHECK_EQ(d->struct_size, sizeof *d);
    CHECK(d->abi_major == SODET_ABI_MAJOR && d->abi_minor == SODET_ABI_MINOR);
    CHECK(d->op_size == sizeof(sodet_cuda_op) && d->kernel_size == sizeof(sodet_cuda_kernel));
    CHECK_STR(d->plugin, "swish");
    CHECK_EQ(d->n_ops, 1);
    CHECK_STR(d->ops[0].name, "swish");
    CHECK_EQ(d->ops[0].n_parts, 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(d->ops[0].kernel[i].struct_size == sizeof(sodet_cuda_kernel) && d->ops[0].kernel[i].launch);
    int n = 0;
    const cudaError_t here = cudaGetDeviceCount(&n);
    const int e = d->probe();
    printf("%d devices (%s), probe: %s\n", n, cudaGetErrorName(here), cudaGetErrorName((cudaError_t)e));
    if (here != cudaSuccess)
        CHECK_EQ(e, here);
    else
        CHECK(e == cudaSuccess || e == cudaErrorNoKernelImageForDevice);
    return check_done(14);
}
