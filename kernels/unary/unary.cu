#include "kernels/device_flat.h"
#include "kernels/unary/unary.h"

struct unary_value {
    uint32_t kind;
    __device__ __forceinline__ float operator()(float x) const
    {
        switch (kind) {
        case SODET_UNARY_EXP:
            return expf(x);
        case SODET_UNARY_LOG:
            return logf(x);
        case SODET_UNARY_SQRT:
            return sqrtf(x);
        case SODET_UNARY_ABS:
            return fabsf(x);
        case SODET_UNARY_NEG:
            return -x;
        case SODET_UNARY_SQUARE:
            return x * x;
        case SODET_UNARY_RECIPROCAL:
            return 1 / x;
        case SODET_UNARY_SIGN:
            return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
        default:
            return floorf(x);
        }
    }
};

static int forward(const sodet_kernel_args *a, void *stream)
{
    return device_flat(&a->out[0], &a->in[0], unary_value{((const sodet_unary_attr *)a->attr)->kind}, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_unary[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward}};
