/* Steps, and what the forms of core/device/forms.h are made with. */
#include <stdio.h>

#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

sodet_status cpu_out_of_memory(sodet_err *err)
{
    return sd_forms_out_of_memory(&cpu_form_ops, err);
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

/* ---- places ---- */
uint64_t cpu_form_bytes(const void *plan, const sodet_shape *s, uint32_t form)
{
    static const uint64_t size[] = {0, 4, 4, 2, 2};
    int64_t n = sodet_elements(s);
    if (form == CPU_FORM_BLOCKED) {
        int64_t block = ((const cpu_plan *)plan)->device->block;
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

sd_form_node cpu_at(const cpu_node *n)
{
    return (sd_form_node){n->node, n->index, n->form_in, n->form_out, (void *)(uintptr_t)n};
}

sd_place cpu_temporary(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err)
{
    return sd_forms_temporary(&p->forms, n->node, n->index, bytes, err);
}

sd_place cpu_value_in(cpu_plan *p, cpu_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err)
{
    const sd_form_node at = cpu_at(n);
    return sd_forms_in(&p->forms, &at, v, shape, form, err);
}

sd_place cpu_read(cpu_plan *p, cpu_node *n, uint32_t input, sodet_err *err)
{
    const sd_form_node at = cpu_at(n);
    return sd_forms_read(&p->forms, &at, input, err);
}

bool cpu_dies(const cpu_plan *p, const cpu_node *n, uint32_t input)
{
    const sd_form_node at = cpu_at(n);
    return sd_forms_dies(&p->forms, &at, input);
}

sd_place cpu_write(cpu_plan *p, cpu_node *n, uint32_t o, uint32_t over, sodet_err *err)
{
    const sd_form_node at = cpu_at(n);
    return sd_forms_write(&p->forms, &at, o, over, err);
}

sd_place cpu_write_value(cpu_plan *p, cpu_node *n, sodet_value v, uint32_t form, sodet_value over, uint32_t over_form, sodet_err *err)
{
    return sd_forms_write_value(&p->forms, n->index, v, form, over, over_form, err);
}

sodet_status cpu_written(cpu_plan *p, cpu_node *n, uint32_t o, sd_place where, sodet_err *err)
{
    const sd_form_node at = cpu_at(n);
    return sd_forms_written(&p->forms, &at, o, where, err);
}

uint32_t cpu_home(const cpu_plan *p, sodet_value v)
{
    return p->forms.value[v.id].home;
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
            a = (cpu_arg){DNNL_ARG_SCRATCHPAD, sd_forms_scratch(&p->forms, n->index, prologue, scratch_bytes, err), scratch_md};
        else
            break;
        if (!a.place) {
            if (i < n_args)
                continue;
            return cpu_out_of_memory(err);
        }
        sd_forms_until(&p->forms, a.place, prologue ? 0 : n->index);
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

sodet_status cpu_emit_reorder(cpu_plan *p, cpu_node *n, sd_place from, dn_cmd from_md, sd_place to, dn_cmd to_md, bool add, bool prologue,
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

static sodet_status emit_pass(cpu_plan *p, cpu_node *n, uint32_t kind, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    cpu_step *s = cpu_add_step(p, kind, n->index, n->node->prologue != 0, err);
    if (!s)
        return SODET_E_MEMORY;
    s->to = to;
    s->from = from;
    s->bytes = bytes;
    uint32_t at = n->node->prologue ? 0 : n->index;
    sd_forms_until(&p->forms, to, at);
    sd_forms_until(&p->forms, from, at);
    return SODET_OK;
}

sodet_status cpu_emit_zero(cpu_plan *p, cpu_node *n, sd_place to, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CPU_FILL_ZERO, to, 0, bytes, err);
}

sodet_status cpu_emit_copy(cpu_plan *p, cpu_node *n, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CPU_COPY, to, from, bytes, err);
}

static uint64_t tensor_bytes(const sodet_tensor *t)
{
    return (uint64_t)(t->layout == SODET_BLOCKED ? vector_storage(t) : sodet_elements(&t->shape)) * (t->shape.dtype == SODET_BF16 ? 2 : 4);
}

static sodet_status emit_kernel(cpu_plan *p, cpu_node *n, const sodet_cpu_kernel *k, const sodet_tensor *tensor, const sd_place *place,
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
        sd_forms_until(&p->forms, place[i], at);
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
        sd_place where = sd_forms_scratch(&p->forms, n->index, prologue, scratch, err);
        if (!where)
            return SODET_E_MEMORY;
        s->scratch = where;
    }
    return SODET_OK;
}

sodet_status cpu_emit_kernel(cpu_plan *p, cpu_node *n, const sodet_cpu_kernel *k, const sodet_tensor *tensor, const sd_place *place,
                             uint32_t n_in, uint32_t n_out, const void *attr, sodet_err *err)
{
    return emit_kernel(p, n, k, tensor, place, n_in, n_out, attr, n->node->prologue != 0, err);
}

sodet_status cpu_give_scratch(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err)
{
    cpu_steps *list = &p->steps[n->node->prologue != 0];
    list->step[list->n - 1].scratch = sd_forms_scratch(&p->forms, n->index, n->node->prologue != 0, bytes, err);
    return list->step[list->n - 1].scratch ? SODET_OK : SODET_E_MEMORY;
}

static sodet_status last_moves(cpu_plan *p, bool prologue, uint32_t what, sodet_status s)
{
    if (s == SODET_OK)
        p->steps[prologue].step[p->steps[prologue].n - 1].moves = what;
    return s;
}

sodet_status cpu_emit_convert(cpu_plan *p, cpu_node *n, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to,
                              uint32_t to_form, bool prologue, sodet_err *err)
{
    sodet_status s;
    if (!from || !to)
        return cpu_out_of_memory(err);
    if (from_form <= CPU_FORM_BLOCKED && to_form <= CPU_FORM_BLOCKED) {
        s = cpu_emit_reorder(p, n, from, cpu_md(p, shape, from_form), to, cpu_md(p, shape, to_form), false, prologue, err);
    } else {
        const sodet_tensor t[2] = {cpu_tensor(p, shape, from_form), cpu_tensor(p, shape, to_form)};
        s = emit_kernel(p, n, &cpu_convert, t, (const sd_place[]){from, to}, 1, 1, NULL, prologue, err);
    }
    return last_moves(p, prologue, CPU_MOVES_A_MAP, s);
}

/* ---- what forms are made with ---- */
static sodet_status convert(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to,
                            uint32_t to_form, bool prologue, sodet_err *err)
{
    return cpu_emit_convert(plan, self, shape, from, from_form, to, to_form, prologue, err);
}

static sodet_status add(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to, uint32_t to_form,
                        sodet_err *err)
{
    if (from_form == to_form)
        return emit_pass(plan, self, CPU_ADD, to, from, cpu_form_bytes(plan, shape, to_form), err);
    const bool prologue = ((const cpu_node *)self)->node->prologue != 0;
    return cpu_emit_reorder(plan, self, from, cpu_md(plan, shape, from_form), to, cpu_md(plan, shape, to_form), true, prologue, err);
}

static sodet_status copy(void *plan, void *self, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    return cpu_emit_copy(plan, self, to, from, bytes, err);
}

const sd_form_ops cpu_form_ops = {.device = "the CPU",
                                  .forms = CPU_FORMS,
                                  .align = 1,
                                  .constants_on_host = true,
                                  .bytes = cpu_form_bytes,
                                  .convert = convert,
                                  .add = add,
                                  .copy = copy};

/* ---- values in layouts of oneDNN's ---- */
sodet_status cpu_deliver(cpu_plan *p, cpu_node *n, uint32_t o, sd_place from, dn_cmd md, dn_cmd as, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sd_form_node at = cpu_at(n);
    const bool add_up = node->base && node->base[o].id;
    const sd_place to = add_up ? sd_forms_base(&p->forms, &at, o, err) : sd_forms_write(&p->forms, &at, o, UINT32_MAX, err);
    if (!as)
        as = cpu_md(p, &node->out_shape[o], CPU_FORM_PLAIN);
    if (!to)
        return err->code;
    if (add_up && dn_md_equal(as, md))
        return emit_pass(p, n, CPU_ADD, to, from, dn_md_size(md), err);
    return cpu_emit_reorder(p, n, from, md, to, as, add_up, node->prologue != 0, err);
}

sd_place cpu_reordered(cpu_plan *p, cpu_node *n, uint32_t i, dn_cmd as, dn_cmd md, sodet_err *err)
{
    sodet_value v = n->node->in[i];
    sd_place from = cpu_read(p, n, i, err);
    dn_cmd plain = as ? as : cpu_md(p, &n->node->in_shape[i], CPU_FORM_PLAIN);
    if (!from || !plain)
        return 0;
    if (dn_md_equal(plain, md))
        return from;
    const bool fixed = p->forms.value[v.id].fixed;
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id && dn_md_equal(p->copy[k].md, md)) {
            sd_forms_until(&p->forms, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    const uint32_t lifetime = fixed ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN;
    const sd_place to = sd_forms_buffer(&p->forms, 0, lifetime, dn_md_size(md), fixed ? 0 : n->index, n->index, err);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK)
        return 0;
    p->copy[p->n_copies++] = (cpu_copy){v.id, 0, md, to};
    sodet_status s = cpu_emit_reorder(p, n, from, plain, to, md, false, fixed, err);
    return last_moves(p, fixed, CPU_MOVES_WEIGHTS, s) == SODET_OK ? to : 0;
}

sd_place cpu_derived(cpu_plan *p, cpu_node *n, uint32_t i, uint32_t kind, const sodet_cpu_kernel *kernel, const void *attr, uint64_t bytes,
                     sodet_err *err)
{
    sodet_value v = n->node->in[i];
    sd_place from = cpu_read(p, n, i, err);
    if (!from)
        return 0;
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id && p->copy[k].kind == kind) {
            sd_forms_until(&p->forms, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    /* Where weights change with every step, a copy is made when it is needed: nobody keeps all of them at once. */
    bool kept = p->forms.value[v.id].fixed && !sodet_is_training(p->graph);
    const uint32_t lifetime = kept ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN;
    const sd_place to = sd_forms_buffer(&p->forms, 0, lifetime, bytes, kept ? 0 : n->index, n->index, err);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK)
        return 0;
    p->copy[p->n_copies++] = (cpu_copy){v.id, kind, NULL, to};
    const sodet_shape flat = {SODET_F32, 1, {(int64_t)(bytes / sizeof(float))}};
    const sodet_tensor t[] = {{NULL, n->node->in_shape[i], SODET_PLAIN, 0}, {NULL, flat, SODET_PLAIN, 0}};
    sodet_status s = emit_kernel(p, n, kernel, t, (const sd_place[]){from, to}, 1, 1, attr, kept, err);
    return last_moves(p, kept, CPU_MOVES_WEIGHTS, s) == SODET_OK ? to : 0;
}
