#include "core/data/rgb.h"

#include <string.h>

#include "kernels/vector.h"

enum { LANES = 8, CHUNK = 256 };

SODET_CLONES void sd_rgb_floats(const uint8_t *restrict from, float *restrict to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) { /* a fixed count, so that the compiler makes vectors of it at -O2 */
        for (size_t k = 0; k < 16; k++)
            to[i + k] = (float)from[i + k];
    }
    for (; i < n; i++)
        to[i] = (float)from[i];
}

/* Eight pixels are three vectors x, y, z; the numbers below are places in two vectors taken as one of sixteen. */
SODET_CLONES void sd_rgb_apart(const float *rgb, float *red, float *green, float *blue, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES, rgb += 3 * LANES) {
        vector8 x = vector8_at(rgb), y = vector8_at(rgb + LANES), z = vector8_at(rgb + 2 * LANES);
        vector8_at(red + i) =
            __builtin_shufflevector(__builtin_shufflevector(x, y, 0, 3, 6, 9, 12, 15, -1, -1), z, 0, 1, 2, 3, 4, 5, 10, 13);
        vector8_at(green + i) =
            __builtin_shufflevector(__builtin_shufflevector(x, y, 1, 4, 7, 10, 13, -1, -1, -1), z, 0, 1, 2, 3, 4, 8, 11, 14);
        vector8_at(blue + i) =
            __builtin_shufflevector(__builtin_shufflevector(x, y, 2, 5, 8, 11, 14, -1, -1, -1), z, 0, 1, 2, 3, 4, 9, 12, 15);
    }
    for (; i < n; i++, rgb += 3) {
        red[i] = rgb[0];
        green[i] = rgb[1];
        blue[i] = rgb[2];
    }
}

SODET_CLONES void sd_rgb_together(const float *red, const float *green, const float *blue, float *rgb, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES, rgb += 3 * LANES) {
        vector8 r = vector8_at(red + i), g = vector8_at(green + i), b = vector8_at(blue + i);
        vector8_at(rgb) = __builtin_shufflevector(__builtin_shufflevector(r, g, 0, 8, -1, 1, 9, -1, 2, 10), b, 0, 1, 8, 3, 4, 9, 6, 7);
        vector8_at(rgb + LANES) =
            __builtin_shufflevector(__builtin_shufflevector(r, g, -1, 3, 11, -1, 4, 12, -1, 5), b, 10, 1, 2, 11, 4, 5, 12, 7);
        vector8_at(rgb + 2 * LANES) =
            __builtin_shufflevector(__builtin_shufflevector(r, g, 13, -1, 6, 14, -1, 7, 15, -1), b, 0, 13, 2, 3, 14, 5, 6, 15);
    }
    for (; i < n; i++, rgb += 3) {
        rgb[0] = red[i];
        rgb[1] = green[i];
        rgb[2] = blue[i];
    }
}

void sd_rgb_grey(const float *rgb, float *grey, size_t n)
{
    for (size_t i = 0; i < n; i++, rgb += 3)
        grey[i] = 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

void sd_rgb_recolour(const sd_recolour *changes, uint32_t n_changes, float *rgb, size_t n)
{
    _Alignas(64) float plane[3][CHUNK];
    for (size_t at = 0; at < n && n_changes; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK, whole = (m + 15) / 16 * 16;
        sd_rgb_apart(rgb + 3 * at, plane[0], plane[1], plane[2], m);
        for (uint32_t c = 0; c < 3; c++)
            memset(plane[c] + m, 0, (whole - m) * sizeof *plane[c]);
        for (uint32_t i = 0; i < n_changes; i++)
            changes[i].change(changes[i].how, plane[0], plane[1], plane[2], (uint32_t)whole);
        sd_rgb_together(plane[0], plane[1], plane[2], rgb + 3 * at, m);
    }
}
