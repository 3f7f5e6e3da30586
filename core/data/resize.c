#include "core/data/resize.h"

#include <math.h>
#include <string.h>

#include "kernels/vector.h"

/* Four floats: a pixel, and one beyond it. */
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));
#define vector4_at(p) (*(vector4 *)(uintptr_t)(p))

uint64_t sd_resize_rows(const sd_source *from, uint32_t to_width)
{
    /* The weights; two rows of the result and one of the picture between two pixels of fill, each with one float beyond its end. */
    return (uint64_t)to_width * 7 + 2 + ((uint64_t)from->width + 2) * 3 + 1;
}

uint64_t sd_resize_taps(uint32_t to_width)
{
    return (uint64_t)to_width * 2;
}

/* Left (upper) neighbour of output position i among n, the right (lower) one, and the latter's weight. */
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

SODET_CLONES static void blend(const float *restrict a, const float *restrict b, float weight, float *restrict to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) { /* a fixed count, so that the compiler makes vectors of it at -O2 */
        for (size_t k = 0; k < 16; k++)
            to[i + k] = a[i + k] + weight * (b[i + k] - a[i + k]);
    }
    for (; i < n; i++)
        to[i] = a[i] + weight * (b[i] - a[i]);
}

static void fill_row(float *out, size_t n, const float *fill)
{
    for (size_t x = 0; x < n; x++)
        memcpy(out + x * 3, fill, 3 * sizeof *fill);
}

/* The columns of the picture that the view shows, [first, end), and of the view's columns how many lie before them. */
typedef struct span {
    uint32_t first, end, before;
} span;

static span columns_of(const sd_source *from, const sd_view *v)
{
    int64_t first = v->x > 0 ? v->x : 0, end = (int64_t)v->x + v->width;
    end = end < (int64_t)from->width ? end : (int64_t)from->width;
    if (first >= end)
        return (span){.before = v->width};
    return (span){(uint32_t)first, (uint32_t)end, (uint32_t)(first - v->x)};
}

/* These columns of row y of the picture, which has it. */
static void fetch(const sd_source *from, uint32_t y, span s, float *to)
{
    size_t at = ((size_t)y * from->width + s.first) * 3, n = s.end - s.first;
    if (from->bytes)
        sd_rgb_floats(from->bytes + at, to, n * 3);
    else
        memcpy(to, from->floats + at, n * 3 * sizeof *to);
    sd_rgb_recolour(from->colours, from->n_colours, to, n);
}

typedef struct plan {
    span columns;
    const int32_t *taps; /* two neighbours of each column of the result, in floats from the start of `row` */
    const float *weights;
    float *row; /* a pixel of fill, the columns, another pixel of fill */
    uint32_t to_w;
} plan;

/* Row i of the view, in the picture. */
static int64_t row_of(const sd_view *v, uint32_t i)
{
    return (int64_t)v->y + (v->flip ? v->height - 1 - i : i);
}

/* Row of the view, resampled to to_w pixels. Writes one float beyond them. */
static void across(const sd_source *from, const sd_view *v, uint32_t row, const plan *p, float *out)
{
    int64_t y = row_of(v, row);
    if (y < 0 || y >= (int64_t)from->height) {
        fill_row(out, p->to_w, v->fill);
        return;
    }
    fetch(from, (uint32_t)y, p->columns, p->row + 3);
    for (uint32_t x = 0; x < p->to_w; x++) {
        vector4 a = vector4_at(p->row + p->taps[2 * x]), b = vector4_at(p->row + p->taps[2 * x + 1]);
        vector4_at(out + (size_t)3 * x) = a + p->weights[x] * (b - a);
    }
}

/* Where column i of the view stands in a plan's row. */
static int32_t place(const sd_view *v, span s, uint32_t i)
{
    uint32_t at = v->mirror ? v->width - 1 - i : i, n = s.end - s.first;
    return (int32_t)(at < s.before ? 0 : at - s.before >= n ? n + 1 : at - s.before + 1) * 3;
}

void sd_resize(const sd_source *from, const sd_view *v, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps)
{
    size_t wide = (size_t)to_w * 3;
    float *row[2] = {rows, rows + wide + 1}, *weights = row[1] + wide + 1;
    plan p = {.columns = columns_of(from, v), .taps = taps, .weights = weights, .row = weights + to_w, .to_w = to_w};
    uint32_t n = p.columns.end - p.columns.first;
    fill_row(p.row, 1, v->fill);
    fill_row(p.row + ((size_t)n + 1) * 3, 1, v->fill);
    for (uint32_t x = 0; x < to_w; x++) {
        uint32_t a, b;
        tap(x, (double)v->width / to_w, v->width, &a, &b, &weights[x]);
        taps[2 * x] = place(v, p.columns, a);
        taps[2 * x + 1] = place(v, p.columns, b);
    }
    int64_t held[2] = {-1, -1};
    for (uint32_t y = 0; y < to_h; y++) {
        uint32_t ys[2];
        float weight;
        tap(y, (double)v->height / to_h, v->height, &ys[0], &ys[1], &weight);
        if (held[1] == (int64_t)ys[0] && held[0] != (int64_t)ys[0]) { /* the lower row becomes the upper one */
            float *r = row[0];
            row[0] = row[1];
            row[1] = r;
            held[0] = held[1];
            held[1] = -1;
        }
        for (uint32_t k = 0; k < 2; k++) {
            if (held[k] != (int64_t)ys[k])
                across(from, v, ys[k], &p, row[k]);
            held[k] = (int64_t)ys[k];
        }
        blend(row[0], row[1], weight, to + y * wide, wide);
    }
}

static void mirror_row(float *row, uint32_t n)
{
    for (uint32_t a = 0, b = n - 1; a < b; a++, b--) {
        for (uint32_t c = 0; c < 3; c++) {
            float t = row[3 * a + c];
            row[3 * a + c] = row[3 * b + c];
            row[3 * b + c] = t;
        }
    }
}

void sd_view_copy(const sd_source *from, const sd_view *v, float *to)
{
    span s = columns_of(from, v);
    uint32_t n = s.end - s.first, behind = v->width - s.before - n;
    for (uint32_t r = 0; r < v->height; r++, to += (size_t)v->width * 3) {
        int64_t y = row_of(v, r);
        if (n == 0 || y < 0 || y >= (int64_t)from->height) {
            fill_row(to, v->width, v->fill);
            continue;
        }
        fill_row(to, s.before, v->fill);
        fetch(from, (uint32_t)y, s, to + (size_t)s.before * 3);
        fill_row(to + ((size_t)s.before + n) * 3, behind, v->fill);
        if (v->mirror)
            mirror_row(to, v->width);
    }
}
