/* The description of device 0 as cuDNN has it: JSON, for tests/cuda/devices/. argv[1]: the file to write; without it, the test only looks
 * whether there is a device. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

int main(int argc, char **argv)
{
    int n = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        printf("no device: %s\n", cudaGetErrorString(e));
        return argc > 1;
    }
    cudnnBackendDescriptor_t d;
    int32_t device = 0;
    int64_t length = 0;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &device) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &length, NULL) != CUDNN_STATUS_SUCCESS) {
        char why[256];
        cudnnGetLastErrorString(why, sizeof why);
        return failed("device description", why);
    }
    char *text = calloc((size_t)length + 1, 1);
    if (!text || cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, &length, text) !=
                     CUDNN_STATUS_SUCCESS)
        return failed("device description", "it cannot be read");
    cudnnBackendDestroyDescriptor(d);
    printf("%s\n", text);
    FILE *f = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (argc > 1 && (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) != 0))
        return failed(argv[1], "cannot be written");
    free(text);
    return 0;
}
