/* See winograd.h. A unit of work is a block of tiles and a chunk of output channels:
 *   V[36][panel][in / 16][tile][16]       = B' d B of every 6x6 input tile
 *   M[36][chunk / 32][tile][32]           = V * U, one matrix product for each of the 36 positions
 *   y                                     = act(A' M A + bias + residual)
 * with the transformed weights U[36][chunk of 32 outputs][in][32]. A panel of up to 14 tiles by 32 outputs are 28 vectors of sums: what the registers hold. */
#include "plugins/backend/cpu/winograd.h"

#define PANEL   14
#define POINT_A 0.75f
#define POINT_B 1.5f

bool cpu_winograd_can(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
#else
    return false;
#endif
}

/* V and M of a unit should stay in the second-level cache, but a unit must have tiles enough to be worth reading all weights. */
enum { UNIT_BYTES = 1 << 20, LEAST_PANELS = 4 };

void cpu_winograd_plan(cpu_winograd *p, const sodet_shape *x, const sodet_shape *y, bool backward, bool relu, uint32_t threads)
{
    *p = (cpu_winograd){
        .batch = x->dim[0], .in = x->dim[1], .out = y->dim[1], .h = x->dim[2], .w = x->dim[3], .backward = backward, .relu = relu};
    p->in16 = (p->in + 15) / 16 * 16;
    p->out16 = (p->out + 15) / 16 * 16;
    p->rows = (p->h + 3) / 4;
    p->columns = (p->w + 3) / 4;
    p->tiles = p->batch * p->rows * p->columns;
    p->panel = 14; /* or what leaves clearly fewer places of the last panel empty */
    for (int64_t size = 13; size > 10; size--)
        if ((p->tiles + size - 1) / size * size * 33 < (p->tiles + p->panel - 1) / p->panel * p->panel * 32)
            p->panel = size;
    int64_t all = (p->tiles + p->panel - 1) / p->panel, most = UNIT_BYTES / (144 * p->panel * (p->in16 + p->out16));
    most = most < LEAST_PANELS ? LEAST_PANELS : most;
    p->blocks = (all + most - 1) / most;
    p->chunks = 1;
    if (p->blocks < threads)
        p->chunks = (threads + p->blocks - 1) / p->blocks; /* weights are read once, transforms of tiles done for each chunk */
    else
        p->blocks = (p->blocks + threads - 1) / threads * threads;
    p->blocks = p->blocks > all ? all : p->blocks;
    p->panels = (all + p->blocks - 1) / p->blocks;
    int64_t pairs = (p->out16 + 31) / 32;
    p->chunks = p->chunks > pairs ? pairs : p->chunks;
    p->chunk = (pairs + p->chunks - 1) / p->chunks * 32;
    p->chunks = (p->out16 + p->chunk - 1) / p->chunk;
}

uint64_t cpu_winograd_weight_bytes(const cpu_winograd *p)
{
    return (uint64_t)(36 * p->in16 * ((p->out16 + 31) / 32 * 32)) * sizeof(float);
}

/* From position to position in V and M: an odd number of cache lines, so that the 36 of them do not meet in one set of the cache. */
static int64_t v_step(const cpu_winograd *p)
{
    return (p->panels * p->panel * p->in16 / 16 | 1) * 16;
}

static int64_t m_step(const cpu_winograd *p)
{
    return (p->panels * p->panel * p->chunk / 16 | 1) * 16;
}

static uint64_t unit_floats(const cpu_winograd *p)
{
    return (uint64_t)(36 * (v_step(p) + m_step(p)));
}

uint64_t cpu_winograd_scratch(const cpu_winograd *p, uint32_t threads)
{
    return unit_floats(p) * sizeof(float) * threads;
}

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX512        __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define AVX512_INLINE static inline __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl")))

static const float a1 = POINT_A, a2 = POINT_A * POINT_A, a3 = POINT_A * POINT_A * POINT_A;
static const float b1 = POINT_B, b2 = POINT_B * POINT_B, b3 = POINT_B * POINT_B * POINT_B;

/* ---- weights: U = G g G', in double: its rounding would be the largest of all ---- */
AVX512_INLINE void weight_line(const double *g0, const double *g1, const double *g2, double out[6][16])
{
    const double a = (double)a1, b = (double)b1, n0 = 1 / (a * a * b * b), na = 1 / (2 * a * a * (a * a - b * b)),
                 nb = 1 / (2 * b * b * (b * b - a * a));
    for (int o = 0; o < 16; o++) {
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

AVX512 static void weight_tile(const cpu_winograd *p, const float *w, float *u, int64_t in, int64_t out_block)
{
    double g[9][16] = {{0}}, half[3][6][16], line[6][16];
    int64_t count = p->out - out_block * 16 < 16 ? p->out - out_block * 16 : 16;
    if (in < p->in)
        for (int64_t o = 0; o < count; o++)
            for (int64_t k = 0; k < 9; k++) {
                int64_t out = out_block * 16 + o;
                g[k][o] = (double)(p->backward ? w[(in * p->out + out) * 9 + 8 - k] : w[(out * p->in + in) * 9 + k]);
            }
    for (int j = 0; j < 3; j++)
        weight_line(g[j], g[3 + j], g[6 + j], half[j]);
    const int64_t position = p->in16 * ((p->out16 + 31) / 32 * 32);
    u += (out_block / 2 * p->in16 + in) * 32 + out_block % 2 * 16;
    for (int i = 0; i < 6; i++) {
        weight_line(half[0][i], half[1][i], half[2][i], line);
        for (int j = 0; j < 6; j++)
            for (int o = 0; o < 16; o++)
                u[(i * 6 + j) * position + o] = (float)line[j][o];
    }
}

/* ---- input tiles: V = B' d B ---- */
AVX512_INLINE void input_line(const __m512 d[6], __m512 out[6])
{
    const __m512 va2 = _mm512_set1_ps(a2), vb2 = _mm512_set1_ps(b2), va = _mm512_set1_ps(a1), vb = _mm512_set1_ps(b1);
    const __m512 product = _mm512_set1_ps(a2 * b2), sum = _mm512_set1_ps(a2 + b2);
    out[0] = _mm512_fmadd_ps(product, d[0], _mm512_fnmadd_ps(sum, d[2], d[4]));
    __m512 even = _mm512_fnmadd_ps(vb2, d[2], d[4]), odd = _mm512_fnmadd_ps(vb2, d[1], d[3]);
    out[1] = _mm512_fmadd_ps(va, odd, even);
    out[2] = _mm512_fnmadd_ps(va, odd, even);
    even = _mm512_fnmadd_ps(va2, d[2], d[4]);
    odd = _mm512_fnmadd_ps(va2, d[1], d[3]);
    out[3] = _mm512_fmadd_ps(vb, odd, even);
    out[4] = _mm512_fnmadd_ps(vb, odd, even);
    out[5] = _mm512_fmadd_ps(product, d[1], _mm512_fnmadd_ps(sum, d[3], d[5]));
}

/* x: the first of 36 vectors, `line` floats from row to row; v: the vector of this tile and block at position 0 */
AVX512_INLINE void input_tile(const float *x, int64_t line, float *v, int64_t position)
{
    __m512 half[6][6];
    for (int64_t j = 0; j < 6; j++) {
        const __m512 d[6] = {_mm512_loadu_ps(x + j * 16),
                             _mm512_loadu_ps(x + line + j * 16),
                             _mm512_loadu_ps(x + 2 * line + j * 16),
                             _mm512_loadu_ps(x + 3 * line + j * 16),
                             _mm512_loadu_ps(x + 4 * line + j * 16),
                             _mm512_loadu_ps(x + 5 * line + j * 16)};
        __m512 out[6];
        input_line(d, out);
        half[0][j] = out[0], half[1][j] = out[1], half[2][j] = out[2], half[3][j] = out[3], half[4][j] = out[4], half[5][j] = out[5];
    }
    for (int64_t i = 0; i < 6; i++, v += 6 * position) {
        __m512 out[6];
        input_line(half[i], out);
        _mm512_storeu_ps(v, out[0]);
        _mm512_storeu_ps(v + position, out[1]);
        _mm512_storeu_ps(v + 2 * position, out[2]);
        _mm512_storeu_ps(v + 3 * position, out[3]);
        _mm512_storeu_ps(v + 4 * position, out[4]);
        _mm512_storeu_ps(v + 5 * position, out[5]);
    }
}

/* A tile that hangs over the map's edge, with zeros around. */
AVX512_INLINE void edge_tile(const cpu_winograd *p, const float *x, int64_t row, int64_t column, float tile[36 * 16])
{
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < 6; j++) {
            bool there = row + i >= 0 && row + i < p->h && column + j >= 0 && column + j < p->w;
            _mm512_storeu_ps(tile + (i * 6 + j) * 16,
                             there ? _mm512_loadu_ps(x + ((row + i) * p->w + column + j) * 16) : _mm512_setzero_ps());
        }
}

/* ---- the products: C[R][32] = sum over k of A[k][R] * B[k][32], A in blocks [16 k's][R][16]; of the 32 columns both halves or the first ---- */
#define ROWS11(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10)
#define ROWS12(X) ROWS11(X) X(11)
#define ROWS13(X) ROWS12(X) X(12)
#define ROWS14(X) ROWS13(X) X(13)
#define ZERO1(i)  __m512 c##i##_0 = _mm512_setzero_ps();
#define ZERO2(i)  ZERO1(i) __m512 c##i##_1 = c##i##_0;
#define SUM1(i)   c##i##_0 = _mm512_add_ps(c##i##_0, _mm512_loadu_ps(c + (i)*32));
#define SUM2(i)   SUM1(i) c##i##_1 = _mm512_add_ps(c##i##_1, _mm512_loadu_ps(c + (i)*32 + 16));
#define ADD1(i)   c##i##_0 = _mm512_fmadd_ps(_mm512_set1_ps(a[(i)*16 + k]), w0, c##i##_0);
#define ADD2(i)                                                                                                                            \
    {                                                                                                                                      \
        __m512 v = _mm512_set1_ps(a[(i)*16 + k]);                                                                                          \
        c##i##_0 = _mm512_fmadd_ps(v, w0, c##i##_0);                                                                                       \
        c##i##_1 = _mm512_fmadd_ps(v, w1, c##i##_1);                                                                                       \
    }
#define STORE1(i) _mm512_storeu_ps(c + (i)*32, c##i##_0);
#define STORE2(i) STORE1(i) _mm512_storeu_ps(c + (i)*32 + 16, c##i##_1);
#define WEIGHTS1  const __m512 w0 = _mm512_loadu_ps(b)
#define WEIGHTS2  WEIGHTS1, w1 = _mm512_loadu_ps(b + 16)
#define PRODUCT(R, N)                                                                                                                      \
    AVX512 static void product##R##_##N(int64_t blocks, const float *a, const float *b, float *c, bool add)                                \
    {                                                                                                                                      \
        ROWS##R(ZERO##N);                                                                                                                  \
        for (int64_t q = 0; q < blocks; q++, a += R * 16)                                                                                  \
            for (int64_t k = 0; k < 16; k++, b += 32) {                                                                                    \
                WEIGHTS##N;                                                                                                                \
                ROWS##R(ADD##N);                                                                                                           \
            }                                                                                                                              \
        if (add) {                                                                                                                         \
            ROWS##R(SUM##N);                                                                                                               \
        }                                                                                                                                  \
        ROWS##R(STORE##N);                                                                                                                 \
    }
PRODUCT(11, 1)
PRODUCT(12, 1)
PRODUCT(13, 1)
PRODUCT(14, 1)
PRODUCT(11, 2)
PRODUCT(12, 2)
PRODUCT(13, 2)
PRODUCT(14, 2)

typedef void (*product)(int64_t blocks, const float *a, const float *b, float *c,
                        bool add); /* add: to what C holds; sums of sums round less */
static const product products[2][4] = {{product11_1, product12_1, product13_1, product14_1},
                                       {product11_2, product12_2, product13_2, product14_2}};

/* ---- output tiles: y = A' M A ---- */
AVX512_INLINE void output_line(const __m512 m[6], __m512 out[4])
{
    __m512 sa = _mm512_add_ps(m[1], m[2]), da = _mm512_sub_ps(m[1], m[2]), sb = _mm512_add_ps(m[3], m[4]), db = _mm512_sub_ps(m[3], m[4]);
    out[0] = _mm512_add_ps(m[0], _mm512_add_ps(sa, sb));
    out[1] = _mm512_fmadd_ps(_mm512_set1_ps(a1), da, _mm512_mul_ps(_mm512_set1_ps(b1), db));
    out[2] = _mm512_fmadd_ps(_mm512_set1_ps(a2), sa, _mm512_mul_ps(_mm512_set1_ps(b2), sb));
    out[3] = _mm512_fmadd_ps(_mm512_set1_ps(a3), da, _mm512_fmadd_ps(_mm512_set1_ps(b3), db, m[5]));
}

AVX512_INLINE void output_tile(const cpu_winograd *p, const float *m, int64_t position, __m512 bias, const float *residual, float *y,
                               int64_t row, int64_t column)
{
    __m512 half[4][6];
    for (int64_t j = 0; j < 6; j++, m += position) {
        const __m512 line[6] = {_mm512_loadu_ps(m),
                                _mm512_loadu_ps(m + 6 * position),
                                _mm512_loadu_ps(m + 12 * position),
                                _mm512_loadu_ps(m + 18 * position),
                                _mm512_loadu_ps(m + 24 * position),
                                _mm512_loadu_ps(m + 30 * position)};
        __m512 out[4];
        output_line(line, out);
        half[0][j] = out[0], half[1][j] = out[1], half[2][j] = out[2], half[3][j] = out[3];
    }
    const int64_t down = p->h - row < 4 ? p->h - row : 4, right = p->w - column < 4 ? p->w - column : 4;
    for (int64_t i = 0; i < down; i++) {
        __m512 out[4];
        output_line(half[i], out);
        const int64_t at = ((row + i) * p->w + column) * 16;
        for (int64_t j = 0; j < right; j++) {
            __m512 v = _mm512_add_ps(out[j], bias);
            if (residual)
                v = _mm512_add_ps(v, _mm512_loadu_ps(residual + at + j * 16));
            if (p->relu) /* NaN stays: max gives its second operand then */
                v = _mm512_max_ps(_mm512_setzero_ps(), v);
            _mm512_storeu_ps(y + at + j * 16, v);
        }
    }
}

/* ---- a unit ---- */
typedef struct tile_place {
    int64_t image, row, column;
} tile_place;

static tile_place place_of(const cpu_winograd *p, int64_t tile)
{
    int64_t in_map = tile % (p->rows * p->columns);
    return (tile_place){tile / (p->rows * p->columns), in_map / p->columns * 4, in_map % p->columns * 4};
}

/* 64 input channels of 32 outputs at a time: these weights stay in the first-level cache while all panels of tiles pass. */
enum { DEPTH = 4 };

AVX512 static void run_unit(const cpu_winograd *p, const float *x, const float *u, const float *bias, const float *residual, float *y,
                            float *v, int64_t block, int64_t chunk)
{
    const int64_t panel = p->panel, all = (p->tiles + panel - 1) / panel;
    const int64_t first = block * all / p->blocks * panel, next = (block + 1) * all / p->blocks * panel;
    const int64_t count = (next < p->tiles ? next : p->tiles) - first;
    const int64_t panels = (count + panel - 1) / panel, in_blocks = p->in16 / 16, out_blocks = p->out16 / 16;
    const int64_t v_position = v_step(p), m_position = m_step(p);
    const int64_t begin = chunk * p->chunk, end = begin + p->chunk < p->out16 ? begin + p->chunk : p->out16;
    const int64_t pairs = (p->out16 + 31) / 32, plane = p->h * p->w * 16;
    float *m = v + 36 * v_position;
    /* Block by block, so that the maps are walked in rows. */
    for (int64_t q = 0; q < in_blocks; q++)
        for (int64_t t = 0; t < count; t++) {
            const tile_place at = place_of(p, first + t);
            const float *map = x + (at.image * in_blocks + q) * plane;
            float *to = v + ((t / panel * in_blocks + q) * panel + t % panel) * 16;
            if (at.row > 0 && at.column > 0 && at.row + 5 <= p->h && at.column + 5 <= p->w) {
                input_tile(map + ((at.row - 1) * p->w + at.column - 1) * 16, p->w * 16, to, v_position);
            } else {
                float tile[36 * 16];
                edge_tile(p, map, at.row - 1, at.column - 1, tile);
                input_tile(tile, 6 * 16, to, v_position);
            }
        }
    for (int64_t s = 0; s < 36; s++)
        for (int64_t o = begin / 32; o * 32 < end; o++) {
            const product multiply = products[o * 32 + 16 < end][panel - 11];
            for (int64_t k = 0; k < in_blocks; k += DEPTH)
                for (int64_t q = 0; q < panels; q++)
                    multiply(in_blocks - k < DEPTH ? in_blocks - k : DEPTH, v + s * v_position + (q * in_blocks + k) * panel * 16,
                             u + ((s * pairs + o) * p->in16 + k * 16) * 32,
                             m + s * m_position + ((o - begin / 32) * p->panels + q) * panel * 32, k > 0);
        }
    for (int64_t o = begin / 16; o * 16 < end; o++) {
        __m512 b = _mm512_setzero_ps();
        if (bias)
            b = _mm512_maskz_loadu_ps((__mmask16)(p->out - o * 16 < 16 ? (1u << (p->out - o * 16)) - 1 : 0xffffu), bias + o * 16);
        const float *from = m + (o / 2 - begin / 32) * p->panels * panel * 32 + o % 2 * 16;
        for (int64_t t = 0; t < count; t++) {
            const tile_place at = place_of(p, first + t);
            const int64_t map = (at.image * out_blocks + o) * plane;
            output_tile(p, from + t * 32, m_position, b, residual ? residual + map : NULL, y + map, at.row, at.column);
        }
    }
}

static int64_t units_weights(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    return p->in16;
}

static void run_weights(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const cpu_winograd *p = k->attr;
    for (int64_t block = 0; block < (p->out16 + 31) / 32 * 2; block++) /* an odd last block gets zeros beside it */
        for (int64_t in = begin; in < end; in++)
            weight_tile(p, k->in[0].data, k->out[0].data, in, block);
}

static int64_t units_maps(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    return p->blocks * p->chunks;
}

static void run_maps(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    for (int64_t unit = begin; unit < end; unit++)
        run_unit(p, k->in[0].data, k->in[1].data, k->in[2].data, k->in[3].data, k->out[0].data,
                 (float *)k->scratch + thread * unit_floats(p), unit % p->blocks, unit / p->blocks);
}

const sodet_cpu_kernel cpu_winograd_weights = {.struct_size = sizeof(sodet_cpu_kernel), .units = units_weights, .run = run_weights};
const sodet_cpu_kernel cpu_winograd_maps = {.struct_size = sizeof(sodet_cpu_kernel), .units = units_maps, .run = run_maps};
#endif
