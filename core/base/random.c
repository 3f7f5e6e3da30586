/* Counter-based random numbers: every value is a function of (key, counter) alone, so a stream can be made anywhere, at any time
 * and on any thread. The mixing function is the output function of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
 * number generators", OOPSLA 2014; constants of Stafford's variant 13). */
#include "core/base/base.h"

#include <math.h>

uint64_t sd_fnv1a64(const void *bytes, uint64_t n, uint64_t h)
{
    const unsigned char *p = bytes;
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

uint64_t sd_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

sodet_stream sd_stream(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t link)
{
    /* Nested, not xored: swapping two of the numbers gives another stream. */
    uint64_t key = sd_mix64(sd_mix64(sd_mix64(sd_mix64(seed) ^ epoch) ^ sample) ^ link);
    return (sodet_stream){.key = key, .counter = 0};
}

uint64_t sd_stream_bits(sodet_stream *r)
{
    return sd_mix64(r->key ^ sd_mix64(r->counter++));
}

/* 53 bits: every value is a multiple of 2^-53 in [0, 1). */
static double unit(sodet_stream *r)
{
    return (double)(sd_stream_bits(r) >> 11) * 0x1p-53;
}

double sodet_stream_uniform(sodet_stream *r, double lo, double hi)
{
    double v = lo + (hi - lo) * unit(r);
    return v < hi || !(lo < hi) ? v : nextafter(hi, lo); /* the product may round up to hi */
}

uint32_t sodet_stream_below(sodet_stream *r, uint32_t n)
{
    /* Lemire, "Fast random integer generation in an interval" (2019): rejects the few values that would count twice. */
    if (n == 0)
        return 0;
    uint32_t threshold = (0u - n) % n;
    for (;;) {
        uint64_t product = (sd_stream_bits(r) >> 32) * n;
        if ((uint32_t)product >= threshold)
            return (uint32_t)(product >> 32);
    }
}

uint32_t sodet_stream_chance(sodet_stream *r, double probability)
{
    return unit(r) < probability;
}

double sd_stream_normal(sodet_stream *r)
{
    /* Box-Muller; 1 - u lies in (0, 1], so the logarithm is finite. */
    double u = 1 - unit(r), v = unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586476925 * v);
}

void sd_shuffle(uint64_t *items, uint64_t n, sodet_stream *r)
{
    for (uint64_t i = n; i > 1; i--) {
        /* Above 2^32 items the bias of a plain remainder is below 2^-31. */
        uint64_t j = i <= UINT32_MAX ? sodet_stream_below(r, (uint32_t)i) : sd_stream_bits(r) % i;
        uint64_t t = items[i - 1];
        items[i - 1] = items[j];
        items[j] = t;
    }
}
