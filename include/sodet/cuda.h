/* sodet/cuda.h: kernels for the CUDA backend: those of the operators in kernels/ops.def, and those of a plugin's own operators.
 *
 * A plugin <kind>/<name>.so (sodet/op.h) brings its own CUDA kernels in a second file beside it, <kind>/<name>.cuda.so, which the CUDA
 * backend loads when a graph has one of the plugin's operators; so the plugin itself needs nothing of CUDA. That file is made from .cu
 * sources that nvcc compiles (share/doc/sodet/swish is a whole example), for the GPUs that are to be used:
 *
 *     static const sodet_cuda_kernel swish[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT, NULL, forward}, ...};   one entry per part
 *     static const sodet_cuda_op ops[] = {{"swish", 3, swish}};
 *     SODET_CUDA_PLUGIN("swish", ops)                                                                  the plugin's name; in one file
 *
 *     nvcc -shared -Xcompiler -fPIC,-fvisibility=hidden -arch=native $(pkg-config --cflags sodet) swish.cu -o neck/swish.cuda.so
 *
 * nvcc links the CUDA runtime statically. Each file then has a runtime of its own, as cuDNN has; they share the device's primary context,
 * which is current on the calling thread, so a kernel goes to the device of the stream it is given. The file may be built with another
 * release of CUDA than the backend, as far as the driver knows both.
 *
 * Ownership: tables and strings are static in the file, which stays loaded. Threads: scratch and launch are called by the thread that
 * drives the device, those of several devices at the same time.
 *
 * Tensors lie in device memory. The layout of a rank-4 F32 tensor is SODET_PLAIN or SODET_CHANNELS_LAST ([N][H][W][C], no padding), its
 * dtype SODET_F32 or, for channels-last maps under [run] precision bf16 and fp16, SODET_BF16 or SODET_F16. Which of these a kernel
 * takes its flags say; all others, and all vectors, parameters and statistics, are plain float32 or int32. */
#ifndef SODET_CUDA_H
#define SODET_CUDA_H

#include "sodet/op.h"
#include "sodet/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Every F32 tensor of the call with the shape of output 0 may be channels-last (then all of them are): a place does not matter. A
     * tensor of another shape has one element, or all are plain. */
    SODET_CUDA_FLAT = 1,
    /* Every rank-4 F32 tensor of the call may be channels-last (then all of them are). */
    SODET_CUDA_LAST = 2,
    /* With either: these tensors may be 16-bit (then all of them are, of one type). Without it they are plain under bf16 and fp16. */
    SODET_CUDA_NARROW = 4
};

typedef struct sodet_cuda_kernel {
    uint32_t struct_size, flags;
    /* Bytes of args->scratch; shapes, dtypes, layouts, attr and part are set, data are not. NULL: none. */
    uint64_t (*scratch)(const sodet_kernel_args *a);
    /* Puts the work on the stream (a cudaStream_t) and returns at once: 0, or the cudaError_t of a launch that failed. Tensors without
     * elements may have no address; a kernel with nothing to do launches nothing, but an output that a formula fills (a sum over nothing)
     * is written. Outputs are written in whole (never added to); args->scratch is aligned to 256 bytes and holds anything. NULL: this
     * part is unsupported. */
    int (*launch)(const sodet_kernel_args *a, void *stream);
} sodet_cuda_kernel;

typedef struct sodet_cuda_op {
    const char *name; /* that of the plugin's sodet_op */
    uint32_t n_parts;
    const sodet_cuda_kernel *kernel; /* [n_parts] */
} sodet_cuda_op;

/* What the file exports, as the data symbol sodet_cuda_desc and nothing else. Like a plugin's descriptor it is looked at before any code
 * of the file runs, and may be shorter than the host's, or longer where that is zero. */
#define SODET_CUDA_MAGIC 0x43444f53u /* "SODC" */
typedef struct sodet_cuda_part {
    uint32_t magic, struct_size; /* these sixteen bytes never change */
    uint16_t abi_major, abi_minor;
    uint32_t n_ops;
    const char *plugin; /* its name */
    const sodet_cuda_op *ops;
    uint32_t op_size, kernel_size; /* strides of ops[] and of every kernel[] */
    int (*probe)(void);            /* 0, or the cudaError_t that says why the calling thread's device cannot run the file's kernels */
} sodet_cuda_part;
extern SODET_EXPORT const sodet_cuda_part sodet_cuda_desc;

#ifdef __cplusplus
}
#endif

/* For .cu files alone. <<<>>> does the same; with this the file can also be compiled by sodet's tests, which run it without a GPU. */
#ifdef __CUDACC__
#define SODET_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                                       \
    kernel<<<(grid), (block), (shared_bytes), (cudaStream_t)(stream)>>>(__VA_ARGS__)
#endif
/* Whether there is code for a device is asked of an empty kernel: that is made for the same architectures as those beside it. */
#define SODET_CUDA_PLUGIN(plugin_name, op_table)                                                                                           \
    static __global__ void sodet_cuda_probe_kernel(void)                                                                                   \
    {                                                                                                                                      \
    }                                                                                                                                      \
    static int sodet_cuda_probe(void)                                                                                                      \
    {                                                                                                                                      \
        cudaFuncAttributes attributes;                                                                                                     \
        const int error = (int)cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(sodet_cuda_probe_kernel));                \
        (void)cudaGetLastError(); /* told here */                                                                                          \
        return error;                                                                                                                      \
    }                                                                                                                                      \
    extern "C" const sodet_cuda_part sodet_cuda_desc = {SODET_CUDA_MAGIC,                                                                  \
                                                        sizeof(sodet_cuda_part),                                                           \
                                                        SODET_ABI_MAJOR,                                                                   \
                                                        SODET_ABI_MINOR,                                                                   \
                                                        sizeof(op_table) / sizeof(op_table[0]),                                            \
                                                        plugin_name,                                                                       \
                                                        op_table,                                                                          \
                                                        sizeof(sodet_cuda_op),                                                             \
                                                        sizeof(sodet_cuda_kernel),                                                         \
                                                        sodet_cuda_probe};

#endif
