/* backend/cuda/nvjpeg.h: the calls of nvJPEG, opened when a run asks for them ([data] decode = device). The library is a part of CUDA of its own,
 * which a toolkit may lack: so what is used of it is declared here. Facts: NVIDIA, CUDA 13 documentation, nvJPEG, and that release's
 * nvjpeg.h; the calls have been so since CUDA 11.6. */
#ifndef CUDA_NVJPEG_H
#define CUDA_NVJPEG_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stddef.h>

#include "sodet/base.h"

typedef enum nvjpegStatus_t {
    NVJPEG_STATUS_SUCCESS = 0,
    NVJPEG_STATUS_NOT_INITIALIZED,
    NVJPEG_STATUS_INVALID_PARAMETER,
    NVJPEG_STATUS_BAD_JPEG,
    NVJPEG_STATUS_JPEG_NOT_SUPPORTED,
    NVJPEG_STATUS_ALLOCATOR_FAILURE,
    NVJPEG_STATUS_EXECUTION_FAILED,
    NVJPEG_STATUS_ARCH_MISMATCH,
    NVJPEG_STATUS_INTERNAL_ERROR,
    NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED,
    NVJPEG_STATUS_INCOMPLETE_BITSTREAM
} nvjpegStatus_t;

typedef enum nvjpegBackend_t { NVJPEG_BACKEND_GPU_HYBRID = 2 } nvjpegBackend_t;
typedef enum nvjpegOutputFormat_t { NVJPEG_OUTPUT_RGBI = 5 } nvjpegOutputFormat_t; /* bytes red green blue, into channel[0] */
enum {
    NVJPEG_FLAGS_BITSTREAM_STRICT = 1 << 2,             /* what does not follow the standard is refused, not guessed at */
    NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION = 1 << 5 /* chroma is interpolated, as libjpeg-turbo does, not repeated */
};

typedef struct nvjpegImage_t {
    unsigned char *channel[4];
    size_t pitch[4];
} nvjpegImage_t;

/* 0: it was done. What is freed may still be used by what was put on the stream before. */
typedef struct nvjpegDevAllocatorV2_t {
    int (*dev_malloc)(void *context, void **out, size_t bytes, cudaStream_t stream);
    int (*dev_free)(void *context, void *memory, size_t bytes, cudaStream_t stream);
    void *dev_ctx;
} nvjpegDevAllocatorV2_t;
typedef struct nvjpegPinnedAllocatorV2_t {
    int (*pinned_malloc)(void *context, void **out, size_t bytes, cudaStream_t stream);
    int (*pinned_free)(void *context, void *memory, size_t bytes, cudaStream_t stream);
    void *pinned_ctx;
} nvjpegPinnedAllocatorV2_t;

typedef struct nvjpegHandle *nvjpegHandle_t;
typedef struct nvjpegJpegState *nvjpegJpegState_t;

nvjpegStatus_t nvjpegGetProperty(libraryPropertyType type, int *value);
nvjpegStatus_t nvjpegCreateExV2(nvjpegBackend_t backend, nvjpegDevAllocatorV2_t *device, nvjpegPinnedAllocatorV2_t *pinned, unsigned flags,
                                nvjpegHandle_t *out);
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle);
nvjpegStatus_t nvjpegSetDeviceMemoryPadding(size_t padding, nvjpegHandle_t handle); /* sizes of what it allocates are rounded up to this */
nvjpegStatus_t nvjpegSetPinnedMemoryPadding(size_t padding, nvjpegHandle_t handle);
nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t *out);
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state);
/* Before the first batch of another size, and after one that failed. */
nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle, nvjpegJpegState_t state, int batch, int threads,
                                             nvjpegOutputFormat_t format);
nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char *const *data, const size_t *lengths,
                                   nvjpegImage_t *destinations, cudaStream_t stream);

#define CUDA_NVJPEG_CALLS(X)                                                                                                               \
    X(GetProperty)                                                                                                                         \
    X(CreateExV2)                                                                                                                          \
    X(Destroy)                                                                                                                             \
    X(SetDeviceMemoryPadding)                                                                                                              \
    X(SetPinnedMemoryPadding)                                                                                                              \
    X(JpegStateCreate)                                                                                                                     \
    X(JpegStateDestroy)                                                                                                                    \
    X(DecodeBatchedInitialize)                                                                                                             \
    X(DecodeBatched)

typedef struct cuda_nvjpeg {
#define X(call) __typeof__(&nvjpeg##call) call;
    CUDA_NVJPEG_CALLS(X)
#undef X
} cuda_nvjpeg;

/* Once per process; what is wrong with the library is told in a sentence. */
sodet_status cuda_nvjpeg_load(const cuda_nvjpeg **out, sodet_err *err);

#endif
