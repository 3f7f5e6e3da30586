#include "kernels/activation/activation.h"
#include "kernels/device_flat.h"

/* The formulas of activation_math.h in float: comparisons let NaN through. */
struct activation_value {
    uint32_t kind;
    float slope;
    __device__ __forceinline__ float operator()(float x) const
    {
        switch (kind) {
        case SODET_ACT_RELU:
            return x <= 0 ? 0 : x;
        case SODET_ACT_RELU6:
            return x <= 0 ? 0 : x >= 6 ? 6 : x;
        case SODET_ACT_LEAKY_RELU:
            return x > 0 ? x : slope * x;
        case SODET_ACT_HARD_SWISH:
            return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
        case SODET_ACT_HARD_SIGMOID:
            return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
        case SODET_ACT_SIGMOID:
            return 1 / (1 + expf(-x));
        case SODET_ACT_SILU:
            return x / (1 + expf(-x));
        default:
            return x;
        }
    }
};

/* r: the output, or the input of the kinds whose derivative needs it. */
struct activation_gradient {
    uint32_t kind;
    float slope;
    __device__ __forceinline__ float operator()(float r, float dy) const
    {
        switch (kind) {
        case SODET_ACT_RELU:
            return dy * (r <= 0 ? 0.0f : 1.0f);
        case SODET_ACT_RELU6:
            return dy * (r <= 0 || r >= 6 ? 0.0f : 1.0f);
        case SODET_ACT_LEAKY_RELU:
            return dy * (r > 0 ? 1.0f : slope);
        case SODET_ACT_HARD_SWISH:
            return dy * (r <= -3 ? 0.0f : r >= 3 ? 1.0f : (2 * r + 3) / 6);
        case SODET_ACT_HARD_SIGMOID:
            return dy * (r <= 0 || r >= 1 ? 0.0f : 1.0f / 6);
        case SODET_ACT_SIGMOID:
            return dy * (r * (1 - r));
        case SODET_ACT_SILU: {
            const float s = 1 / (1 + expf(-r));
            return dy * (s * (1 + r * (1 - s)));
        }
        default:
            return dy;
        }
    }
};

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_activation_attr *t = (const sodet_activation_attr *)a->attr;
    return device_flat(&a->out[0], &a->in[0], activation_value{t->kind, t->slope}, stream);
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_activation_attr *t = (const sodet_activation_attr *)a->attr;
    return device_flat(&a->out[0], &a->in[0], &a->in[1], activation_gradient{t->kind, t->slope}, stream);
}

extern "C" const sodet_cuda_kernel sodet_cuda_activation[] = {
    {sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, forward},
    {sizeof(sodet_cuda_kernel), SODET_CUDA_FLAT | SODET_CUDA_NARROW, NULL, backward}};
