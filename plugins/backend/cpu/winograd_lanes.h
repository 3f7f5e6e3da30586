/* winograd_lanes.h: the work of winograd.h for vectors of LANES floats, to be included once by a file that defines LANES, 16 (AVX-512) or
 * 8 (AVX2 with FMA); defines what a cpu_winograd_code holds. For maps a unit of work is a block of tiles and a chunk of output channels:
 *   V[36][panel][in / LANES][tile][LANES]     = B' d B of every 6x6 input tile
 *   M[36][chunk / PAIR][tile][PAIR]           = V * U, one matrix product for each of the 36 positions
 *   y                                         = act(A' M A + bias + residual)
 * with the transformed weights U[36][chunk of PAIR outputs][in][PAIR]. A panel of tiles by PAIR outputs, two vectors, are the sums that the
 * registers hold: 14 x 2 of AVX-512's 32, 6 x 2 of AVX2's 16. */
#include <immintrin.h>

#include "plugins/backend/cpu/winograd.h"

/* DEPTH: blocks of input channels for which the weights of PAIR outputs (8 KiB) stay in the first-level cache while all panels pass. */
#if LANES == 16
#define VECTOR_ISA "avx512f,avx512dq,avx512bw,avx512vl"
enum { PAIR = 32, LEAST_PANEL = 11, DEPTH = 4 };
typedef __m512 vec;
#define LOAD  _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define ALL   _mm512_set1_ps
#define ZERO  _mm512_setzero_ps()
#define FMA   _mm512_fmadd_ps
#define FNMA  _mm512_fnmadd_ps
#define ADD   _mm512_add_ps
#define SUB   _mm512_sub_ps
#define MUL   _mm512_mul_ps
#define MAX   _mm512_max_ps
#else
#define VECTOR_ISA "avx2,fma"
enum { PAIR = 16, LEAST_PANEL = 4, DEPTH = 16 };
typedef __m256 vec;
#define LOAD       _mm256_loadu_ps
#define STORE      _mm256_storeu_ps
#define ALL        _mm256_set1_ps
#define ZERO       _mm256_setzero_ps()
#define FMA        _mm256_fmadd_ps
#define FNMA       _mm256_fnmadd_ps
#define ADD        _mm256_add_ps
#define SUB        _mm256_sub_ps
#define MUL        _mm256_mul_ps
#define MAX        _mm256_max_ps
#endif
#define TARGET __attribute__((target(VECTOR_ISA)))
#define INLINE static inline __attribute__((always_inline, target(VECTOR_ISA)))

/* The first n of LANES floats (or all, if n is more), zeros behind them. */
INLINE vec load_some(const float *x, int64_t n)
{
    float all[LANES] = {0};
    for (int64_t i = 0; i < n && i < LANES; i++)
        all[i] = x[i];
    return LOAD(all);
}

static const float a1 = CPU_WINOGRAD_A, a2 = CPU_WINOGRAD_A * CPU_WINOGRAD_A, a3 = CPU_WINOGRAD_A * CPU_WINOGRAD_A * CPU_WINOGRAD_A;
static const float b1 = CPU_WINOGRAD_B, b2 = CPU_WINOGRAD_B * CPU_WINOGRAD_B, b3 = CPU_WINOGRAD_B * CPU_WINOGRAD_B * CPU_WINOGRAD_B;

/* ---- weights: U = G g G', in double: its rounding would be the largest of all ---- */
INLINE void weight_line(const double *g0, const double *g1, const double *g2, double out[6][LANES])
{
    const double a = (double)a1, b = (double)b1, n0 = 1 / (a * a * b * b), na = 1 / (2 * a * a * (a * a - b * b)),
                 nb = 1 / (2 * b * b * (b * b - a * a));
    for (int o = 0; o < LANES; o++) {
        double even = na * (g0[o] + a * a * g2[o]), odd = na * a * g1[o];
        out[0][o] = n0 * g0[o];
        out[1][o] = even + odd;
        out[2][o] = even - odd;
        even = nb * (g0[o] + b * b * g2[o]);
        odd = nb * b * g1[o];
        out[3][o] = even + odd;
        out[4][o] = even - odd;
        out[5][o] = g2[o];
    }
}

TARGET static void weight_tile(const cpu_winograd *p, const float *w, float *u, int64_t in, int64_t out_block)
{
    double g[9][LANES] = {{0}}, half[3][6][LANES], line[6][LANES];
    int64_t count = p->out - out_block * LANES < LANES ? p->out - out_block * LANES : LANES;
    if (in < p->in)
        for (int64_t o = 0; o < count; o++)
            for (int64_t k = 0; k < 9; k++) {
                int64_t out = out_block * LANES + o;
                g[k][o] = (double)(p->backward ? w[(in * p->out + out) * 9 + 8 - k] : w[(out * p->in + in) * 9 + k]);
            }
    for (int j = 0; j < 3; j++)
        weight_line(g[j], g[3 + j], g[6 + j], half[j]);
    const int64_t position = p->in_whole * ((p->out_whole + PAIR - 1) / PAIR * PAIR);
    u += (out_block / 2 * p->in_whole + in) * PAIR + out_block % 2 * LANES;
    for (int i = 0; i < 6; i++) {
        weight_line(half[0][i], half[1][i], half[2][i], line);
        for (int j = 0; j < 6; j++)
            for (int o = 0; o < LANES; o++)
                u[(i * 6 + j) * position + o] = (float)line[j][o];
    }
}

/* ---- input tiles: V = B' d B ---- */
INLINE void input_line(const vec d[6], vec out[6])
{
    const vec va2 = ALL(a2), vb2 = ALL(b2), va = ALL(a1), vb = ALL(b1);
    const vec product = ALL(a2 * b2), sum = ALL(a2 + b2);
    out[0] = FMA(product, d[0], FNMA(sum, d[2], d[4]));
    vec even = FNMA(vb2, d[2], d[4]), odd = FNMA(vb2, d[1], d[3]);
    out[1] = FMA(va, odd, even);
    out[2] = FNMA(va, odd, even);
    even = FNMA(va2, d[2], d[4]);
    odd = FNMA(va2, d[1], d[3]);
    out[3] = FMA(vb, odd, even);
    out[4] = FNMA(vb, odd, even);
    out[5] = FMA(product, d[1], FNMA(sum, d[3], d[5]));
}

/* A line of six positions. */
INLINE void store_line(float *to, int64_t position, const vec line[6])
{
    STORE(to, line[0]);
    STORE(to + position, line[1]);
    STORE(to + 2 * position, line[2]);
    STORE(to + 3 * position, line[3]);
    STORE(to + 4 * position, line[4]);
    STORE(to + 5 * position, line[5]);
}

/* x: the first of 36 vectors, `line` floats from row to row, `step` from column to column; v: the vector of this tile and block at position 0 */
INLINE void input_tile(const float *x, int64_t line, int64_t step, float *v, int64_t position)
{
    vec half[6][6];
    for (int64_t j = 0; j < 6; j++) {
        const vec d[6] = {LOAD(x + j * step),
                          LOAD(x + line + j * step),
                          LOAD(x + 2 * line + j * step),
                          LOAD(x + 3 * line + j * step),
                          LOAD(x + 4 * line + j * step),
                          LOAD(x + 5 * line + j * step)};
        vec out[6];
        input_line(d, out);
        half[0][j] = out[0], half[1][j] = out[1], half[2][j] = out[2], half[3][j] = out[3], half[4][j] = out[4], half[5][j] = out[5];
    }
    for (int64_t i = 0; i < 6; i++, v += 6 * position) {
        vec out[6];
        input_line(half[i], out);
        store_line(v, position, out);
    }
}

/* A tile that hangs over the map's edge, with zeros around. */
INLINE void edge_tile(const cpu_winograd *p, const float *x, int64_t row, int64_t column, float tile[36 * LANES])
{
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < 6; j++) {
            const int64_t r = row + i * p->dilation, c = column + j * p->dilation;
            bool there = r >= 0 && r < p->h && c >= 0 && c < p->w;
            STORE(tile + (i * 6 + j) * LANES, there ? LOAD(x + (r * p->w + c) * LANES) : ZERO);
        }
}

/* ---- the products: C[R][PAIR] = sum over k of A[k][R] * B[k][PAIR], A in blocks [LANES k's][R][LANES]; of the columns both halves or the
 * first. add: to what C holds; sums of sums round less ---- */
#define ZERO1(i) vec c##i##_0 = ZERO;
#define ZERO2(i) ZERO1(i) vec c##i##_1 = c##i##_0;
#define SUM1(i)  c##i##_0 = ADD(c##i##_0, LOAD(c + (i)*PAIR));
#define SUM2(i)  SUM1(i) c##i##_1 = ADD(c##i##_1, LOAD(c + (i)*PAIR + LANES));
#define ADD1(i)  c##i##_0 = FMA(ALL(a[(i)*LANES + k]), w0, c##i##_0);
#define ADD2(i)                                                                                                                            \
    {                                                                                                                                      \
        vec v = ALL(a[(i)*LANES + k]);                                                                                                     \
        c##i##_0 = FMA(v, w0, c##i##_0);                                                                                                   \
        c##i##_1 = FMA(v, w1, c##i##_1);                                                                                                   \
    }
#define STORE1(i) STORE(c + (i)*PAIR, c##i##_0);
#define STORE2(i) STORE1(i) STORE(c + (i)*PAIR + LANES, c##i##_1);
#define WEIGHTS1  const vec w0 = LOAD(b)
#define WEIGHTS2  WEIGHTS1, w1 = LOAD(b + LANES)
#define PRODUCT(R, N)                                                                                                                      \
    TARGET static void product##R##_##N(int64_t blocks, const float *a, const float *b, float *c, bool add)                                \
    {                                                                                                                                      \
        ROWS##R(ZERO##N);                                                                                                                  \
        for (int64_t q = 0; q < blocks; q++, a += R * LANES)                                                                               \
            for (int64_t k = 0; k < LANES; k++, b += PAIR) {                                                                               \
                WEIGHTS##N;                                                                                                                \
                ROWS##R(ADD##N);                                                                                                           \
            }                                                                                                                              \
        if (add) {                                                                                                                         \
            ROWS##R(SUM##N);                                                                                                               \
        }                                                                                                                                  \
        ROWS##R(STORE##N);                                                                                                                 \
    }
typedef void (*product)(int64_t blocks, const float *a, const float *b, float *c, bool add);
#define ROWS1(X) X(0)
#define ROWS2(X) ROWS1(X) X(1)
#define ROWS3(X) ROWS2(X) X(2)
#define ROWS4(X) ROWS3(X) X(3)
#define ROWS5(X) ROWS4(X) X(4)
#define ROWS6(X) ROWS5(X) X(5)
#if LANES == 16
#define ROWS11(X) ROWS6(X) X(6) X(7) X(8) X(9) X(10)
#define ROWS12(X) ROWS11(X) X(11)
#define ROWS13(X) ROWS12(X) X(12)
#define ROWS14(X) ROWS13(X) X(13)
PRODUCT(11, 1)
PRODUCT(12, 1)
PRODUCT(13, 1)
PRODUCT(14, 1)
PRODUCT(11, 2)
PRODUCT(12, 2)
PRODUCT(13, 2)
PRODUCT(14, 2)
static const product products[2][4] = {{product11_1, product12_1, product13_1, product14_1},
                                       {product11_2, product12_2, product13_2, product14_2}};
#else
PRODUCT(4, 1)
PRODUCT(5, 1)
PRODUCT(6, 1)
PRODUCT(4, 2)
PRODUCT(5, 2)
PRODUCT(6, 2)
static const product products[2][3] = {{product4_1, product5_1, product6_1}, {product4_2, product5_2, product6_2}};
#endif

/* ---- output tiles: y = A' M A ---- */
INLINE void output_line(const vec m[6], vec out[4])
{
    vec sa = ADD(m[1], m[2]), da = SUB(m[1], m[2]), sb = ADD(m[3], m[4]), db = SUB(m[3], m[4]);
    out[0] = ADD(m[0], ADD(sa, sb));
    out[1] = FMA(ALL(a1), da, MUL(ALL(b1), db));
    out[2] = FMA(ALL(a2), sa, MUL(ALL(b2), sb));
    out[3] = FMA(ALL(a3), da, FMA(ALL(b3), db, m[5]));
}

INLINE void output_tile(const cpu_winograd *p, const float *m, int64_t position, vec bias, const float *residual, float *y, int64_t row,
                        int64_t column)
{
    vec half[4][6];
    for (int64_t j = 0; j < 6; j++, m += position) {
        const vec line[6] = {LOAD(m),
                             LOAD(m + 6 * position),
                             LOAD(m + 12 * position),
                             LOAD(m + 18 * position),
                             LOAD(m + 24 * position),
                             LOAD(m + 30 * position)};
        vec out[4];
        output_line(line, out);
        half[0][j] = out[0], half[1][j] = out[1], half[2][j] = out[2], half[3][j] = out[3];
    }
    const int64_t d = p->dilation;
    for (int64_t i = 0; i < 4 && row + i * d < p->h; i++) {
        vec out[4];
        output_line(half[i], out);
        for (int64_t j = 0; j < 4 && column + j * d < p->w; j++) {
            const int64_t at = ((row + i * d) * p->w + column + j * d) * LANES;
            vec v = ADD(out[j], bias);
            if (residual)
                v = ADD(v, LOAD(residual + at));
            if (p->relu) /* NaN stays: max gives its second operand then */
                v = MAX(ZERO, v);
            STORE(y + at, v);
        }
    }
}

/* ---- a unit of maps ---- */
typedef struct tile_place {
    int64_t image, row, column;
} tile_place;

/* The first pixel that a tile writes. With a dilation of d the pixels of a residue class modulo d are a map of their own, d * d of them. */
static tile_place place_of(const cpu_winograd *p, int64_t tile)
{
    const int64_t d = p->dilation, in_class = tile % (p->rows * p->columns), class = tile / (p->rows * p->columns);
    return (tile_place){.image = class / (d * d),
                        .row = class / d % d + in_class / p->columns * 4 * d,
                        .column = class % d + in_class % p->columns * 4 * d};
}

/* One block of channels of a tile; v: its vector at position 0. */
INLINE void transform_input(const cpu_winograd *p, const float *x, int64_t tile, int64_t block, float *v, int64_t position)
{
    const tile_place at = place_of(p, tile);
    const int64_t d = p->dilation, row = at.row - d, column = at.column - d;
    x += (at.image * (p->in_whole / LANES) + block) * p->h * p->w * LANES;
    if (row >= 0 && column >= 0 && row + 5 * d < p->h && column + 5 * d < p->w) {
        input_tile(x + (row * p->w + column) * LANES, d * p->w * LANES, d * LANES, v, position);
    } else {
        float around[36 * LANES];
        edge_tile(p, x, row, column, around);
        input_tile(around, 6 * LANES, LANES, v, position);
    }
}

TARGET static void run_unit(const cpu_winograd *p, const float *x, const float *u, const float *bias, const float *residual, float *y,
                            float *v, int64_t block, int64_t chunk)
{
    const int64_t panel = p->panel, all = (p->tiles + panel - 1) / panel;
    const int64_t first = block * all / p->blocks * panel, next = (block + 1) * all / p->blocks * panel;
    const int64_t count = (next < p->tiles ? next : p->tiles) - first;
    const int64_t panels = (count + panel - 1) / panel, in_blocks = p->in_whole / LANES, out_blocks = p->out_whole / LANES;
    const int64_t v_position = p->v_step, m_position = p->m_step;
    const int64_t begin = chunk * p->chunk, end = begin + p->chunk < p->out_whole ? begin + p->chunk : p->out_whole;
    const int64_t pairs = (p->out_whole + PAIR - 1) / PAIR, plane = p->h * p->w * LANES;
    float *m = v + 36 * v_position;
    /* Block by block, so that the maps are walked in rows. */
    for (int64_t q = 0; q < in_blocks; q++)
        for (int64_t t = 0; t < count; t++)
            transform_input(p, x, first + t, q, v + ((t / panel * in_blocks + q) * panel + t % panel) * LANES, v_position);
    for (int64_t s = 0; s < 36; s++)
        for (int64_t o = begin / PAIR; o * PAIR < end; o++) {
            const product multiply = products[o * PAIR + LANES < end][panel - LEAST_PANEL];
            for (int64_t k = 0; k < in_blocks; k += DEPTH)
                for (int64_t q = 0; q < panels; q++)
                    multiply(in_blocks - k < DEPTH ? in_blocks - k : DEPTH, v + s * v_position + (q * in_blocks + k) * panel * LANES,
                             u + ((s * pairs + o) * p->in_whole + k * LANES) * PAIR,
                             m + s * m_position + ((o - begin / PAIR) * p->panels + q) * panel * PAIR, k > 0);
        }
    for (int64_t o = begin / LANES; o * LANES < end; o++) {
        vec b = ZERO;
        if (bias)
            b = load_some(bias + o * LANES, p->out - o * LANES);
        const float *from = m + (o / 2 - begin / PAIR) * p->panels * panel * PAIR + o % 2 * LANES;
        for (int64_t t = 0; t < count; t++) {
            const tile_place at = place_of(p, first + t);
            const int64_t map = (at.image * out_blocks + o) * plane;
            output_tile(p, from + t * PAIR, m_position, b, residual ? residual + map : NULL, y + map, at.row, at.column);
        }
    }
}

/* ---- gradient of the weights: dw = G' (sum over tiles of (B' d B) * (A dy A')) G ---- */
enum { ROWS = LANES / 2 };

INLINE void slope_line(const vec d[4], vec out[6])
{
    vec even = FMA(ALL(a2), d[2], d[0]), odd = MUL(ALL(a1), FMA(ALL(a2), d[3], d[1]));
    out[0] = d[0];
    out[1] = ADD(even, odd);
    out[2] = SUB(even, odd);
    even = FMA(ALL(b2), d[2], d[0]);
    odd = MUL(ALL(b1), FMA(ALL(b2), d[3], d[1]));
    out[3] = ADD(even, odd);
    out[4] = SUB(even, odd);
    out[5] = d[3];
}

/* Adds the tile's pixels to sum: the gradient of the bias. */
INLINE void slope_tile(const cpu_winograd *p, const float *dy, int64_t row, int64_t column, float *to, int64_t position, vec *sum)
{
    const int64_t d = p->dilation;
    vec half[6][4];
    for (int64_t j = 0; j < 4; j++) {
        vec line[4], out[6];
        for (int64_t i = 0; i < 4; i++) {
            const int64_t r = row + i * d, c = column + j * d;
            line[i] = r < p->h && c < p->w ? LOAD(dy + (r * p->w + c) * LANES) : ZERO;
            *sum = ADD(*sum, line[i]);
        }
        slope_line(line, out);
        half[0][j] = out[0], half[1][j] = out[1], half[2][j] = out[2], half[3][j] = out[3], half[4][j] = out[4], half[5][j] = out[5];
    }
    for (int64_t i = 0; i < 6; i++, to += 6 * position) {
        vec out[6];
        slope_line(half[i], out);
        store_line(to, position, out);
    }
}

/* C[ROWS][PAIR] += sum over tiles of A[tile][LANES], ROWS of them, times B[tile][PAIR] */
TARGET static void outer_product(int64_t tiles, const float *a, const float *b, float *c)
{
    vec sum[ROWS][2];
    for (int64_t i = 0; i < ROWS; i++)
        sum[i][0] = sum[i][1] = ZERO;
    for (int64_t t = 0; t < tiles; t++, a += LANES, b += PAIR) {
        const vec w0 = LOAD(b), w1 = LOAD(b + LANES);
        for (int64_t i = 0; i < ROWS; i++) {
            const vec v = ALL(a[i]);
            sum[i][0] = FMA(v, w0, sum[i][0]);
            sum[i][1] = FMA(v, w1, sum[i][1]);
        }
    }
    for (int64_t i = 0; i < ROWS; i++, c += PAIR) {
        STORE(c, ADD(LOAD(c), sum[i][0]));
        STORE(c + LANES, ADD(LOAD(c + LANES), sum[i][1]));
    }
}

/* s[36][pair][in][PAIR] and bias [out] of a group: this unit's chunk of outputs over its tiles. v: of this thread. */
TARGET static void gradient_unit(const cpu_winograd *p, const float *x, const float *dy, float *s, float *bias, float *v, int64_t group,
                                 int64_t chunk)
{
    const int64_t first = group * p->tiles / p->groups, end = (group + 1) * p->tiles / p->groups;
    const int64_t in_blocks = p->in_whole / LANES, out_blocks = p->out_whole / LANES, pairs = (p->out_whole + PAIR - 1) / PAIR;
    const int64_t begin = chunk * p->chunk / PAIR, stop = begin + p->chunk / PAIR < pairs ? begin + p->chunk / PAIR : pairs;
    const int64_t room = p->tiles_at_once;
    float *slope = v + 36 * p->v_step;
    for (int64_t k = 0; k < 36; k++)
        memset(s + (k * pairs + begin) * p->in_whole * PAIR, 0, (uint64_t)((stop - begin) * p->in_whole * PAIR) * sizeof(float));
    memset(bias + begin * PAIR, 0, (uint64_t)((stop - begin) * PAIR) * sizeof(float));
    for (int64_t at = first; at < end; at += room) {
        const int64_t count = end - at < room ? end - at : room;
        for (int64_t q = 0; q < in_blocks; q++)
            for (int64_t t = 0; t < count; t++)
                transform_input(p, x, at + t, q, v + (q * room + t) * LANES, p->v_step);
        for (int64_t o = begin * 2; o < stop * 2; o++) {
            float *to = slope + ((o / 2 - begin) * room * 2 + o % 2) * LANES;
            if (o >= out_blocks) { /* an odd last block has nothing beside it */
                for (int64_t k = 0; k < 36; k++)
                    for (int64_t t = 0; t < count; t++)
                        STORE(to + k * p->m_step + t * PAIR, ZERO);
                continue;
            }
            vec sum = ZERO;
            for (int64_t t = 0; t < count; t++) {
                const tile_place place = place_of(p, at + t);
                slope_tile(p, dy + (place.image * out_blocks + o) * p->h * p->w * LANES, place.row, place.column, to + t * PAIR, p->m_step,
                           &sum);
            }
            STORE(bias + o * LANES, ADD(LOAD(bias + o * LANES), sum));
        }
        for (int64_t k = 0; k < 36; k++)
            for (int64_t o = begin; o < stop; o++)
                for (int64_t row = 0; row < p->in_whole; row += ROWS)
                    outer_product(count, v + k * p->v_step + row / LANES * room * LANES + row % LANES,
                                  slope + k * p->m_step + (o - begin) * room * PAIR, s + ((k * pairs + o) * p->in_whole + row) * PAIR);
    }
}

INLINE void gradient_line(double s[6][LANES], double out[3][LANES])
{
    const double a = (double)a1, b = (double)b1, n0 = 1 / (a * a * b * b), na = 1 / (2 * a * a * (a * a - b * b)),
                 nb = 1 / (2 * b * b * (b * b - a * a));
    for (int o = 0; o < LANES; o++) {
        const double ea = na * (s[1][o] + s[2][o]), da = na * (s[1][o] - s[2][o]), eb = nb * (s[3][o] + s[4][o]),
                     db = nb * (s[3][o] - s[4][o]);
        out[0][o] = n0 * s[0][o] + ea + eb;
        out[1][o] = a * da + b * db;
        out[2][o] = a * a * ea + b * b * eb + s[5][o];
    }
}

/* dw [O, I, 3, 3], one block of outputs of one input channel, of the sums of all groups; group_step: floats from group to group */
TARGET static void gradient_weights(const cpu_winograd *p, const float *s, int64_t group_step, float *dw, int64_t in, int64_t out_block)
{
    const int64_t pairs = (p->out_whole + PAIR - 1) / PAIR, position = pairs * p->in_whole * PAIR;
    const int64_t count = p->out - out_block * LANES < LANES ? p->out - out_block * LANES : LANES;
    double sums[6][6][LANES], half[3][6][LANES], line[6][LANES], out[3][LANES];
    s += (out_block / 2 * p->in_whole + in) * PAIR + out_block % 2 * LANES;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int o = 0; o < LANES; o++) {
                double sum = 0;
                for (int64_t g = 0; g < p->groups; g++)
                    sum += (double)s[g * group_step + (i * 6 + j) * position + o];
                sums[i][j][o] = sum;
            }
    for (int j = 0; j < 6; j++) {
        for (int i = 0; i < 6; i++)
            memcpy(line[i], sums[i][j], sizeof line[i]);
        gradient_line(line, out);
        for (int i = 0; i < 3; i++)
            memcpy(half[i][j], out[i], sizeof out[i]);
    }
    for (int i = 0; i < 3; i++) {
        gradient_line(half[i], out);
        for (int j = 0; j < 3; j++)
            for (int64_t o = 0; o < count; o++)
                dw[((out_block * LANES + o) * p->in + in) * 9 + i * 3 + j] = (float)out[j][o];
    }
}
