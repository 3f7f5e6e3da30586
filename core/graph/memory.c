/* Offsets of a plan's buffers: those that live through the whole program one after another; the others by liveness, the largest first,
 * each at the lowest place that is free for its whole life. */
#include <stdlib.h>

#include "core/graph/graph.h"

#define ALIGNMENT 64u

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int larger_first(const void *a, const void *b)
{
    const sodet_plan_buffer *x = *(sodet_plan_buffer *const *)a, *y = *(sodet_plan_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* placed[0..n) is sorted by offset: the lowest gap that holds `bytes` among those alive together with b. */
static uint64_t lowest_place(sodet_plan_buffer *const *placed, uint64_t n, const sodet_plan_buffer *b)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < n; i++) {
        const sodet_plan_buffer *p = placed[i];
        if (p->last < b->first || p->first > b->last)
            continue;
        if (p->offset >= at + round_up(b->bytes))
            break;
        uint64_t end = p->offset + round_up(p->bytes);
        at = end > at ? end : at;
    }
    return at;
}

sodet_status sd_plan_memory(sodet_plan *plan, uint64_t *work_bytes, uint64_t *own_bytes, sodet_err *err)
{
    *work_bytes = *own_bytes = 0;
    sodet_plan_buffer **order = sd_alloc(plan->n_buffers + 1, sizeof(void *)), **placed = sd_alloc(plan->n_buffers + 1, sizeof(void *));
    uint64_t n = 0, n_placed = 0;
    if (!order || !placed) {
        sd_free(order);
        sd_free(placed);
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to plan %u buffers", plan->n_buffers);
    }
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        sodet_plan_buffer *b = &plan->buffers[i];
        if (b->lifetime == SODET_LIFE_RUN) {
            order[n++] = b;
        } else {
            b->offset = *own_bytes;
            *own_bytes += round_up(b->bytes);
        }
    }
    qsort(order, n, sizeof *order, larger_first);
    for (uint64_t i = 0; i < n; i++) {
        sodet_plan_buffer *b = order[i];
        b->offset = lowest_place(placed, n_placed, b);
        uint64_t end = b->offset + round_up(b->bytes), at = n_placed++;
        *work_bytes = end > *work_bytes ? end : *work_bytes;
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
    }
    sd_free(order);
    sd_free(placed);
    return SODET_OK;
}
