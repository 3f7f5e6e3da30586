/* Batch norm with given statistics: what is left where it could not be folded into a convolution. */
#include "kernels/batch_norm/batch_norm.h"

#include "kernels/batch_norm/norm_vector.h"
#include "kernels/kernels.h"

static uint64_t scratch(const sodet_node *n, uint32_t threads)
{
    (void)threads;
    return norm_kernel_scratch(&n->in_shape[0]);
}

static double root(const sodet_kernel_args *k, const float *var, int64_t c)
{
    return 1 / sqrt((double)var[c] + (double)((const sodet_batch_norm_attr *)k->attr)->epsilon);
}

/* Phase 0: factors and offsets, one unit. Phase 1: the map. */
static int64_t units_forward(const sodet_kernel_args *k, uint32_t phase)
{
    norm_map m = norm_map_of(&k->in[0]);
    return phase == 0 ? 1 : norm_pieces(&m);
}

static void forward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    norm_map m = norm_map_of(&k->in[0]);
    norm_affine *all = norm_scratch_affine(k->scratch);
    if (phase == 1) {
        norm_apply(&m, k->in[0].data, k->out[0].data, all, 0, begin, end);
        return;
    }
    const float *scale = k->in[1].data, *shift = k->in[2].data, *mean = k->in[3].data, *var = k->in[4].data;
    for (int64_t group = 0; group < m.groups; group++) {
        norm_affine *a = &all[group];
        memset(a, 0, sizeof *a);
        for (int64_t lane = 0, used = norm_lanes_used(&m, group); lane < used; lane++) {
            int64_t c = group * m.lanes + lane;
            a->mean[lane] = mean[c];
            a->factor[lane] = (float)((double)scale[c] * root(k, var, c));
            a->offset[lane] = shift[c];
        }
    }
}

/* Phase 0: factors. Phase 1: sums of pieces. Phase 2: merged. Phase 3: dx. */
static int64_t units_backward(const sodet_kernel_args *k, uint32_t phase)
{
    norm_map m = norm_map_of(&k->in[0]);
    return phase == 0 ? 1 : phase == 2 ? m.groups : norm_pieces(&m);
}

static void backward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    norm_map m = norm_map_of(&k->in[0]);
    const float *x = k->in[0].data, *dy = k->in[1].data, *scale = k->in[2].data, *mean = k->in[3].data, *var = k->in[4].data;
    float *dscale = k->out[1].data, *dshift = k->out[2].data;
    norm_affine *affine = norm_scratch_affine(k->scratch);
    norm_back *back = norm_scratch_back(k->scratch, &m);
    norm_partial *partial = norm_scratch_partial(k->scratch, &m);
    if (phase == 1) {
        norm_sums(&m, x, dy, affine, 0, partial, begin, end);
        return;
    }
    if (phase == 3) {
        norm_backward(&m, x, dy, k->out[0].data, affine, back, 0, begin, end);
        return;
    }
    if (phase == 0)
        end = m.groups;
    for (int64_t group = begin; group < end; group++) {
        if (phase == 0) {
            memset(&affine[group], 0, sizeof affine[group]);
            memset(&back[group], 0, sizeof back[group]);
        }
        for (int64_t lane = 0, used = norm_lanes_used(&m, group); lane < used; lane++) {
            int64_t c = group * m.lanes + lane;
            double r = root(k, var, c), plain, along;
            if (phase == 0) {
                affine[group].mean[lane] = mean[c];
                back[group].a[lane] = (float)((double)scale[c] * r);
                continue;
            }
            norm_merge_sums(&m, partial, group, lane, &plain, &along);
            dscale[c] = (float)(along * r);
            dshift[c] = (float)plain;
        }
    }
}

const sodet_cpu_kernel sodet_cpu_batch_norm[] = {{.struct_size = sizeof(sodet_cpu_kernel),
                                                  .flags = SODET_CPU_BLOCKED,
                                                  .phases = 2,
                                                  .units = units_forward,
                                                  .scratch = scratch,
                                                  .run = forward},
                                                 {.struct_size = sizeof(sodet_cpu_kernel),
                                                  .flags = SODET_CPU_BLOCKED,
                                                  .phases = 4,
                                                  .units = units_backward,
                                                  .scratch = scratch,
                                                  .run = backward}};
