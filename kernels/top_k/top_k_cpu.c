/* A row is read once against a threshold: the k-th best so far. What passes is collected; when the buffer is full it is cut down to the k best,
 * which raises the threshold. So where k is much less than n, nearly all of a row is one vector comparison. A unit is a row. */
#include "kernels/kernels.h"
#include "kernels/select.h"
#include "kernels/vector.h"

static int64_t capacity(int64_t n, int64_t k)
{
    int64_t room = 2 * k > k + 2048 ? 2 * k : k + 2048;
    return room < n ? room : n;
}

/* Whether any of x[0, n) is above the threshold. */
SODET_CLONES
static int any_above(const float *x, int64_t n, float threshold)
{
    int any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= x[i] > threshold;
    return any;
}

static void row(const float *x, int64_t n, int64_t k, uint64_t *key, int64_t room, float *value, int32_t *index)
{
    int64_t have = 0, i = 0;
    float threshold = -INFINITY;
    int full = 0; /* k are held, and only what is above the threshold can still come in: equals have higher indices */
    while (i < n) {
        int64_t stop = i + 256 < n ? i + 256 : n;
        if (full && !any_above(x + i, stop - i, threshold)) {
            i = stop;
            continue;
        }
        for (; i < stop; i++) {
            if (full && !(x[i] > threshold))
                continue;
            if (have == room) {
                select_lowest(key, have, k);
                have = k;
                int64_t worst = 0;
                for (int64_t j = 1; j < k; j++)
                    worst = key[j] > key[worst] ? j : worst;
                float v = x[select_index(key[worst])];
                full = v == v;
                threshold = v;
                if (full && !(x[i] > threshold))
                    continue;
            }
            key[have++] = select_key(x[i], i);
        }
    }
    if (have > k)
        select_lowest(key, have, k);
    select_sort(key, k);
    for (int64_t j = 0; j < k; j++) {
        index[j] = (int32_t)select_index(key[j]);
        value[j] = x[index[j]];
    }
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    int64_t n = 1;
    for (uint32_t i = 0; i + 1 < a->in[0].shape.rank; i++)
        n *= a->in[0].shape.dim[i];
    return n;
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    const sodet_shape *x = &n->in_shape[0];
    return (uint64_t)capacity(x->dim[x->rank - 1], ((const sodet_top_k_attr *)n->attr)->k) * sizeof(uint64_t) * n_threads;
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    const sodet_shape *x = &a->in[0].shape;
    int64_t n = x->dim[x->rank - 1], k = ((const sodet_top_k_attr *)a->attr)->k, room = capacity(n, k);
    if (k == 0)
        return;
    for (int64_t r = begin; r < end; r++)
        row((const float *)a->in[0].data + r * n, n, k, (uint64_t *)a->scratch + room * thread, room, (float *)a->out[0].data + r * k,
            (int32_t *)a->out[1].data + r * k);
}

const sodet_cpu_kernel sodet_cpu_top_k[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .scratch = scratch, .run = run}};
