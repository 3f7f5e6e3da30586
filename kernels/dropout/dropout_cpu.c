#include "kernels/dropout/dropout.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

SODET_CLONES
static void row(float *y, const float *x, int64_t n, uint64_t stream, uint64_t first, uint64_t step, float rate, float scale)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sodet_dropout_keeps(stream, first + (uint64_t)i * step, rate) ? x[i] * scale : 0;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return vector_pieces(&a->out[0]);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_dropout_attr *t = a->attr;
    const sodet_tensor *x = &a->in[0];
    const uint64_t stream = sodet_dropout_stream(a->seed, a->step, t->key);
    const float scale = (float)(1 / (1 - (double)t->rate));
    float *y = a->out[0].data;
    const float *from = x->data;
    int64_t first, last;
    vector_range(&a->out[0], begin, end, &first, &last);
    if (x->layout != SODET_BLOCKED) {
        row(y + first, from + first, last - first, stream, (uint64_t)first, 1, t->rate, scale);
        return;
    }
    /* The decision belongs to the logical index; neighbours in a block are an area apart. Padding channels are 0 whatever is decided. */
    const int64_t block = x->block, area = x->shape.dim[2] * x->shape.dim[3], blocks = (x->shape.dim[1] + block - 1) / block;
    for (int64_t i = first; i < last;) {
        int64_t lane = i % block, position = i / block % area, outer = i / block / area;
        int64_t channel = outer % blocks * block + lane, run_length = block - lane < last - i ? block - lane : last - i;
        uint64_t logical = (uint64_t)((outer / blocks * x->shape.dim[1] + channel) * area + position);
        row(y + i, from + i, run_length, stream, logical, (uint64_t)area, t->rate, scale);
        i += run_length;
    }
}

const sodet_cpu_kernel sodet_cpu_dropout[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_FLAT | SODET_CPU_PLACED, .units = units, .run = run}};
