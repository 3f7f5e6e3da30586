#include "kernels/activation/activation.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

#define LOOP(expression)                                                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                                      \
        float v = x[i];                                                                                                                    \
        y[i] = (expression);                                                                                                               \
    }                                                                                                                                      \
    break

/* y may be x. Comparisons as in activation_math.h, so that NaN stays NaN. */
SODET_CLONES
static void row(uint32_t kind, float slope, float *y, const float *x, int64_t n)
{
    const float sixth = 1.0f / 6;
    switch (kind) {
    case SODET_ACT_RELU:
        LOOP(v <= 0 ? 0 : v);
    case SODET_ACT_RELU6:
        LOOP(v <= 0 ? 0 : v >= 6 ? 6 : v);
    case SODET_ACT_LEAKY_RELU:
        LOOP(v > 0 ? v : slope * v);
    case SODET_ACT_HARD_SWISH:
        LOOP(v <= -3 ? 0 : v >= 3 ? v : v * (v + 3) * sixth);
    case SODET_ACT_HARD_SIGMOID:
        LOOP(v <= -3 ? 0 : v >= 3 ? 1 : (v + 3) * sixth);
    case SODET_ACT_SIGMOID:
        LOOP(1 / (1 + vector_exp(-v)));
    default:
        LOOP(v / (1 + vector_exp(-v)));
    }
}
#undef LOOP

#define LOOP(expression)                                                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                                      \
        float v = r[i];                                                                                                                    \
        dx[i] = dy[i] * (expression);                                                                                                      \
    }                                                                                                                                      \
    break

/* dx may be r or dy. */
SODET_CLONES
static void slope_row(uint32_t kind, float slope, float *dx, const float *r, const float *dy, int64_t n)
{
    const float third = 1.0f / 3, sixth = 1.0f / 6;
    switch (kind) {
    case SODET_ACT_RELU:
        LOOP(v <= 0 ? 0.0f : 1.0f);
    case SODET_ACT_RELU6:
        LOOP(v <= 0 || v >= 6 ? 0.0f : 1.0f);
    case SODET_ACT_LEAKY_RELU:
        LOOP(v > 0 ? 1.0f : slope);
    case SODET_ACT_HARD_SWISH:
        LOOP(v <= -3 ? 0.0f : v >= 3 ? 1.0f : v * third + 0.5f);
    case SODET_ACT_HARD_SIGMOID:
        LOOP(v <= 0 || v >= 1 ? 0.0f : sixth);
    case SODET_ACT_SIGMOID:
        LOOP(v * (1 - v));
    default:
        for (int64_t i = 0; i < n; i++) {
            float s = 1 / (1 + vector_exp(-r[i]));
            dx[i] = dy[i] * (s * (1 + r[i] * (1 - s)));
        }
    }
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return vector_pieces(&a->out[0]);
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_activation_attr *t = a->attr;
    int64_t first, last;
    vector_range(&a->out[0], begin, end, &first, &last);
    row(t->kind, t->slope, (float *)a->out[0].data + first, (const float *)a->in[0].data + first, last - first);
    if (t->kind == SODET_ACT_SIGMOID || t->kind == SODET_ACT_HARD_SIGMOID)
        vector_clear_padding(&a->out[0], first, last);
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_activation_attr *t = a->attr;
    int64_t first, last;
    vector_range(&a->out[0], begin, end, &first, &last);
    slope_row(t->kind, t->slope, (float *)a->out[0].data + first, (const float *)a->in[0].data + first,
              (const float *)a->in[1].data + first, last - first);
}

const sodet_cpu_kernel sodet_cpu_activation[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT, .units = units, .run = backward}};
