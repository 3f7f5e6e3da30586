#include "kernels/avg_pool/avg_pool.h"
#include "kernels/kernels.h"
#include "kernels/max_pool/pool_vector.h"

/* One over the number of elements that window (i, j) is divided by. */
static float weight_of(const sodet_pool_attr *a, const pool_plane *p, int64_t i, int64_t j, const pool_range *rows,
                       const pool_range *columns)
{
    int64_t n = (rows->end - rows->begin) * (columns->end - columns->begin);
    if (!(a->flags & SODET_POOL_EXCLUDE_PAD)) {
        int64_t bottom = i * a->stride_h - a->pad_top + a->kernel_h, right = j * a->stride_w - a->pad_left + a->kernel_w;
        bottom = bottom < p->h + a->pad_bottom ? bottom : p->h + a->pad_bottom;
        right = right < p->w + a->pad_right ? right : p->w + a->pad_right;
        n = (bottom - rows->first) * (right - columns->first);
    }
    return 1.0f / (float)n;
}

SODET_INLINE void forward_lanes(const sodet_pool_attr *a, const pool_plane *p, const float *x, float *y, int64_t plane, const int64_t lanes)
{
    for (int64_t i = 0; i < p->oh; i++) {
        pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
        for (int64_t j = 0; j < p->ow; j++) {
            pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
            float sum[16] = {0}, weight = weight_of(a, p, i, j, &rows, &columns);
            for (int64_t r = rows.begin; r < rows.end; r++) {
                float line[16] = {0}; /* sums of rows keep large windows exact */
                for (int64_t t = columns.begin; t < columns.end; t++)
                    for (int64_t k = 0; k < lanes; k++)
                        line[k] += x[((plane * p->h + r) * p->w + t) * lanes + k];
                for (int64_t k = 0; k < lanes; k++)
                    sum[k] += line[k];
            }
            for (int64_t k = 0; k < lanes; k++)
                y[((plane * p->oh + i) * p->ow + j) * lanes + k] = sum[k] * weight;
        }
    }
}

SODET_INLINE void backward_lanes(const sodet_pool_attr *a, const pool_plane *p, const float *dy, float *dx, int64_t plane,
                                 const int64_t lanes)
{
    const int64_t row = p->w * lanes;
    dx += plane * p->h * row;
    memset(dx, 0, (size_t)(p->h * row) * sizeof *dx);
    for (int64_t i = 0; i < p->oh; i++) {
        pool_range rows = pool_range_of(i, a->stride_h, a->pad_top, a->kernel_h, p->h);
        for (int64_t j = 0; j < p->ow; j++) {
            pool_range columns = pool_range_of(j, a->stride_w, a->pad_left, a->kernel_w, p->w);
            float share[16], weight = weight_of(a, p, i, j, &rows, &columns);
            for (int64_t k = 0; k < lanes; k++)
                share[k] = dy[((plane * p->oh + i) * p->ow + j) * lanes + k] * weight;
            for (int64_t r = rows.begin; r < rows.end; r++)
                for (int64_t t = columns.begin; t < columns.end; t++)
                    for (int64_t k = 0; k < lanes; k++)
                        dx[r * row + t * lanes + k] += share[k];
        }
    }
}

SODET_CLONES
static void forward_planes(const sodet_pool_attr *a, const pool_plane *p, const float *x, float *y, int64_t begin, int64_t end)
{
    for (int64_t plane = begin; plane < end; plane++)
        if (p->lanes == 16)
            forward_lanes(a, p, x, y, plane, 16);
        else if (p->lanes == 8)
            forward_lanes(a, p, x, y, plane, 8);
        else
            forward_lanes(a, p, x, y, plane, 1);
}

SODET_CLONES
static void backward_planes(const sodet_pool_attr *a, const pool_plane *p, const float *dy, float *dx, int64_t begin, int64_t end)
{
    for (int64_t plane = begin; plane < end; plane++)
        if (p->lanes == 16)
            backward_lanes(a, p, dy, dx, plane, 16);
        else if (p->lanes == 8)
            backward_lanes(a, p, dy, dx, plane, 8);
        else
            backward_lanes(a, p, dy, dx, plane, 1);
}

static int64_t units_forward(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    return pool_plane_of(&k->in[0], &k->out[0].shape).planes;
}

static void forward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    pool_plane p = pool_plane_of(&k->in[0], &k->out[0].shape);
    forward_planes(k->attr, &p, k->in[0].data, k->out[0].data, begin, end);
}

static int64_t units_backward(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    return pool_plane_of(&k->out[0], &k->in[0].shape).planes;
}

static void backward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    pool_plane p = pool_plane_of(&k->out[0], &k->in[0].shape);
    backward_planes(k->attr, &p, k->in[0].data, k->out[0].data, begin, end);
}

const sodet_cpu_kernel sodet_cpu_avg_pool[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units_forward, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units_backward, .run = backward}};
