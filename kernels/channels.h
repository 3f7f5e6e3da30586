/* kernels/channels.h: walking over maps channel by channel, for the normalisations' CPU kernels.
 *
 * A stripe is what lies together in memory and belongs to the same channels of one sample: a plane of a plain map (block = 1), or a block of
 * channels of a blocked one (block = 8 or 16). It is read as vectors of LANES numbers, whatever the block: lane k belongs to channel
 * k % block of the stripe, and so does number k of what is left over at the end. */
#ifndef SD_KERNELS_CHANNELS_H
#define SD_KERNELS_CHANNELS_H

#include "kernels/vector.h"

enum { LANES = 16, CHUNK = 64 /* vectors that are added up in float before they go into a double */ };

typedef struct stripes {
    int64_t batch, channels, area;
    int64_t per_sample; /* stripes of a sample */
    int64_t block;      /* channels of a stripe */
    int64_t vectors, rest;
} stripes;

static inline stripes stripes_of(const sodet_tensor *t)
{
    stripes s = {.batch = t->shape.dim[0], .channels = t->shape.dim[1], .area = 1, .block = t->layout == SODET_BLOCKED ? t->block : 1};
    for (uint32_t i = 2; i < t->shape.rank; i++)
        s.area *= t->shape.dim[i];
    s.per_sample = (s.channels + s.block - 1) / s.block;
    s.vectors = s.area * s.block / LANES;
    s.rest = s.area * s.block % LANES;
    return s;
}

static inline int64_t stripes_count(const stripes *s)
{
    return s->batch * s->per_sample;
}

/* Channel of lane k; behind the last one in the padding of a blocked map. */
static inline int64_t stripes_channel(const stripes *s, int64_t stripe, int64_t k)
{
    return stripe % s->per_sample * s->block + k % s->block;
}

/* A vector over channels as the lanes of a stripe see it; 0 behind the last channel. */
SODET_INLINE void stripes_vector(const stripes *s, int64_t stripe, const float *vector, float *lane)
{
    for (int64_t k = 0; k < LANES; k++) {
        int64_t c = stripes_channel(s, stripe, k);
        lane[k] = c < s->channels ? vector[c] : 0;
    }
}

typedef struct moments {
    double count, mean, squares;
} moments;

/* Chan, Golub and LeVeque 1979. */
static inline void moments_merge(moments *a, moments b)
{
    double n = a->count + b.count, d = b.mean - a->mean;
    if (b.count == 0)
        return;
    a->squares += b.squares + d * d * (a->count * b.count / n);
    a->mean += d * (b.count / n);
    a->count = n;
}

/* Moments of the channels of a stripe, out[block]: of each lane of a chunk in float about the chunk's own mean, chunks merged in double. */
SODET_INLINE void stripe_moments(const stripes *s, const float *x, moments *out)
{
    moments lane[LANES] = {{0, 0, 0}};
    for (int64_t v = 0; v < s->vectors; v += CHUNK) {
        const int64_t m = s->vectors - v < CHUNK ? s->vectors - v : CHUNK;
        const float *from = x + v * LANES;
        const vector16 first = vector16_at(from); /* about the first one, so that a large mean costs no digits */
        vector16 sum = {0}, squares = {0};
        for (int64_t i = 0; i < m; i++)
            sum += vector16_at(from + i * LANES) - first;
        const vector16 mean = sum / (float)m;
        for (int64_t i = 0; i < m; i++) {
            const vector16 d = (vector16_at(from + i * LANES) - first) - mean;
            squares += d * d;
        }
        for (int k = 0; k < LANES; k++)
            moments_merge(&lane[k], (moments){(double)m, (double)from[k] + (double)sum[k] / (double)m, (double)squares[k]});
    }
    for (int64_t c = 0; c < s->block; c++)
        out[c] = (moments){0, 0, 0};
    for (int k = 0; k < LANES; k++)
        moments_merge(&out[k % s->block], lane[k]);
    for (int64_t k = 0; k < s->rest; k++)
        moments_merge(&out[k % s->block], (moments){1, (double)x[s->vectors * LANES + k], 0});
}

/* sum dy and sum dy * (x - mean) of the channels of a stripe; mean: as lanes. */
SODET_INLINE void stripe_slopes(const stripes *s, const float *x, const float *dy, const float *mean, double *plain, double *along)
{
    double all[2][LANES] = {{0}};
    const vector16 centre = vector16_at(mean);
    for (int64_t v = 0; v < s->vectors; v += CHUNK) {
        const int64_t m = s->vectors - v < CHUNK ? s->vectors - v : CHUNK;
        vector16 a = {0}, b = {0};
        for (int64_t i = v; i < v + m; i++) {
            const vector16 slope = vector16_at(dy + i * LANES);
            a += slope;
            b += slope * (vector16_at(x + i * LANES) - centre);
        }
        for (int k = 0; k < LANES; k++) {
            all[0][k] += (double)a[k];
            all[1][k] += (double)b[k];
        }
    }
    for (int64_t c = 0; c < s->block; c++)
        plain[c] = along[c] = 0;
    for (int k = 0; k < LANES; k++) {
        plain[k % s->block] += all[0][k];
        along[k % s->block] += all[1][k];
    }
    for (int64_t k = 0; k < s->rest; k++) {
        const int64_t i = s->vectors * LANES + k;
        plain[k % s->block] += (double)dy[i];
        along[k % s->block] += (double)dy[i] * ((double)x[i] - (double)mean[k]);
    }
}

/* y = (x - mean) * factor + shift; vectors as lanes. */
SODET_INLINE void stripe_scaled(const stripes *s, float *y, const float *x, const float *mean, const float *factor, const float *shift)
{
    const vector16 m = vector16_at(mean), f = vector16_at(factor), b = vector16_at(shift);
    for (int64_t i = 0; i < s->vectors * LANES; i += LANES)
        vector16_at(y + i) = (vector16_at(x + i) - m) * f + b;
    for (int64_t k = 0, i = s->vectors * LANES; k < s->rest; k++, i++)
        y[i] = (x[i] - mean[k]) * factor[k] + shift[k];
}

/* dx = a * dy - b * (x - mean) - c; vectors as lanes. */
SODET_INLINE void stripe_sloped(const stripes *s, float *dx, const float *x, const float *dy, const float *mean, const float *a,
                                const float *b, const float *c)
{
    const vector16 m = vector16_at(mean), va = vector16_at(a), vb = vector16_at(b), vc = vector16_at(c);
    for (int64_t i = 0; i < s->vectors * LANES; i += LANES)
        vector16_at(dx + i) = va * vector16_at(dy + i) - vb * (vector16_at(x + i) - m) - vc;
    for (int64_t k = 0, i = s->vectors * LANES; k < s->rest; k++, i++)
        dx[i] = a[k] * dy[i] - b[k] * (x[i] - mean[k]) - c[k];
}

#endif
