/* The functions of activation.h on one number, in double: for the references of activation and conv2d. */
#ifndef SD_KERNELS_ACTIVATION_MATH_H
#define SD_KERNELS_ACTIVATION_MATH_H

#include <math.h>

#include "kernels/activation/activation.h"

/* Comparisons are written so that NaN falls through to a branch that keeps it. */
static inline double activation_of(uint32_t kind, double slope, double x)
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
        return 1 / (1 + exp(-x));
    case SODET_ACT_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

/* r: the output, or the input of the kinds whose derivative needs it. */
static inline double activation_slope(uint32_t kind, double slope, double r)
{
    switch (kind) {
    case SODET_ACT_RELU:
        return r <= 0 ? 0 : 1;
    case SODET_ACT_RELU6:
        return r <= 0 || r >= 6 ? 0 : 1;
    case SODET_ACT_LEAKY_RELU:
        return r > 0 ? 1 : slope;
    case SODET_ACT_HARD_SWISH:
        return r <= -3 ? 0 : r >= 3 ? 1 : (2 * r + 3) / 6;
    case SODET_ACT_HARD_SIGMOID:
        return r <= 0 || r >= 1 ? 0 : 1.0 / 6;
    case SODET_ACT_SIGMOID:
        return r * (1 - r);
    case SODET_ACT_SILU: {
        double s = 1 / (1 + exp(-r));
        return s * (1 + r * (1 - s));
    }
    default:
        return 1;
    }
}

#endif
