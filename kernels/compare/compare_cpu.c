#include "kernels/broadcast.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

/* Mixed pairs are compared in double, which holds both types exactly. */
#define ROW(name, A, B, T)                                                                                                                 \
    SODET_CLONES                                                                                                                           \
    static void name(uint32_t kind, float *y, const A *a0, int64_t sa, const B *b0, int64_t sb, int64_t n)                                 \
    {                                                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                                                  \
            T a = (T)a0[i * sa], b = (T)b0[i * sb];                                                                                        \
            int less = a<b, equal = a == b, greater = a> b, holds;                                                                         \
            holds = kind == SODET_COMPARE_GE   ? greater | equal                                                                           \
                    : kind == SODET_COMPARE_GT ? greater                                                                                   \
                    : kind == SODET_COMPARE_LE ? less | equal                                                                              \
                    : kind == SODET_COMPARE_LT ? less                                                                                      \
                    : kind == SODET_COMPARE_EQ ? equal                                                                                     \
                                               : !equal;                                                                                   \
            y[i] = (float)holds;                                                                                                           \
        }                                                                                                                                  \
    }
ROW(real_real, float, float, float)
ROW(int_int, int32_t, int32_t, int32_t)
ROW(int_real, int32_t, float, double)
ROW(real_int, float, int32_t, double)

static void row(const sodet_kernel_args *args, int64_t iy, int64_t ia, int64_t sa, int64_t ib, int64_t sb, int64_t n)
{
    uint32_t kind = ((const sodet_compare_attr *)args->attr)->kind;
    int a_int = args->in[0].shape.dtype == SODET_I32, b_int = args->in[1].shape.dtype == SODET_I32;
    float *y = (float *)args->out[0].data + iy;
    const float *fa = (const float *)args->in[0].data + ia, *fb = (const float *)args->in[1].data + ib;
    const int32_t *ka = (const int32_t *)args->in[0].data + ia, *kb = (const int32_t *)args->in[1].data + ib;
    if (a_int && b_int)
        int_int(kind, y, ka, sa, kb, sb, n);
    else if (a_int)
        int_real(kind, y, ka, sa, fb, sb, n);
    else if (b_int)
        real_int(kind, y, fa, sa, kb, sb, n);
    else
        real_real(kind, y, fa, sa, fb, sb, n);
}

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

const sodet_cpu_kernel sodet_cpu_compare[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = run}};
