/* kernels/channels.h: walking over maps channel by channel, for the normalisations' CPU kernels.
 *
 * A stripe is what lies together in memory and belongs to the same channels of one sample: a plane of a plain map, or a block of channels
 * of a blocked one. Both are seen as positions of LANES numbers: in a blocked map a lane is a channel, in a plain one all lanes belong to
 * one channel, and up to LANES - 1 numbers are left over at the end. */
#ifndef SD_KERNELS_CHANNELS_H
#define SD_KERNELS_CHANNELS_H

#include "kernels/vector.h"

enum { CHANNELS_LANES = 16, CHANNELS_CHUNK = 64 /* positions that are added up in float before they go into a double */ };

typedef struct stripes {
    int64_t batch, channels, area;
    int64_t per_sample; /* stripes of a sample */
    int64_t block;      /* channels of a stripe: 1, 8 or 16 */
    int64_t lanes;      /* 16, or 8 where blocks are of 8 */
} stripes;

static inline stripes stripes_of(const sodet_tensor *t)
{
    stripes s = {.batch = t->shape.dim[0], .channels = t->shape.dim[1], .area = 1, .block = 1, .lanes = CHANNELS_LANES};
    for (uint32_t i = 2; i < t->shape.rank; i++)
        s.area *= t->shape.dim[i];
    if (t->layout == SODET_BLOCKED)
        s.block = s.lanes = t->block;
    s.per_sample = (s.channels + s.block - 1) / s.block;
    return s;
}

static inline int64_t stripes_count(const stripes *s)
{
    return s->batch * s->per_sample;
}

static inline int64_t stripes_channel(const stripes *s, int64_t stripe) /* the first one */
{
    return stripe % s->per_sample * s->block;
}

/* A vector over channels as the lanes of a stripe see it; 0 behind the last channel. */
SODET_INLINE void stripes_vector(const stripes *s, int64_t stripe, const float *vector, float *lane)
{
    int64_t first = stripes_channel(s, stripe);
    for (int64_t k = 0; k < s->lanes; k++) {
        int64_t c = s->block == 1 ? first : first + k;
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

/* Moments of each lane over `n` positions: sums of a chunk in float about the chunk's own mean, chunks merged in double. */
SODET_INLINE void moments_of_lanes(const float *x, int64_t n, moments *out, const int lanes)
{
    for (int k = 0; k < lanes; k++)
        out[k] = (moments){0, 0, 0};
    for (int64_t p = 0; p < n; p += CHANNELS_CHUNK) {
        const int64_t m = n - p < CHANNELS_CHUNK ? n - p : CHANNELS_CHUNK;
        const float *from = x + p * lanes, share = 1.0f / (float)m;
        float mean[CHANNELS_LANES], sum[CHANNELS_LANES] = {0}, squares[CHANNELS_LANES] = {0};
        /* about the first position, so that a large mean costs no digits */
        for (int64_t i = 0; i < m; i++)
            for (int k = 0; k < lanes; k++)
                sum[k] += from[i * lanes + k] - from[k];
        for (int k = 0; k < lanes; k++)
            mean[k] = sum[k] * share;
        for (int64_t i = 0; i < m; i++)
            for (int k = 0; k < lanes; k++) {
                float d = (from[i * lanes + k] - from[k]) - mean[k];
                squares[k] += d * d;
            }
        for (int k = 0; k < lanes; k++)
            moments_merge(&out[k], (moments){(double)m, (double)from[k] + (double)sum[k] / (double)m, (double)squares[k]});
    }
}

/* Moments of the channels of a stripe: out[block]. */
SODET_INLINE void stripe_moments(const stripes *s, const float *x, moments *out)
{
    if (s->block == 16) {
        moments_of_lanes(x, s->area, out, 16);
    } else if (s->block == 8) {
        moments_of_lanes(x, s->area, out, 8);
    } else {
        moments lane[CHANNELS_LANES], all = {0, 0, 0};
        int64_t positions = s->area / CHANNELS_LANES;
        moments_of_lanes(x, positions, lane, CHANNELS_LANES);
        for (int k = 0; k < CHANNELS_LANES; k++)
            moments_merge(&all, lane[k]);
        for (int64_t i = positions * CHANNELS_LANES; i < s->area; i++)
            moments_merge(&all, (moments){1, (double)x[i], 0});
        *out = all;
    }
}

SODET_INLINE void slopes_of_lanes(const float *x, const float *dy, int64_t n, const float *mean, double *plain, double *along,
                                  const int lanes)
{
    for (int k = 0; k < lanes; k++)
        plain[k] = along[k] = 0;
    for (int64_t p = 0; p < n; p += CHANNELS_CHUNK) {
        const int64_t m = n - p < CHANNELS_CHUNK ? n - p : CHANNELS_CHUNK;
        const float *from = x + p * lanes, *slope = dy + p * lanes;
        float a[CHANNELS_LANES] = {0}, b[CHANNELS_LANES] = {0};
        for (int64_t i = 0; i < m; i++)
            for (int k = 0; k < lanes; k++) {
                a[k] += slope[i * lanes + k];
                b[k] += slope[i * lanes + k] * (from[i * lanes + k] - mean[k]);
            }
        for (int k = 0; k < lanes; k++) {
            plain[k] += (double)a[k];
            along[k] += (double)b[k];
        }
    }
}

/* sum dy and sum dy * (x - mean) of the channels of a stripe; mean: as lanes. */
SODET_INLINE void stripe_slopes(const stripes *s, const float *x, const float *dy, const float *mean, double *plain, double *along)
{
    if (s->block == 16) {
        slopes_of_lanes(x, dy, s->area, mean, plain, along, 16);
    } else if (s->block == 8) {
        slopes_of_lanes(x, dy, s->area, mean, plain, along, 8);
    } else {
        double a[CHANNELS_LANES], b[CHANNELS_LANES];
        int64_t positions = s->area / CHANNELS_LANES;
        slopes_of_lanes(x, dy, positions, mean, a, b, CHANNELS_LANES);
        plain[0] = along[0] = 0;
        for (int k = 0; k < CHANNELS_LANES; k++) {
            plain[0] += a[k];
            along[0] += b[k];
        }
        for (int64_t i = positions * CHANNELS_LANES; i < s->area; i++) {
            plain[0] += (double)dy[i];
            along[0] += (double)dy[i] * ((double)x[i] - (double)mean[0]);
        }
    }
}

SODET_INLINE void scaled_lanes(float *y, const float *x, int64_t n, const float *mean, const float *factor, const float *shift,
                               const int lanes)
{
    for (int64_t p = 0; p < n; p++)
        for (int k = 0; k < lanes; k++)
            y[p * lanes + k] = (x[p * lanes + k] - mean[k]) * factor[k] + shift[k];
}

/* y = (x - mean) * factor + shift; vectors as lanes. */
SODET_INLINE void stripe_scaled(const stripes *s, float *y, const float *x, const float *mean, const float *factor, const float *shift)
{
    if (s->block == 16) {
        scaled_lanes(y, x, s->area, mean, factor, shift, 16);
    } else if (s->block == 8) {
        scaled_lanes(y, x, s->area, mean, factor, shift, 8);
    } else {
        for (int64_t i = 0; i < s->area; i++)
            y[i] = (x[i] - mean[0]) * factor[0] + shift[0];
    }
}

SODET_INLINE void sloped_lanes(float *dx, const float *x, const float *dy, int64_t n, const float *mean, const float *a, const float *b,
                               const float *c, const int lanes)
{
    for (int64_t p = 0; p < n; p++)
        for (int k = 0; k < lanes; k++)
            dx[p * lanes + k] = a[k] * dy[p * lanes + k] - b[k] * (x[p * lanes + k] - mean[k]) - c[k];
}

/* dx = a * dy - b * (x - mean) - c; vectors as lanes. */
SODET_INLINE void stripe_sloped(const stripes *s, float *dx, const float *x, const float *dy, const float *mean, const float *a,
                                const float *b, const float *c)
{
    if (s->block == 16) {
        sloped_lanes(dx, x, dy, s->area, mean, a, b, c, 16);
    } else if (s->block == 8) {
        sloped_lanes(dx, x, dy, s->area, mean, a, b, c, 8);
    } else {
        for (int64_t i = 0; i < s->area; i++)
            dx[i] = a[0] * dy[i] - b[0] * (x[i] - mean[0]) - c[0];
    }
}

#endif
