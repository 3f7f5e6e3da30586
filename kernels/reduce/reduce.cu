/* The dimensions of x are of two kinds: those that number the results, and those that number the members of one. Neighbours of a kind are
 * walked as one. Threads lie along the members where x's innermost dimension is one of them, else along the results. Where results are
 * few, members are cut into slices, whose results are merged by a second kernel in their order. */
#include "kernels/device_sum.h"
#include "kernels/device_walk.h"
#include "kernels/reduce/reduce.h"

/* ---- what is made of the members: empty(), add(a member, its place), merge() ---- */
struct reduce_sum {
    double v;
    __device__ __forceinline__ void clear()
    {
        v = 0;
    }
    __device__ __forceinline__ void add(float x, float, int64_t)
    {
        v += x;
    }
    __device__ __forceinline__ void merge(const reduce_sum &b)
    {
        v += b.v;
    }
};

struct reduce_most { /* NaN if any is */
    float v;
    __device__ __forceinline__ void clear()
    {
        v = -INFINITY;
    }
    __device__ __forceinline__ void add(float x, float, int64_t)
    {
        v = v != v || !(x > v || x != x) ? v : x;
    }
    __device__ __forceinline__ void merge(const reduce_most &b)
    {
        add(b.v, 0, 0);
    }
};

struct reduce_first { /* place of the first that equals the maximum */
    int64_t v;
    __device__ __forceinline__ void clear()
    {
        v = INT64_MAX;
    }
    __device__ __forceinline__ void add(float x, float most, int64_t at)
    {
        if ((x == most || (x != x && most != most)) && at < v)
            v = at;
    }
    __device__ __forceinline__ void merge(const reduce_first &b)
    {
        v = b.v < v ? b.v : v;
    }
};

/* How a block is divided. lanes * results = DEVICE_THREADS, powers of 2. */
struct reduce_shape {
    int64_t results, count, slice;  /* slice: members of one */
    uint32_t lanes, at_once, inner; /* inner: threads lie along the members */
};

template <class P, class I>
static __global__ void reduce_slices(P *part, const float *x, const float *most, reduce_shape s, device_steps<I, 1> result,
                                     device_steps<I, 1> member)
{
    enum { RUN = 16 };
    __shared__ P own[DEVICE_THREADS];
    const uint32_t t = threadIdx.x, lane = s.inner ? t % s.lanes : t / s.at_once, which = s.inner ? t / s.lanes : t % s.at_once;
    const uint32_t apart = s.inner ? 1 : s.at_once; /* threads from lane to lane */
    const int64_t begin = blockIdx.y * s.slice, end = begin + s.slice < s.count ? begin + s.slice : s.count;
    for (int64_t first = (int64_t)blockIdx.x * s.at_once; first < s.results; first += (int64_t)gridDim.x * s.at_once) {
        const int64_t r = first + which;
        P v;
        v.clear();
        if (r < s.results) {
            int64_t base[1], at[1];
            result.at((I)r, base);
            const float top = most ? most[r] : 0;
            for (int64_t c = begin + lane; c < end; c += s.lanes) {
                member.at((I)c, at);
                v.add(x[base[0] + at[0]], top, base[0] + at[0]);
            }
        }
        own[t] = v;
        __syncthreads();
        if (lane % RUN == 0)
            for (uint32_t k = 1; k < RUN && lane + k < s.lanes; k++)
                own[t].merge(own[t + k * apart]);
        __syncthreads();
        if (lane == 0 && r < s.results) {
            for (uint32_t k = RUN; k < s.lanes; k += RUN)
                own[t].merge(own[t + k * apart]);
            part[blockIdx.y * s.results + r] = own[t];
        }
        __syncthreads();
    }
}

template <class P> static __global__ void reduce_merge(P *all, const P *part, int64_t results, int64_t slices)
{
    for (int64_t r = blockIdx.x; r < results; r += gridDim.x) {
        P own;
        own.clear();
        for (int64_t k = threadIdx.x; k < slices; k += blockDim.x)
            own.merge(part[k * results + r]);
        const P sum = device_block_sum(own);
        if (threadIdx.x == 0)
            all[r] = sum;
    }
}

template <class P> static __global__ void reduce_finish(float *y, const P *all, int64_t results, double by)
{
    for (int64_t r = device_thread(); r < results; r += device_threads())
        y[r] = (float)(all[r].v / by);
}

/* ---- sizes ---- */
struct reduce_plan {
    device_walk result, member; /* strides are those of x */
    reduce_shape s;
    int64_t slices;
};

static void append(device_walk *w, int64_t dim, int64_t stride, bool merge)
{
    if (!merge || w->rank == 0) {
        w->dim[w->rank] = 1;
        w->rank++;
    }
    w->dim[w->rank - 1] *= dim;
    w->stride[0][w->rank - 1] = stride;
    w->n *= dim;
}

static reduce_plan plan_of(const sodet_reduce_attr *t, const sodet_shape *x)
{
    reduce_plan p = {};
    int64_t stride[SODET_MAX_RANK] = {}, step = 1;
    p.result.n = p.member.n = 1;
    for (uint32_t i = x->rank; i-- > 0; step *= x->dim[i])
        stride[i] = step;
    int before = -1, inner = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        const int of = t->axes >> i & 1;
        if (x->dim[i] == 1)
            continue;
        append(of ? &p.member : &p.result, x->dim[i], stride[i], before == of);
        before = inner = of;
    }
    if (p.result.rank == 0)
        append(&p.result, 1, 0, false);
    if (p.member.rank == 0)
        append(&p.member, 1, 0, false);
    reduce_shape *s = &p.s;
    s->results = p.result.n;
    s->count = p.member.n;
    s->inner = (uint32_t)inner;
    s->lanes = (uint32_t)(inner ? device_power_of_2(s->count, DEVICE_THREADS) : DEVICE_THREADS / device_power_of_2(s->results, 32));
    s->at_once = DEVICE_THREADS / s->lanes;
    const int64_t groups = (s->results + s->at_once - 1) / s->at_once, least = 16 * (int64_t)s->lanes;
    int64_t slices = groups > 0 && groups < 256 ? 512 / groups : 1;
    if (slices > (s->count + least - 1) / least)
        slices = (s->count + least - 1) / least;
    slices = slices < 1 ? 1 : slices;
    s->slice = (s->count + slices - 1) / slices;
    p.slices = s->slice > 0 ? (s->count + s->slice - 1) / s->slice : 1;
    return p;
}

static uint64_t scratch_bytes(const reduce_plan &p)
{
    return (uint64_t)p.s.results * ((uint64_t)p.slices + 1) * sizeof(double);
}

/* The results, [results] of P, are the end of the scratch. */
template <class P> static int reduce(const reduce_plan &p, const float *x, const float *most, void *scratch, P **all, void *stream)
{
    P *part = (P *)scratch;
    *all = part;
    const int64_t n = p.s.results * p.s.count;
    const int error = device_index(n, [&](auto zero) {
        typedef decltype(zero) I;
        const dim3 grid(device_blocks(p.s.results, p.s.at_once), (unsigned)p.slices);
        DEVICE_TRY((reduce_slices<P, I>), grid, DEVICE_THREADS, 0, stream, part, x, most, p.s, (device_steps_of<I, 1>(p.result)),
                   (device_steps_of<I, 1>(p.member)));
        return 0;
    });
    if (error != 0 || p.slices == 1)
        return error;
    *all = part + p.slices * p.s.results;
    DEVICE_TRY((reduce_merge<P>), device_blocks(p.s.results, 1), DEVICE_THREADS, 0, stream, *all, (const P *)part, p.s.results, p.slices);
    return 0;
}

/* ---- parts ---- */
static uint64_t scratch_forward(const sodet_kernel_args *a)
{
    return scratch_bytes(plan_of((const sodet_reduce_attr *)a->attr, &a->in[0].shape));
}

template <class P> static int finish(const sodet_kernel_args *a, const reduce_plan &p, double by, void *stream)
{
    P *all;
    const int error = reduce<P>(p, (const float *)a->in[0].data, NULL, a->scratch, &all, stream);
    if (error != 0)
        return error;
    DEVICE_TRY((reduce_finish<P>), device_blocks(p.s.results, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const P *)all, p.s.results, by);
    return 0;
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_reduce_attr *t = (const sodet_reduce_attr *)a->attr;
    const reduce_plan p = plan_of(t, &a->in[0].shape);
    if (p.s.results == 0)
        return 0;
    if (t->kind == SODET_REDUCE_MAX)
        return finish<reduce_most>(a, p, 1, stream);
    return finish<reduce_sum>(a, p, t->kind == SODET_REDUCE_MEAN ? (double)p.s.count : 1, stream);
}

/* dy repeated, or at the places of the maxima alone. */
template <class I>
static __global__ void spread(float *dx, const float *dy, const reduce_first *first, int64_t n, device_steps<I, 1> result, double by)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t r[1];
        result.at((I)i, r);
        dx[i] = !first ? (float)(dy[r[0]] / by) : first[r[0]].v == i ? dy[r[0]] : 0;
    }
}

static uint64_t scratch_backward(const sodet_kernel_args *a)
{
    const sodet_reduce_attr *t = (const sodet_reduce_attr *)a->attr;
    return t->kind == SODET_REDUCE_MAX ? scratch_bytes(plan_of(t, &t->x)) : 0;
}

static int backward(const sodet_kernel_args *a, void *stream)
{
    const sodet_reduce_attr *t = (const sodet_reduce_attr *)a->attr;
    const reduce_plan p = plan_of(t, &t->x);
    const int64_t n = sodet_elements(&t->x);
    reduce_first *first = NULL;
    if (n == 0)
        return 0;
    if (t->kind == SODET_REDUCE_MAX) {
        const int error = reduce<reduce_first>(p, (const float *)a->in[1].data, (const float *)a->in[2].data, a->scratch, &first, stream);
        if (error != 0)
            return error;
    }
    int64_t strides[1][SODET_MAX_RANK] = {}, step = 1;
    for (uint32_t i = t->x.rank; i-- > 0;)
        if (!(t->axes >> i & 1)) {
            strides[0][i] = t->x.dim[i] == 1 ? 0 : step;
            step *= t->x.dim[i];
        }
    const device_walk w = device_walk_over(&a->out[0], strides, 1);
    return device_index(n, [&](auto zero) {
        typedef decltype(zero) I;
        DEVICE_TRY((spread<I>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
                   (const float *)a->in[0].data, (const reduce_first *)first, n, (device_steps_of<I, 1>(w)),
                   t->kind == SODET_REDUCE_MEAN ? (double)p.s.count : 1.0);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_reduce[] = {{sizeof(sodet_cuda_kernel), 0, scratch_forward, forward},
                                                          {sizeof(sodet_cuda_kernel), 0, scratch_backward, backward}};
