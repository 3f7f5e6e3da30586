/* backend/cuda/nccl.h: the calls of NCCL, opened when more than one device takes part: nobody else needs the library. */
#ifndef CUDA_NCCL_H
#define CUDA_NCCL_H

#include <nccl.h>

#include "sodet/base.h"

#define CUDA_NCCL_CALLS(X)                                                                                                                 \
    X(GetVersion)                                                                                                                          \
    X(GetUniqueId)                                                                                                                         \
    X(CommInitRankConfig)                                                                                                                  \
    X(CommGetAsyncError)                                                                                                                   \
    X(CommFinalize)                                                                                                                        \
    X(CommDestroy)                                                                                                                         \
    X(CommAbort)                                                                                                                           \
    X(AllReduce)                                                                                                                           \
    X(AllGather)                                                                                                                           \
    X(GroupStart)                                                                                                                          \
    X(GroupEnd)                                                                                                                            \
    X(GetErrorString)                                                                                                                      \
    X(GetLastError)

typedef struct cuda_nccl {
#define X(call) __typeof__(&nccl##call) call;
    CUDA_NCCL_CALLS(X)
#undef X
} cuda_nccl;

/* Once per process; what is wrong with the library is told in a sentence. */
sodet_status cuda_nccl_load(const cuda_nccl **out, sodet_err *err);

#endif
