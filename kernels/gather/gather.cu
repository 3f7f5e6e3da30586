#include "kernels/device_sort.h"
#include "kernels/gather/gather.h"

struct gather_sizes {
    int64_t batch, outer, rows, inner, take;
};

static gather_sizes sizes_of(const sodet_gather_attr *t, const sodet_shape *x, const sodet_shape *index)
{
    gather_sizes s = {1, 1, x->dim[t->axis], 1, 1};
    for (uint32_t i = 0; i < x->rank; i++)
        (i < t->batch ? s.batch : i < t->axis ? s.outer : i > t->axis ? s.inner : s.take) *= i == t->axis ? 1 : x->dim[i];
    for (uint32_t i = t->batch; i < index->rank; i++)
        s.take *= index->dim[i];
    return s;
}

/* Elements U are 4 bytes, or 16 where rows allow it; inner counts them. */
template <class U, class I>
static __global__ void gather_forward(U *y, const U *x, const int32_t *index, int64_t n, gather_sizes s, device_divider<I> inner,
                                      device_divider<I> take, device_divider<I> outer, U zero)
{
    for (int64_t e = device_thread(); e < n; e += device_threads()) {
        const I line = inner.quotient((I)e), group = take.quotient(line), b = outer.quotient(group);
        const int64_t i = e - (int64_t)line * s.inner, k = line - (int64_t)group * s.take;
        const int64_t r = index[(int64_t)b * s.take + k];
        y[e] = r >= 0 && r < s.rows ? x[((int64_t)group * s.rows + r) * s.inner + i] : zero;
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    gather_sizes s = sizes_of((const sodet_gather_attr *)a->attr, &a->in[0].shape, &a->in[1].shape);
    const void *x = a->in[0].data;
    void *y = a->out[0].data;
    const auto launch = [&](auto zero) {
        typedef decltype(zero) U;
        s.inner = s.inner * 4 / (int64_t)sizeof(U);
        const int64_t n = s.batch * s.outer * s.take * s.inner;
        return device_index(n, [&](auto number) {
            typedef decltype(number) I;
            device_divider<I> inner, take, outer;
            device_divide_by(&inner, s.inner);
            device_divide_by(&take, s.take);
            device_divide_by(&outer, s.outer);
            DEVICE_TRY((gather_forward<U, I>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (U *)y, (const U *)x,
                       (const int32_t *)a->in[1].data, n, s, inner, take, outer, zero);
            return 0;
        });
    };
    if (sodet_elements(&a->out[0].shape) == 0)
        return 0;
    return s.inner % 4 == 0 && device_aligned(x, 16) && device_aligned(y, 16) ? launch(uint4()) : launch(uint32_t());
}

/* ---- backward: index is sorted with k behind, so that what was taken from one row stands together in rising k ---- */
static __global__ void write_keys(uint64_t *key, const int32_t *index, int64_t n, int64_t take, int64_t rows)
{
    for (int64_t i = device_thread(); i < n; i += device_threads())
        key[i] = index[i] >= 0 && index[i] < rows ? (uint64_t)index[i] << 32 | (uint64_t)(i % take) : DEVICE_NO_KEY;
}

static __global__ void clear(float *x, int64_t n)
{
    for (int64_t i = device_thread(); i < n; i += device_threads())
        x[i] = 0;
}

/* The first of those that stand together adds them up. */
static __global__ void add_taken(float *dx, const float *dy, const uint64_t *key, gather_sizes s)
{
    for (int64_t e = device_thread(); e < s.batch * s.outer * s.take * s.inner; e += device_threads()) {
        const int64_t i = e % s.inner, line = e / s.inner, at = line % s.take, group = line / s.take;
        const uint64_t *own = key + group / s.outer * s.take;
        const uint64_t row = own[at] >> 32;
        if (own[at] == DEVICE_NO_KEY || (at > 0 && own[at - 1] >> 32 == row))
            continue;
        double sum = 0;
        for (int64_t k = at; k < s.take && own[k] >> 32 == row; k++)
            sum += dy[(group * s.take + select_index(own[k])) * s.inner + i];
        dx[(group * s.rows + (int64_t)row) * s.inner + i] = (float)sum;
    }
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return 2 * sizeof(uint64_t) * (uint64_t)sodet_elements(&a->in[1].shape);
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_gather_attr *t = (const sodet_gather_attr *)a->attr;
    const gather_sizes s = sizes_of(t, &t->x, &a->in[1].shape);
    const int64_t all = sodet_elements(&a->out[0].shape), n = s.batch * s.take;
    uint64_t *key = (uint64_t *)a->scratch, *sorted;
    float *dx = (float *)a->out[0].data;
    if (all == 0)
        return 0;
    DEVICE_TRY(clear, device_blocks(all, DEVICE_THREADS), DEVICE_THREADS, 0, stream, dx, all);
    if (n == 0)
        return 0;
    DEVICE_TRY(write_keys, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, key, (const int32_t *)a->in[1].data, n, s.take,
               s.rows);
    const int error = device_sort(key, key + n, s.batch, s.take, &sorted, stream);
    if (error != 0)
        return error;
    DEVICE_TRY(add_taken, device_blocks(n * s.outer * s.inner, DEVICE_THREADS), DEVICE_THREADS, 0, stream, dx, (const float *)a->in[0].data,
               (const uint64_t *)sorted, s);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_gather[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward},
                                                          {sizeof(sodet_cuda_kernel), 0, scratch, backward}};
