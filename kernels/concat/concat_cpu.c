/* Every input is copied in runs; a unit is one run of one input, long runs are cut into pieces. Blocked maps are copied as what they are,
 * [N][blocks][H][W][block]; only where channels are put together that do not fill whole blocks, lane by lane. */
#include "kernels/concat/concat.h"

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/vector.h"

enum { PIECE = 8192 }; /* elements */

typedef struct sizes {
    int64_t outer, whole, part, begin; /* of one input: runs, elements of y (or dy) and of x in one run, where x's run begins in y's */
} sizes;

static int64_t blocks_of(const sodet_tensor *t)
{
    return t->block ? (t->shape.dim[1] + t->block - 1) / t->block : 0; /* an input without channels is plain */
}

/* Runs along `axis` between `large` and `small`, which begins at `begin` (in the axis's own count). */
static sizes sizes_of(const sodet_tensor *large, const sodet_tensor *small, uint32_t axis, int64_t begin)
{
    int64_t dim[SODET_MAX_RANK + 1] = {0}, below = 1;
    uint32_t rank = large->shape.rank;
    sizes z = {1, 0, 0, 0};
    for (uint32_t i = 0; i < rank; i++)
        dim[i] = large->shape.dim[i];
    int64_t whole = dim[axis], part = small->shape.dim[axis];
    if (large->layout == SODET_BLOCKED) {
        dim[1] = blocks_of(large);
        dim[rank++] = large->block;
        if (axis == 1) {
            whole = dim[1];
            part = blocks_of(small);
            begin /= large->block;
        }
    }
    for (uint32_t i = 0; i < axis; i++)
        z.outer *= dim[i];
    for (uint32_t i = axis + 1; i < rank; i++)
        below *= dim[i];
    z.whole = whole * below;
    z.part = part * below;
    z.begin = begin * below;
    return z;
}

/* Channels that begin inside a block, or end inside one that others go on in. */
static bool by_lanes(const sodet_kernel_args *a)
{
    const sodet_concat_attr *t = a->attr;
    const sodet_tensor *large = a->part ? &a->in[0] : &a->out[0];
    if (large->layout != SODET_BLOCKED || t->axis != 1)
        return false;
    if (a->part)
        return t->begin % large->block || (t->length % large->block && t->begin + t->length < large->shape.dim[1]);
    for (uint32_t i = 0; i + 1 < a->n_in; i++)
        if (a->in[i].shape.dim[1] % large->block)
            return true;
    return false;
}

static int64_t pieces(const sizes *z)
{
    return (z->part + PIECE - 1) / PIECE;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    const sodet_concat_attr *t = a->attr;
    if (by_lanes(a))
        return a->out[0].shape.dim[0] * blocks_of(&a->out[0]);
    if (a->part) {
        sizes z = sizes_of(&a->in[0], &a->out[0], t->axis, t->begin);
        return z.outer * pieces(&z);
    }
    int64_t n = 0;
    for (uint32_t i = 0; i < a->n_in; i++) {
        sizes z = sizes_of(&a->out[0], &a->in[i], t->axis, 0);
        n += z.outer * pieces(&z);
    }
    return n;
}

/* One block of channels of the output, gathered from `n` maps that lie one behind the other, the first channel of the first one at `at`. */
static void gather_block(const sodet_tensor *y, int64_t unit, const sodet_tensor *x, uint32_t n, int64_t at)
{
    const int64_t area = y->shape.dim[2] * y->shape.dim[3], block = y->block, image = unit / blocks_of(y),
                  first = unit % blocks_of(y) * block;
    float *to = (float *)y->data + unit * area * block;
    for (int64_t k = 0; k < block; k++) {
        int64_t c = first + k < y->shape.dim[1] ? first + k - at : INT64_MAX;
        uint32_t i = 0;
        while (i < n && c >= x[i].shape.dim[1] && c != INT64_MAX)
            c -= x[i++].shape.dim[1];
        if (i == n || c == INT64_MAX) {
            for (int64_t p = 0; p < area; p++)
                to[p * block + k] = 0;
            continue;
        }
        const float *from = (const float *)x[i].data + (image * blocks_of(&x[i]) + c / block) * area * block + c % block;
        for (int64_t p = 0; p < area; p++)
            to[p * block + k] = from[p * block];
    }
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_concat_attr *t = a->attr;
    if (by_lanes(a)) {
        for (int64_t u = begin; u < end; u++)
            gather_block(&a->out[0], u, a->in, a->n_in, 0);
        return;
    }
    int64_t from = 0, at = 0;
    for (uint32_t i = 0; i < a->n_in && from < end; i++) {
        sizes z = sizes_of(&a->out[0], &a->in[i], t->axis, at);
        int64_t n = pieces(&z), first = begin > from ? begin - from : 0, last = end - from < z.outer * n ? end - from : z.outer * n;
        for (int64_t u = first; u < last; u++) {
            int64_t run = u / n, skip = u % n * PIECE, length = z.part - skip < PIECE ? z.part - skip : PIECE;
            memcpy((float *)a->out[0].data + run * z.whole + z.begin + skip, (const float *)a->in[i].data + run * z.part + skip,
                   (size_t)length * sizeof(float));
        }
        from += z.outer * n;
        at += a->in[i].shape.dim[t->axis];
    }
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_concat_attr *t = a->attr;
    if (by_lanes(a)) {
        for (int64_t u = begin; u < end; u++)
            gather_block(&a->out[0], u, a->in, 1, -t->begin);
        return;
    }
    sizes z = sizes_of(&a->in[0], &a->out[0], t->axis, t->begin);
    int64_t n = pieces(&z);
    for (int64_t u = begin; u < end; u++) {
        int64_t run = u / n, skip = u % n * PIECE, length = z.part - skip < PIECE ? z.part - skip : PIECE;
        memcpy((float *)a->out[0].data + run * z.part + skip, (const float *)a->in[0].data + run * z.whole + z.begin + skip,
               (size_t)length * sizeof(float));
    }
}

const sodet_cpu_kernel sodet_cpu_concat[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .units = units, .run = backward}};
