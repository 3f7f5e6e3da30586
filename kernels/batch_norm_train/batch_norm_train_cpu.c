/* Batch norm of this device's batch: each direction reads its maps twice, once for the sums and once for the result. A relu behind the norm
 * is part of both: forward writes what the relu would have written; backward sees from x where the relu was open, so the gradient in front
 * of it is never stored. */
#include <stdio.h>

#include "kernels/activation/activation.h"
#include "kernels/batch_norm/norm_vector.h"
#include "kernels/batch_norm_train/batch_norm_train.h"
#include "kernels/kernels.h"
#include "plugins/backend/cpu/cpu.h"

/* Phase 0: sums of pieces. Phase 1: merged, for each group. Phase 2: the result, by pieces. */
static int64_t units(const sodet_kernel_args *k, uint32_t phase)
{
    norm_map m = norm_map_of(&k->in[0]);
    return phase == 1 ? m.groups : norm_pieces(&m);
}

static uint64_t scratch(const sodet_node *n, uint32_t threads)
{
    (void)threads;
    return norm_kernel_scratch(&n->in_shape[0]);
}

static void merge_forward(const sodet_kernel_args *k, const norm_map *m, int64_t group)
{
    const sodet_batch_norm_attr *attr = k->attr;
    const float *scale = k->in[1].data, *shift = k->in[2].data, *old_mean = k->in[3].data, *old_var = k->in[4].data;
    float *mean_out = k->out[1].data, *r_out = k->out[2].data, *new_mean = k->out[3].data, *new_var = k->out[4].data;
    norm_affine *a = &norm_scratch_affine(k->scratch)[group];
    const double n = (double)(m->batch * m->area), momentum = (double)attr->momentum;
    memset(a, 0, sizeof *a);
    for (int64_t lane = 0, used = norm_lanes_used(m, group); lane < used; lane++) {
        int64_t c = group * m->lanes + lane;
        double mean, square;
        norm_merge_moments(m, norm_scratch_partial(k->scratch, m), group, lane, &mean, &square);
        double var = n > 0 ? square / n : 0, r = n > 0 ? 1 / sqrt(var + (double)attr->epsilon) : 0, factor = (double)scale[c] * r;
        a->mean[lane] = (float)mean;
        a->factor[lane] = (float)factor;
        a->offset[lane] = (float)((double)shift[c] + ((double)a->mean[lane] - mean) * factor); /* what the rounded mean lacks */
        mean_out[c] = (float)mean;
        r_out[c] = (float)r;
        double unbiased = n > 1 ? square / (n - 1) : var;
        new_mean[c] = n > 0 ? (float)((1 - momentum) * (double)old_mean[c] + momentum * mean) : old_mean[c];
        new_var[c] = n > 0 ? (float)((1 - momentum) * (double)old_var[c] + momentum * unbiased) : old_var[c];
    }
}

static void forward_as(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, int relu)
{
    norm_map m = norm_map_of(&k->in[0]);
    if (phase == 0)
        norm_moments(&m, k->in[0].data, norm_scratch_partial(k->scratch, &m), begin, end);
    else if (phase == 1)
        for (int64_t group = begin; group < end; group++)
            merge_forward(k, &m, group);
    else
        norm_apply(&m, k->in[0].data, k->out[0].data, norm_scratch_affine(k->scratch), relu, begin, end);
}

static void forward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    forward_as(k, phase, begin, end, 0);
}

static void forward_relu(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    forward_as(k, phase, begin, end, 1);
}

/* in: x, dy, scale, mean, r and, with a relu, shift */
static void merge_backward(const sodet_kernel_args *k, const norm_map *m, int64_t group)
{
    const float *scale = k->in[2].data, *r = k->in[4].data;
    float *dscale = k->out[1].data, *dshift = k->out[2].data;
    norm_back *w = &norm_scratch_back(k->scratch, m)[group];
    const double n = (double)(m->batch * m->area);
    memset(w, 0, sizeof *w);
    for (int64_t lane = 0, used = norm_lanes_used(m, group); lane < used; lane++) {
        int64_t c = group * m->lanes + lane;
        double plain, along, rc = (double)r[c], factor = (double)scale[c] * rc;
        norm_merge_sums(m, norm_scratch_partial(k->scratch, m), group, lane, &plain, &along);
        dscale[c] = (float)(along * rc);
        dshift[c] = (float)plain;
        w->a[lane] = (float)factor;
        w->b[lane] = n > 0 ? (float)(factor * rc * rc * along / n) : 0;
        w->c[lane] = n > 0 ? (float)(factor * plain / n) : 0;
    }
}

/* The forward pass again, for the relu and the mean; cheap, so each unit does it for the groups that it meets. */
static void backward_affine(const sodet_kernel_args *k, const norm_map *m, int relu)
{
    const float *scale = k->in[2].data, *mean = k->in[3].data, *r = k->in[4].data, *shift = relu ? k->in[5].data : NULL;
    norm_affine *all = norm_scratch_affine(k->scratch);
    for (int64_t group = 0; group < m->groups; group++) {
        norm_affine *a = &all[group];
        memset(a, 0, sizeof *a);
        for (int64_t lane = 0, used = norm_lanes_used(m, group); lane < used; lane++) {
            int64_t c = group * m->lanes + lane;
            a->mean[lane] = mean[c];
            a->factor[lane] = scale[c] * r[c];
            a->offset[lane] = shift ? shift[c] : 0;
        }
    }
}

/* Phase 0 prepares (one unit), then as forward. */
static int64_t units_backward(const sodet_kernel_args *k, uint32_t phase)
{
    return phase == 0 ? 1 : units(k, phase - 1);
}

static void backward_as(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, int relu)
{
    norm_map m = norm_map_of(&k->in[0]);
    const float *x = k->in[0].data, *dy = k->in[1].data;
    norm_affine *affine = norm_scratch_affine(k->scratch);
    if (phase == 0)
        backward_affine(k, &m, relu);
    else if (phase == 1)
        norm_sums(&m, x, dy, affine, relu, norm_scratch_partial(k->scratch, &m), begin, end);
    else if (phase == 2)
        for (int64_t group = begin; group < end; group++)
            merge_backward(k, &m, group);
    else
        norm_backward(&m, x, dy, k->out[0].data, affine, norm_scratch_back(k->scratch, &m), relu, begin, end);
}

static void backward(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    backward_as(k, phase, begin, end, 0);
}

static void backward_relu(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    backward_as(k, phase, begin, end, 1);
}

const sodet_cpu_kernel sodet_cpu_batch_norm_train[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .phases = 3, .units = units, .scratch = scratch, .run = forward},
    {.struct_size = sizeof(sodet_cpu_kernel),
     .flags = SODET_CPU_BLOCKED,
     .phases = 4,
     .units = units_backward,
     .scratch = scratch,
     .run = backward}};
static const sodet_cpu_kernel with_relu[] = {{.struct_size = sizeof(sodet_cpu_kernel),
                                              .flags = SODET_CPU_BLOCKED,
                                              .phases = 3,
                                              .units = units,
                                              .scratch = scratch,
                                              .run = forward_relu},
                                             {.struct_size = sizeof(sodet_cpu_kernel),
                                              .flags = SODET_CPU_BLOCKED,
                                              .phases = 4,
                                              .units = units_backward,
                                              .scratch = scratch,
                                              .run = backward_relu}};

/* ---- fusion with a relu ---- */
static bool is_relu(const cpu_node *n, uint32_t part)
{
    const sodet_node *node = n ? n->node : NULL;
    return node && node->op == &sodet_op_activation && node->part == part &&
           ((const sodet_activation_attr *)node->attr)->kind == SODET_ACT_RELU && !(node->base && node->base[0].id);
}

static uint64_t maps(const sodet_node *n)
{
    return n->part == 0 ? 1 : 3;
}

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    (void)err;
    const sodet_node *node = n->node;
    uint32_t form = cpu_can_block(&node->in_shape[0]) && node->in_shape[0].dim[1] > 4 ? CPU_FORM_BLOCKED : CPU_FORM_PLAIN;
    n->form_in[0] = n->form_out[0] = (uint8_t)form;
    if (node->part == 0) {
        cpu_node *relu = cpu_only_user(p, node->out[0]);
        if (is_relu(relu, 0)) {
            n->partner = relu;
            relu->partner = n;
            relu->skip = true;
            relu->form_in[0] = relu->form_out[0] = (uint8_t)form;
        }
    } else {
        n->form_in[1] = (uint8_t)form;
        cpu_node *before = cpu_forward_of(p, node->op, node->in[0], SODET_NONE);
        uint32_t producer = p->forms.value[node->in[1].id].producer;
        cpu_node *relu = producer < p->forms.n_nodes ? &p->node[producer] : NULL;
        if (before && before->partner && is_relu(relu, 1) && cpu_only_user(p, node->in[1]) == n &&
            relu->node->in[0].id == before->partner->node->out[0].id && before->node->out[1].id == node->in[3].id) {
            n->partner = relu;
            relu->partner = n;
            relu->skip = true;
            n->extra[0] = relu->node->in[1];
            n->form_extra[0] = (uint8_t)form;
            n->extra[1] = before->node->in[2];
            snprintf(relu->text, sizeof relu->text, "fused into %s", node->op->name);
        }
    }
    snprintf(n->text, sizeof n->text, "own%s%s", form ? " blocked" : "", n->partner ? " +relu" : "");
    return SODET_OK;
}

static sodet_status emit_backward_relu(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_shape *map = &node->in_shape[0];
    uint32_t form = n->form_in[0];
    sd_place place[9] = {cpu_read(p, n, 0, err), cpu_value_in(p, n, n->extra[0], map, form, err)};
    for (uint32_t i = 2; i < 5; i++)
        place[i] = cpu_read(p, n, i, err);
    place[5] = cpu_value_in(p, n, n->extra[1], &node->in_shape[2], CPU_FORM_PLAIN, err);
    bool base = node->base && node->base[0].id;
    place[6] = base ? cpu_write(p, n, 0, UINT32_MAX, err) : cpu_write_value(p, n, node->out[0], form, n->extra[0], form, err);
    place[7] = cpu_write(p, n, 1, UINT32_MAX, err);
    place[8] = cpu_write(p, n, 2, UINT32_MAX, err);
    for (uint32_t i = 0; i < 9; i++)
        if (!place[i])
            return err->code ? err->code : cpu_out_of_memory(err);
    const sodet_shape *vector = &node->in_shape[2];
    const sodet_tensor maps_of = cpu_tensor(p, map, form), v = cpu_tensor(p, vector, CPU_FORM_PLAIN);
    const sodet_tensor t[9] = {maps_of, maps_of, v, v, v, v, maps_of, v, v};
    sodet_status s = cpu_emit_kernel(p, n, &with_relu[1], t, place, 6, 3, node->attr, err);
    for (uint32_t o = 0; o < 3 && s == SODET_OK; o++)
        s = cpu_written(p, n, o, place[6 + o], err);
    return s;
}

static sodet_status emit_forward_relu(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_shape *map = &node->in_shape[0];
    uint32_t form = n->form_in[0];
    sd_place place[10];
    for (uint32_t i = 0; i < 5; i++)
        place[i] = cpu_read(p, n, i, err);
    place[5] = cpu_write_value(p, n, n->partner->node->out[0], form, node->in[0], form, err);
    for (uint32_t o = 1; o < 5; o++)
        place[5 + o] = cpu_write(p, n, o, UINT32_MAX, err);
    for (uint32_t i = 0; i < 10; i++)
        if (!place[i])
            return err->code ? err->code : cpu_out_of_memory(err);
    const sodet_tensor m = cpu_tensor(p, map, form), v = cpu_tensor(p, &node->in_shape[1], CPU_FORM_PLAIN);
    const sodet_tensor t[10] = {m, v, v, v, v, m, v, v, v, v};
    sodet_status s = cpu_emit_kernel(p, n, &with_relu[0], t, place, 5, 5, node->attr, err);
    if (s == SODET_OK)
        s = cpu_written(p, n->partner, 0, place[5], err);
    for (uint32_t o = 1; o < 5 && s == SODET_OK; o++)
        s = cpu_written(p, n, o, place[5 + o], err);
    return s;
}

static sodet_status emit(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    if (!n->partner)
        return cpu_emit_own(p, n, err);
    return n->node->part == 0 ? emit_forward_relu(p, n, err) : emit_backward_relu(p, n, err);
}

const cpu_planner sodet_cpu_plan_batch_norm_train = {.maps = maps, .choose = choose, .emit = emit};
