/* Virtual devices: HC_DEVICES of them, each with HC_MEM_MB of memory and the description of an H200 where limits matter. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

enum { SHARED_PER_BLOCK = 48 << 10, SHARED_OPT_IN = 227 << 10, MAX_KERNELS = 256 };

static _Thread_local int current;

int hc_device(void)
{
    return current;
}

void hc_bind_device(int device)
{
    current = device;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    HC_ENTER();
    if (hc_setting()->devices == 0) /* count is left untouched, as by the real one */
        return hc_fail(cudaErrorNoDevice);
    *count = hc_setting()->devices;
    return cudaSuccess;
}

static bool exists(int device)
{
    return device >= 0 && device < hc_setting()->devices;
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t error = hc_planned_failure(__func__); /* no HC_ENTER: a thread may leave a device that is stuck */
    if (error == cudaSuccess && !exists(device))
        error = hc_setting()->devices ? cudaErrorInvalidDevice : cudaErrorNoDevice;
    if (error == cudaSuccess)
        current = device;
    return hc_fail(error);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    HC_ENTER();
    if (!exists(device))
        return hc_fail(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "hostcuda virtual GPU %d", device);
    p->uuid.bytes[15] = (char)(device + 1);
    p->major = 9;
    p->totalGlobalMem = hc_setting()->memory;
    p->sharedMemPerBlock = SHARED_PER_BLOCK;
    p->sharedMemPerBlockOptin = SHARED_OPT_IN;
    p->sharedMemPerMultiprocessor = SHARED_OPT_IN + 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->multiProcessorCount = 4;
    p->l2CacheSize = 4 << 20;
    p->pciDeviceID = device;
    p->asyncEngineCount = 2;
    p->unifiedAddressing = p->canMapHostMemory = p->concurrentKernels = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error != cudaSuccess)
        return error;
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = p.major;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = p.minor;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = p.multiProcessorCount;
        break;
    case cudaDevAttrMaxThreadsPerBlock:
        *value = p.maxThreadsPerBlock;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p.maxThreadsPerMultiProcessor;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = SHARED_PER_BLOCK;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SHARED_OPT_IN;
        break;
    case cudaDevAttrMaxGridDimX:
        *value = p.maxGridSize[0];
        break;
    case cudaDevAttrWarpSize:
        *value = p.warpSize;
        break;
    case cudaDevAttrL2CacheSize:
        *value = p.l2CacheSize;
        break;
    case cudaDevAttrClockRate: /* kHz */
        *value = 1980000;
        break;
    case cudaDevAttrMemoryClockRate:
        *value = 3201000;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 6144;
        break;
    case cudaDevAttrPciDeviceId:
        *value = p.pciDeviceID;
        break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
        *value = 1;
        break;
    case cudaDevAttrComputeMode:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrIntegrated:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDomainId:
        *value = 0;
        break;
    default:
        hc_report("cudaDeviceGetAttribute: attribute %d is not known here: add it to device.c", (int)attribute);
        return hc_fail(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    HC_ENTER();
    if (!exists(device))
        return hc_fail(cudaErrorInvalidDevice);
    snprintf(text, (size_t)length, "0000:00:%02X.0", device);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    HC_ENTER();
    if (!exists(device) || !exists(peer))
        return hc_fail(cudaErrorInvalidDevice);
    *can = 0;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    HC_ENTER();
    *total = hc_setting()->memory;
    *free_bytes = *total - hc_memory_used(current);
    return cudaSuccess;
}

/* Kernels that were allowed more dynamic shared memory than every device has. */
static struct {
    const void *kernel;
    size_t bytes;
} limits[MAX_KERNELS];
static unsigned limit_count;
static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    HC_ENTER();
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_OPT_IN)
        return hc_fail(cudaErrorInvalidValue);
    cudaError_t error = cudaSuccess;
    hc_lock(&limit_lock);
    unsigned i = 0;
    while (i < limit_count && limits[i].kernel != kernel)
        i++;
    if (i == MAX_KERNELS) {
        error = cudaErrorMemoryAllocation;
    } else {
        limits[i].kernel = kernel;
        limits[i].bytes = (size_t)value;
        limit_count = i == limit_count ? i + 1 : limit_count;
    }
    hc_unlock(&limit_lock);
    return hc_fail(error);
}

/* Every kernel has code for every device here; HC_FAIL makes one that has not. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel)
{
    HC_ENTER();
    memset(out, 0, sizeof *out);
    if (!kernel)
        return hc_fail(cudaErrorInvalidDeviceFunction);
    out->maxThreadsPerBlock = 1024;
    out->maxDynamicSharedSizeBytes = (int)hc_shared_limit(kernel);
    return cudaSuccess;
}

size_t hc_shared_limit(const void *kernel)
{
    size_t bytes = SHARED_PER_BLOCK;
    hc_lock(&limit_lock);
    for (unsigned i = 0; i < limit_count; i++)
        bytes = limits[i].kernel == kernel ? limits[i].bytes : bytes;
    hc_unlock(&limit_lock);
    return bytes;
}
