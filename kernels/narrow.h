/* kernels/narrow.h: bf16, the upper half of a float32. Rounding is to nearest, ties to even, as the processors' own instructions do; a NaN
 * stays one. */
#ifndef SD_KERNELS_NARROW_H
#define SD_KERNELS_NARROW_H

#include <stdint.h>
#include <string.h>

#include "kernels/vector.h"

SODET_INLINE uint16_t narrow_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

SODET_INLINE float narrow_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return v;
}

SODET_INLINE void narrow_widen(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = narrow_value(from[i]);
}

SODET_INLINE void narrow_round(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = narrow_bits(from[i]);
}
#endif
