/* Batch norm with given statistics: what is left where it could not be folded into a convolution. */
#include "kernels/batch_norm/batch_norm.h"

#include "kernels/batch_norm/norm_vector.h"
#include "kernels/kernels.h"

/* ---- the passes over maps, for this operator and batch_norm_train ----
 * A piece is `n` floats in a row whose channels repeat with a period of `lanes`, 16, 8 or (plain maps) 1: a power of two. So sixteen floats,
 * two vectors, always meet the same two vectors of coefficients. */
#define REPEATED(name, v)                                                                                                                  \
    float name##_all[NORM_LANES];                                                                                                          \
    for (int64_t k = 0; k < NORM_LANES; k++)                                                                                               \
        name##_all[k] = (v)[k & (lanes - 1)];                                                                                              \
    const vector8 name[2] = {vector8_at(name##_all), vector8_at(name##_all + 8)}

/* Adds the sixteen sums to those of their channels. */
SODET_INLINE void fold(const vector8 sum[2], int64_t lanes, float *out)
{
    float all[NORM_LANES];
    vector8_at(all) = sum[0];
    vector8_at(all + 8) = sum[1];
    for (int64_t k = 0; k < NORM_LANES; k++)
        out[k & (lanes - 1)] += all[k];
}

_Static_assert(NORM_LANES == 16, "pieces are walked in two vectors of 8 floats");

SODET_INLINE void moments_of(const float *x, int64_t n, int64_t lanes, norm_partial *p)
{
    float total[NORM_LANES] = {0}, deviation[NORM_LANES] = {0}, mean[NORM_LANES];
    const int64_t whole = n / 16 * 16;
    REPEATED(shift, x); /* differences from a value nearby lose no digits */
    vector8 sum[2] = {{0}, {0}}, square[2] = {{0}, {0}};
    for (int64_t i = 0; i < whole; i += 16)
        for (int64_t h = 0; h < 2; h++)
            sum[h] += vector8_at(x + i + 8 * h) - shift[h];
    fold(sum, lanes, total);
    for (int64_t i = whole; i < n; i++)
        total[i & (lanes - 1)] += x[i] - x[i & (lanes - 1)];
    for (int64_t k = 0; k < lanes; k++)
        mean[k] = total[k] / (float)(n / lanes);
    REPEATED(centre, mean);
    for (int64_t i = 0; i < whole; i += 16)
        for (int64_t h = 0; h < 2; h++) {
            const vector8 d = vector8_at(x + i + 8 * h) - shift[h] - centre[h];
            square[h] += d * d;
        }
    fold(square, lanes, deviation);
    for (int64_t i = whole; i < n; i++) {
        float d = x[i] - x[i & (lanes - 1)] - mean[i & (lanes - 1)];
        deviation[i & (lanes - 1)] += d * d;
    }
    for (int64_t k = 0; k < lanes; k++) {
        p->first[k] = (double)x[k] + (double)mean[k];
        p->second[k] = deviation[k];
    }
}

SODET_CLONES void norm_moments(const norm_map *m, const float *x, norm_partial *partial, int64_t begin, int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) {
        norm_piece p = norm_piece_of(m, piece);
        moments_of(x + p.at, p.pixels * m->lanes, m->lanes, &partial[piece]);
    }
}

SODET_INLINE void apply_to(const float *x, float *y, int64_t n, int64_t lanes, const norm_affine *f, const int relu)
{
    REPEATED(mean, f->mean);
    REPEATED(factor, f->factor);
    REPEATED(offset, f->offset);
    const int64_t whole = n / 16 * 16;
    for (int64_t i = 0; i < whole; i += 16)
        for (int64_t h = 0; h < 2; h++) {
            const vector8 v = (vector8_at(x + i + 8 * h) - mean[h]) * factor[h] + offset[h];
            vector8_at(y + i + 8 * h) = relu ? vector8_open(v, v) : v;
        }
    for (int64_t i = whole; i < n; i++) {
        float v = (x[i] - f->mean[i & (lanes - 1)]) * f->factor[i & (lanes - 1)] + f->offset[i & (lanes - 1)];
        y[i] = relu && v <= 0 ? 0 : v;
    }
}

SODET_CLONES void norm_apply(const norm_map *m, const float *x, float *y, const norm_affine *affine, int relu, int64_t begin, int64_t end)
{
    for (int64_t piece = end; piece-- > begin;) {
        norm_piece p = norm_piece_of(m, piece);
        if (relu)
            apply_to(x + p.at, y + p.at, p.pixels * m->lanes, m->lanes, &affine[p.group], 1);
        else
            apply_to(x + p.at, y + p.at, p.pixels * m->lanes, m->lanes, &affine[p.group], 0);
    }
}

SODET_INLINE void sums_of(const float *x, const float *dy, int64_t n, int64_t lanes, const norm_affine *f, const int relu, norm_partial *p)
{
    REPEATED(mean, f->mean);
    REPEATED(factor, f->factor);
    REPEATED(offset, f->offset);
    float plain[NORM_LANES] = {0}, along[NORM_LANES] = {0};
    const int64_t whole = n / 16 * 16;
    vector8 a[2] = {{0}, {0}}, b[2] = {{0}, {0}};
    for (int64_t i = 0; i < whole; i += 16)
        for (int64_t h = 0; h < 2; h++) {
            const vector8 d = vector8_at(x + i + 8 * h) - mean[h];
            vector8 g = vector8_at(dy + i + 8 * h);
            if (relu)
                g = vector8_open(d * factor[h] + offset[h], g);
            a[h] += g;
            b[h] += g * d;
        }
    fold(a, lanes, plain);
    fold(b, lanes, along);
    for (int64_t i = whole; i < n; i++) {
        const int64_t k = i & (lanes - 1);
        float d = x[i] - f->mean[k], g = relu && d * f->factor[k] + f->offset[k] <= 0 ? 0 : dy[i];
        plain[k] += g;
        along[k] += g * d;
    }
    for (int64_t k = 0; k < lanes; k++) {
        p->first[k] = (double)plain[k];
        p->second[k] = along[k];
    }
}

SODET_CLONES void norm_sums(const norm_map *m, const float *x, const float *dy, const norm_affine *affine, int relu, norm_partial *partial,
                            int64_t begin, int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) {
        norm_piece p = norm_piece_of(m, piece);
        if (relu)
            sums_of(x + p.at, dy + p.at, p.pixels * m->lanes, m->lanes, &affine[p.group], 1, &partial[piece]);
        else
            sums_of(x + p.at, dy + p.at, p.pixels * m->lanes, m->lanes, &affine[p.group], 0, &partial[piece]);
    }
}

SODET_INLINE void back_through(const float *x, const float *dy, float *dx, int64_t n, int64_t lanes, const norm_affine *f,
                               const norm_back *w, const int relu)
{
    REPEATED(mean, f->mean);
    REPEATED(factor, f->factor);
    REPEATED(offset, f->offset);
    REPEATED(a, w->a);
    REPEATED(b, w->b);
    REPEATED(c, w->c);
    const int64_t whole = n / 16 * 16;
    for (int64_t i = 0; i < whole; i += 16)
        for (int64_t h = 0; h < 2; h++) {
            const vector8 d = vector8_at(x + i + 8 * h) - mean[h];
            vector8 g = vector8_at(dy + i + 8 * h);
            if (relu)
                g = vector8_open(d * factor[h] + offset[h], g);
            vector8_at(dx + i + 8 * h) = a[h] * g - b[h] * d - c[h];
        }
    for (int64_t i = whole; i < n; i++) {
        const int64_t k = i & (lanes - 1);
        float d = x[i] - f->mean[k], g = relu && d * f->factor[k] + f->offset[k] <= 0 ? 0 : dy[i];
        dx[i] = w->a[k] * g - w->b[k] * d - w->c[k];
    }
}

SODET_CLONES void norm_backward(const norm_map *m, const float *x, const float *dy, float *dx, const norm_affine *affine,
                                const norm_back *back, int relu, int64_t begin, int64_t end)
{
    for (int64_t piece = end; piece-- > begin;) {
        norm_piece p = norm_piece_of(m, piece);
        const int64_t n = p.pixels * m->lanes;
        if (relu)
            back_through(x + p.at, dy + p.at, dx + p.at, n, m->lanes, &affine[p.group], &back[p.group], 1);
        else
            back_through(x + p.at, dy + p.at, dx + p.at, n, m->lanes, &affine[p.group], &back[p.group], 0);
    }
}

/* ---- the operator ---- */
static uint64_t scratch(const sodet_node *n, uint32_t threads)
{
    (void)threads;
    return norm_kernel_scratch(&n->in_shape[0]);
}

static double root(const sodet_kernel_args *k, const float *var, int64_t c)
{
    return 1 / sqrt((double)var[c] + (double)((const sodet_batch_norm_attr *)k->attr)->epsilon);
}

/* Phase 0: factors and offsets, one unit. Phase 1: the map. */
static int64_t units_forward(const sodet_kernel_args *k, uint32_t phase)
{
    norm_map m = norm_map_of(&k->in[0]);
    return phase == 0 ? 1 : norm_pieces(&m);
}

static void forward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    norm_map m = norm_map_of(&k->in[0]);
    norm_affine *all = norm_scratch_affine(k->scratch);
    if (phase == 1) {
        norm_apply(&m, k->in[0].data, k->out[0].data, all, 0, begin, end);
        return;
    }
    const float *scale = k->in[1].data, *shift = k->in[2].data, *mean = k->in[3].data, *var = k->in[4].data;
    for (int64_t group = 0; group < m.groups; group++) {
        norm_affine *a = &all[group];
        memset(a, 0, sizeof *a);
        for (int64_t lane = 0, used = norm_lanes_used(&m, group); lane < used; lane++) {
            int64_t c = group * m.lanes + lane;
            a->mean[lane] = mean[c];
            a->factor[lane] = (float)((double)scale[c] * root(k, var, c));
            a->offset[lane] = shift[c];
        }
    }
}

/* Phase 0: factors. Phase 1: sums of pieces. Phase 2: merged. Phase 3: dx. */
static int64_t units_backward(const sodet_kernel_args *k, uint32_t phase)
{
    norm_map m = norm_map_of(&k->in[0]);
    return phase == 0 ? 1 : phase == 2 ? m.groups : norm_pieces(&m);
}

static void backward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    norm_map m = norm_map_of(&k->in[0]);
    const float *x = k->in[0].data, *dy = k->in[1].data, *scale = k->in[2].data, *mean = k->in[3].data, *var = k->in[4].data;
    float *dscale = k->out[1].data, *dshift = k->out[2].data;
    norm_affine *affine = norm_scratch_affine(k->scratch);
    norm_back *back = norm_scratch_back(k->scratch, &m);
    norm_partial *partial = norm_scratch_partial(k->scratch, &m);
    if (phase == 1) {
        norm_sums(&m, x, dy, affine, 0, partial, begin, end);
        return;
    }
    if (phase == 3) {
        norm_backward(&m, x, dy, k->out[0].data, affine, back, 0, begin, end);
        return;
    }
    if (phase == 0)
        end = m.groups;
    for (int64_t group = begin; group < end; group++) {
        if (phase == 0) {
            memset(&affine[group], 0, sizeof affine[group]);
            memset(&back[group], 0, sizeof back[group]);
        }
        for (int64_t lane = 0, used = norm_lanes_used(&m, group); lane < used; lane++) {
            int64_t c = group * m.lanes + lane;
            double r = root(k, var, c), plain, along;
            if (phase == 0) {
                affine[group].mean[lane] = mean[c];
                back[group].a[lane] = (float)((double)scale[c] * r);
                continue;
            }
            norm_merge_sums(&m, partial, group, lane, &plain, &along);
            dscale[c] = (float)(along * r);
            dshift[c] = (float)plain;
        }
    }
}

const sodet_cpu_kernel sodet_cpu_batch_norm[] = {{.struct_size = sizeof(sodet_cpu_kernel),
                                                  .flags = SODET_CPU_BLOCKED,
                                                  .phases = 2,
                                                  .units = units_forward,
                                                  .scratch = scratch,
                                                  .run = forward},
                                                 {.struct_size = sizeof(sodet_cpu_kernel),
                                                  .flags = SODET_CPU_BLOCKED,
                                                  .phases = 4,
                                                  .units = units_backward,
                                                  .scratch = scratch,
                                                  .run = backward}};
