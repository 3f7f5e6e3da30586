/* What a backend's shared object is like that is built over the rig: module_test.c loads it. */
#include <cuda_runtime_api.h>

#include "test_kernels.h"

__attribute__((visibility("default"))) double module_sum(int device, int *error);

/* 1 + 2 + .. + 1000 on a device. */
double module_sum(int device, int *error)
{
    enum { N = 1000 };
    float host[N], *x = NULL, *partial = NULL, *sum = NULL, result = -1.0f;
    cudaStream_t stream;
    for (int i = 0; i < N; i++)
        host[i] = (float)(i + 1);
    *error = cudaSetDevice(device) || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || cudaMalloc((void **)&x, sizeof host) ||
             cudaMalloc((void **)&partial, 256 * sizeof *partial) || cudaMalloc((void **)&sum, sizeof *sum) ||
             cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, stream) || launch_sum(stream, x, partial, sum, N) ||
             cudaMemcpyAsync(&result, sum, sizeof result, cudaMemcpyDeviceToHost, stream) || cudaStreamSynchronize(stream) ||
             cudaMemset(sum, 0, sizeof *sum) || /* brings the default stream up, which is stopped at unloading */
             cudaFree(x) || cudaFree(partial) || cudaFree(sum) || cudaStreamDestroy(stream);
    return (double)result;
}
