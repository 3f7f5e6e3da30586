/* A unit is a stripe (channels.h); what stripes of different samples have in common is put together in a second phase, in the order of the
 * samples. */
#include "kernels/batch_norm_sync/batch_norm_sync.h"

#include "kernels/channels.h"
#include "kernels/kernels.h"

enum { COLUMNS = 64 }; /* channels of a unit where there are no maps */

static int64_t columns(int64_t channels)
{
    return (channels + COLUMNS - 1) / COLUMNS;
}

/* Parts 0 and 3: [stripes][block] moments, or pairs of sums. A block is at most 16, and 15 channels at most are padding. */
static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    return (uint64_t)n->in_shape[0].dim[0] * (uint64_t)(n->in_shape[0].dim[1] + LANES) * sizeof(moments);
}

static int64_t units_of_two(const sodet_kernel_args *a, uint32_t phase)
{
    stripes s = stripes_of(&a->in[0]);
    return phase == 0 ? stripes_count(&s) : columns(s.channels);
}

static int64_t units_of_stripes(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    stripes s = stripes_of(&a->in[0]);
    return stripes_count(&s) ? stripes_count(&s) : 1;
}

SODET_CLONES
static void find_moments(const stripes *s, const float *x, moments *out, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++)
        stripe_moments(s, x + u * s->area * s->block, out + u * s->block);
}

static void statistics(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    moments *each = a->scratch;
    float *own = a->out[0].data;
    if (phase == 0) {
        find_moments(&s, a->in[0].data, each, begin, end);
        return;
    }
    for (int64_t c = begin * COLUMNS; c < end * COLUMNS && c < s.channels; c++) {
        moments all = {0, 0, 0};
        for (int64_t n = 0; n < s.batch; n++)
            moments_merge(&all, each[n * s.per_sample * s.block + c]);
        own[c] = (float)all.count;
        own[s.channels + c] = (float)all.mean;
        own[2 * s.channels + c] = (float)all.squares;
    }
}

static int64_t units_of_merge(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return columns(a->in[0].shape.dim[2]);
}

static void merge(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_batch_norm_attr *t = a->attr;
    const float *all = a->in[0].data, *old_mean = a->in[1].data, *old_var = a->in[2].data;
    float *mean_out = a->out[0].data, *r_out = a->out[1].data, *count_out = a->out[2].data, *new_mean = a->out[3].data,
          *new_var = a->out[4].data;
    const int64_t ranks = a->in[0].shape.dim[0], channels = a->in[0].shape.dim[2];
    const double momentum = (double)t->momentum, keep = 1 - momentum;
    for (int64_t c = begin * COLUMNS; c < end * COLUMNS && c < channels; c++) {
        moments m = {0, 0, 0};
        for (int64_t i = 0; i < ranks; i++) {
            const float *of = all + 3 * i * channels + c;
            moments_merge(&m, (moments){(double)of[0], (double)of[channels], (double)of[2 * channels]});
        }
        double var = m.count > 1 ? m.squares / (m.count - 1) : m.squares;
        mean_out[c] = (float)m.mean;
        r_out[c] = m.count > 0 ? (float)(1 / sqrt(m.squares / m.count + (double)t->epsilon)) : 0;
        if (c == 0)
            count_out[0] = (float)m.count;
        new_mean[c] = m.count > 0 ? (float)(keep * (double)old_mean[c] + momentum * m.mean) : old_mean[c];
        new_var[c] = m.count > 0 ? (float)(keep * (double)old_var[c] + momentum * var) : old_var[c];
    }
}

SODET_CLONES
static void apply_stripes(const sodet_kernel_args *a, const stripes *s, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        float scale[LANES], shift[LANES], mean[LANES], r[LANES];
        stripes_vector(s, u, a->in[1].data, scale);
        stripes_vector(s, u, a->in[2].data, shift);
        stripes_vector(s, u, a->in[3].data, mean);
        stripes_vector(s, u, a->in[4].data, r);
        for (int64_t k = 0; k < LANES; k++)
            r[k] *= scale[k];
        const int64_t at = u * s->area * s->block;
        stripe_scaled(s, (float *)a->out[0].data + at, (const float *)a->in[0].data + at, mean, r, shift);
    }
}

static void apply(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    if (stripes_count(&s))
        apply_stripes(a, &s, begin, end);
}

SODET_CLONES
static void find_slopes(const sodet_kernel_args *a, const stripes *s, double *out, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        float mean[LANES];
        const int64_t at = u * s->area * s->block;
        stripes_vector(s, u, a->in[2].data, mean);
        stripe_slopes(s, (const float *)a->in[0].data + at, (const float *)a->in[1].data + at, mean, out + 2 * u * s->block,
                      out + (2 * u + 1) * s->block);
    }
}

static void backward_sums(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    double *each = a->scratch;
    const float *r = a->in[3].data;
    float *sums = a->out[0].data;
    if (phase == 0) {
        find_slopes(a, &s, each, begin, end);
        return;
    }
    for (int64_t c = begin * COLUMNS; c < end * COLUMNS && c < s.channels; c++) {
        double plain = 0, along = 0;
        for (int64_t n = 0; n < s.batch; n++) {
            const double *of = each + 2 * (n * s.per_sample + c / s.block) * s.block + c % s.block;
            plain += of[0];
            along += of[s.block];
        }
        sums[c] = (float)plain;
        sums[s.channels + c] = (float)(along * (double)r[c]);
    }
}

SODET_CLONES
static void backward_stripes(const sodet_kernel_args *a, const stripes *s, int64_t begin, int64_t end)
{
    const float *all = a->in[6].data, share = 1 / *(const float *)a->in[5].data;
    for (int64_t u = begin; u < end; u++) {
        float scale[LANES], mean[LANES], r[LANES], along[LANES], plain[LANES];
        stripes_vector(s, u, a->in[2].data, scale);
        stripes_vector(s, u, a->in[3].data, mean);
        stripes_vector(s, u, a->in[4].data, r);
        stripes_vector(s, u, all, plain);
        stripes_vector(s, u, all + s->channels, along);
        for (int64_t k = 0; k < LANES; k++) {
            scale[k] *= r[k];
            plain[k] *= scale[k] * share;
            along[k] *= scale[k] * share * r[k];
        }
        const int64_t at = u * s->area * s->block;
        stripe_sloped(s, (float *)a->out[0].data + at, (const float *)a->in[0].data + at, (const float *)a->in[1].data + at, mean, scale,
                      along, plain);
    }
}

static void backward_data(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    if (begin == 0) {
        const size_t bytes = (size_t)s.channels * sizeof(float);
        memcpy(a->out[2].data, a->in[7].data, bytes);
        memcpy(a->out[1].data, (const float *)a->in[7].data + s.channels, bytes);
    }
    if (stripes_count(&s))
        backward_stripes(a, &s, begin, end);
}

#define ENTRY .struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED
const sodet_cpu_kernel sodet_cpu_batch_norm_sync[] = {{ENTRY, .phases = 2, .units = units_of_two, .scratch = scratch, .run = statistics},
                                                      {ENTRY, .units = units_of_merge, .run = merge},
                                                      {ENTRY, .units = units_of_stripes, .run = apply},
                                                      {ENTRY, .phases = 2, .units = units_of_two, .scratch = scratch, .run = backward_sums},
                                                      {ENTRY, .units = units_of_stripes, .run = backward_data}};
