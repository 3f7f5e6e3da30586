/* Rows of one function each, so that the compiler makes a vector loop of every (kind, strides). Tensors of one shape, blocked ones too, are one
 * long row cut into pieces. */
#include "kernels/broadcast.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define LOOPS(T, expression)                                                                                                               \
    do {                                                                                                                                   \
        if (sa && sb)                                                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                                              \
                T p = a[i], q = b[i];                                                                                                      \
                y[i] = (expression);                                                                                                       \
            }                                                                                                                              \
        else if (sa) {                                                                                                                     \
            T q = b[0];                                                                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                                                              \
                T p = a[i];                                                                                                                \
                y[i] = (expression);                                                                                                       \
            }                                                                                                                              \
        } else {                                                                                                                           \
            T p = a[0];                                                                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                                                              \
                T q = b[i * sb];                                                                                                           \
                y[i] = (expression);                                                                                                       \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* y may be a or b (in place), element for element. */
SODET_CLONES
static void real_row(uint32_t kind, float *y, const float *a, int64_t sa, const float *b, int64_t sb, int64_t n)
{
    switch (kind) {
    case SODET_BINARY_ADD:
        LOOPS(float, p + q);
        break;
    case SODET_BINARY_SUB:
        LOOPS(float, p - q);
        break;
    case SODET_BINARY_MUL:
        LOOPS(float, p *q);
        break;
    case SODET_BINARY_DIV:
        LOOPS(float, p / q);
        break;
    case SODET_BINARY_MIN:
        LOOPS(float, p != p || p < q ? p : q);
        break;
    case SODET_BINARY_MAX:
        LOOPS(float, p != p || p > q ? p : q);
        break;
    default:
        LOOPS(float, powf(p, q));
    }
}

static int32_t floor_div(int32_t p, int32_t q)
{
    if (q == 0)
        return 0;
    int64_t d = (int64_t)p / q;
    return (int32_t)(uint32_t)(d - ((int64_t)p % q != 0 && (p < 0) != (q < 0)));
}

SODET_CLONES
static void int_row(uint32_t kind, int32_t *y, const int32_t *a, int64_t sa, const int32_t *b, int64_t sb, int64_t n)
{
    switch (kind) {
    case SODET_BINARY_ADD:
        LOOPS(int32_t, (int32_t)((uint32_t)p + (uint32_t)q));
        break;
    case SODET_BINARY_SUB:
        LOOPS(int32_t, (int32_t)((uint32_t)p - (uint32_t)q));
        break;
    case SODET_BINARY_MUL:
        LOOPS(int32_t, (int32_t)((uint32_t)p * (uint32_t)q));
        break;
    case SODET_BINARY_DIV:
        LOOPS(int32_t, floor_div(p, q));
        break;
    case SODET_BINARY_MIN:
        LOOPS(int32_t, p < q ? p : q);
        break;
    case SODET_BINARY_MAX:
        LOOPS(int32_t, p > q ? p : q);
        break;
    default:
        LOOPS(int32_t, (int32_t)((int64_t)p - (int64_t)floor_div(p, q) * q) * (q != 0));
    }
}

static void row(const sodet_kernel_args *args, int64_t iy, int64_t ia, int64_t sa, int64_t ib, int64_t sb, int64_t n)
{
    uint32_t kind = ((const sodet_binary_attr *)args->attr)->kind;
    void *y = args->out[0].data;
    const void *a = args->in[0].data, *b = args->in[1].data;
    if (args->out[0].shape.dtype == SODET_I32)
        int_row(kind, (int32_t *)y + iy, (const int32_t *)a + ia, sa, (const int32_t *)b + ib, sb, n);
    else
        real_row(kind, (float *)y + iy, (const float *)a + ia, sa, (const float *)b + ib, sb, n);
}

/* A walk of one row is cut into pieces; else a unit is a row. */
static int64_t units(const sodet_kernel_args *args, uint32_t phase)
{
    (void)phase;
    broadcast_walk w = broadcast_begin(&args->out[0].shape, args->in, 2);
    return w.rank == 1 ? vector_pieces(&args->out[0]) : w.rows;
}

static void run(const sodet_kernel_args *args, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    broadcast_walk w = broadcast_begin(&args->out[0].shape, args->in, 2);
    if (w.rank == 1) {
        int64_t first, last, sa = w.stride[0][0], sb = w.stride[1][0];
        vector_range(&args->out[0], begin, end, &first, &last);
        row(args, first, first * sa, sa, first * sb, sb, last - first);
        vector_clear_padding(&args->out[0], first, last);
        return;
    }
    int64_t n = w.dim[w.rank - 1];
    for (int64_t r = begin; r < end; r++) {
        int64_t at[OP_BROADCAST_MOST];
        broadcast_row(&w, r, at);
        row(args, r * n, at[0], w.stride[0][w.rank - 1], at[1], w.stride[1][w.rank - 1], n);
    }
}

const sodet_cpu_kernel sodet_cpu_binary[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = run}};
