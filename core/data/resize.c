#include "core/data/resize.h"

#include <math.h>

uint64_t sd_resize_rows(uint32_t to_width)
{
    return (uint64_t)to_width * 7; /* two rows of three channels, and the weights */
}

uint64_t sd_resize_taps(uint32_t to_width)
{
    return (uint64_t)to_width * 2;
}

/* Left (upper) neighbour of output position i and the weight of the right (lower) one. */
static void tap(uint32_t i, double scale, uint32_t n, uint32_t *a, uint32_t *b, float *weight)
{
    double at = ((double)i + 0.5) * scale - 0.5;
    at = at < 0 ? 0 : at;
    double low = floor(at);
    uint32_t k = (uint32_t)low;
    *a = k < n ? k : n - 1;
    *b = k + 1 < n ? k + 1 : n - 1;
    *weight = (float)(at - low);
}

static void columns(uint32_t w, uint32_t to_w, int32_t *taps, float *weights)
{
    double scale = (double)w / to_w;
    for (uint32_t x = 0; x < to_w; x++) {
        uint32_t a, b;
        tap(x, scale, w, &a, &b, &weights[x]);
        taps[2 * x] = (int32_t)(a * 3);
        taps[2 * x + 1] = (int32_t)(b * 3);
    }
}

static void blend(const float *restrict a, const float *restrict b, float weight, float *restrict to, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) { /* a fixed count, so that the compiler makes vectors of it at -O2 */
        for (uint32_t k = 0; k < 8; k++)
            to[i + k] = a[i + k] + weight * (b[i + k] - a[i + k]);
    }
    for (; i < n; i++)
        to[i] = a[i] + weight * (b[i] - a[i]);
}

/* One body for both kinds of source: each needed source row is resampled across once and kept until it is passed. */
#define RESIZE(TYPE)                                                                                                                       \
    float *row[2] = {rows, rows + (uint64_t)to_w * 3}, *weights = rows + (uint64_t)to_w * 6;                                               \
    int64_t held[2] = {-1, -1};                                                                                                            \
    columns(w, to_w, taps, weights);                                                                                                       \
    for (uint32_t y = 0; y < to_h; y++) {                                                                                                  \
        uint32_t ys[2];                                                                                                                    \
        float weight;                                                                                                                      \
        tap(y, (double)h / to_h, h, &ys[0], &ys[1], &weight);                                                                              \
        if (held[1] == (int64_t)ys[0] && held[0] != (int64_t)ys[0]) {                                                                      \
            float *r = row[0];                                                                                                             \
            row[0] = row[1];                                                                                                               \
            row[1] = r;                                                                                                                    \
            held[0] = held[1];                                                                                                             \
            held[1] = -1;                                                                                                                  \
        }                                                                                                                                  \
        for (uint32_t k = 0; k < 2; k++) {                                                                                                 \
            if (held[k] == (int64_t)ys[k])                                                                                                 \
                continue;                                                                                                                  \
            const TYPE *in = from + (uint64_t)ys[k] * w * 3;                                                                               \
            float *out = row[k];                                                                                                           \
            for (uint32_t x = 0; x < to_w; x++, out += 3) {                                                                                \
                const TYPE *a = in + taps[2 * x], *b = in + taps[2 * x + 1];                                                               \
                for (uint32_t c = 0; c < 3; c++)                                                                                           \
                    out[c] = (float)a[c] + weights[x] * ((float)b[c] - (float)a[c]);                                                       \
            }                                                                                                                              \
            held[k] = (int64_t)ys[k];                                                                                                      \
        }                                                                                                                                  \
        blend(row[0], row[1], weight, to + (uint64_t)y * to_w * 3, to_w * 3);                                                              \
    }

void sd_resize_bytes(const uint8_t *from, uint32_t w, uint32_t h, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps)
{
    RESIZE(uint8_t)
}

void sd_resize_float(const float *from, uint32_t w, uint32_t h, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps)
{
    RESIZE(float)
}
