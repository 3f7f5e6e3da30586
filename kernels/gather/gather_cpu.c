/* Forward: a unit is CHUNK rows of one (batch, outer). Backward: a unit is one (batch, outer), whose rows are added in order. Elements have four bytes. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define CHUNK 256

typedef struct sizes {
    int64_t batch, outer, rows, inner, take;
} sizes;

static int64_t span(const sodet_shape *s, uint32_t from, uint32_t to)
{
    int64_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

static sizes sizes_of(const sodet_gather_attr *attr, const sodet_shape *x, const sodet_shape *index)
{
    return (sizes){span(x, 0, attr->batch), span(x, attr->batch, attr->axis), x->dim[attr->axis], span(x, attr->axis + 1, x->rank),
                   span(index, attr->batch, index->rank)};
}

static int64_t forward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    sizes s = sizes_of(a->attr, &a->in[0].shape, &a->in[1].shape);
    return s.batch * s.outer * ((s.take + CHUNK - 1) / CHUNK);
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    sizes s = sizes_of(a->attr, &a->in[0].shape, &a->in[1].shape);
    int64_t chunks = (s.take + CHUNK - 1) / CHUNK;
    for (int64_t u = begin; u < end; u++) {
        int64_t bo = u / chunks, first = u % chunks * CHUNK, last = first + CHUNK < s.take ? first + CHUNK : s.take;
        const int32_t *index = (const int32_t *)a->in[1].data + bo / s.outer * s.take;
        const float *x = (const float *)a->in[0].data + bo * s.rows * s.inner;
        float *y = (float *)a->out[0].data + bo * s.take * s.inner;
        for (int64_t k = first; k < last; k++) {
            int32_t r = index[k];
            if (r >= 0 && r < s.rows)
                memcpy(y + k * s.inner, x + r * s.inner, (size_t)s.inner * sizeof *y);
            else
                memset(y + k * s.inner, 0, (size_t)s.inner * sizeof *y);
        }
    }
}

static int64_t backward_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    const sodet_gather_attr *attr = a->attr;
    sizes s = sizes_of(attr, &attr->x, &a->in[1].shape);
    return s.batch * s.outer;
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_gather_attr *attr = a->attr;
    sizes s = sizes_of(attr, &attr->x, &a->in[1].shape);
    for (int64_t u = begin; u < end; u++) {
        const int32_t *index = (const int32_t *)a->in[1].data + u / s.outer * s.take;
        const float *dy = (const float *)a->in[0].data + u * s.take * s.inner;
        float *dx = (float *)a->out[0].data + u * s.rows * s.inner;
        memset(dx, 0, (size_t)(s.rows * s.inner) * sizeof *dx);
        for (int64_t k = 0; k < s.take; k++) {
            int32_t r = index[k];
            if (r >= 0 && r < s.rows)
                for (int64_t i = 0; i < s.inner; i++)
                    dx[r * s.inner + i] += dy[k * s.inner + i];
        }
    }
}

const sodet_cpu_kernel sodet_cpu_gather[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = forward_units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = backward_units, .run = backward},
};
