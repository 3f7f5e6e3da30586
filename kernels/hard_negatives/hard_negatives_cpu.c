/* A unit is an image: keys of its background anchors, and quick selection. */
#include "kernels/kernels.h"
#include "kernels/select.h"
#include "kernels/vector.h"

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[0].shape.dim[0];
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    return (uint64_t)n->in_shape[0].dim[1] * sizeof(uint64_t) * n_threads;
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    const sodet_hard_negatives_attr *attr = a->attr;
    int64_t n = a->in[0].shape.dim[1];
    uint64_t *key = (uint64_t *)a->scratch + n * thread;
    for (int64_t b = begin; b < end; b++) {
        const float *loss = (const float *)a->in[0].data + b * n;
        const int32_t *index = (const int32_t *)a->in[1].data + b * n;
        float *keep = (float *)a->out[0].data + b * n;
        int64_t background = 0, positives = 0;
        for (int64_t i = 0; i < n; i++) {
            keep[i] = index[i] >= 0 ? 1.0f : 0.0f;
            positives += index[i] >= 0;
            if (index[i] == -1)
                key[background++] =
                    loss[i] != loss[i] ? (uint64_t)i : select_key(loss[i], i); /* a key of 0 and the index: before all others */
        }
        double wanted = floor(attr->ratio * (double)positives);
        wanted = wanted < attr->least ? attr->least : wanted;
        wanted = attr->most > 0 && wanted > attr->most ? attr->most : wanted;
        int64_t take = wanted < (double)background ? (int64_t)wanted : background;
        select_lowest(key, background, take);
        for (int64_t i = 0; i < take; i++)
            keep[select_index(key[i])] = 1;
    }
}

const sodet_cpu_kernel sodet_cpu_hard_negatives[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = units, .scratch = scratch, .run = run}};
