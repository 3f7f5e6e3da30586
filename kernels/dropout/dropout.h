/* dropout: y = keep ? x / (1 - rate) : 0, keep with probability 1 - rate (Srivastava et al. 2014, scaled while training).
 * The decision on element i (in logical, row-major order) is a function of (seed of the run, step, key, i) alone, so it is the same for
 * any backend and number of threads, and backward makes it again instead of remembering it: the gradient is part 0 put on dy.
 *
 * Part 0  in x   out y.  Tolerance: 1 ulp, the decisions exactly. */
#ifndef SODET_KERNELS_DROPOUT_H
#define SODET_KERNELS_DROPOUT_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_dropout_attr {
    uint64_t key; /* from the layer's path */
    float rate;   /* 0 <= rate < 1 */
    uint32_t reserved;
} sodet_dropout_attr;

/* x itself if the graph does not train or the rate is 0. */
SODET_EXPORT sodet_value sodet_dropout(sodet_graph *g, const char *name, sodet_value x, float rate);

/* splitmix64's output function (Steele et al. 2014). */
SODET_HD uint64_t sodet_dropout_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}
SODET_HD uint64_t sodet_dropout_stream(uint64_t seed, uint64_t step, uint64_t key)
{
    return sodet_dropout_mix(sodet_dropout_mix(sodet_dropout_mix(seed) ^ step) ^ key);
}
/* Whether element i lives: its 24 random bits are not below rate * 2^24. */
SODET_HD int sodet_dropout_keeps(uint64_t stream, uint64_t i, float rate)
{
    return (float)(sodet_dropout_mix(stream ^ (i * 0x9E3779B97F4A7C15ull)) >> 40) >= rate * 16777216.0f;
}

#ifdef __cplusplus
}
#endif
#endif
