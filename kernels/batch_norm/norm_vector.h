/* What the CPU kernels of the batch norms share: sums over a map's pixels for each channel, and passes over it.
 *
 * A map is cut into pieces (image, group of channels, run of pixels) that fit the first-level cache. A piece's sums stand in the scratch;
 * the pieces of a channel are then merged in double, in order, so that a result depends neither on threads nor on their number.
 * Blocked maps: a group is a block, its channels are the lanes of vectors. Plain maps: a group is one channel, pixels are the lanes. */
#ifndef SD_KERNELS_NORM_VECTOR_H
#define SD_KERNELS_NORM_VECTOR_H

#include "kernels/vector.h"

#define NORM_LANES  16   /* most channels of a block; partial sums of a plain run */
#define NORM_FLOATS 4096 /* of a piece */

typedef struct norm_map {
    int64_t batch, channels, area, groups, lanes, run,
        runs; /* lanes: channels of a group; run: pixels of a piece; runs: pieces of a plane */
} norm_map;

static inline norm_map norm_map_of(const sodet_tensor *t)
{
    norm_map m = {.batch = t->shape.dim[0], .channels = t->shape.dim[1], .area = 1, .lanes = t->layout == SODET_BLOCKED ? t->block : 1};
    for (uint32_t i = 2; i < t->shape.rank; i++)
        m.area *= t->shape.dim[i];
    m.groups = (m.channels + m.lanes - 1) / m.lanes;
    m.run = NORM_FLOATS / m.lanes;
    m.runs = (m.area + m.run - 1) / m.run;
    return m;
}

static inline int64_t norm_pieces(const norm_map *m)
{
    return m->batch * m->groups * m->runs;
}

typedef struct norm_piece {
    int64_t group, at, pixels; /* at: first element; pixels of each lane */
} norm_piece;

static inline norm_piece norm_piece_of(const norm_map *m, int64_t piece)
{
    int64_t plane = piece / m->runs, first = piece % m->runs * m->run;
    return (norm_piece){plane % m->groups, (plane * m->area + first) * m->lanes, first + m->run < m->area ? m->run : m->area - first};
}

/* Channels of a group that are no padding. */
static inline int64_t norm_lanes_used(const norm_map *m, int64_t group)
{
    int64_t left = m->channels - group * m->lanes;
    return left < m->lanes ? left : m->lanes;
}

/* Two sums for each piece and lane. */
typedef struct norm_partial {
    double first[NORM_LANES];
    float second[NORM_LANES];
} norm_partial;

static inline uint64_t norm_scratch(const norm_map *m)
{
    return (uint64_t)norm_pieces(m) * sizeof(norm_partial);
}

/* For kernels' scratch(): it is asked before layouts are known, so for the smaller pieces of the two. */
static inline uint64_t norm_scratch_of(const sodet_shape *s)
{
    int64_t area = 1;
    for (uint32_t i = 2; i < s->rank; i++)
        area *= s->dim[i];
    int64_t worst = 0;
    for (int64_t lanes = 1; lanes <= NORM_LANES; lanes *= NORM_LANES / 2) { /* 1, 8; 16 has as many pieces as 8 at most */
        int64_t run = NORM_FLOATS / lanes, n = s->dim[0] * ((s->dim[1] + lanes - 1) / lanes) * ((area + run - 1) / run);
        worst = n > worst ? n : worst;
    }
    int64_t run = NORM_FLOATS / NORM_LANES, n = s->dim[0] * ((s->dim[1] + NORM_LANES - 1) / NORM_LANES) * ((area + run - 1) / run);
    worst = n > worst ? n : worst;
    return (uint64_t)worst * sizeof(norm_partial);
}

/* ---- mean and sum of squared deviations of a piece ---- */
SODET_INLINE void norm_moments_lanes(const float *x, int64_t pixels, const int64_t lanes, norm_partial *p)
{
    float shift[NORM_LANES], sum[NORM_LANES], mean[NORM_LANES], square[NORM_LANES];
    for (int64_t k = 0; k < lanes; k++) {
        shift[k] = x[k]; /* differences from a value nearby lose no digits */
        sum[k] = square[k] = 0;
    }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < lanes; k++)
            sum[k] += x[i * lanes + k] - shift[k];
    for (int64_t k = 0; k < lanes; k++)
        mean[k] = sum[k] / (float)pixels;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < lanes; k++) {
            float d = x[i * lanes + k] - shift[k] - mean[k];
            square[k] += d * d;
        }
    for (int64_t k = 0; k < lanes; k++) {
        p->first[k] = (double)shift[k] + (double)mean[k];
        p->second[k] = square[k];
    }
}

SODET_INLINE void norm_moments_run(const float *x, int64_t pixels, norm_partial *p)
{
    float shift = x[0], lane[NORM_LANES] = {0}, total = 0;
    int64_t whole = pixels / NORM_LANES * NORM_LANES;
    for (int64_t i = 0; i < whole; i += NORM_LANES)
        for (int64_t k = 0; k < NORM_LANES; k++)
            lane[k] += x[i + k] - shift;
    for (int64_t i = whole; i < pixels; i++)
        lane[i - whole] += x[i] - shift;
    for (int64_t k = 0; k < NORM_LANES; k++)
        total += lane[k];
    float mean = total / (float)pixels;
    for (int64_t k = 0; k < NORM_LANES; k++)
        lane[k] = 0;
    for (int64_t i = 0; i < whole; i += NORM_LANES)
        for (int64_t k = 0; k < NORM_LANES; k++) {
            float d = x[i + k] - shift - mean;
            lane[k] += d * d;
        }
    for (int64_t i = whole; i < pixels; i++) {
        float d = x[i] - shift - mean;
        lane[i - whole] += d * d;
    }
    total = 0;
    for (int64_t k = 0; k < NORM_LANES; k++)
        total += lane[k];
    p->first[0] = (double)shift + (double)mean;
    p->second[0] = total;
}

SODET_CLONES __attribute__((unused)) static void norm_moments(const norm_map *m, const float *x, norm_partial *partial, int64_t begin,
                                                              int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) {
        norm_piece p = norm_piece_of(m, piece);
        if (m->lanes == 16)
            norm_moments_lanes(x + p.at, p.pixels, 16, &partial[piece]);
        else if (m->lanes == 8)
            norm_moments_lanes(x + p.at, p.pixels, 8, &partial[piece]);
        else
            norm_moments_run(x + p.at, p.pixels, &partial[piece]);
    }
}

/* Merges the pieces of channel (group, lane): mean, and sum of squared deviations from it (Chan et al. 1979). */
static inline void norm_merge_moments(const norm_map *m, const norm_partial *partial, int64_t group, int64_t lane, double *mean,
                                      double *square)
{
    double sum = 0, all = (double)(m->batch * m->area), deviation = 0;
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->runs; i++) {
            int64_t piece = (n * m->groups + group) * m->runs + i;
            sum += (double)norm_piece_of(m, piece).pixels * partial[piece].first[lane];
        }
    *mean = all > 0 ? sum / all : 0;
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->runs; i++) {
            int64_t piece = (n * m->groups + group) * m->runs + i;
            double d = partial[piece].first[lane] - *mean;
            deviation += (double)partial[piece].second[lane] + (double)norm_piece_of(m, piece).pixels * d * d;
        }
    *square = deviation;
}

/* ---- y = (x - mean) * factor + offset, perhaps followed by relu ---- */
typedef struct norm_affine { /* of a group */
    float mean[NORM_LANES], factor[NORM_LANES], offset[NORM_LANES];
} norm_affine;

SODET_INLINE void norm_apply_lanes(const float *x, float *y, int64_t pixels, const int64_t lanes, const norm_affine *a, const int relu)
{
    float mean[NORM_LANES], factor[NORM_LANES], offset[NORM_LANES];
    for (int64_t k = 0; k < lanes; k++)
        mean[k] = a->mean[k], factor[k] = a->factor[k], offset[k] = a->offset[k];
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < lanes; k++) {
            float v = (x[i * lanes + k] - mean[k]) * factor[k] + offset[k];
            y[i * lanes + k] = relu ? (v <= 0 ? 0 : v) : v;
        }
}

SODET_INLINE void norm_apply_run(const float *x, float *y, int64_t pixels, const norm_affine *a, const int relu)
{
    float mean = a->mean[0], factor = a->factor[0], offset = a->offset[0];
    for (int64_t i = 0; i < pixels; i++) {
        float v = (x[i] - mean) * factor + offset;
        y[i] = relu ? (v <= 0 ? 0 : v) : v;
    }
}

/* affine: one for each group. y may be x. Backwards, as below: the pass before ended with what is now at hand in the cache. */
SODET_CLONES __attribute__((unused)) static void norm_apply(const norm_map *m, const float *x, float *y, const norm_affine *affine,
                                                            int relu, int64_t begin, int64_t end)
{
    for (int64_t piece = end; piece-- > begin;) {
        norm_piece p = norm_piece_of(m, piece);
        const norm_affine *a = &affine[p.group];
        if (m->lanes == 16 && relu)
            norm_apply_lanes(x + p.at, y + p.at, p.pixels, 16, a, 1);
        else if (m->lanes == 16)
            norm_apply_lanes(x + p.at, y + p.at, p.pixels, 16, a, 0);
        else if (m->lanes == 8)
            norm_apply_lanes(x + p.at, y + p.at, p.pixels, 8, a, relu);
        else
            norm_apply_run(x + p.at, y + p.at, p.pixels, a, relu);
    }
}

/* ---- sum dy and sum dy * (x - mean); with a relu behind the norm, dy counts where (x - mean) * factor + offset > 0 ---- */
SODET_INLINE void norm_sums_lanes(const float *x, const float *dy, int64_t pixels, const int64_t lanes, const norm_affine *a,
                                  const int relu, norm_partial *p)
{
    float mean[NORM_LANES], factor[NORM_LANES], offset[NORM_LANES], plain[NORM_LANES], along[NORM_LANES];
    for (int64_t k = 0; k < lanes; k++) {
        mean[k] = a->mean[k], factor[k] = a->factor[k], offset[k] = a->offset[k];
        plain[k] = along[k] = 0;
    }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < lanes; k++) {
            float d = x[i * lanes + k] - mean[k], g = dy[i * lanes + k];
            if (relu)
                g = d * factor[k] + offset[k] <= 0 ? 0 : g;
            plain[k] += g;
            along[k] += g * d;
        }
    for (int64_t k = 0; k < lanes; k++) {
        p->first[k] = (double)plain[k];
        p->second[k] = along[k];
    }
}

SODET_INLINE void norm_sums_run(const float *x, const float *dy, int64_t pixels, const norm_affine *a, const int relu, norm_partial *p)
{
    float mean = a->mean[0], factor = a->factor[0], offset = a->offset[0], plain[NORM_LANES] = {0}, along[NORM_LANES] = {0};
    int64_t whole = pixels / NORM_LANES * NORM_LANES;
    for (int64_t i = 0; i < pixels; i += NORM_LANES) {
        int64_t n = i < whole ? NORM_LANES : pixels - whole;
        for (int64_t k = 0; k < n; k++) {
            float d = x[i + k] - mean, g = dy[i + k];
            if (relu)
                g = d * factor + offset <= 0 ? 0 : g;
            plain[k] += g;
            along[k] += g * d;
        }
    }
    p->first[0] = 0;
    p->second[0] = 0;
    double sum = 0;
    for (int64_t k = 0; k < NORM_LANES; k++) {
        p->first[0] += (double)plain[k];
        sum += (double)along[k];
    }
    p->second[0] = (float)sum;
}

SODET_CLONES __attribute__((unused)) static void norm_sums(const norm_map *m, const float *x, const float *dy, const norm_affine *affine,
                                                           int relu, norm_partial *partial, int64_t begin, int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) {
        norm_piece p = norm_piece_of(m, piece);
        const norm_affine *a = &affine[p.group];
        if (m->lanes == 16 && relu)
            norm_sums_lanes(x + p.at, dy + p.at, p.pixels, 16, a, 1, &partial[piece]);
        else if (m->lanes == 16)
            norm_sums_lanes(x + p.at, dy + p.at, p.pixels, 16, a, 0, &partial[piece]);
        else if (m->lanes == 8)
            norm_sums_lanes(x + p.at, dy + p.at, p.pixels, 8, a, relu, &partial[piece]);
        else
            norm_sums_run(x + p.at, dy + p.at, p.pixels, a, relu, &partial[piece]);
    }
}

static inline void norm_merge_sums(const norm_map *m, const norm_partial *partial, int64_t group, int64_t lane, double *plain,
                                   double *along)
{
    *plain = *along = 0;
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->runs; i++) {
            const norm_partial *p = &partial[(n * m->groups + group) * m->runs + i];
            *plain += p->first[lane];
            *along += (double)p->second[lane];
        }
}

/* ---- dx = a * dy - b * (x - mean) - c ---- */
typedef struct norm_back { /* of a group */
    float a[NORM_LANES], b[NORM_LANES], c[NORM_LANES];
} norm_back;

SODET_INLINE void norm_back_lanes(const float *x, const float *dy, float *dx, int64_t pixels, const int64_t lanes, const norm_affine *f,
                                  const norm_back *w, const int relu)
{
    float mean[NORM_LANES], factor[NORM_LANES], offset[NORM_LANES], a[NORM_LANES], b[NORM_LANES], c[NORM_LANES];
    for (int64_t k = 0; k < lanes; k++) {
        mean[k] = f->mean[k], factor[k] = f->factor[k], offset[k] = f->offset[k];
        a[k] = w->a[k], b[k] = w->b[k], c[k] = w->c[k];
    }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < lanes; k++) {
            float d = x[i * lanes + k] - mean[k], g = dy[i * lanes + k];
            if (relu)
                g = d * factor[k] + offset[k] <= 0 ? 0 : g;
            dx[i * lanes + k] = a[k] * g - b[k] * d - c[k];
        }
}

/* dx may be dy or x. */
SODET_CLONES __attribute__((unused)) static void norm_backward(const norm_map *m, const float *x, const float *dy, float *dx,
                                                               const norm_affine *affine, const norm_back *back, int relu, int64_t begin,
                                                               int64_t end)
{
    for (int64_t piece = end; piece-- > begin;) {
        norm_piece p = norm_piece_of(m, piece);
        const norm_affine *f = &affine[p.group];
        const norm_back *w = &back[p.group];
        if (m->lanes == 16 && relu) {
            norm_back_lanes(x + p.at, dy + p.at, dx + p.at, p.pixels, 16, f, w, 1);
        } else if (m->lanes == 16) {
            norm_back_lanes(x + p.at, dy + p.at, dx + p.at, p.pixels, 16, f, w, 0);
        } else if (m->lanes == 8) {
            norm_back_lanes(x + p.at, dy + p.at, dx + p.at, p.pixels, 8, f, w, relu);
        } else {
            float mean = f->mean[0], factor = f->factor[0], offset = f->offset[0], a = w->a[0], b = w->b[0], c = w->c[0];
            for (int64_t i = p.at; i < p.at + p.pixels; i++) {
                float d = x[i] - mean, g = dy[i];
                if (relu)
                    g = d * factor + offset <= 0 ? 0 : g;
                dx[i] = a * g - b * d - c;
            }
        }
    }
}

/* ---- scratch of the kernels: [groups] norm_affine, [groups] norm_back, [pieces] norm_partial ---- */
static inline uint64_t norm_kernel_scratch(const sodet_shape *s)
{
    return (uint64_t)s->dim[1] * (sizeof(norm_affine) + sizeof(norm_back)) + norm_scratch_of(s) + 64;
}
static inline norm_affine *norm_scratch_affine(void *scratch)
{
    return scratch;
}
static inline norm_back *norm_scratch_back(void *scratch, const norm_map *m)
{
    return (norm_back *)(norm_scratch_affine(scratch) + m->groups);
}
static inline norm_partial *norm_scratch_partial(void *scratch, const norm_map *m)
{
    uintptr_t at = (uintptr_t)(norm_scratch_back(scratch, m) + m->groups);
    return (norm_partial *)((at + 63) / 64 * 64);
}

#endif
