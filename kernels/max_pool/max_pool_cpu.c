/* On blocked maps the lanes of a block are compared together, and `where` holds the winner's tap, row * kernel_w + column within the window: a
 * byte for each element of the blocked map, or two if the kernel has more than 256 taps. On narrow maps channels are last, in `where` too, and
 * kernels have at most 256 taps. On plain maps it holds row * W + column, as the reference's does. */
#include <stdio.h>

#include "kernels/kernels.h"
#include "kernels/max_pool/pool_vector.h"
#include "kernels/narrow.h"
#include "plugins/backend/cpu/cpu.h"

static int wide_taps(const sodet_pool_attr *a)
{
    return a->kernel_h * a->kernel_w > 256;
}

/* Vectors of 8: wider comparisons are taken apart by gcc 12. */
typedef float reals __attribute__((vector_size(32)));
typedef int32_t ints __attribute__((vector_size(32)));
typedef uint8_t bytes __attribute__((vector_size(8)));
typedef uint16_t words __attribute__((vector_size(16)));
enum { HALF = 8 };

SODET_CLONES
static void forward_blocked(const sodet_pool_attr *a, const pool_plane *p, const float *x, float *y, void *where, int64_t plane)
{
    const int64_t lanes = p->lanes, row = p->w * lanes;
    const int wide = wide_taps(a);
    x += plane * p->h * row;
    for (int64_t i = 0; i < p->oh; i++) {
        pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
        for (int64_t j = 0; j < p->ow; j++) {
            pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
            for (int64_t half = 0; half < lanes; half += HALF) {
                reals best, v;
                ints tap = (ints){0} + (int32_t)((rows.begin - rows.first) * a->kernel_w + columns.begin - columns.first);
                memcpy(&best, x + rows.begin * row + columns.begin * lanes + half, sizeof best);
                for (int64_t r = rows.begin; r < rows.end; r++)
                    for (int64_t t = columns.begin; t < columns.end; t++) {
                        memcpy(&v, x + r * row + t * lanes + half, sizeof v);
                        ints here = (ints){0} + (int32_t)((r - rows.first) * a->kernel_w + t - columns.first);
                        ints wins = ~(v <= best) & (best == best); /* the first NaN wins and stays */
                        tap = (here & wins) | (tap & ~wins);
                        best = (reals)(((ints)v & wins) | ((ints)best & ~wins));
                    }
                int64_t at = ((plane * p->oh + i) * p->ow + j) * lanes + half;
                memcpy(y + at, &best, sizeof best);
                if (where && wide) {
                    words narrow = __builtin_convertvector(tap, words);
                    memcpy((uint16_t *)where + at, &narrow, sizeof narrow);
                } else if (where) {
                    bytes narrow = __builtin_convertvector(tap, bytes);
                    memcpy((uint8_t *)where + at, &narrow, sizeof narrow);
                }
            }
        }
    }
}

static void forward_plain(const sodet_pool_attr *a, const pool_plane *p, const float *x, float *y, int32_t *where, int64_t plane)
{
    x += plane * p->h * p->w;
    for (int64_t i = 0; i < p->oh; i++) {
        pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
        for (int64_t j = 0; j < p->ow; j++) {
            pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
            int64_t best = rows.begin * p->w + columns.begin;
            for (int64_t r = rows.begin; r < rows.end; r++)
                for (int64_t t = columns.begin; t < columns.end; t++) {
                    int64_t at = r * p->w + t;
                    if (!(x[at] <= x[best]) && x[best] == x[best])
                        best = at;
                }
            int64_t at = (plane * p->oh + i) * p->ow + j;
            y[at] = x[best];
            if (where)
                where[at] = (int32_t)best;
        }
    }
}

/* ---- narrow maps: rows of all channels ---- */
enum { CHANNELS = 64 }; /* at a time */

SODET_CLONES
static void forward_narrow(const sodet_pool_attr *a, const pool_plane *p, const uint16_t *x, uint16_t *y, uint8_t *where, int64_t unit)
{
    const int64_t image = unit / p->oh, i = unit % p->oh;
    const pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
    x += image * p->h * p->w * p->lanes;
    for (int64_t j = 0; j < p->ow; j++) {
        const pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
        for (int64_t first = 0; first < p->lanes; first += CHANNELS) {
            const int64_t n = p->lanes - first < CHANNELS ? p->lanes - first : CHANNELS, at = (unit * p->ow + j) * p->lanes + first;
            float best[CHANNELS];
            int32_t tap[CHANNELS];
            narrow_widen(best, x + (rows.begin * p->w + columns.begin) * p->lanes + first, n);
            for (int64_t k = 0; k < n; k++)
                tap[k] = (int32_t)((rows.begin - rows.first) * a->kernel_w + columns.begin - columns.first);
            for (int64_t r = rows.begin; r < rows.end; r++)
                for (int64_t t = columns.begin; t < columns.end; t++) {
                    const int32_t here = (int32_t)((r - rows.first) * a->kernel_w + t - columns.first);
                    const uint16_t *from = x + (r * p->w + t) * p->lanes + first;
                    for (int64_t k = 0; k < n; k++) {
                        const float v = narrow_value(from[k]);
                        const int wins = !(v <= best[k]) & (best[k] == best[k]); /* the first NaN wins and stays */
                        tap[k] = wins ? here : tap[k];
                        best[k] = wins ? v : best[k];
                    }
                }
            narrow_round(y + at, best, n);
            if (where)
                for (int64_t k = 0; k < n; k++)
                    where[at + k] = (uint8_t)tap[k];
        }
    }
}

/* Windows [*begin, *end) that a row or column lies in. */
SODET_INLINE void windows_over(int64_t place, int32_t stride, int32_t before, int32_t kernel, int64_t n, int64_t *begin, int64_t *end)
{
    const int64_t last = (place + before) / stride, low = place + before - kernel;
    *begin = low < 0 ? 0 : low / stride + 1;
    *end = last + 1 < n ? last + 1 : n;
}

/* A row of dx: each element is summed in float32 over the windows that it won, and rounded once. */
SODET_CLONES
static void backward_narrow(const sodet_pool_attr *a, const pool_plane *p, const uint8_t *where, const uint16_t *dy, uint16_t *dx,
                            int64_t unit)
{
    const int64_t image = unit / p->h, r = unit % p->h, base = image * p->oh * p->ow;
    int64_t i0, i1, j0, j1;
    windows_over(r, a->stride_h, a->pad_top, a->kernel_h, p->oh, &i0, &i1);
    for (int64_t t = 0; t < p->w; t++) {
        windows_over(t, a->stride_w, a->pad_left, a->kernel_w, p->ow, &j0, &j1);
        for (int64_t first = 0; first < p->lanes; first += CHANNELS) {
            const int64_t n = p->lanes - first < CHANNELS ? p->lanes - first : CHANNELS;
            float sum[CHANNELS] = {0};
            for (int64_t i = i0; i < i1; i++)
                for (int64_t j = j0; j < j1; j++) {
                    const int64_t row = r - i * a->stride_h + a->pad_top, column = t - j * a->stride_w + a->pad_left,
                                  at = (base + i * p->ow + j) * p->lanes + first;
                    const int32_t here = (int32_t)(row * a->kernel_w + column);
                    for (int64_t k = 0; k < n; k++)
                        sum[k] += where[at + k] == here ? narrow_value(dy[at + k]) : 0;
                }
            narrow_round(dx + (unit * p->w + t) * p->lanes + first, sum, n);
        }
    }
}

static pool_plane plane_of(const sodet_tensor *map, const sodet_shape *windows)
{
    pool_plane p = pool_plane_of(map, windows);
    if (map->layout == SODET_CHANNELS_LAST) {
        p.planes = map->shape.dim[0];
        p.lanes = map->shape.dim[1];
    }
    return p;
}

static int64_t units_forward(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    if (k->in[0].layout == SODET_CHANNELS_LAST)
        return k->out[0].shape.dim[0] * k->out[0].shape.dim[2];
    return pool_plane_of(&k->in[0], &k->out[0].shape).planes;
}

static void forward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    pool_plane p = plane_of(&k->in[0], &k->out[0].shape);
    void *where = k->n_out > 1 ? k->out[1].data : NULL;
    for (int64_t plane = begin; plane < end; plane++)
        if (k->in[0].layout == SODET_CHANNELS_LAST)
            forward_narrow(k->attr, &p, k->in[0].data, k->out[0].data, where, plane);
        else if (p.lanes == 1)
            forward_plain(k->attr, &p, k->in[0].data, k->out[0].data, where, plane);
        else
            forward_blocked(k->attr, &p, k->in[0].data, k->out[0].data, where, plane);
}

/* A row of windows reaches down to some row of the map: rows are cleared when the first window reaches them, so that they are still in the cache
 * when gradients are added. */
SODET_INLINE void backward_lanes(const sodet_pool_attr *a, const pool_plane *p, const void *where, const float *dy, float *dx,
                                 int64_t plane, const int64_t lanes)
{
    const int wide = wide_taps(a), few = a->kernel_h * a->kernel_w <= 16;
    const int64_t row = p->w * lanes;
    int64_t cleared = 0;
    dx += plane * p->h * row;
    for (int64_t i = 0; i < p->oh; i++) {
        pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
        if (rows.end > cleared) {
            memset(dx + cleared * row, 0, (size_t)((rows.end - cleared) * row) * sizeof *dx);
            cleared = rows.end;
        }
        for (int64_t j = 0; j < p->ow; j++) {
            pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
            int64_t at = ((plane * p->oh + i) * p->ow + j) * lanes;
            int32_t tap[16];
            for (int64_t k = 0; k < lanes; k++)
                tap[k] = wide ? (int32_t)((const uint16_t *)where)[at + k] : (int32_t)((const uint8_t *)where)[at + k];
            if (few) { /* every tap takes the gradients of the lanes that it won */
                float g[16];
                for (int64_t k = 0; k < lanes; k++)
                    g[k] = dy[at + k];
                for (int64_t r = rows.begin; r < rows.end; r++)
                    for (int64_t t = columns.begin; t < columns.end; t++) {
                        const int32_t here = (int32_t)((r - rows.first) * a->kernel_w + t - columns.first);
                        float *to = dx + r * row + t * lanes;
                        for (int64_t k = 0; k < lanes; k++)
                            to[k] += tap[k] == here ? g[k] : 0;
                    }
            } else {
                for (int64_t k = 0; k < lanes; k++)
                    dx[(rows.first + tap[k] / a->kernel_w) * row + (columns.first + tap[k] % a->kernel_w) * lanes + k] += dy[at + k];
            }
        }
    }
    if (cleared < p->h)
        memset(dx + cleared * row, 0, (size_t)((p->h - cleared) * row) * sizeof *dx);
}

SODET_CLONES
static void backward_blocked(const sodet_pool_attr *a, const pool_plane *p, const void *where, const float *dy, float *dx, int64_t plane)
{
    if (p->lanes == 16)
        backward_lanes(a, p, where, dy, dx, plane, 16);
    else
        backward_lanes(a, p, where, dy, dx, plane, 8);
}

static int64_t units_backward(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    if (k->out[0].layout == SODET_CHANNELS_LAST)
        return k->out[0].shape.dim[0] * k->out[0].shape.dim[2];
    return pool_plane_of(&k->out[0], &k->in[1].shape).planes;
}

static void backward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    pool_plane p = plane_of(&k->out[0], &k->in[1].shape);
    const float *dy = k->in[1].data;
    float *dx = k->out[0].data;
    for (int64_t plane = begin; plane < end; plane++) {
        if (k->out[0].layout == SODET_CHANNELS_LAST) {
            backward_narrow(k->attr, &p, k->in[0].data, k->in[1].data, k->out[0].data, plane);
            continue;
        }
        if (p.lanes > 1) {
            backward_blocked(k->attr, &p, k->in[0].data, dy, dx, plane);
            continue;
        }
        const int32_t *where = k->in[0].data;
        memset(dx + plane * p.h * p.w, 0, (size_t)(p.h * p.w) * sizeof *dx);
        for (int64_t i = plane * p.oh * p.ow; i < (plane + 1) * p.oh * p.ow; i++)
            dx[plane * p.h * p.w + where[i]] += dy[i];
    }
}

const sodet_cpu_kernel sodet_cpu_max_pool[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units_forward, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units_backward, .run = backward}};

/* Both parts must come to the same layout, and the taps of a blocked map must find room in `where`, 4 bytes for each element of the plain one. */
static uint64_t maps(const sodet_node *n)
{
    return n->part == 0 ? 1 : 2;
}

/* Whatever its readers like: a comparison is as fast on either. */
static bool narrow(const cpu_plan *p, const cpu_node *n)
{
    return !wide_taps(n->node->attr) &&
           (p->device->precision == SODET_PRECISION_BF16 || p->forms.value[n->node->out[0].id].wanted == CPU_FORM_NARROW);
}

static bool chooses_narrow(const cpu_plan *p, const cpu_node *n)
{
    const sodet_node *node = n->node;
    if (node->part == 0)
        return !wide_taps(node->attr) && cpu_may_narrow(p, n, 0) &&
               (cpu_home(p, node->in[0]) == CPU_FORM_NARROW || p->forms.value[node->out[0].id].wanted == CPU_FORM_NARROW);
    const uint32_t producer = p->forms.value[node->in[0].id].producer;
    return producer < p->forms.n_nodes && p->node[producer].form_out[0] == CPU_FORM_NARROW;
}

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    (void)err;
    const sodet_node *node = n->node;
    if (chooses_narrow(p, n)) {
        n->form_in[node->part == 0 ? 0 : 1] = CPU_FORM_NARROW;
        n->form_out[0] = CPU_FORM_NARROW;
        snprintf(n->text, sizeof n->text, "own %s", cpu_form_name(p, CPU_FORM_NARROW));
        return SODET_OK;
    }
    const sodet_shape *windows = node->part == 0 ? &node->out_shape[0] : &node->in_shape[1];
    const sodet_shape *map = node->part == 0 ? &node->in_shape[0] : &node->out_shape[0];
    int64_t c = windows->dim[1], block = p->device->block, size = wide_taps(node->attr) ? 2 : 1;
    bool block_it = cpu_can_block(map) && c > 4 && (c + block - 1) / block * block * size <= 4 * c && node->attr;
    if (block_it) {
        n->form_in[node->part == 0 ? 0 : 1] = CPU_FORM_BLOCKED;
        n->form_out[0] = CPU_FORM_BLOCKED;
    }
    snprintf(n->text, sizeof n->text, "own%s", block_it ? " blocked" : "");
    return SODET_OK;
}

const cpu_planner sodet_cpu_plan_max_pool = {.maps = maps, .narrow = narrow, .choose = choose, .emit = cpu_emit_own};
