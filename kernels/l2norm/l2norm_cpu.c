/* Positions are independent: a unit is a strip of neighbouring ones. In a blocked map the lanes of a position are added up at the end of
 * the walk over the channels. dscale is summed by each thread over its strips and then over the threads (backward: 3 phases). */
#include "kernels/l2norm/l2norm.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

enum { STRIP = 32, MOST_LANES = 16 };

typedef struct sizes {
    int64_t channels, blocks, area, lanes, strips; /* blocks * lanes >= channels */
} sizes;

static sizes sizes_of(const sodet_tensor *t)
{
    sizes z = {.channels = t->shape.dim[1], .area = t->shape.dim[2] * t->shape.dim[3], .lanes = t->layout == SODET_BLOCKED ? t->block : 1};
    z.blocks = (z.channels + z.lanes - 1) / z.lanes;
    z.strips = (z.area + STRIP - 1) / STRIP;
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
    return (uint64_t)n_threads * (uint64_t)(n->in_shape[0].dim[1] + MOST_LANES) * sizeof(double);
}

/* acc[p] = sum over channels of x * w * u for the n positions of a strip; w [C] and u may be NULL (1). */
SODET_INLINE void dots(float *acc, const float *x, const float *u, const float *w, const sizes *z, int64_t n, const int lanes)
{
    float part[STRIP * MOST_LANES];
    const int64_t all = n * lanes;
    for (int64_t i = 0; i < all; i++)
        part[i] = 0;
    for (int64_t b = 0; b < z->blocks; b++) {
        const float *row = x + b * z->area * lanes, *other = (u ? u : x) + b * z->area * lanes;
        if (!w) {
            for (int64_t i = 0; i < all; i++)
                part[i] += row[i] * other[i];
            continue;
        }
        float factor[MOST_LANES];
        for (int k = 0; k < lanes; k++)
            factor[k] = b * lanes + k < z->channels ? w[b * lanes + k] : 0;
        for (int64_t p = 0; p < n; p++)
            for (int k = 0; k < lanes; k++)
                part[p * lanes + k] += row[p * lanes + k] * other[p * lanes + k] * factor[k];
    }
    for (int64_t p = 0; p < n; p++) {
        float sum = part[p * lanes];
        for (int k = 1; k < lanes; k++)
            sum += part[p * lanes + k];
        acc[p] = sum;
    }
}

/* From squares to r and to the factor of the part along x. */
static void reciprocals(const sodet_l2norm_attr *t, const float *squares, float *r, float *along, int64_t n)
{
    for (int64_t p = 0; p < n; p++) {
        double q = sqrt((double)squares[p]), epsilon = (double)t->epsilon, v, s;
        if (t->guard == SODET_L2NORM_ADD) {
            v = 1 / (q + epsilon);
            s = q > 0 ? v * v / q : 0;
        } else if (t->guard == SODET_L2NORM_MAX) {
            v = 1 / (q > epsilon ? q : epsilon);
            s = q > epsilon ? v * v * v : 0;
        } else {
            v = 1 / sqrt((double)squares[p] + epsilon);
            s = v * v * v;
        }
        r[p] = (float)v;
        along[p] = (float)s;
    }
}

SODET_INLINE void forward_strip(const sodet_l2norm_attr *t, float *y, const float *x, const float *scale, const sizes *z, int64_t n,
                                const int lanes)
{
    float squares[STRIP], r[STRIP], along[STRIP];
    dots(squares, x, NULL, NULL, z, n, lanes);
    reciprocals(t, squares, r, along, n);
    for (int64_t b = 0; b < z->blocks; b++) {
        const float *row = x + b * z->area * lanes;
        float *to = y + b * z->area * lanes, factor[MOST_LANES];
        for (int k = 0; k < lanes; k++)
            factor[k] = b * lanes + k < z->channels ? scale[b * lanes + k] : 0;
        for (int64_t p = 0; p < n; p++)
            for (int k = 0; k < lanes; k++)
                to[p * lanes + k] = factor[k] * row[p * lanes + k] * r[p];
    }
}

SODET_INLINE void backward_strip(const sodet_l2norm_attr *t, float *dx, double *dscale, const float *x, const float *scale, const float *dy,
                                 const sizes *z, int64_t n, const int lanes)
{
    float squares[STRIP], r[STRIP], along[STRIP], dot[STRIP];
    dots(squares, x, NULL, NULL, z, n, lanes);
    reciprocals(t, squares, r, along, n);
    dots(dot, x, dy, scale, z, n, lanes);
    for (int64_t p = 0; p < n; p++)
        along[p] *= dot[p];
    for (int64_t b = 0; b < z->blocks; b++) {
        const float *row = x + b * z->area * lanes, *slope = dy + b * z->area * lanes;
        float *to = dx + b * z->area * lanes, factor[MOST_LANES], sum[STRIP * MOST_LANES];
        for (int k = 0; k < lanes; k++)
            factor[k] = b * lanes + k < z->channels ? scale[b * lanes + k] : 0;
        for (int64_t p = 0; p < n; p++)
            for (int k = 0; k < lanes; k++) {
                float xv = row[p * lanes + k], dv = slope[p * lanes + k];
                to[p * lanes + k] = r[p] * factor[k] * dv - xv * along[p];
                sum[p * lanes + k] = dv * xv * r[p];
            }
        for (int k = 0; k < lanes; k++) {
            float total = 0;
            for (int64_t p = 0; p < n; p++)
                total += sum[p * lanes + k];
            dscale[b * lanes + k] += (double)total;
        }
    }
}

SODET_CLONES
static void run_strips(const sodet_kernel_args *a, const sizes *z, int64_t begin, int64_t end, double *dscale)
{
    for (int64_t u = begin; u < end; u++) {
        int64_t i = u % z->strips * STRIP, at = (u / z->strips * z->blocks * z->area + i) * z->lanes,
                n = z->area - i < STRIP ? z->area - i : STRIP;
        const float *x = (const float *)a->in[0].data + at, *scale = a->in[1].data;
        float *out = (float *)a->out[0].data + at;
        if (a->part) {
            const float *dy = (const float *)a->in[2].data + at;
            if (z->lanes == 16)
                backward_strip(a->attr, out, dscale, x, scale, dy, z, n, 16);
            else if (z->lanes == 8)
                backward_strip(a->attr, out, dscale, x, scale, dy, z, n, 8);
            else
                backward_strip(a->attr, out, dscale, x, scale, dy, z, n, 1);
        } else {
            if (z->lanes == 16)
                forward_strip(a->attr, out, x, scale, z, n, 16);
            else if (z->lanes == 8)
                forward_strip(a->attr, out, x, scale, z, n, 8);
            else
                forward_strip(a->attr, out, x, scale, z, n, 1);
        }
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
    const int64_t room = z.channels + MOST_LANES;
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
