/* kernels/device.h: the language that <op>.cu files are written in. nvcc compiles them for GPUs; a C++17 compiler compiles the same lines
 * for the CPU over a shim with CUDA's execution model (tests/hostcuda), so they use what both know:
 *
 *   SODET_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)      <<<>>> (sodet/cuda.h); a template instance goes in parentheses
 *   SODET_DYN_SHARED(type, name)                                      the launch's dynamic shared memory
 *   SODET_UNROLL                                                      before a loop of fixed length over arrays: they stay in registers
 *   SODET_HD                                                          functions for host and device (sodet/base.h)
 *
 * threadIdx .. gridDim, __syncthreads{,_count,_or,_and}, __syncwarp, __shfl_{,up,down,xor}_sync, __{ballot,any,all}_sync, atomics on
 * integers, __shared__ arrays. Not: cooperative groups, textures, inline PTX, wmma, shuffles without _sync, spinning on memory.
 *
 * A file ends with its table, one entry per part of ops.def; an entry with launch == NULL, and an operator without a .cu, are unsupported
 * (conv2d is cuDNN's, dnn.h):
 *
 *     extern "C" const sodet_cuda_kernel sodet_cuda_<op>[] = {{...}, ...};
 *
 * Own kernels are deterministic: a sum has one order (partial sums per block, then one pass over those), and no float is added
 * atomically. Arguments are pointers and scalars by value. Sums are float32 whatever maps hold. */
#ifndef SD_KERNELS_DEVICE_H
#define SD_KERNELS_DEVICE_H

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define SODET_UNROLL _Pragma("unroll")
#define SODET_DYN_SHARED(type, name)                                                                                                       \
    extern __shared__ __align__(16) unsigned char sodet_dyn_shared[];                                                                      \
    type *name = (type *)sodet_dyn_shared
#else
#include "hostcuda.h"
#define SODET_UNROLL
#endif

#include "sodet/cuda.h"

#endif
