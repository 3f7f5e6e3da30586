/* Steps, and what the forms of core/device/forms.h are made with. */
#include "plugins/backend/cuda/cuda.h"

sodet_status cuda_out_of_memory(sodet_err *err)
{
    return sd_forms_out_of_memory(&cuda_form_ops, err);
}

bool cuda_can_map(const sodet_shape *s)
{
    return s->dtype == SODET_F32 && s->rank == 4 && sodet_elements(s) > 0;
}

static uint64_t type_size(uint32_t dtype)
{
    return dtype == SODET_F32 || dtype == SODET_I32 ? 4 : 2;
}

sodet_tensor cuda_tensor(const cuda_plan *p, const sodet_shape *s, uint32_t form)
{
    sodet_tensor t = {.shape = *s, .layout = form == CUDA_MAP ? SODET_CHANNELS_LAST : SODET_PLAIN};
    if (form == CUDA_MAP)
        t.shape.dtype = p->device->map_type;
    return t;
}

static uint64_t tensor_bytes(const sodet_tensor *t)
{
    return (uint64_t)sodet_elements(&t->shape) * type_size(t->shape.dtype);
}

uint64_t cuda_form_bytes(const void *plan, const sodet_shape *s, uint32_t form)
{
    const sodet_tensor t = cuda_tensor(plan, s, form);
    return tensor_bytes(&t);
}

/* ---- places ---- */
sd_form_node cuda_at(const cuda_node *n)
{
    return (sd_form_node){n->node, n->index, n->form_in, n->form_out, (void *)(uintptr_t)n};
}

static uint32_t moment(const cuda_node *n, bool prologue)
{
    return prologue ? 0 : n->index;
}

sd_place cuda_temporary(cuda_plan *p, const cuda_node *n, uint64_t bytes, sodet_err *err)
{
    return sd_forms_temporary(&p->forms, n->node, n->index, bytes, err);
}

sd_place cuda_read(cuda_plan *p, cuda_node *n, uint32_t input, sodet_err *err)
{
    const sd_form_node at = cuda_at(n);
    return sd_forms_read(&p->forms, &at, input, err);
}

sd_place cuda_write(cuda_plan *p, cuda_node *n, uint32_t o, uint32_t over, sodet_err *err)
{
    const sd_form_node at = cuda_at(n);
    return sd_forms_write(&p->forms, &at, o, over, err);
}

sodet_status cuda_written(cuda_plan *p, cuda_node *n, uint32_t o, sd_place where, sodet_err *err)
{
    const sd_form_node at = cuda_at(n);
    return sd_forms_written(&p->forms, &at, o, where, err);
}

bool cuda_dies(const cuda_plan *p, const cuda_node *n, uint32_t input)
{
    const sd_form_node at = cuda_at(n);
    return sd_forms_dies(&p->forms, &at, input);
}

/* ---- steps ---- */
cuda_step *cuda_add_step(cuda_plan *p, uint32_t kind, uint32_t node, bool prologue, sodet_err *err)
{
    cuda_steps *list = &p->steps[prologue];
    if (sd_grow(&list->step, &list->capacity, list->n + 1, sizeof *list->step, err) != SODET_OK)
        return NULL;
    cuda_step *s = &list->step[list->n++];
    *s = (cuda_step){.kind = kind, .node = node};
    return s;
}

sodet_status cuda_emit_kernel(cuda_plan *p, const cuda_node *n, const sodet_cuda_kernel *k, const sodet_tensor *tensor,
                              const sd_place *place, uint32_t n_in, uint32_t n_out, const void *attr, uint32_t part, bool prologue,
                              sodet_err *err)
{
    cuda_step *s = cuda_add_step(p, CUDA_KERNEL, n->index, prologue, err);
    if (!s)
        return SODET_E_MEMORY;
    const uint32_t all = n_in + n_out;
    s->kernel = k;
    s->tensor = sd_pool_alloc(&p->pool, (all + 1) * sizeof *s->tensor);
    s->tensor_place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *s->tensor_place);
    if (!s->tensor || !s->tensor_place)
        return cuda_out_of_memory(err);
    for (uint32_t i = 0; i < all; i++) {
        s->tensor[i] = tensor[i];
        s->tensor_place[i] = place[i];
        sd_forms_until(&p->forms, place[i], moment(n, prologue));
    }
    s->call = (sodet_kernel_args){.struct_size = sizeof s->call,
                                  .n_in = n_in,
                                  .n_out = n_out,
                                  .in = s->tensor,
                                  .out = s->tensor + n_in,
                                  .attr = attr,
                                  .part = part,
                                  .n_threads = 1};
    const uint64_t scratch = k->scratch ? k->scratch(&s->call) : 0;
    const uint64_t at = p->steps[prologue].n - 1;
    const sd_place where = scratch ? sd_forms_scratch(&p->forms, n->index, prologue, scratch, err) : 0;
    p->steps[prologue].step[at].scratch = where;
    return scratch && !where ? SODET_E_MEMORY : SODET_OK;
}

static sodet_status emit_pass(cuda_plan *p, const cuda_node *n, uint32_t kind, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    cuda_step *s = cuda_add_step(p, kind, n->index, n->node->prologue != 0, err);
    if (!s)
        return SODET_E_MEMORY;
    s->to = to;
    s->from = from;
    s->bytes = bytes;
    sd_forms_until(&p->forms, to, moment(n, n->node->prologue));
    sd_forms_until(&p->forms, from, moment(n, n->node->prologue));
    return SODET_OK;
}

sodet_status cuda_emit_zero(cuda_plan *p, const cuda_node *n, sd_place to, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CUDA_ZERO, to, 0, bytes, err);
}

sodet_status cuda_emit_copy(cuda_plan *p, const cuda_node *n, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CUDA_COPY, to, from, bytes, err);
}

/* The device waits, before this node, for the collective that made the value. */
static sodet_status join(cuda_plan *p, uint32_t node, uint32_t *pending, sodet_err *err)
{
    const uint32_t event = *pending - 1;
    *pending = 0;
    for (uint64_t i = 0; i < p->steps[0].n; i++) {
        const cuda_step *c = &p->steps[0].step[i];
        if (c->kind == CUDA_JOIN && c->event == event)
            return SODET_OK;
        for (uint32_t k = 0; c->kind == CUDA_COLLECTIVE && c->event == event && k < c->call.n_in + c->call.n_out; k++)
            sd_forms_until(&p->forms, c->tensor_place[k], node); /* it may still be at them */
    }
    cuda_step *s = cuda_add_step(p, CUDA_JOIN, node, false, err);
    if (!s)
        return SODET_E_MEMORY;
    s->event = event;
    return SODET_OK;
}

sodet_status cuda_join_all(cuda_plan *p, sodet_err *err)
{
    const uint32_t nodes = p->forms.n_nodes;
    for (uint32_t v = 1; v <= p->forms.n_values; v++)
        if (p->pending[v]) {
            sodet_status s = join(p, nodes ? nodes - 1 : 0, &p->pending[v], err);
            if (s != SODET_OK)
                return s;
        }
    return SODET_OK;
}

/* ---- what forms are made with ---- */
static sodet_status join_before(void *plan, void *self, sodet_value v, sodet_err *err)
{
    cuda_plan *p = plan;
    return p->pending[v.id] ? join(p, ((const cuda_node *)self)->index, &p->pending[v.id], err) : SODET_OK;
}

static sodet_status convert(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to,
                            uint32_t to_form, bool prologue, sodet_err *err)
{
    const sodet_tensor t[2] = {cuda_tensor(plan, shape, from_form), cuda_tensor(plan, shape, to_form)};
    return cuda_emit_kernel(plan, self, &cuda_convert, t, (const sd_place[]){from, to}, 1, 1, NULL, 0, prologue, err);
}

static sodet_status add(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to, uint32_t to_form,
                        sodet_err *err)
{
    const cuda_node *n = self;
    const bool prologue = n->node->prologue != 0;
    if (from_form != to_form) {
        const sd_place same = cuda_temporary(plan, n, cuda_form_bytes(plan, shape, to_form), err);
        sodet_status s = same ? convert(plan, self, shape, from, from_form, same, to_form, prologue, err) : SODET_E_MEMORY;
        if (s != SODET_OK)
            return s;
        from = same;
    }
    const sodet_tensor what = cuda_tensor(plan, shape, to_form), t[3] = {what, what, what};
    return cuda_emit_kernel(plan, n, &cuda_add, t, (const sd_place[]){from, to, to}, 2, 1, NULL, 0, prologue, err);
}

static sodet_status copy(void *plan, void *self, sd_place to, sd_place from, uint64_t bytes, sodet_err *err)
{
    return cuda_emit_copy(plan, self, to, from, bytes, err);
}

/* The core aligns to 64 bytes; kernels load up to 16 at once, cuDNN likes 256. */
const sd_form_ops cuda_form_ops = {.device = "the CUDA device",
                                   .forms = CUDA_FORMS,
                                   .align = 256,
                                   .bytes = cuda_form_bytes,
                                   .convert = convert,
                                   .add = add,
                                   .copy = copy,
                                   .before = join_before};

sd_place cuda_derived(cuda_plan *p, cuda_node *n, uint32_t i, sodet_err *err)
{
    const sodet_value v = n->node->in[i];
    const sd_place from = cuda_read(p, n, i, err);
    if (!from)
        return 0;
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id) {
            sd_forms_until(&p->forms, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    const bool fixed = p->forms.value[v.id].fixed, map = n->node->in_shape[i].rank == 4;
    sodet_tensor t[2] = {{.shape = n->node->in_shape[i]}, {.shape = n->node->in_shape[i]}};
    t[1].shape.dtype = p->device->map_type;
    t[1].layout = map ? SODET_CHANNELS_LAST : SODET_PLAIN;
    const uint32_t at = fixed ? 0 : n->index;
    const sd_place to = sd_forms_buffer(&p->forms, 0, fixed ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, tensor_bytes(&t[1]), at, n->index, err);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK)
        return 0;
    p->copy[p->n_copies++] = (cuda_copy){v.id, to};
    const sodet_cuda_kernel *kernel = map ? &cuda_convert : &cuda_cast;
    return cuda_emit_kernel(p, n, kernel, t, (const sd_place[]){from, to}, 1, 1, NULL, 0, fixed, err) == SODET_OK ? to : 0;
}
