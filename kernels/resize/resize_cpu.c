/* Columns' source positions are worked out once (phase 0); then rows of y, or whole planes of dx, are independent. A plane of a blocked map
 * is a block of channels. */
#include "kernels/resize/resize.h"

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/resize/resize_math.h"
#include "kernels/vector.h"

typedef struct column {
    int32_t low, high;
    float weight;
} column;

typedef struct sizes {
    int64_t planes, h, w, oh, ow, lanes;
} sizes;

static sizes sizes_of(const sodet_kernel_args *a)
{
    const sodet_tensor *small = a->part ? &a->out[0] : &a->in[0], *large = a->part ? &a->in[0] : &a->out[0];
    int64_t lanes = small->layout == SODET_BLOCKED ? small->block : 1;
    return (sizes){small->shape.dim[0] * ((small->shape.dim[1] + lanes - 1) / lanes),
                   small->shape.dim[2],
                   small->shape.dim[3],
                   large->shape.dim[2],
                   large->shape.dim[3],
                   lanes};
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    return (uint64_t)((const sodet_resize_attr *)n->attr)->out_w * sizeof(column);
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    sizes z = sizes_of(a);
    return phase == 0 ? 1 : a->part ? z.planes : z.planes * z.oh;
}

static void find_columns(const sodet_resize_attr *t, const sizes *z, column *c)
{
    for (int64_t j = 0; j < z->ow; j++) {
        if (t->kind == SODET_RESIZE_NEAREST) {
            c[j].low = c[j].high = (int32_t)resize_nearest(j, z->w, z->ow);
            c[j].weight = 0;
        } else {
            resize_pair p = resize_bilinear(j, z->w, z->ow);
            c[j] = (column){(int32_t)p.low, (int32_t)p.high, (float)p.weight};
        }
    }
}

SODET_INLINE void nearest_row(float *y, const float *x, const column *c, int64_t n, const int lanes)
{
    for (int64_t j = 0; j < n; j++)
        for (int k = 0; k < lanes; k++)
            y[j * lanes + k] = x[(int64_t)c[j].low * lanes + k];
}

SODET_INLINE void bilinear_row(float *y, const float *top, const float *bottom, float weight, const column *c, int64_t n, const int lanes)
{
    for (int64_t j = 0; j < n; j++) {
        const int64_t low = (int64_t)c[j].low * lanes, high = (int64_t)c[j].high * lanes;
        const float u = c[j].weight;
        for (int k = 0; k < lanes; k++) {
            float a = (1 - u) * top[low + k] + u * top[high + k], b = (1 - u) * bottom[low + k] + u * bottom[high + k];
            y[j * lanes + k] = (1 - weight) * a + weight * b;
        }
    }
}

SODET_INLINE void spread_row(float *dx_top, float *dx_bottom, float weight, const float *dy, const column *c, int64_t n, bool nearest,
                             const int lanes)
{
    for (int64_t j = 0; j < n; j++) {
        const int64_t low = (int64_t)c[j].low * lanes, high = (int64_t)c[j].high * lanes;
        const float u = c[j].weight;
        if (nearest) {
            for (int k = 0; k < lanes; k++)
                dx_top[low + k] += dy[j * lanes + k];
            continue;
        }
        for (int k = 0; k < lanes; k++)
            dx_top[low + k] += (1 - weight) * (1 - u) * dy[j * lanes + k];
        for (int k = 0; k < lanes; k++)
            dx_top[high + k] += (1 - weight) * u * dy[j * lanes + k];
        for (int k = 0; k < lanes; k++)
            dx_bottom[low + k] += weight * (1 - u) * dy[j * lanes + k];
        for (int k = 0; k < lanes; k++)
            dx_bottom[high + k] += weight * u * dy[j * lanes + k];
    }
}

SODET_CLONES
static void forward_rows(const sizes *z, bool nearest, float *y, const float *x, const column *c, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        const int64_t i = u % z->oh;
        const float *plane = x + u / z->oh * z->h * z->w * z->lanes;
        float *to = y + u * z->ow * z->lanes;
        if (nearest) {
            const float *row = plane + resize_nearest(i, z->h, z->oh) * z->w * z->lanes;
            z->lanes == 16  ? nearest_row(to, row, c, z->ow, 16)
            : z->lanes == 8 ? nearest_row(to, row, c, z->ow, 8)
                            : nearest_row(to, row, c, z->ow, 1);
            continue;
        }
        const resize_pair p = resize_bilinear(i, z->h, z->oh);
        const float *top = plane + p.low * z->w * z->lanes, *bottom = plane + p.high * z->w * z->lanes, weight = (float)p.weight;
        if (z->lanes == 16)
            bilinear_row(to, top, bottom, weight, c, z->ow, 16);
        else if (z->lanes == 8)
            bilinear_row(to, top, bottom, weight, c, z->ow, 8);
        else
            bilinear_row(to, top, bottom, weight, c, z->ow, 1);
    }
}

SODET_CLONES
static void backward_planes(const sizes *z, bool nearest, float *dx, const float *dy, const column *c, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        float *plane = dx + u * z->h * z->w * z->lanes;
        memset(plane, 0, (size_t)(z->h * z->w * z->lanes) * sizeof *plane);
        for (int64_t i = 0; i < z->oh; i++) {
            const float *from = dy + (u * z->oh + i) * z->ow * z->lanes;
            resize_pair p = {0, 0, 0};
            if (nearest)
                p.low = p.high = resize_nearest(i, z->h, z->oh);
            else
                p = resize_bilinear(i, z->h, z->oh);
            float *top = plane + p.low * z->w * z->lanes, *bottom = plane + p.high * z->w * z->lanes;
            if (z->lanes == 16)
                spread_row(top, bottom, (float)p.weight, from, c, z->ow, nearest, 16);
            else if (z->lanes == 8)
                spread_row(top, bottom, (float)p.weight, from, c, z->ow, nearest, 8);
            else
                spread_row(top, bottom, (float)p.weight, from, c, z->ow, nearest, 1);
        }
    }
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const sodet_resize_attr *t = a->attr;
    const sizes z = sizes_of(a);
    if (phase == 0)
        find_columns(t, &z, a->scratch);
    else if (a->part)
        backward_planes(&z, t->kind == SODET_RESIZE_NEAREST, a->out[0].data, a->in[0].data, a->scratch, begin, end);
    else
        forward_rows(&z, t->kind == SODET_RESIZE_NEAREST, a->out[0].data, a->in[0].data, a->scratch, begin, end);
}

const sodet_cpu_kernel sodet_cpu_resize[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .phases = 2, .units = units, .scratch = scratch, .run = run},
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .phases = 2, .units = units, .scratch = scratch, .run = run}};
