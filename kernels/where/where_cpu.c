/* Both types of value have four bytes, so one loop moves them. */
#include "kernels/broadcast.h"
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define ROW(name, C)                                                                                                                       \
    SODET_CLONES                                                                                                                           \
    static void name(int32_t *y, const C *c, int64_t sc, const int32_t *a, int64_t sa, const int32_t *b, int64_t sb, int64_t n)            \
    {                                                                                                                                      \
        if (sc && sa && !sb) { /* the usual one: a tensor masked with a scalar */                                                          \
            int32_t other = b[0];                                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                                              \
                int32_t v = a[i];                                                                                                          \
                y[i] = c[i] != 0 ? v : other;                                                                                              \
            }                                                                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                                  \
            int32_t p = a[i * sa], q = b[i * sb];                                                                                          \
            y[i] = c[i * sc] != 0 ? p : q;                                                                                                 \
        }                                                                                                                                  \
    }
ROW(by_real, float)
ROW(by_int, int32_t)

static void row(const sodet_kernel_args *args, int64_t iy, const int64_t at[3], const int64_t s[3], int64_t n)
{
    int32_t *y = (int32_t *)args->out[0].data + iy;
    const int32_t *a = (const int32_t *)args->in[1].data + at[1], *b = (const int32_t *)args->in[2].data + at[2];
    if (args->in[0].shape.dtype == SODET_I32)
        by_int(y, (const int32_t *)args->in[0].data + at[0], s[0], a, s[1], b, s[2], n);
    else
        by_real(y, (const float *)args->in[0].data + at[0], s[0], a, s[1], b, s[2], n);
}

static int64_t units(const sodet_kernel_args *args, uint32_t phase)
{
    (void)phase;
    broadcast_walk w = broadcast_begin(&args->out[0].shape, args->in, 3);
    return w.rank == 1 ? vector_pieces(&args->out[0]) : w.rows;
}

static void run(const sodet_kernel_args *args, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    broadcast_walk w = broadcast_begin(&args->out[0].shape, args->in, 3);
    int64_t s[3], at[OP_BROADCAST_MOST], n = w.dim[w.rank - 1];
    for (uint32_t k = 0; k < 3; k++)
        s[k] = w.stride[k][w.rank - 1];
    if (w.rank == 1) {
        int64_t first, last;
        vector_range(&args->out[0], begin, end, &first, &last);
        for (uint32_t k = 0; k < 3; k++)
            at[k] = first * s[k];
        row(args, first, at, s, last - first);
        vector_clear_padding(&args->out[0], first, last);
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        broadcast_row(&w, r, at);
        row(args, r * n, at, s, n);
    }
}

const sodet_cpu_kernel sodet_cpu_where[] = {{.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = run}};
