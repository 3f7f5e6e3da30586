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

static inline int64_t norm_pixels(const norm_map *m, int64_t run) /* of a plane's piece number `run` */
{
    return run + 1 < m->runs ? m->run : m->area - run * m->run;
}

static inline norm_piece norm_piece_of(const norm_map *m, int64_t piece)
{
    int64_t plane = piece / m->runs, run = piece % m->runs;
    return (norm_piece){plane % m->groups, (plane * m->area + run * m->run) * m->lanes, norm_pixels(m, run)};
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

/* For kernels' scratch(): it is asked before layouts are known, so for the one with the most pieces. */
static inline uint64_t norm_scratch_of(const sodet_shape *s)
{
    int64_t area = 1;
    for (uint32_t i = 2; i < s->rank; i++)
        area *= s->dim[i];
    const int64_t lanes[] = {1, 8, NORM_LANES};
    int64_t worst = 0;
    for (int i = 0; i < 3; i++) {
        int64_t run = NORM_FLOATS / lanes[i], n = s->dim[0] * ((s->dim[1] + lanes[i] - 1) / lanes[i]) * ((area + run - 1) / run);
        worst = n > worst ? n : worst;
    }
    return (uint64_t)worst * sizeof(norm_partial);
}

/* ---- mean and sum of squared deviations of a piece ---- */
void norm_moments(const norm_map *m, const float *x, norm_partial *partial, int64_t begin, int64_t end);

/* Merges the pieces of channel (group, lane): mean, and sum of squared deviations from it (Chan et al. 1979). */
static inline void norm_merge_moments(const norm_map *m, const norm_partial *partial, int64_t group, int64_t lane, double *mean,
                                      double *square)
{
    double sum = 0, all = (double)(m->batch * m->area), deviation = 0;
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->runs; i++) {
            int64_t piece = (n * m->groups + group) * m->runs + i;
            sum += (double)norm_pixels(m, i) * partial[piece].first[lane];
        }
    *mean = all > 0 ? sum / all : 0;
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->runs; i++) {
            int64_t piece = (n * m->groups + group) * m->runs + i;
            double d = partial[piece].first[lane] - *mean;
            deviation += (double)partial[piece].second[lane] + (double)norm_pixels(m, i) * d * d;
        }
    *square = deviation;
}

/* ---- y = (x - mean) * factor + offset, perhaps followed by relu ---- */
typedef struct norm_affine { /* of a group */
    float mean[NORM_LANES], factor[NORM_LANES], offset[NORM_LANES];
} norm_affine;

/* affine: one for each group. y may be x. Backwards, as below: the pass before ended with what is now at hand in the cache. */
void norm_apply(const norm_map *m, const float *x, float *y, const norm_affine *affine, int relu, int64_t begin, int64_t end);

/* ---- sum dy and sum dy * (x - mean); with a relu behind the norm, dy counts where (x - mean) * factor + offset > 0 ---- */
void norm_sums(const norm_map *m, const float *x, const float *dy, const norm_affine *affine, int relu, norm_partial *partial,
               int64_t begin, int64_t end);

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

/* dx may be dy or x. */
void norm_backward(const norm_map *m, const float *x, const float *dy, float *dx, const norm_affine *affine, const norm_back *back,
                   int relu, int64_t begin, int64_t end);

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
