/* data/sampler.h: which samples make which batch. A plan of an epoch is a function of (seed, epoch) and the groups alone.
 *
 * Samples whose canvas has the same shape form a group; a batch comes from one group. Within a group the order is shuffled by (seed,
 * epoch), then cut into batches, and the batches of all groups are shuffled together. Without shuffling, groups and samples keep the data
 * set's order. The number of batches does not depend on the epoch. */
#ifndef SD_DATA_SAMPLER_H
#define SD_DATA_SAMPLER_H

#include "core/base/base.h"

typedef struct sd_group {
    uint32_t width, height;
    uint64_t first, n; /* of the sampler's members */
    uint64_t batches;  /* per epoch */
} sd_group;

typedef struct sd_planned {
    uint32_t group, n; /* rows of the batch */
    uint64_t first;    /* of the plan's order */
} sd_planned;

typedef struct sd_plan {
    uint64_t epoch;
    uint64_t *order;  /* samples, batch after batch */
    uint64_t *repeat; /* [order]: 1 where SD_LAST_WRAP took the sample a second time, 0 else */
    sd_planned *batches;
    uint64_t *consumed; /* [batches] samples handed out up to and including the batch */
} sd_plan;

typedef struct sd_sampler {
    uint64_t seed;
    uint32_t batch, shuffle, last;
    sd_group *groups;
    uint32_t n_groups;
    uint64_t *members; /* samples, group after group */
    uint64_t n_members;
    uint64_t steps, samples; /* per epoch */
} sd_sampler;

/* widths, heights: the canvas of each of n samples. At most max_shapes groups; the pair whose union adds the least padding is merged
 * until that holds. last: SD_LAST_*. */
sodet_status sd_sampler_open(sd_sampler *s, const uint32_t *widths, const uint32_t *heights, uint64_t n, uint32_t max_shapes, uint64_t seed,
                             uint32_t batch, uint32_t shuffle, uint32_t last, sodet_err *err);
void sd_sampler_close(sd_sampler *s);
/* Fills a plan, whose arrays are made on the first call and then used again. */
sodet_status sd_sampler_plan(const sd_sampler *s, uint64_t epoch, sd_plan *plan, sodet_err *err);
void sd_plan_free(sd_plan *plan);

#endif
