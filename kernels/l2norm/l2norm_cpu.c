/* Positions are independent: a unit is a strip of neighbouring ones, a stretch of each row of channels. In a blocked map the lanes of a
 * position are added up at the end of the walk over the channels. dscale is summed by each thread over its strips and then over the threads
 * (backward: 3 phases). */
#include "kernels/l2norm/l2norm.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

enum { STRIP = 512, PLAIN_STRIP = 256 /* all of its rows stay in the second cache */, LANES = 16 };

typedef struct sizes {
    int64_t channels, rows, area, block, positions, strips; /* rows * block >= channels; positions: of a strip */
} sizes;

static sizes sizes_of(const sodet_tensor *t)
{
    sizes z = {.channels = t->shape.dim[1], .area = t->shape.dim[2] * t->shape.dim[3], .block = t->layout == SODET_BLOCKED ? t->block : 1};
    z.rows = (z.channels + z.block - 1) / z.block;
    z.positions = z.block > 1 ? STRIP / z.block : PLAIN_STRIP;
    z.strips = (z.area + z.positions - 1) / z.positions;
    return z;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    sizes z = sizes_of(&a->in[0]);
    if (a->part && phase != 1)
        return phase == 0 ? a->n_threads : (z.channels + 63) / 64;
    return a->in[0].shape.dim[0] * z.strips;
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    return (uint64_t)n_threads * (uint64_t)(n->in_shape[0].dim[1] + LANES) * sizeof(double);
}

/* The scale of row `r` as the lanes of its vectors see it. */
SODET_INLINE void row_scale(const sizes *z, const float *scale, int64_t r, float *lane)
{
    for (int64_t k = 0; k < LANES; k++) {
        int64_t c = r * z->block + (z->block == 1 ? 0 : k % z->block);
        lane[k] = c < z->channels ? scale[c] : 0;
    }
}

/* Numbers of one position added up, the result in each of its places. */
SODET_INLINE void spread_sums(float *v, int64_t n, int64_t block)
{
    for (int64_t p = 0; block > 1 && p < n; p += block) {
        float half[8];
        for (int64_t k = 0; k < 8; k++)
            half[k] = block == 16 ? v[p + k] + v[p + k + 8] : v[p + k];
        float sum = ((half[0] + half[4]) + (half[1] + half[5])) + ((half[2] + half[6]) + (half[3] + half[7]));
        for (int64_t k = 0; k < block; k++)
            v[p + k] = sum;
    }
}

/* sum[i] for the n numbers of a strip: over the channels of i's position, of x^2, or (dy not NULL) of x * dy * scale. */
SODET_INLINE void dots(float *sum, const float *x, const float *dy, const float *scale, const sizes *z, int64_t n)
{
    const int64_t row = z->area * z->block;
    for (int64_t i = 0; i < n; i++)
        sum[i] = 0;
    for (int64_t r = 0; r < z->rows; r++, x += row, dy = dy ? dy + row : NULL) {
        float lane[LANES];
        int64_t i = 0;
        if (!dy) {
            for (; i + LANES <= n; i += LANES)
                vector16_at(sum + i) += vector16_at(x + i) * vector16_at(x + i);
            for (; i < n; i++)
                sum[i] += x[i] * x[i];
            continue;
        }
        row_scale(z, scale, r, lane);
        const vector16 factor = vector16_at(lane);
        for (; i + LANES <= n; i += LANES)
            vector16_at(sum + i) += vector16_at(x + i) * vector16_at(dy + i) * factor;
        for (; i < n; i++)
            sum[i] += x[i] * dy[i] * lane[i % LANES];
    }
    spread_sums(sum, n, z->block);
}

/* From squares to r and to the factor of the part along x. */
SODET_INLINE void reciprocals(const sodet_l2norm_attr *t, const float *squares, float *r, float *along, int64_t n)
{
    const double epsilon = (double)t->epsilon;
    if (t->guard == SODET_L2NORM_ADD) {
        for (int64_t i = 0; i < n; i++) {
            const double q = sqrt((double)squares[i]), v = 1 / (q + epsilon);
            r[i] = (float)v;
            along[i] = q > 0 ? (float)(v * v / q) : 0;
        }
    } else if (t->guard == SODET_L2NORM_MAX) {
        for (int64_t i = 0; i < n; i++) {
            const double q = sqrt((double)squares[i]), v = 1 / (q > epsilon ? q : epsilon);
            r[i] = (float)v;
            along[i] = q > epsilon ? (float)(v * v * v) : 0;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const double v = 1 / sqrt((double)squares[i] + epsilon);
            r[i] = (float)v;
            along[i] = (float)(v * v * v);
        }
    }
}

SODET_INLINE void forward_strip(const sodet_l2norm_attr *t, float *y, const float *x, const float *scale, const sizes *z, int64_t n)
{
    float squares[STRIP], r[STRIP], along[STRIP], lane[LANES];
    dots(squares, x, NULL, NULL, z, n);
    reciprocals(t, squares, r, along, n);
    for (int64_t row = 0; row < z->rows; row++, x += z->area * z->block, y += z->area * z->block) {
        int64_t i = 0;
        row_scale(z, scale, row, lane);
        const vector16 factor = vector16_at(lane);
        for (; i + LANES <= n; i += LANES)
            vector16_at(y + i) = factor * vector16_at(x + i) * vector16_at(r + i);
        for (; i < n; i++)
            y[i] = lane[i % LANES] * x[i] * r[i];
    }
}

SODET_INLINE void backward_strip(const sodet_l2norm_attr *t, float *dx, double *dscale, const float *x, const float *scale, const float *dy,
                                 const sizes *z, int64_t n)
{
    float squares[STRIP], r[STRIP], along[STRIP], dot[STRIP], lane[LANES];
    dots(squares, x, NULL, NULL, z, n);
    reciprocals(t, squares, r, along, n);
    dots(dot, x, dy, scale, z, n);
    for (int64_t i = 0; i < n; i++)
        along[i] *= dot[i];
    for (int64_t row = 0; row < z->rows; row++, x += z->area * z->block, dy += z->area * z->block, dx += z->area * z->block) {
        int64_t i = 0;
        row_scale(z, scale, row, lane);
        const vector16 factor = vector16_at(lane);
        vector16 sum = {0};
        float sums[LANES];
        for (; i + LANES <= n; i += LANES) {
            const vector16 slope = vector16_at(dy + i) * vector16_at(r + i), from = vector16_at(x + i);
            vector16_at(dx + i) = slope * factor - from * vector16_at(along + i);
            sum += slope * from;
        }
        vector16_at(sums) = sum;
        for (; i < n; i++) {
            const float slope = dy[i] * r[i];
            dx[i] = slope * lane[i % LANES] - x[i] * along[i];
            sums[i % LANES] += slope * x[i];
        }
        if (z->block == LANES) {
            for (int64_t k = 0; k < LANES; k++)
                dscale[row * LANES + k] += (double)sums[k];
        } else {
            for (int64_t k = 0; k < LANES; k++)
                dscale[row * z->block + k % z->block] += (double)sums[k];
        }
    }
}

SODET_CLONES
static void run_strips(const sodet_kernel_args *a, const sizes *z, int64_t begin, int64_t end, double *dscale)
{
    for (int64_t u = begin; u < end; u++) {
        const int64_t p = u % z->strips * z->positions, at = (u / z->strips * z->rows * z->area + p) * z->block;
        const int64_t n = (z->area - p < z->positions ? z->area - p : z->positions) * z->block;
        const float *x = (const float *)a->in[0].data + at, *scale = a->in[1].data;
        float *out = (float *)a->out[0].data + at;
        if (a->part)
            backward_strip(a->attr, out, dscale, x, scale, (const float *)a->in[2].data + at, z, n);
        else
            forward_strip(a->attr, out, x, scale, z, n);
    }
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sizes z = sizes_of(&a->in[0]);
    run_strips(a, &z, begin, end, NULL);
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    const sizes z = sizes_of(&a->in[0]);
    const int64_t room = z.channels + LANES;
    double *sums = a->scratch;
    if (phase == 0) {
        memset(sums + begin * room, 0, (size_t)((end - begin) * room) * sizeof *sums);
    } else if (phase == 1) {
        run_strips(a, &z, begin, end, sums + thread * room);
    } else {
        float *dscale = a->out[1].data;
        for (int64_t c = begin * 64; c < end * 64 && c < z.channels; c++) {
            double total = 0;
            for (uint32_t i = 0; i < a->n_threads; i++)
                total += sums[i * room + c];
            dscale[c] = (float)total;
        }
    }
}

const sodet_cpu_kernel sodet_cpu_l2norm[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel),
     .flags = SODET_CPU_BLOCKED,
     .phases = 3,
     .units = units,
     .scratch = scratch,
     .run = backward}};
