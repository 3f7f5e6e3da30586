/* The source positions of resize.h, for every backend. */
#ifndef SD_KERNELS_RESIZE_MATH_H
#define SD_KERNELS_RESIZE_MATH_H

#include "sodet/base.h"

SODET_HD int64_t resize_nearest(int64_t i, int64_t in, int64_t out)
{
    return i * in / out;
}

typedef struct resize_pair { /* x[low] * (1 - weight) + x[high] * weight */
    int64_t low, high;
    double weight;
} resize_pair;

SODET_HD resize_pair resize_bilinear(int64_t i, int64_t in, int64_t out)
{
    double at = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    if (at < 0)
        at = 0;
    resize_pair p = {(int64_t)at, (int64_t)at + 1, at - (double)(int64_t)at};
    if (p.low > in - 1)
        p.low = in - 1;
    if (p.high > in - 1)
        p.high = in - 1;
    return p;
}

#endif
