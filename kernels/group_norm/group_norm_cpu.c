/* Three phases: moments (or sums) of the channels of each stripe; of the groups, from their channels; the maps. See channels.h. */
#include "kernels/group_norm/group_norm.h"

#include "kernels/channels.h"
#include "kernels/kernels.h"

static int64_t groups_of(const sodet_kernel_args *a)
{
    return ((const sodet_group_norm_attr *)a->attr)->groups;
}

/* Behind the stripes' numbers in the scratch: two doubles for each group. */
static uint64_t stripes_room(const stripes *s)
{
    return (uint64_t)(s->batch * (s->channels + LANES));
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    const sodet_shape *x = &n->in_shape[0];
    return (uint64_t)x->dim[0] * (uint64_t)(x->dim[1] + LANES) * sizeof(moments) +
           (uint64_t)x->dim[0] * ((const sodet_group_norm_attr *)n->attr)->groups * 2 * sizeof(double);
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    stripes s = stripes_of(&a->in[0]);
    return phase == 1 ? s.batch * groups_of(a) + (a->part ? s.channels : 0) : stripes_count(&s);
}

SODET_CLONES
static void find_moments(const stripes *s, const float *x, moments *out, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++)
        stripe_moments(s, x + u * s->area * s->block, out + u * s->block);
}

/* mean and r of the groups as the lanes of a stripe see them. */
SODET_INLINE void groups_vector(const stripes *s, int64_t stripe, int64_t groups, const float *vector, float *lane)
{
    const int64_t sample = stripe / s->per_sample, in_group = s->channels / groups;
    for (int64_t k = 0; k < LANES; k++) {
        int64_t c = stripes_channel(s, stripe, k);
        lane[k] = c < s->channels ? vector[sample * groups + c / in_group] : 0;
    }
}

SODET_CLONES
static void apply(const sodet_kernel_args *a, const stripes *s, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        float scale[LANES], shift[LANES], mean[LANES], r[LANES];
        stripes_vector(s, u, a->in[1].data, scale);
        stripes_vector(s, u, a->in[2].data, shift);
        groups_vector(s, u, groups_of(a), a->out[1].data, mean);
        groups_vector(s, u, groups_of(a), a->out[2].data, r);
        for (int64_t k = 0; k < LANES; k++)
            r[k] *= scale[k];
        const int64_t at = u * s->area * s->block;
        stripe_scaled(s, (float *)a->out[0].data + at, (const float *)a->in[0].data + at, mean, r, shift);
    }
}

static void forward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    moments *each = a->scratch;
    if (phase == 0) {
        find_moments(&s, a->in[0].data, each, begin, end);
    } else if (phase == 1) {
        const int64_t groups = groups_of(a), in_group = s.channels / groups;
        for (int64_t u = begin; u < end; u++) {
            moments all = {0, 0, 0};
            for (int64_t c = u % groups * in_group; c < (u % groups + 1) * in_group; c++)
                moments_merge(&all, each[u / groups * s.per_sample * s.block + c]);
            ((float *)a->out[1].data)[u] = (float)all.mean;
            ((float *)a->out[2].data)[u] =
                (float)(1 / sqrt(all.squares / all.count + (double)((const sodet_group_norm_attr *)a->attr)->epsilon));
        }
    } else {
        apply(a, &s, begin, end);
    }
}

SODET_CLONES
static void find_slopes(const sodet_kernel_args *a, const stripes *s, double *out, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        float mean[LANES];
        const int64_t at = u * s->area * s->block;
        groups_vector(s, u, groups_of(a), a->in[3].data, mean);
        stripe_slopes(s, (const float *)a->in[0].data + at, (const float *)a->in[1].data + at, mean, out + 2 * u * s->block,
                      out + (2 * u + 1) * s->block);
    }
}

/* sum dy and sum dy * (x - mean) of channel c of a sample. */
static const double *slopes_at(const stripes *s, const double *each, int64_t sample, int64_t c)
{
    return each + 2 * (sample * s->per_sample + c / s->block) * s->block + c % s->block;
}

SODET_CLONES
static void apply_slopes(const sodet_kernel_args *a, const stripes *s, const double *of_groups, int64_t begin, int64_t end)
{
    const int64_t groups = groups_of(a), in_group = s->channels / groups;
    for (int64_t u = begin; u < end; u++) {
        float scale[LANES], mean[LANES], r[LANES], plain[LANES], along[LANES];
        stripes_vector(s, u, a->in[2].data, scale);
        groups_vector(s, u, groups, a->in[3].data, mean);
        groups_vector(s, u, groups, a->in[4].data, r);
        for (int64_t k = 0; k < LANES; k++) {
            int64_t c = stripes_channel(s, u, k);
            const double *of = of_groups + 2 * (u / s->per_sample * groups + (c < s->channels ? c / in_group : 0));
            plain[k] = c < s->channels ? (float)of[0] * r[k] : 0;
            along[k] = c < s->channels ? (float)of[1] * r[k] * r[k] * r[k] : 0;
            scale[k] *= r[k];
        }
        const int64_t at = u * s->area * s->block;
        stripe_sloped(s, (float *)a->out[0].data + at, (const float *)a->in[0].data + at, (const float *)a->in[1].data + at, mean, scale,
                      along, plain);
    }
}

static void backward(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const stripes s = stripes_of(&a->in[0]);
    const int64_t groups = groups_of(a), in_group = s.channels / groups;
    double *each = a->scratch, *of_groups = (double *)(void *)((moments *)a->scratch + stripes_room(&s));
    if (phase == 0) {
        find_slopes(a, &s, each, begin, end);
        return;
    }
    if (phase == 2) {
        apply_slopes(a, &s, of_groups, begin, end);
        return;
    }
    const float *scale = a->in[2].data, *r = a->in[4].data;
    for (int64_t u = begin; u < end; u++) {
        double plain = 0, along = 0;
        if (u < s.batch * groups) { /* averages of a group, the second still to be multiplied by r^2 */
            for (int64_t c = u % groups * in_group; c < (u % groups + 1) * in_group; c++) {
                const double *of = slopes_at(&s, each, u / groups, c);
                plain += of[0] * (double)scale[c];
                along += of[s.block] * (double)scale[c];
            }
            of_groups[2 * u] = plain / (double)(in_group * s.area);
            of_groups[2 * u + 1] = along / (double)(in_group * s.area);
            continue;
        }
        const int64_t c = u - s.batch * groups;
        for (int64_t n = 0; n < s.batch; n++) {
            const double *of = slopes_at(&s, each, n, c);
            plain += of[0];
            along += of[s.block] * (double)r[n * groups + c / in_group];
        }
        ((float *)a->out[1].data)[c] = (float)along;
        ((float *)a->out[2].data)[c] = (float)plain;
    }
}

#define ENTRY .struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .phases = 3, .units = units, .scratch = scratch
const sodet_cpu_kernel sodet_cpu_group_norm[] = {{ENTRY, .run = forward}, {ENTRY, .run = backward}};
