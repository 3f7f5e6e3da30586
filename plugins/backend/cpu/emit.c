/* Places, buffers, reorders and steps: what a plan is made of. */
#include <stdio.h>

#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

sodet_status cpu_out_of_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "no memory to plan a program for the CPU");
}

static sodet_status dnnl_failed(const cpu_node *n, const char *what, dnnl_status_t s, sodet_err *err)
{
    return SODET_FAIL(err, s == dnnl_out_of_memory ? SODET_E_MEMORY : SODET_E_INTERNAL, "%s (%s): oneDNN could not make %s, status %d",
                      n->node->layer, n->node->op->name, what, (int)s);
}

/* ---- memory descriptors ---- */
dn_cmd cpu_own_md(cpu_plan *p, dn_md md)
{
    if (!md || sd_grow(&p->md, &p->md_capacity, p->n_mds + 1, sizeof *p->md, NULL) != SODET_OK) {
        dn_md_free(md);
        return NULL;
    }
    return p->md[p->n_mds++] = md;
}

void cpu_own_pd(cpu_plan *p, dnnl_primitive_desc_t pd)
{
    if (pd && sd_grow(&p->pd, &p->pd_capacity, p->n_pds + 1, sizeof *p->pd, NULL) == SODET_OK)
        p->pd[p->n_pds++] = pd;
}

bool cpu_can_block(const sodet_shape *s)
{
    return s->dtype == SODET_F32 && s->rank == 4 && sodet_elements(s) > 0;
}

bool cpu_is_narrow(const cpu_plan *p)
{
    return p->device->precision != SODET_PRECISION_FP32;
}

bool cpu_may_narrow(const cpu_plan *p, const cpu_node *n, uint32_t o)
{
    return cpu_is_narrow(p) && cpu_can_block(&n->node->out_shape[o]) && !(n->node->base && n->node->base[o].id) &&
           sodet_graph_value(p->graph, n->node->out[o])->store == SODET_STORE_WORK;
}

static int md_dims(const sodet_shape *s, int64_t dim[DNNL_MAX_NDIMS])
{
    for (uint32_t i = 0; i < s->rank; i++)
        dim[i] = s->dim[i];
    if (s->rank == 0)
        dim[0] = 1;
    return s->rank ? (int)s->rank : 1;
}

dn_cmd cpu_md(cpu_plan *p, const sodet_shape *shape, uint32_t form)
{
    static const dnnl_format_tag_t plain[] = {dnnl_a, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    int64_t dim[DNNL_MAX_NDIMS] = {0};
    int n = md_dims(shape, dim);
    const dnnl_format_tag_t tag[CPU_FORMS] = {plain[shape->rank], p->device->block == 16 ? dnnl_nChw16c : dnnl_nChw8c, dnnl_nhwc,
                                              dnnl_nhwc};
    return cpu_own_md(p, dn_md_tag(n, dim, form == CPU_FORM_NARROW ? dnnl_bf16 : dnnl_f32, tag[form]));
}

dn_cmd cpu_md_any(cpu_plan *p, const sodet_shape *shape, dnnl_data_type_t type)
{
    int64_t dim[DNNL_MAX_NDIMS] = {0};
    int n = md_dims(shape, dim);
    return cpu_own_md(p, dn_md_tag(n, dim, type, dnnl_format_tag_any));
}

bool cpu_is_reference(const_dnnl_primitive_desc_t pd)
{
    return strncmp(dn_impl(pd), "ref", 3) == 0;
}

/* ---- places and buffers ---- */
static cpu_place add_place(cpu_plan *p, uint32_t in, uint32_t index, uint64_t offset, void *address)
{
    if (sd_grow(&p->place, &p->place_capacity, p->n_places + 1, sizeof *p->place, NULL) != SODET_OK)
        return 0;
    p->place[p->n_places] = (cpu_place_info){in, index, offset, address};
    return (cpu_place)p->n_places++;
}

static cpu_place add_buffer(cpu_plan *p, uint32_t value, uint32_t lifetime, uint64_t bytes, uint32_t first, uint32_t last)
{
    if (sd_grow(&p->buffer, &p->buffer_capacity, p->n_buffers + 1, sizeof *p->buffer, NULL) != SODET_OK)
        return 0;
    p->buffer[p->n_buffers] =
        (cpu_buffer){.value = value, .lifetime = lifetime, .first = first, .last = last, .busy = last, .bytes = bytes ? bytes : 64};
    return add_place(p, CPU_IN_BUFFER, (uint32_t)p->n_buffers++, 0, NULL);
}

static cpu_buffer *buffer_of(const cpu_plan *p, cpu_place place)
{
    return place && p->place[place].in == CPU_IN_BUFFER ? &p->buffer[p->place[place].index] : NULL;
}

static void use_until(cpu_plan *p, cpu_place place, uint32_t node)
{
    cpu_buffer *b = buffer_of(p, place);
    if (b && b->last < node)
        b->last = node;
}

/* The value will be read until `last` (UINT32_MAX: it is an output). */
static void occupy(cpu_plan *p, cpu_place place, uint32_t last)
{
    cpu_buffer *b = buffer_of(p, place);
    if (!b)
        return;
    if (b->busy < last)
        b->busy = last;
    if (last == UINT32_MAX)
        b->lifetime = SODET_LIFE_PROGRAM;
}

uint64_t cpu_form_bytes(const cpu_plan *p, const sodet_shape *s, uint32_t form)
{
    static const uint64_t size[] = {0, 4, 4, 2, 2};
    int64_t n = sodet_elements(s);
    if (form == CPU_FORM_BLOCKED) {
        int64_t block = p->device->block;
        n = s->dim[0] * ((s->dim[1] + block - 1) / block * block) * s->dim[2] * s->dim[3];
    }
    return (uint64_t)n * (form == CPU_FORM_NARROW ? 2 : size[s->dtype]);
}

sodet_tensor cpu_tensor(const cpu_plan *p, const sodet_shape *shape, uint32_t form)
{
    static const uint32_t layout[CPU_FORMS] = {SODET_PLAIN, SODET_BLOCKED, SODET_CHANNELS_LAST, SODET_CHANNELS_LAST};
    sodet_tensor t = {NULL, *shape, layout[form], form == CPU_FORM_BLOCKED ? p->device->block : 0};
    if (form == CPU_FORM_NARROW)
        t.shape.dtype = SODET_BF16;
    return t;
}

cpu_place cpu_place_of_arena(cpu_plan *p, const sodet_value_info *info)
{
    uint64_t offset = info->offset * sizeof(float);
    switch (info->store) {
    case SODET_STORE_PARAM:
        return add_place(p, CPU_IN_PARAM, 0, offset, NULL);
    case SODET_STORE_FROZEN:
        return add_place(p, CPU_IN_FROZEN, 0, offset, NULL);
    case SODET_STORE_GRAD:
        return add_place(p, CPU_IN_GRAD, 0, offset, NULL);
    case SODET_STORE_STATE:
        return add_place(p, CPU_IN_STATE, info->slot, offset, NULL);
    case SODET_STORE_CONST:
        return add_place(p, CPU_IN_HOST, 0, 0, (void *)(uintptr_t)info->data); /* nothing writes there */
    default:
        return 0;
    }
}

cpu_place cpu_temporary(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err)
{
    uint32_t at = n->node->prologue ? 0 : n->index;
    cpu_place place = add_buffer(p, 0, SODET_LIFE_RUN, bytes, at, at);
    if (!place)
        cpu_out_of_memory(err);
    return place;
}

cpu_place cpu_kept(cpu_plan *p, uint64_t bytes, uint32_t first_node, uint32_t last_node, sodet_err *err)
{
    cpu_place place = add_buffer(p, 0, SODET_LIFE_RUN, bytes, first_node, last_node);
    if (!place)
        cpu_out_of_memory(err);
    return place;
}

static cpu_place work_place(cpu_plan *p, uint32_t value, const sodet_shape *shape, uint32_t form, uint32_t node, bool fixed, sodet_err *err)
{
    uint32_t last = p->value[value].last[form];
    bool keeps = fixed || last == UINT32_MAX;
    uint32_t end = last == UINT32_MAX ? p->n_nodes - 1 : last > node ? last : node;
    cpu_place place = add_buffer(p, value, keeps ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, cpu_form_bytes(p, shape, form), node, end);
    if (!place) {
        cpu_out_of_memory(err);
        return 0;
    }
    occupy(p, place, fixed ? UINT32_MAX : last);
    return place;
}

void cpu_same_place(cpu_plan *p, sodet_value v, uint32_t form, cpu_place place)
{
    cpu_value *value = &p->value[v.id];
    value->place[form] = place;
    occupy(p, place, value->last[form]);
    if (value->last[form] != UINT32_MAX)
        use_until(p, place, value->last[form]);
    else
        use_until(p, place, p->n_nodes - 1);
}

uint32_t cpu_home(const cpu_plan *p, sodet_value v)
{
    return p->value[v.id].home;
}

/* ---- steps ---- */
cpu_step *cpu_add_step(cpu_plan *p, uint32_t kind, uint32_t node, bool prologue, sodet_err *err)
{
    cpu_steps *list = &p->steps[prologue];
    if (sd_grow(&list->step, &list->capacity, list->n + 1, sizeof *list->step, err) != SODET_OK)
        return NULL;
    cpu_step *s = &list->step[list->n++];
    *s = (cpu_step){.kind = kind, .node = node};
    return s;
}

static cpu_place scratch_for(cpu_plan *p, uint32_t node, bool prologue, uint64_t bytes)
{
    if (!bytes)
        return 0;
    if (!prologue)
        return add_buffer(p, 0, SODET_LIFE_RUN, bytes, node, node);
    if (!p->prologue_scratch) /* steps of the prologue follow each other before node 0: one scratch does for all */
        p->prologue_scratch = add_buffer(p, 0, SODET_LIFE_RUN, bytes, 0, 0);
    cpu_buffer *b = buffer_of(p, p->prologue_scratch);
    if (b && b->bytes < bytes)
        b->bytes = bytes;
    return p->prologue_scratch;
}

static dnnl_memory_t make_memory(cpu_plan *p, dn_cmd md)
{
    dnnl_memory_t m = NULL;
    if (!md || dnnl_memory_create(&m, md, p->device->engine, DNNL_MEMORY_NONE) != dnnl_success ||
        sd_grow(&p->memory, &p->memory_capacity, p->n_memories + 1, sizeof(void *), NULL) != SODET_OK) {
        if (m)
            dnnl_memory_destroy(m);
        return NULL;
    }
    return p->memory[p->n_memories++] = m;
}

static sodet_status emit_primitive(cpu_plan *p, cpu_node *n, const_dnnl_primitive_desc_t pd, const cpu_arg *arg, uint32_t n_args,
                                   bool prologue, sodet_err *err)
{
    cpu_step *s = cpu_add_step(p, CPU_PRIMITIVE, n->index, prologue, err);
    if (!s)
        return SODET_E_MEMORY;
    dnnl_status_t status = dnnl_primitive_create(&s->primitive, pd);
    if (status != dnnl_success) {
        s->primitive = NULL;
        return dnnl_failed(n, "a primitive", status, err);
    }
    dn_cmd scratch_md = dn_query_md(pd, dnnl_query_scratchpad_md);
    uint64_t scratch_bytes = dn_md_size(scratch_md);
    s->arg = sd_pool_alloc(&p->pool, (n_args + 1) * sizeof *s->arg);
    s->arg_place = sd_pool_alloc(&p->pool, (n_args + 1) * sizeof *s->arg_place);
    if (!s->arg || !s->arg_place)
        return cpu_out_of_memory(err);
    for (uint32_t i = 0; i <= n_args; i++) {
        cpu_arg a;
        if (i < n_args)
            a = arg[i];
        else if (scratch_bytes)
            a = (cpu_arg){DNNL_ARG_SCRATCHPAD, scratch_for(p, n->index, prologue, scratch_bytes), scratch_md};
        else
            break;
        if (!a.place) {
            if (i < n_args)
                continue;
            return cpu_out_of_memory(err);
        }
        use_until(p, a.place, prologue ? 0 : n->index);
        s->arg[s->n_args].arg = a.arg;
        s->arg[s->n_args].memory = make_memory(p, a.md);
        if (!s->arg[s->n_args].memory)
            return cpu_out_of_memory(err);
        s->arg_place[s->n_args++] = a.place;
    }
    return SODET_OK;
}

sodet_status cpu_emit(cpu_plan *p, cpu_node *n, const_dnnl_primitive_desc_t pd, const cpu_arg *arg, uint32_t n_args, sodet_err *err)
{
    return emit_primitive(p, n, pd, arg, n_args, n->node->prologue != 0, err);
}

sodet_status cpu_emit_reorder(cpu_plan *p, cpu_node *n, cpu_place from, dn_cmd from_md, cpu_place to, dn_cmd to_md, bool add, bool prologue,
                              sodet_err *err)
{
    if (!from || !to || !from_md || !to_md)
        return cpu_out_of_memory(err);
    dnnl_primitive_attr_t attr = p->attr, own = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s = dnnl_success;
    if (add) {
        s = dnnl_primitive_attr_clone(&own, p->attr);
        if (s == dnnl_success)
            s = dnnl_post_ops_create(&ops);
        if (s == dnnl_success)
            s = dn_post_sum(ops);
        if (s == dnnl_success)
            s = dnnl_primitive_attr_set_post_ops(own, ops);
        attr = own;
    }
    if (s == dnnl_success)
        s = dn_reorder(&pd, p->device->engine, from_md, to_md, attr);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (own)
        dnnl_primitive_attr_destroy(own);
    if (s != dnnl_success)
        return dnnl_failed(n, "a reorder", s, err);
    cpu_own_pd(p, pd);
    const cpu_arg arg[] = {{DNNL_ARG_FROM, from, from_md}, {DNNL_ARG_TO, to, to_md}};
    return emit_primitive(p, n, pd, arg, 2, prologue, err);
}

static sodet_status emit_pass(cpu_plan *p, cpu_node *n, uint32_t kind, cpu_place to, cpu_place from, uint64_t bytes, sodet_err *err)
{
    cpu_step *s = cpu_add_step(p, kind, n->index, n->node->prologue != 0, err);
    if (!s)
        return SODET_E_MEMORY;
    s->to = to;
    s->from = from;
    s->bytes = bytes;
    uint32_t at = n->node->prologue ? 0 : n->index;
    use_until(p, to, at);
    use_until(p, from, at);
    return SODET_OK;
}

sodet_status cpu_emit_zero(cpu_plan *p, cpu_node *n, cpu_place to, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CPU_FILL_ZERO, to, 0, bytes, err);
}

sodet_status cpu_emit_copy(cpu_plan *p, cpu_node *n, cpu_place to, cpu_place from, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CPU_COPY, to, from, bytes, err);
}

static uint64_t tensor_bytes(const sodet_tensor *t)
{
    return (uint64_t)(t->layout == SODET_BLOCKED ? vector_storage(t) : sodet_elements(&t->shape)) * (t->shape.dtype == SODET_BF16 ? 2 : 4);
}

static sodet_status emit_kernel(cpu_plan *p, cpu_node *n, const sodet_cpu_kernel *k, const sodet_tensor *tensor, const cpu_place *place,
                                uint32_t n_in, uint32_t n_out, const void *attr, bool prologue, sodet_err *err)
{
    cpu_step *s = cpu_add_step(p, CPU_KERNEL, n->index, prologue, err);
    if (!s)
        return SODET_E_MEMORY;
    uint32_t all = n_in + n_out, phases = k->phases ? k->phases : 1;
    s->kernel = k;
    s->tensor = sd_pool_alloc(&p->pool, (all + 1) * sizeof *s->tensor);
    s->tensor_place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *s->tensor_place);
    s->units = sd_pool_alloc(&p->pool, phases * sizeof *s->units);
    if (!s->tensor || !s->tensor_place || !s->units)
        return cpu_out_of_memory(err);
    uint64_t bytes = 0;
    uint32_t at = prologue ? 0 : n->index;
    for (uint32_t i = 0; i < all; i++) {
        s->tensor[i] = tensor[i];
        s->tensor_place[i] = place[i];
        use_until(p, place[i], at);
        bytes += tensor[i].shape.dtype ? tensor_bytes(&tensor[i]) : 0;
        if ((k->flags & SODET_CPU_FLAT) && tensor[i].shape.dtype == SODET_BF16)
            s->kind = CPU_FLAT_NARROW;
    }
    uint32_t threads = bytes < 65536 ? 1 : p->device->threads; /* a team costs more than small work */
    s->call = (sodet_kernel_args){.struct_size = sizeof s->call,
                                  .n_in = n_in,
                                  .n_out = n_out,
                                  .in = s->tensor,
                                  .out = s->tensor + n_in,
                                  .attr = attr,
                                  .part = n->node->part,
                                  .n_threads = threads};
    if (s->kind == CPU_FLAT_NARROW)
        return SODET_OK;
    int64_t most = 0;
    for (uint32_t i = 0; i < phases; i++) {
        s->units[i] = k->units ? k->units(&s->call, i) : 1;
        most = s->units[i] > most ? s->units[i] : most;
    }
    if (most < threads)
        s->call.n_threads = most > 1 ? (uint32_t)most : 1;
    uint64_t scratch = k->scratch ? k->scratch(n->node, s->call.n_threads) : 0;
    if (scratch) {
        cpu_place where = scratch_for(p, n->index, prologue, scratch);
        if (!where)
            return cpu_out_of_memory(err);
        s->scratch = where;
    }
    return SODET_OK;
}

sodet_status cpu_emit_kernel(cpu_plan *p, cpu_node *n, const sodet_cpu_kernel *k, const sodet_tensor *tensor, const cpu_place *place,
                             uint32_t n_in, uint32_t n_out, const void *attr, sodet_err *err)
{
    return emit_kernel(p, n, k, tensor, place, n_in, n_out, attr, n->node->prologue != 0, err);
}

sodet_status cpu_give_scratch(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err)
{
    cpu_steps *list = &p->steps[n->node->prologue != 0];
    list->step[list->n - 1].scratch = scratch_for(p, n->index, n->node->prologue != 0, bytes);
    return list->step[list->n - 1].scratch ? SODET_OK : cpu_out_of_memory(err);
}

static sodet_status last_moves(cpu_plan *p, bool prologue, uint32_t what, sodet_status s)
{
    if (s == SODET_OK)
        p->steps[prologue].step[p->steps[prologue].n - 1].moves = what;
    return s;
}

sodet_status cpu_emit_convert(cpu_plan *p, cpu_node *n, const sodet_shape *shape, cpu_place from, uint32_t from_form, cpu_place to,
                              uint32_t to_form, bool prologue, sodet_err *err)
{
    sodet_status s;
    if (!from || !to)
        return cpu_out_of_memory(err);
    if (from_form <= CPU_FORM_BLOCKED && to_form <= CPU_FORM_BLOCKED) {
        s = cpu_emit_reorder(p, n, from, cpu_md(p, shape, from_form), to, cpu_md(p, shape, to_form), false, prologue, err);
    } else {
        const sodet_tensor t[2] = {cpu_tensor(p, shape, from_form), cpu_tensor(p, shape, to_form)};
        s = emit_kernel(p, n, &cpu_convert, t, (const cpu_place[]){from, to}, 1, 1, NULL, prologue, err);
    }
    return last_moves(p, prologue, CPU_MOVES_A_MAP, s);
}

/* ---- values ---- */

/* The value in `form`, reordered from its home if it is not there yet. */
cpu_place cpu_value_in(cpu_plan *p, cpu_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err)
{
    cpu_value *value = &p->value[v.id];
    if (value->place[form])
        return value->place[form];
    bool prologue = n->node->prologue || value->fixed;
    cpu_place from = value->place[value->home];
    cpu_place to = work_place(p, v.id, shape, form, prologue ? 0 : n->index, value->fixed, err);
    if (!to || cpu_emit_convert(p, n, shape, from, value->home, to, form, prologue, err) != SODET_OK)
        return 0;
    return p->value[v.id].place[form] = to;
}

cpu_place cpu_read(cpu_plan *p, cpu_node *n, uint32_t input, sodet_err *err)
{
    sodet_value v = n->node->in[input];
    if (!v.id)
        return 0;
    cpu_place place = cpu_value_in(p, n, v, &n->node->in_shape[input], n->form_in[input], err);
    if (!place && err && err->code == SODET_OK)
        SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): input %u is used before it is made", n->node->layer, n->node->op->name, input);
    use_until(p, place, n->node->prologue ? 0 : n->index);
    return place;
}

bool cpu_dies(const cpu_plan *p, const cpu_node *n, uint32_t input)
{
    const cpu_value *value = &p->value[n->node->in[input].id];
    const cpu_buffer *b = buffer_of(p, value->place[n->form_in[input]]);
    return b && b->lifetime == SODET_LIFE_RUN && b->busy == n->index && !n->node->prologue;
}

/* Whether no other input lies in the same buffer in another shape or form. */
static bool alone(const cpu_plan *p, const cpu_node *n, uint32_t input)
{
    const cpu_value *value = &p->value[n->node->in[input].id];
    const cpu_buffer *b = buffer_of(p, value->place[n->form_in[input]]);
    for (uint32_t i = 0; i < n->node->n_in; i++)
        if (n->node->in[i].id && n->node->in[i].id != n->node->in[input].id)
            for (uint32_t f = 0; f < CPU_FORMS; f++)
                if (buffer_of(p, p->value[n->node->in[i].id].place[f]) == b)
                    return false;
    return true;
}

cpu_place cpu_write(cpu_plan *p, cpu_node *n, uint32_t o, uint32_t over, sodet_err *err)
{
    const sodet_node *node = n->node;
    sodet_value v = node->out[o];
    const sodet_value_info *info = sodet_graph_value(p->graph, v);
    cpu_value *value = &p->value[v.id];
    uint32_t form = n->form_out[o], shared = node->op->shares ? node->op->shares(node, o) : 0;
    const sodet_shape *shape = &node->out_shape[o];
    if (shared) {
        cpu_place place = p->value[node->in[shared - 1].id].place[CPU_FORM_PLAIN];
        cpu_same_place(p, v, CPU_FORM_PLAIN, place);
        return place;
    }
    if ((node->base && node->base[o].id) || form != value->home) /* cpu_written takes it from there */
        return cpu_temporary(p, n, cpu_form_bytes(p, shape, form), err);
    if (info->store != SODET_STORE_WORK) {
        value->place[CPU_FORM_PLAIN] = cpu_place_of_arena(p, info);
        if (!value->place[CPU_FORM_PLAIN])
            SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has no place", node->layer, node->op->name, o);
        return value->place[CPU_FORM_PLAIN];
    }
    if (over != UINT32_MAX && value->last[form] != UINT32_MAX && cpu_dies(p, n, over) && alone(p, n, over)) {
        cpu_place place = p->value[node->in[over].id].place[n->form_in[over]];
        if (p->buffer[p->place[place].index].bytes >= cpu_form_bytes(p, shape, form)) {
            cpu_same_place(p, v, form, place);
            return place;
        }
    }
    value->place[form] = work_place(p, v.id, shape, form, node->prologue ? 0 : n->index, node->prologue != 0, err);
    return value->place[form];
}

cpu_place cpu_write_value(cpu_plan *p, cpu_node *n, sodet_value v, uint32_t form, sodet_value over, uint32_t over_form, sodet_err *err)
{
    cpu_value *value = &p->value[v.id];
    const sodet_shape *shape = &sodet_graph_value(p->graph, v)->shape;
    cpu_place taken = p->value[over.id].place[over_form];
    const cpu_buffer *b = over.id ? buffer_of(p, taken) : NULL;
    if (b && b->lifetime == SODET_LIFE_RUN && b->busy == n->index && value->last[form] != UINT32_MAX &&
        b->bytes >= cpu_form_bytes(p, shape, form)) {
        cpu_same_place(p, v, form, taken);
        return taken;
    }
    return p->value[v.id].place[form] = work_place(p, v.id, shape, form, n->index, false, err);
}

sodet_status cpu_written(cpu_plan *p, cpu_node *n, uint32_t o, cpu_place where, sodet_err *err)
{
    const sodet_node *node = n->node;
    sodet_value v = node->out[o];
    const sodet_value_info *info = sodet_graph_value(p->graph, v);
    cpu_value *value = &p->value[v.id];
    const sodet_shape *shape = &node->out_shape[o];
    uint32_t home = value->home;
    if (node->op->shares && node->op->shares(node, o))
        return SODET_OK;
    if (node->base && node->base[o].id) {
        cpu_place base = p->value[node->base[o].id].place[home], to = base;
        if (info->store != SODET_STORE_WORK) {
            to = cpu_place_of_arena(p, info);
            if (to && memcmp(&p->place[to], &p->place[base], sizeof(cpu_place_info)) != 0 &&
                emit_pass(p, n, CPU_COPY, to, base, cpu_form_bytes(p, shape, home), err) != SODET_OK)
                return SODET_E_MEMORY;
            value->place[home] = to;
        } else {
            cpu_same_place(p, v, home, base);
        }
        if (!to)
            return SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has nothing to be added to", node->layer, node->op->name, o);
        if (n->form_out[o] == home)
            return emit_pass(p, n, CPU_ADD, to, where, cpu_form_bytes(p, shape, home), err);
        return cpu_emit_reorder(p, n, where, cpu_md(p, shape, n->form_out[o]), to, cpu_md(p, shape, home), true, node->prologue != 0, err);
    }
    if (n->form_out[o] != home) {
        uint32_t form = n->form_out[o];
        n->form_out[o] = (uint8_t)home;
        cpu_place to = cpu_write(p, n, o, UINT32_MAX, err);
        if (!to)
            return err ? err->code : SODET_E_MEMORY;
        return cpu_emit_convert(p, n, shape, where, form, to, home, node->prologue != 0, err);
    }
    if (home != CPU_FORM_PLAIN && info->is_output) /* the host reads the plain form */
        return cpu_value_in(p, n, v, shape, CPU_FORM_PLAIN, err) ? SODET_OK : err ? err->code : SODET_E_MEMORY;
    return SODET_OK;
}

sodet_status cpu_deliver(cpu_plan *p, cpu_node *n, uint32_t o, cpu_place from, dn_cmd md, dn_cmd as, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value_info *info = sodet_graph_value(p->graph, node->out[o]);
    bool add = node->base && node->base[o].id;
    cpu_place to;
    if (!as)
        as = cpu_md(p, &node->out_shape[o], CPU_FORM_PLAIN);
    if (add) {
        cpu_place base = p->value[node->base[o].id].place[CPU_FORM_PLAIN];
        to = info->store == SODET_STORE_WORK ? base : cpu_place_of_arena(p, info);
        if (!to || !base)
            return SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has nothing to be added to", node->layer, node->op->name, o);
        if (to != base && memcmp(&p->place[to], &p->place[base], sizeof(cpu_place_info)) != 0 &&
            emit_pass(p, n, CPU_COPY, to, base, cpu_form_bytes(p, &node->out_shape[o], CPU_FORM_PLAIN), err) != SODET_OK)
            return SODET_E_MEMORY;
        cpu_same_place(p, node->out[o], CPU_FORM_PLAIN, to);
        if (dn_md_equal(as, md))
            return emit_pass(p, n, CPU_ADD, to, from, dn_md_size(md), err);
    } else {
        to = cpu_write(p, n, o, UINT32_MAX, err);
        if (!to)
            return err ? err->code : SODET_E_MEMORY;
    }
    return cpu_emit_reorder(p, n, from, md, to, as, add, node->prologue != 0, err);
}

cpu_place cpu_reordered(cpu_plan *p, cpu_node *n, uint32_t i, dn_cmd as, dn_cmd md, sodet_err *err)
{
    sodet_value v = n->node->in[i];
    cpu_place from = cpu_read(p, n, i, err);
    dn_cmd plain = as ? as : cpu_md(p, &n->node->in_shape[i], CPU_FORM_PLAIN);
    if (!from || !plain)
        return 0;
    if (dn_md_equal(plain, md))
        return from;
    cpu_value *value = &p->value[v.id];
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id && dn_md_equal(p->copy[k].md, md)) {
            use_until(p, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    uint32_t lifetime = value->fixed ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN;
    cpu_place to = add_buffer(p, 0, lifetime, dn_md_size(md), value->fixed ? 0 : n->index, n->index);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK) {
        cpu_out_of_memory(err);
        return 0;
    }
    p->copy[p->n_copies++] = (cpu_copy){v.id, 0, md, to};
    sodet_status s = cpu_emit_reorder(p, n, from, plain, to, md, false, value->fixed, err);
    return last_moves(p, value->fixed, CPU_MOVES_WEIGHTS, s) == SODET_OK ? to : 0;
}

cpu_place cpu_derived(cpu_plan *p, cpu_node *n, uint32_t i, uint32_t kind, const sodet_cpu_kernel *kernel, const void *attr, uint64_t bytes,
                      sodet_err *err)
{
    sodet_value v = n->node->in[i];
    cpu_place from = cpu_read(p, n, i, err);
    if (!from)
        return 0;
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id && p->copy[k].kind == kind) {
            use_until(p, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    /* Where weights change with every step, a copy is made when it is needed: nobody keeps all of them at once. */
    bool kept = p->value[v.id].fixed && !sodet_is_training(p->graph);
    cpu_place to = add_buffer(p, 0, kept ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, bytes, kept ? 0 : n->index, n->index);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK) {
        cpu_out_of_memory(err);
        return 0;
    }
    p->copy[p->n_copies++] = (cpu_copy){v.id, kind, NULL, to};
    const sodet_shape flat = {SODET_F32, 1, {(int64_t)(bytes / sizeof(float))}};
    const sodet_tensor t[] = {{NULL, n->node->in_shape[i], SODET_PLAIN, 0}, {NULL, flat, SODET_PLAIN, 0}};
    sodet_status s = emit_kernel(p, n, kernel, t, (const cpu_place[]){from, to}, 1, 1, attr, kept, err);
    return last_moves(p, kept, CPU_MOVES_WEIGHTS, s) == SODET_OK ? to : 0;
}
