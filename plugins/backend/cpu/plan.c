/* prepare(): from a graph to steps and buffers. */
#include <stdio.h>

#include "kernels/kernels.h"
#include "plugins/backend/cpu/cpu.h"

/* ---- the operators' entries ---- */
/* A row's file defines one of the two, or both; what it does not define stays NULL. */
#define OP(name, parts)                                                                                                                    \
    extern const sodet_cpu_kernel sodet_cpu_##name[parts] __attribute__((weak));                                                           \
    extern const cpu_planner sodet_cpu_plan_##name __attribute__((weak));
#include "ops_cpu.inc"
#undef OP

static const struct {
    uint32_t id;
    const sodet_cpu_kernel *kernel;
    const cpu_planner *planner;
} entries[] = {
#define OP(name, parts) {SODET_OP_##name, sodet_cpu_##name, &sodet_cpu_plan_##name},
#include "ops_cpu.inc"
#undef OP
    {0, NULL, NULL}};

const cpu_planner *cpu_planner_of(const sodet_op *op)
{
    if (op->id == SODET_OP_all_reduce || op->id == SODET_OP_all_gather)
        return &cpu_plan_collective;
    for (uint32_t i = 0; op->id && entries[i].id; i++)
        if (entries[i].id == op->id)
            return entries[i].planner;
    return NULL;
}

const sodet_cpu_kernel *cpu_kernel_of(const sodet_op *op, uint32_t part)
{
    const sodet_cpu_kernel *k = NULL;
    if (!op->id) {
        if (op->kernels && op->kernels->cpu)
            k = (const sodet_cpu_kernel *)(const void *)((const char *)op->kernels->cpu + (size_t)part * op->kernels->entry_size);
    } else {
        for (uint32_t i = 0; entries[i].id; i++)
            if (entries[i].id == op->id && entries[i].kernel)
                k = &entries[i].kernel[part];
    }
    return k && k->run ? k : NULL;
}

cpu_node *cpu_forward_of(cpu_plan *p, const sodet_op *op, sodet_value x, sodet_value y)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        const sodet_node *n = p->node[i].node;
        if (n->op == op && n->part == 0 && (!x.id || n->in[0].id == x.id) && (!y.id || n->out[0].id == y.id))
            return &p->node[i];
    }
    return NULL;
}

cpu_node *cpu_only_user(cpu_plan *p, sodet_value v)
{
    uint32_t last;
    if (sodet_graph_uses(p->graph, v, &last) != 1 || last >= p->forms.n_nodes || sodet_graph_value(p->graph, v)->is_output)
        return NULL;
    for (uint32_t k = 0; k < p->node[last].node->n_in; k++)
        if (p->node[last].node->in[k].id == v.id)
            return &p->node[last];
    return NULL;
}

uint32_t cpu_easy_form(const cpu_plan *p, sodet_value in, sodet_value out, const sodet_shape *shape)
{
    return cpu_can_block(shape) && (p->forms.value[in.id].home || p->forms.value[out.id].wanted) ? CPU_FORM_BLOCKED : CPU_FORM_PLAIN;
}

/* ---- forms of own kernels ---- */
static bool one_shape(const sodet_shape *a, const sodet_shape *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t i = 0; i < a->rank && same; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* Whether this node could run on blocked tensors at all: which flag allows it is the kernel's word. */
static bool own_can_block(const sodet_node *n, uint32_t flags)
{
    const sodet_shape *model = NULL;
    bool any = false;
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const sodet_shape *s = i < n->n_in ? &n->in_shape[i] : &n->out_shape[i - n->n_in];
        if (i < n->n_in && !n->in[i].id)
            continue;
        if (!(flags & SODET_CPU_FLAT)) {
            any = any || cpu_can_block(s);
            continue;
        }
        if (i < n->n_in && s->dtype == SODET_F32 && sodet_elements(s) == 1) /* a factor for all */
            continue;
        if (!cpu_can_block(s) || (model && !one_shape(model, s)))
            return false;
        model = s;
        any = true;
    }
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->op->shares && n->op->shares(n, o))
            return false;
    return any && (flags & (SODET_CPU_FLAT | SODET_CPU_BLOCKED));
}

/* The form that a flat kernel computes in: narrow maps stay narrow, channels that are last stay last. */
static uint32_t flat_form(const cpu_plan *p, const cpu_node *n)
{
    const sodet_node *node = n->node;
    bool narrow = node->n_in + node->n_out <= CPU_MOST_FLAT, last = true, near = false;
    if (n->kernel->flags & SODET_CPU_PLACED)
        return CPU_FORM_BLOCKED;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t home = p->forms.value[node->in[i].id].home;
        if (!node->in[i].id || (sodet_elements(&node->in_shape[i]) == 1 && !one_shape(&node->in_shape[i], &node->out_shape[0])))
            continue;
        near = near || home == CPU_FORM_NARROW;
        last = last && home == CPU_FORM_LAST;
    }
    for (uint32_t o = 0; o < node->n_out; o++) {
        narrow = narrow && cpu_may_narrow(p, n, o);
        near = near || p->forms.value[node->out[o].id].wanted == CPU_FORM_NARROW;
    }
    return narrow && near ? CPU_FORM_NARROW : last && cpu_is_narrow(p) ? CPU_FORM_LAST : CPU_FORM_BLOCKED;
}

void cpu_choose_own(cpu_plan *p, cpu_node *n)
{
    const sodet_node *node = n->node;
    snprintf(n->text, sizeof n->text, "own");
    if (!own_can_block(node, n->kernel->flags))
        return;
    const bool flat = n->kernel->flags & SODET_CPU_FLAT;
    bool block = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        block = block || (node->in[i].id && p->forms.value[node->in[i].id].home != CPU_FORM_PLAIN);
    for (uint32_t o = 0; o < node->n_out; o++)
        block = block || p->forms.value[node->out[o].id].wanted;
    for (uint32_t o = 0; o < node->n_out; o++) /* a place in an arena is plain */
        if (cpu_can_block(&node->out_shape[o]) && sodet_graph_value(p->graph, node->out[o])->store != SODET_STORE_WORK)
            block = false;
    if (!block)
        return;
    const uint8_t form = (uint8_t)(flat ? flat_form(p, n) : CPU_FORM_BLOCKED);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i].id && cpu_can_block(&node->in_shape[i]) &&
            (!flat || sodet_elements(&node->in_shape[i]) != 1 || one_shape(&node->in_shape[i], &node->out_shape[0])))
            n->form_in[i] = form;
    for (uint32_t o = 0; o < node->n_out; o++)
        if (cpu_can_block(&node->out_shape[o]))
            n->form_out[o] = form;
    snprintf(n->text, sizeof n->text, "own %s", cpu_form_name(p, form));
}

const char *cpu_form_name(const cpu_plan *p, uint32_t form)
{
    static const char *const names[CPU_FORMS] = {"nchw", "nChw8c", "nhwc", "bf16 nhwc"};
    return form == CPU_FORM_BLOCKED && p->device->block == 16 ? "nChw16c" : names[form];
}

sodet_status cpu_emit_own(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    uint32_t all = node->n_in + node->n_out;
    sodet_tensor *tensor = sd_pool_alloc(&p->pool, (all + 1) * sizeof *tensor);
    sd_place *place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *place);
    if (!tensor || !place)
        return cpu_out_of_memory(err);
    bool factor = false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (!node->in[i].id)
            continue;
        tensor[i] = cpu_tensor(p, &node->in_shape[i], n->form_in[i]);
        place[i] = cpu_read(p, n, i, err);
        if (!place[i])
            return err ? err->code : SODET_E_INTERNAL;
        factor = factor || n->form_in[i] == CPU_FORM_PLAIN;
    }
    for (uint32_t o = 0; o < node->n_out; o++) {
        uint32_t over = UINT32_MAX;
        if (o == 0 && (node->op->flags & SODET_OP_ELEMENTWISE))
            for (uint32_t i = 0; i < node->n_in && over == UINT32_MAX; i++)
                if (node->in[i].id && n->form_in[i] == n->form_out[0] && one_shape(&node->in_shape[i], &node->out_shape[0]) &&
                    cpu_dies(p, n, i))
                    over = i;
        tensor[node->n_in + o] = cpu_tensor(p, &node->out_shape[o], n->form_out[o]);
        place[node->n_in + o] = cpu_write(p, n, o, over, err);
        if (!place[node->n_in + o])
            return err && err->code ? err->code : cpu_out_of_memory(err);
    }
    sodet_status s = cpu_emit_kernel(p, n, n->kernel, tensor, place, node->n_in, node->n_out, node->attr, err);
    if (s == SODET_OK && factor && n->form_out[0] == CPU_FORM_BLOCKED && node->out_shape[0].dim[1] % p->device->block) {
        cpu_step *step = cpu_add_step(p, CPU_PAD, n->index, node->prologue != 0, err);
        if (!step)
            return SODET_E_MEMORY;
        step->to = place[node->n_in];
        step->shape = node->out_shape[0];
    }
    for (uint32_t o = 0; o < node->n_out && s == SODET_OK; o++)
        s = cpu_written(p, n, o, place[node->n_in + o], err);
    return s;
}

/* ---- nodes without a kernel of their own ---- */
sodet_status cpu_emit_view(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    sd_place from = cpu_read(p, n, 0, err);
    if (!from)
        return err && err->code ? err->code : cpu_out_of_memory(err);
    const sodet_value_info *info = sodet_graph_value(p->graph, node->out[0]);
    bool add = node->base && node->base[0].id;
    if (info->store == SODET_STORE_WORK && !add) {
        sd_forms_same(&p->forms, node->out[0], n->form_out[0], from);
        return SODET_OK;
    }
    sd_place to = cpu_write(p, n, 0, UINT32_MAX, err);
    if (!to)
        return err && err->code ? err->code : cpu_out_of_memory(err);
    sodet_status s = cpu_emit_copy(p, n, to, from, (uint64_t)sodet_elements(&node->out_shape[0]) * 4, err);
    return s == SODET_OK ? cpu_written(p, n, 0, to, err) : s;
}

/* Without images, sums are 0 and maps have no elements. Own kernels mind that themselves. */
static bool is_empty(const cpu_node *n)
{
    const sodet_node *node = n->node;
    return n->planner && n->planner->maps && node->in[0].id && sodet_elements(&node->in_shape[0]) == 0;
}

static sodet_status emit_empty(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    for (uint32_t o = 0; o < n->node->n_out; o++) {
        sd_place to = cpu_write(p, n, o, UINT32_MAX, err);
        if (!to)
            return err && err->code ? err->code : cpu_out_of_memory(err);
        if (n->node->op->shares && n->node->op->shares(n->node, o)) /* a state stays as it is */
            continue;
        sodet_status s = cpu_emit_zero(p, n, to, (uint64_t)sodet_elements(&n->node->out_shape[o]) * 4, err);
        if (s == SODET_OK)
            s = cpu_written(p, n, o, to, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

/* ---- passes ---- */
static sodet_status make_nodes(cpu_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cpu_node *n = &p->node[i];
        const sodet_node *node = sodet_graph_node(p->graph, i);
        n->node = node;
        n->index = i;
        n->form_in = sd_pool_alloc(&p->pool, node->n_in + 1);
        n->form_out = sd_pool_alloc(&p->pool, node->n_out + 1);
        if (!n->form_in || !n->form_out)
            return cpu_out_of_memory(err);
        sd_forms_node(&p->forms, node, i);
        if (node->op->flags & SODET_OP_VIEW)
            continue;
        n->planner = cpu_planner_of(node->op);
        n->kernel = cpu_kernel_of(node->op, node->part);
        if (!n->planner && !n->kernel)
            return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                              "%s: the CPU backend has no code for part %u of operator %s; `devices = ref` runs every operator, slowly",
                              node->layer, node->part, node->op->name);
    }
    return SODET_OK;
}

/* Who would like to have its maps in which form, seen from the end: through own kernels that take what comes. A wish for narrow maps goes
 * before others: that halves what is kept. */
static void find_wishes(cpu_plan *p)
{
    for (uint32_t i = p->forms.n_nodes; i-- > 0;) {
        const cpu_node *n = &p->node[i];
        const sodet_node *node = n->node;
        uint64_t maps = 0;
        uint32_t form = CPU_FORM_BLOCKED;
        if (n->planner) {
            maps = n->planner->maps ? n->planner->maps(node) : 0;
            if (cpu_is_narrow(p) && n->planner->narrow && n->planner->narrow(p, n))
                form = CPU_FORM_NARROW;
        } else if (n->kernel && own_can_block(node, n->kernel->flags)) {
            for (uint32_t o = 0; o < node->n_out; o++)
                if (p->forms.value[node->out[o].id].wanted) {
                    maps = UINT64_MAX;
                    if (n->kernel->flags & SODET_CPU_FLAT)
                        form = p->forms.value[node->out[o].id].wanted;
                }
        }
        for (uint32_t k = 0; k < node->n_in && k < 64; k++)
            if ((maps >> k & 1) && node->in[k].id && cpu_can_block(&node->in_shape[k]) && node->in_shape[k].dim[1] > 4 &&
                p->forms.value[node->in[k].id].wanted < form)
                p->forms.value[node->in[k].id].wanted = form;
    }
}

static sodet_status choose(cpu_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cpu_node *n = &p->node[i];
        if (n->skip) {
            snprintf(n->text, sizeof n->text, "fused into %s", n->partner->node->op->name);
        } else if (is_empty(n)) {
            snprintf(n->text, sizeof n->text, "empty");
        } else if (n->planner) {
            sodet_status s = n->planner->choose(p, n, err);
            if (s != SODET_OK)
                return s;
        } else if (n->kernel) {
            cpu_choose_own(p, n);
        }
        const sd_form_node at = cpu_at(n);
        sd_forms_settle(&p->forms, &at);
    }
    return SODET_OK;
}

static sodet_status find_lives(cpu_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        const cpu_node *n = &p->node[i];
        const sd_form_node at = cpu_at(n);
        sd_forms_uses(&p->forms, &at, !n->skip);
        for (uint32_t k = 0; k < 2; k++)
            if (n->extra[k].id)
                sd_forms_use(&p->forms, n->extra[k], n->form_extra[k], i);
    }
    return sd_forms_live(&p->forms, err);
}

static sodet_status emit(cpu_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cpu_node *n = &p->node[i];
        if (n->skip)
            continue;
        sodet_status s;
        if (n->node->op->flags & SODET_OP_VIEW)
            s = cpu_emit_view(p, n, err);
        else if (is_empty(n))
            s = emit_empty(p, n, err);
        else if (n->planner)
            s = n->planner->emit(p, n, err);
        else
            s = cpu_emit_own(p, n, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static const char *describe(const void *handle, uint32_t node)
{
    const cpu_plan *p = handle;
    return node < p->forms.n_nodes && p->node[node].text[0] ? p->node[node].text : NULL;
}

void cpu_release_plan(cpu_plan *p)
{
    if (!p || --p->references > 0)
        return;
    for (uint32_t l = 0; l < 2; l++) {
        for (uint64_t i = 0; i < p->steps[l].n; i++)
            if (p->steps[l].step[i].primitive)
                dnnl_primitive_destroy(p->steps[l].step[i].primitive);
        sd_free(p->steps[l].step);
    }
    for (uint64_t i = 0; i < p->n_memories; i++)
        dnnl_memory_destroy(p->memory[i]);
    for (uint64_t i = 0; i < p->n_pds; i++)
        dnnl_primitive_desc_destroy(p->pd[i]);
    for (uint64_t i = 0; i < p->n_mds; i++)
        dn_md_free(p->md[i]);
    if (p->attr)
        dnnl_primitive_attr_destroy(p->attr);
    sd_free(p->memory);
    sd_free(p->pd);
    sd_free(p->md);
    sd_forms_close(&p->forms);
    sd_free(p->copy);
    sd_free(p->node);
    sd_pool_clear(&p->pool);
    sd_free(p);
}

sodet_status cpu_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err)
{
    sodet_err local = SODET_ERR_INIT;
    if (!err)
        err = &local;
    cpu_device *d = device;
    cpu_use_threads(d->threads);
    *out = (sodet_plan){.struct_size = sizeof *out};
    cpu_plan *p = sd_alloc(1, sizeof *p);
    if (!p)
        return cpu_out_of_memory(err);
    p->references = 1;
    p->device = d;
    p->graph = g;
    sodet_status s = sd_forms_open(&p->forms, &cpu_form_ops, p, g, err);
    p->node = sd_alloc(p->forms.n_nodes + 1, sizeof *p->node);
    if (s == SODET_OK && (!p->node || dnnl_primitive_attr_create(&p->attr) != dnnl_success ||
                          dnnl_primitive_attr_set_scratchpad_mode(p->attr, dnnl_scratchpad_mode_user) != dnnl_success))
        s = cpu_out_of_memory(err);
    if (s == SODET_OK)
        s = make_nodes(p, err);
    if (s == SODET_OK && d->precision == SODET_PRECISION_MIXED)
        s = cpu_measure(p, err);
    if (s == SODET_OK) {
        find_wishes(p);
        s = choose(p, err);
    }
    if (s == SODET_OK)
        s = find_lives(p, err);
    if (s == SODET_OK)
        s = emit(p, err);
    if (s == SODET_OK)
        s = sd_forms_export(&p->forms, out, err);
    out->handle = p;
    out->describe = describe;
    if (s != SODET_OK)
        cpu_release_plan(p);
    return s;
}

void cpu_discard(void *device, sodet_plan *plan)
{
    (void)device;
    cpu_release_plan(plan->handle);
    *plan = (sodet_plan){.struct_size = sizeof *plan};
}
