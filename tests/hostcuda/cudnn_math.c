/* What touches tensors in the stand-in. Convolutions: pieces of pixels are laid out as rows and multiplied; depthwise ones go over the channels. Sums are float32
 * in an order that the sizes alone decide. */
#include <stdlib.h>
#include <string.h>

#include "cudnn_parts.h"
#include "kernels/narrow.h"
#include "sodet/base.h"

enum { PIXELS = 96, ROWS = 6, COLUMNS = 16 };
typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));
#define lanes_at(p) (*(lanes *)(uintptr_t)(p))

/* ---- values ---- */
static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    const bool finite = (h & 0x7c00) != 0x7c00;
    return float_of((finite ? bits_of(float_of(rest) * 0x1p112f) : rest | 0x7f800000) | sign);
}

/* To nearest, ties to even; beyond 65504 infinity. */
static uint16_t to_half(float f)
{
    const uint32_t sign = bits_of(f) >> 16 & 0x8000, u = bits_of(f) & 0x7fffffff;
    uint32_t h;
    if (u > 0x7f800000)
        h = 0x7e00;
    else if (u >= 0x47800000)
        h = 0x7c00;
    else if (u < 0x38800000) /* below the normal numbers: the addition rounds */
        h = bits_of(float_of(u) + 0.5f) - 0x3f000000;
    else
        h = (u - (112u << 23) + 0xfff + (u >> 13 & 1)) >> 13;
    return (uint16_t)(sign | h);
}

/* Keeps `bits` of a fraction's 23, to nearest; 0: all. */
static float keep_bits(float f, uint32_t bits)
{
    const uint32_t u = bits_of(f);
    if (bits == 0 || (u & 0x7f800000) == 0x7f800000)
        return f;
    const uint32_t cut = 23 - bits;
    return float_of((u + (1u << (cut - 1))) & ~((1u << cut) - 1));
}

float *hc_load(const hc_tensor *t, const void *from, uint32_t bits)
{
    const int64_t n = hc_elements(t);
    const uint16_t *narrow = from;
    float *to = malloc((size_t)n * sizeof *to);
    if (!to)
        return NULL;
    if (t->type == CUDNN_DATA_FLOAT)
        memcpy(to, from, (size_t)n * sizeof *to);
    else if (t->type == CUDNN_DATA_BFLOAT16)
        narrow_widen(to, narrow, n);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = from_half(narrow[i]);
    for (int64_t i = 0; bits && i < n; i++)
        to[i] = keep_bits(to[i], bits);
    return to;
}

void hc_store(const hc_tensor *t, const float *from, void *to)
{
    const int64_t n = hc_elements(t);
    uint16_t *narrow = to;
    if (t->type == CUDNN_DATA_FLOAT)
        memcpy(to, from, (size_t)n * sizeof *from);
    else if (t->type == CUDNN_DATA_BFLOAT16)
        narrow_round(narrow, from, n);
    else
        for (int64_t i = 0; i < n; i++)
            narrow[i] = to_half(from[i]);
}

/* ---- convolutions ---- */
/* A matrix in memory: element (i, j) at p[i * down + j * right]. */
typedef struct matrix {
    float *p;
    int64_t down, right;
} matrix;

/* c [m][n] += a [m][k] b [k][n]; c's rows are dense. panel: k * COLUMNS floats. */
SODET_CLONES void hc_multiply(int64_t m, int64_t n, int64_t k, matrix a, matrix b, float *c, int64_t down, float *panel);
SODET_CLONES void hc_multiply(int64_t m, int64_t n, int64_t k, matrix a, matrix b, float *c, int64_t down, float *panel)
{
    for (int64_t j = 0; j < n; j += COLUMNS) {
        const int64_t wide = n - j < COLUMNS ? n - j : COLUMNS;
        for (int64_t i = 0; i < k; i++)
            for (int64_t l = 0; l < COLUMNS; l++)
                panel[i * COLUMNS + l] = l < wide ? b.p[i * b.down + (j + l) * b.right] : 0;
        for (int64_t i = 0; i < m; i += ROWS) {
            const float *row[ROWS]; /* the last ones twice where m ends */
            lanes sum[ROWS][2];
            for (int r = 0; r < ROWS; r++) {
                row[r] = a.p + (i + r < m ? i + r : m - 1) * a.down;
                sum[r][0] = sum[r][1] = (lanes){0};
            }
            for (int64_t l = 0; l < k; l++) {
                const lanes left = lanes_at(panel + l * COLUMNS), right = lanes_at(panel + l * COLUMNS + 8);
#pragma GCC unroll 6
                for (int r = 0; r < ROWS; r++) {
                    const float v = row[r][l * a.right];
                    sum[r][0] += v * left;
                    sum[r][1] += v * right;
                }
            }
            for (int r = 0; r < ROWS && i + r < m; r++)
                for (int64_t l = 0; l < wide; l++)
                    c[(i + r) * down + j + l] += sum[r][l / 8][l % 8];
        }
    }
}

/* Where tap (r, s) of output pixel (p, q) lies in the input; false: in the padding. */
static bool tap(const hc_graph *g, int64_t p, int64_t q, int64_t r, int64_t s, int64_t *h, int64_t *w)
{
    *h = p * g->stride[0] - g->before[0] + r * g->dilation[0];
    *w = q * g->stride[1] - g->before[1] + s * g->dilation[1];
    return *h >= 0 && *h < g->x.size[2] && *w >= 0 && *w < g->x.size[3];
}

/* Rows [pixel][R * S * C / groups] of the input's channels of a group for output pixels [first, first + n); back: adds them to it. */
static void lay_out(const hc_graph *g, int64_t group, int64_t first, int64_t n, float *x, float *rows, bool back)
{
    const int64_t c = g->w.size[1], height = g->w.size[2], width = g->w.size[3], plane = g->y.size[2] * g->y.size[3];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (first + i) % plane, p = at / g->y.size[3], q = at % g->y.size[3];
        float *image = x + (first + i) / plane * g->x.size[2] * g->x.size[3] * g->x.size[1] + group * c;
        for (int64_t r = 0; r < height; r++)
            for (int64_t s = 0; s < width; s++, rows += c) {
                int64_t h, w;
                const bool inside = tap(g, p, q, r, s, &h, &w);
                float *from = inside ? image + (h * g->x.size[3] + w) * g->x.size[1] : NULL;
                if (back)
                    for (int64_t k = 0; inside && k < c; k++)
                        from[k] += rows[k];
                else if (inside)
                    memcpy(rows, from, (size_t)c * sizeof *rows);
                else
                    memset(rows, 0, (size_t)c * sizeof *rows);
            }
    }
}

static bool by_rows(const hc_graph *g, float *x, float *w, float *y)
{
    const int64_t k = g->y.size[1] / g->groups, taps = g->w.size[1] * g->w.size[2] * g->w.size[3];
    const int64_t pixels = g->y.size[0] * g->y.size[2] * g->y.size[3], all = g->y.size[1];
    const int64_t deep = taps > k ? taps > PIXELS ? taps : PIXELS : k > PIXELS ? k : PIXELS;
    float *rows = malloc((size_t)(PIXELS * taps) * sizeof *rows), *panel = malloc((size_t)(deep * COLUMNS) * sizeof *panel);
    for (int64_t group = 0; rows && panel && group < g->groups; group++)
        for (int64_t first = 0; first < pixels; first += PIXELS) {
            const int64_t n = pixels - first < PIXELS ? pixels - first : PIXELS;
            float *out = y + first * all + group * k, *weight = w + group * k * taps;
            if (g->part == 1)
                memset(rows, 0, (size_t)(n * taps) * sizeof *rows);
            else
                lay_out(g, group, first, n, x, rows, false);
            if (g->part == 0)
                hc_multiply(n, k, taps, (matrix){rows, taps, 1}, (matrix){weight, 1, taps}, out, all, panel);
            else if (g->part == 1)
                hc_multiply(n, taps, k, (matrix){out, all, 1}, (matrix){weight, taps, 1}, rows, taps, panel);
            else
                hc_multiply(k, taps, n, (matrix){out, 1, all}, (matrix){rows, taps, 1}, weight, taps, panel);
            if (g->part == 1)
                lay_out(g, group, first, n, x, rows, true);
        }
    const bool done = rows && panel;
    free(rows);
    free(panel);
    return done;
}

/* a[i] += b[i] * c[i] */
SODET_CLONES void hc_add_products(int64_t n, float *restrict a, const float *restrict b, const float *restrict c);
SODET_CLONES void hc_add_products(int64_t n, float *restrict a, const float *restrict b, const float *restrict c)
{
    for (int64_t i = 0; i < n; i++)
        a[i] += b[i] * c[i];
}

/* One channel in, one out, in each group: weights as [R * S][channel]. */
static bool by_channels(const hc_graph *g, float *x, float *w, float *y)
{
    const int64_t c = g->groups, taps = g->w.size[2] * g->w.size[3], plane = g->y.size[2] * g->y.size[3];
    float *turned = malloc((size_t)(c * taps) * sizeof *turned);
    if (!turned)
        return false;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t k = 0; k < c; k++)
            turned[t * c + k] = w[k * taps + t];
    for (int64_t i = 0; i < g->y.size[0] * plane; i++) {
        float *image = x + i / plane * g->x.size[2] * g->x.size[3] * c, *out = y + i * c;
        for (int64_t t = 0; t < taps; t++) {
            int64_t row, column;
            if (!tap(g, i % plane / g->y.size[3], i % g->y.size[3], t / g->w.size[3], t % g->w.size[3], &row, &column))
                continue;
            float *in = image + (row * g->x.size[3] + column) * c, *weight = turned + t * c;
            if (g->part == 0)
                hc_add_products(c, out, in, weight);
            else if (g->part == 1)
                hc_add_products(c, in, out, weight);
            else
                hc_add_products(c, weight, in, out);
        }
    }
    if (g->part == 2)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < c; k++)
                w[k * taps + t] = turned[t * c + k];
    free(turned);
    return true;
}

bool hc_convolve(const hc_graph *g, float *x, float *w, float *y)
{
    float *out = g->part == 0 ? y : g->part == 1 ? x : w;
    memset(out, 0, (size_t)hc_elements(g->part == 0 ? &g->y : g->part == 1 ? &g->x : &g->w) * sizeof *out);
    return g->w.size[1] == 1 && g->w.size[0] == g->groups ? by_channels(g, x, w, y) : by_rows(g, x, w, y);
}
