/* kernels/vector.h: what the CPU kernels (<op>_cpu.c) share: vectors, pieces of flat tensors, and exp and log that a compiler can vectorise. */
#ifndef SD_KERNELS_VECTOR_H
#define SD_KERNELS_VECTOR_H

#include <math.h>
#include <string.h>

#include "sodet/op.h"

#define SODET_INLINE static inline __attribute__((always_inline))

/* Sixteen floats at once, whatever the machine's registers hold; anywhere in memory: vector16_at(p) is what lies at p. */
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));
#define vector16_at(p) (*(vector16 *)(uintptr_t)(p))
/* Eight, for what compares: gcc 12 takes comparisons of vectors wider than the registers apart into scalar ones. */
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t vector8_mask __attribute__((vector_size(32), aligned(4), may_alias));
#define vector8_at(p) (*(vector8 *)(uintptr_t)(p))
/* 0 where v <= 0; elsewhere, and where v is NaN, what passes */
#define vector8_open(v, passes) ((vector8)(~(vector8_mask)((v) <= 0) & (vector8_mask)(passes)))

/* Flat kernels work in pieces of this many elements. */
#define VECTOR_PIECE 2048

/* Elements that a tensor takes in memory, a blocked one's padding channels included. */
static inline int64_t vector_storage(const sodet_tensor *t)
{
    if (t->layout != SODET_BLOCKED)
        return sodet_elements(&t->shape);
    int64_t blocks = (t->shape.dim[1] + t->block - 1) / t->block;
    return t->shape.dim[0] * blocks * t->shape.dim[2] * t->shape.dim[3] * t->block;
}

static inline int64_t vector_pieces(const sodet_tensor *t)
{
    return (vector_storage(t) + VECTOR_PIECE - 1) / VECTOR_PIECE;
}

/* Elements [*first, *end) of the pieces [begin, end_piece). */
static inline void vector_range(const sodet_tensor *t, int64_t begin, int64_t end_piece, int64_t *first, int64_t *end)
{
    int64_t n = vector_storage(t);
    *first = begin * VECTOR_PIECE < n ? begin * VECTOR_PIECE : n;
    *end = end_piece * VECTOR_PIECE < n ? end_piece * VECTOR_PIECE : n;
}

/* Sets the padding channels among the elements [first, end) of a blocked float tensor to zero: for functions that do not give 0 for zeros. The
 * bounds are multiples of the block. */
static inline void vector_clear_padding(const sodet_tensor *t, int64_t first, int64_t end)
{
    if (t->layout != SODET_BLOCKED || t->shape.dim[1] % t->block == 0)
        return;
    float *y = t->data;
    int64_t block = t->block, map = t->shape.dim[2] * t->shape.dim[3] * block, blocks = (t->shape.dim[1] + block - 1) / block;
    int64_t used = t->shape.dim[1] % block;
    for (int64_t i = first; i < end;) {
        int64_t plane = i / map, stop = (plane + 1) * map < end ? (plane + 1) * map : end;
        if (plane % blocks == blocks - 1)
            for (; i < stop; i += block)
                for (int64_t k = used; k < block; k++)
                    y[i + k] = 0;
        i = stop;
    }
}

/* e^x, at most 2 units in the last place from the true value; 0 below -103.97 (results below the normal numbers lose digits), infinity above
 * 88.72, NaN for NaN. Cody and Waite's reduction; coefficients of Cephes' expf (Moshier 1992). */
SODET_INLINE float vector_exp(float x)
{
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;                     /* NaN passes both */
    float shifted = c * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    float k = shifted - 12582912.0f;
    float r = (c - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* 2^k in two factors, so that neither leaves the normal numbers */
    int32_t whole;
    memcpy(&whole, &shifted, sizeof whole);
    whole -= 0x4b400000;
    int32_t half = whole >> 1, rest = whole - half;
    uint32_t a_bits = (uint32_t)(half + 127) << 23, b_bits = (uint32_t)(rest + 127) << 23;
    float a, b;
    memcpy(&a, &a_bits, sizeof a);
    memcpy(&b, &b_bits, sizeof b);
    float y = p * a * b;
    return x != x ? x : y;
}

/* ln x, at most 2 units in the last place; -infinity for 0, NaN below, infinity for infinity. Coefficients of Cephes' logf. */
SODET_INLINE float vector_log(float x)
{
    float tiny = x < 1.17549435e-38f ? 8388608.0f : 1.0f; /* numbers below the normal ones are lifted by 2^23 */
    float lifted = x * tiny;
    int32_t bits;
    memcpy(&bits, &lifted, sizeof bits);
    int32_t e = (int32_t)((uint32_t)bits - 0x3f3504f3u) >> 23; /* mantissa in [sqrt(1/2), sqrt(2)) */
    int32_t m_bits = (int32_t)((uint32_t)bits - ((uint32_t)e << 23));
    float m;
    memcpy(&m, &m_bits, sizeof m);
    float k = (float)e - (tiny != 1.0f ? 23.0f : 0.0f);
    float f = m - 1.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float y = f * z * p - k * 2.12194440e-4f - 0.5f * z;
    y = (f + y) + k * 0.693359375f;
    y = x == INFINITY ? INFINITY : y;
    y = x == 0 ? -INFINITY : y;
    return x < 0 || x != x ? NAN : y;
}

#endif
