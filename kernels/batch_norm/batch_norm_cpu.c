/* Batch norm with given statistics: what is left where it could not be folded into a convolution. */
#include "kernels/batch_norm/batch_norm.h"

#include "kernels/batch_norm/norm_vector.h"
#include "kernels/kernels.h"

/* ---- the passes over maps, for this operator and batch_norm_train ---- */
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

SODET_CLONES void norm_moments(const norm_map *m, const float *x, norm_partial *partial, int64_t begin, int64_t end)
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

SODET_CLONES void norm_apply(const norm_map *m, const float *x, float *y, const norm_affine *affine, int relu, int64_t begin, int64_t end)
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

SODET_CLONES void norm_sums(const norm_map *m, const float *x, const float *dy, const norm_affine *affine, int relu, norm_partial *partial,
                            int64_t begin, int64_t end)
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

SODET_CLONES void norm_backward(const norm_map *m, const float *x, const float *dy, float *dx, const norm_affine *affine,
                                const norm_back *back, int relu, int64_t begin, int64_t end)
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
