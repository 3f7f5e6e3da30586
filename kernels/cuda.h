/* kernels/cuda.h: what an operator's <op>.cu gives to the CUDA backend (C11 and C++):
 *
 *     extern "C" const sodet_cuda_kernel sodet_cuda_<op>[] = {{...}, ...};                   one entry per part of ops.def
 *
 * An entry with launch == NULL, and an operator without a .cu, are unsupported; conv2d is cuDNN's (dnn.h).
 *
 * Tensors lie in device memory. The layout of a rank-4 F32 tensor is SODET_PLAIN or SODET_CHANNELS_LAST ([N][H][W][C], no padding), its
 * dtype SODET_F32 or, for channels-last maps under [run] precision bf16 and fp16, SODET_BF16 or SODET_F16. Which of these a kernel
 * takes its flags say; all others, and all vectors, parameters and statistics, are plain float32 or int32. */
#ifndef SD_KERNELS_CUDA_H
#define SD_KERNELS_CUDA_H

#include "sodet/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Every F32 tensor of the call with the shape of output 0 may be channels-last (then all of them are): a place does not matter. */
    SODET_CUDA_FLAT = 1,
    /* Every rank-4 F32 tensor of the call may be channels-last (then all of them are). */
    SODET_CUDA_LAST = 2,
    /* With either: these tensors may be 16-bit (then all of them are, of one type). */
    SODET_CUDA_NARROW = 4
};

typedef struct sodet_cuda_kernel {
    uint32_t struct_size, flags;
    /* Bytes of args->scratch; shapes, dtypes, layouts, attr and part are set, data are not. NULL: none. */
    uint64_t (*scratch)(const sodet_kernel_args *a);
    /* Puts the work on the stream (a cudaStream_t) and returns at once: 0, or the cudaError_t of a launch that failed. Tensors without
     * elements may have no address; a kernel with nothing to do launches nothing, but an output that a formula fills (a sum over nothing)
     * is written. Outputs are written in whole (never added to); args->scratch is aligned to 256 bytes and holds anything. */
    int (*launch)(const sodet_kernel_args *a, void *stream);
} sodet_cuda_kernel;

#ifdef __cplusplus
}
#endif
#endif
