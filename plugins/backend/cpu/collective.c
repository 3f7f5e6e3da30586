/* all_reduce and all_gather among the replicas of this process. */
#include "core/device/host_group.h"
#include "kernels/kernels.h"
#include "plugins/backend/cpu/cpu.h"

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    (void)p;
    (void)n;
    (void)err;
    return SODET_OK;
}

static sodet_status reduce(const cpu_step *s, cpu_device *d, const cpu_plan *p, const sodet_run *r, sodet_err *err)
{
    (void)r;
    sd_host_part *part = s->state;
    uint32_t n = s->n_places / 2;
    for (uint32_t i = 0; i < n; i++) {
        part[i].in = p->forms.place[s->place[i]].address;
        part[i].out = p->forms.place[s->place[n + i]].address;
    }
    if (d->group)
        return sd_host_group_sum(d->group, d->rank, part, n, sizeof(float), err);
    for (uint32_t i = 0; i < n; i++)
        if (part[i].in != part[i].out)
            cpu_copy_bytes(d->threads, part[i].out, part[i].in, part[i].elements * sizeof(float));
    return SODET_OK;
}

static sodet_status gather(const cpu_step *s, cpu_device *d, const cpu_plan *p, const sodet_run *r, sodet_err *err)
{
    (void)r;
    const void *in = p->forms.place[s->place[0]].address;
    void *out = p->forms.place[s->place[1]].address;
    if (d->group)
        return sd_host_group_gather(d->group, d->rank, in, out, s->bytes, err);
    cpu_copy_bytes(d->threads, out, in, s->bytes);
    return SODET_OK;
}

static sodet_status emit(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    uint32_t all = node->n_in + node->n_out;
    sd_place *place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *place);
    sd_host_part *part = sd_pool_alloc(&p->pool, (node->n_in + 1) * sizeof *part);
    if (!place || !part)
        return cpu_out_of_memory(err);
    for (uint32_t i = 0; i < node->n_in; i++) {
        place[i] = cpu_read(p, n, i, err);
        part[i].elements = (uint64_t)sodet_elements(&node->in_shape[i]);
        if (!place[i])
            return err->code ? err->code : cpu_out_of_memory(err);
    }
    for (uint32_t o = 0; o < node->n_out; o++) {
        place[node->n_in + o] = cpu_write(p, n, o, UINT32_MAX, err);
        if (!place[node->n_in + o])
            return err->code ? err->code : cpu_out_of_memory(err);
    }
    cpu_step *s = cpu_add_step(p, CPU_CALL, n->index, false, err);
    if (!s)
        return SODET_E_MEMORY;
    s->place = place;
    s->n_places = all;
    s->state = part;
    s->bytes = (uint64_t)sodet_elements(&node->in_shape[0]) * sizeof(float);
    s->run = node->op->id == SODET_OP_all_reduce ? reduce : gather;
    for (uint32_t o = 0; o < node->n_out; o++) {
        sodet_status status = cpu_written(p, n, o, place[node->n_in + o], err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

const cpu_planner cpu_plan_collective = {.choose = choose, .emit = emit};
