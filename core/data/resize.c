#include "core/data/resize.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

uint64_t sd_resize_rows(uint32_t to_width)
{
    return (uint64_t)to_width * 7; /* two rows of three channels, and the weights */
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

/* Column of the picture at column i of the view, times three; -1 outside. */
static int32_t column(const sd_source *from, const sd_view *v, uint32_t i)
{
    int64_t at = (int64_t)v->x + (v->mirror ? v->width - 1 - i : i);
    return at >= 0 && at < (int64_t)from->width ? (int32_t)(at * 3) : -1;
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

/* One source row, resampled across. The columns whose two neighbours are inside lie together: [lo, hi). */
#define ACROSS(NAME, TYPE)                                                                                                                 \
    static void NAME(const TYPE *in, const int32_t *taps, const float *weights, uint32_t lo, uint32_t hi, float *out)                      \
    {                                                                                                                                      \
        for (uint32_t x = lo; x < hi; x++) {                                                                                               \
            const TYPE *a = in + taps[2 * x], *b = in + taps[2 * x + 1];                                                                   \
            for (uint32_t c = 0; c < 3; c++)                                                                                               \
                out[3 * x + c] = (float)a[c] + weights[x] * ((float)b[c] - (float)a[c]);                                                   \
        }                                                                                                                                  \
    }
ACROSS(across_bytes, uint8_t)
ACROSS(across_floats, float)

static float pixel(const sd_source *from, size_t row, int32_t at, uint32_t c, const float *fill)
{
    if (at < 0)
        return fill[c];
    return from->bytes ? (float)from->bytes[row + (size_t)at + c] : from->floats[row + (size_t)at + c];
}

static void fill_row(float *out, uint32_t lo, uint32_t hi, const float *fill)
{
    for (uint32_t x = lo; x < hi; x++)
        memcpy(out + (size_t)x * 3, fill, 3 * sizeof *fill);
}

typedef struct plan { /* of the columns */
    const int32_t *taps;
    const float *weights;
    uint32_t to_w, lo, hi;
} plan;

static void across(const sd_source *from, const sd_view *v, uint32_t row, const plan *p, float *out)
{
    int64_t y = (int64_t)v->y + row;
    if (y < 0 || y >= (int64_t)from->height) {
        fill_row(out, 0, p->to_w, v->fill);
        return;
    }
    size_t at = (size_t)y * from->width * 3;
    if (from->bytes)
        across_bytes(from->bytes + at, p->taps, p->weights, p->lo, p->hi, out);
    else
        across_floats(from->floats + at, p->taps, p->weights, p->lo, p->hi, out);
    for (uint32_t x = 0; x < p->to_w; x++) {
        if (x == p->lo)
            x = p->hi;
        if (x == p->to_w)
            break;
        for (uint32_t c = 0; c < 3; c++) {
            float a = pixel(from, at, p->taps[2 * x], c, v->fill), b = pixel(from, at, p->taps[2 * x + 1], c, v->fill);
            out[3 * x + c] = a + p->weights[x] * (b - a);
        }
    }
}

void sd_resize(const sd_source *from, const sd_view *v, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps)
{
    float *row[2] = {rows, rows + (size_t)to_w * 3}, *weights = rows + (size_t)to_w * 6;
    plan p = {.taps = taps, .weights = weights, .to_w = to_w, .lo = to_w, .hi = to_w};
    for (uint32_t x = 0; x < to_w; x++) {
        uint32_t a, b;
        tap(x, (double)v->width / to_w, v->width, &a, &b, &weights[x]);
        taps[2 * x] = column(from, v, a);
        taps[2 * x + 1] = column(from, v, b);
        bool inside = taps[2 * x] >= 0 && taps[2 * x + 1] >= 0;
        if (inside && p.lo == to_w)
            p.lo = x;
        if (inside)
            p.hi = x + 1;
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
        blend(row[0], row[1], weight, to + (size_t)y * to_w * 3, to_w * 3);
    }
}

void sd_view_copy(const sd_source *from, const sd_view *v, float *to)
{
    int64_t first = v->x < 0 ? -(int64_t)v->x : 0, last = (int64_t)from->width - v->x; /* columns of the window that are inside */
    first = first > (int64_t)v->width ? (int64_t)v->width : first;
    last = last > (int64_t)v->width ? (int64_t)v->width : last < first ? first : last;
    for (uint32_t r = 0; r < v->height; r++, to += (size_t)v->width * 3) {
        int64_t y = (int64_t)v->y + r;
        if (y < 0 || y >= (int64_t)from->height) {
            fill_row(to, 0, v->width, v->fill);
            continue;
        }
        fill_row(to, 0, (uint32_t)first, v->fill);
        fill_row(to, (uint32_t)last, v->width, v->fill);
        size_t at = ((size_t)y * from->width + (size_t)(v->x + first)) * 3, n = (size_t)(last - first) * 3;
        if (from->floats) {
            memcpy(to + first * 3, from->floats + at, n * sizeof *to);
        } else {
            for (size_t i = 0; i < n; i++)
                to[(size_t)first * 3 + i] = (float)from->bytes[at + i];
        }
        for (uint32_t a = 0, b = v->width - 1; v->mirror && a < b; a++, b--) {
            for (uint32_t c = 0; c < 3; c++) {
                float t = to[3 * a + c];
                to[3 * a + c] = to[3 * b + c];
                to[3 * b + c] = t;
            }
        }
    }
}
