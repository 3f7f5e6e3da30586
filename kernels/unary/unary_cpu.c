#include "kernels/kernels.h"
#include "kernels/vector.h"

#define LOOP(expression)                                                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                                      \
        float v = x[i];                                                                                                                    \
        y[i] = (expression);                                                                                                               \
    }                                                                                                                                      \
    break

/* y may be x */
SODET_CLONES
static void row(uint32_t kind, float *y, const float *x, int64_t n)
{
    switch (kind) {
    case SODET_UNARY_EXP:
        LOOP(vector_exp(v));
    case SODET_UNARY_LOG:
        LOOP(vector_log(v));
    case SODET_UNARY_SQRT:
        LOOP(sqrtf(v));
    case SODET_UNARY_ABS:
        LOOP(fabsf(v));
    case SODET_UNARY_NEG:
        LOOP(-v);
    case SODET_UNARY_SQUARE:
        LOOP(v * v);
    case SODET_UNARY_RECIPROCAL:
        LOOP(1.0f / v);
    case SODET_UNARY_SIGN:
        LOOP(v > 0 ? 1.0f : v < 0 ? -1.0f : v == 0 ? 0.0f : v);
    default:
        LOOP(floorf(v));
    }
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return vector_pieces(&a->out[0]);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    uint32_t kind = ((const sodet_unary_attr *)a->attr)->kind;
    int64_t first, last;
    vector_range(&a->out[0], begin, end, &first, &last);
    row(kind, (float *)a->out[0].data + first, (const float *)a->in[0].data + first, last - first);
    if (kind == SODET_UNARY_EXP || kind == SODET_UNARY_LOG || kind == SODET_UNARY_RECIPROCAL)
        vector_clear_padding(&a->out[0], first, last);
}

const sodet_cpu_kernel sodet_cpu_unary[] = {{.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = run}};
