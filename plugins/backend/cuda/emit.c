/* Places, buffers, conversions and steps: what a plan is made of. */
#include <string.h>

#include "plugins/backend/cuda/cuda.h"

sodet_status cuda_out_of_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "no host memory to plan a program for the CUDA device");
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

uint64_t cuda_form_bytes(const cuda_plan *p, const sodet_shape *s, uint32_t form)
{
    const sodet_tensor t = cuda_tensor(p, s, form);
    return tensor_bytes(&t);
}

/* ---- places and buffers ---- */
static cuda_place add_place(cuda_plan *p, uint32_t in, uint32_t index, uint64_t offset)
{
    if (sd_grow(&p->place, &p->place_capacity, p->n_places + 1, sizeof *p->place, NULL) != SODET_OK)
        return 0;
    p->place[p->n_places] = (cuda_place_info){in, index, offset, NULL};
    return (cuda_place)p->n_places++;
}

cuda_place cuda_add_buffer(cuda_plan *p, uint32_t value, uint32_t lifetime, uint64_t bytes, uint32_t first, uint32_t last)
{
    if (sd_grow(&p->buffer, &p->buffer_capacity, p->n_buffers + 1, sizeof *p->buffer, NULL) != SODET_OK)
        return 0;
    p->buffer[p->n_buffers] =
        (cuda_buffer){.value = value, .lifetime = lifetime, .first = first, .last = last, .busy = last, .bytes = bytes ? bytes : 64};
    return add_place(p, CUDA_IN_BUFFER, (uint32_t)p->n_buffers++, 0);
}

static cuda_buffer *buffer_of(const cuda_plan *p, cuda_place place)
{
    return place && p->place[place].in == CUDA_IN_BUFFER ? &p->buffer[p->place[place].index] : NULL;
}

void cuda_use_until(cuda_plan *p, cuda_place place, uint32_t node)
{
    cuda_buffer *b = buffer_of(p, place);
    if (b && b->last < node)
        b->last = node;
}

/* The value will be read until `last` (UINT32_MAX: it is an output). */
static void occupy(cuda_plan *p, cuda_place place, uint32_t last)
{
    cuda_buffer *b = buffer_of(p, place);
    if (!b)
        return;
    if (b->busy < last)
        b->busy = last;
    if (last == UINT32_MAX)
        b->lifetime = SODET_LIFE_PROGRAM;
}

cuda_place cuda_place_of_arena(cuda_plan *p, const sodet_value_info *info)
{
    const uint64_t offset = info->offset * sizeof(float);
    switch (info->store) {
    case SODET_STORE_PARAM:
        return add_place(p, CUDA_IN_PARAM, 0, offset);
    case SODET_STORE_FROZEN:
        return add_place(p, CUDA_IN_FROZEN, 0, offset);
    case SODET_STORE_GRAD:
        return add_place(p, CUDA_IN_GRAD, 0, offset);
    case SODET_STORE_STATE:
        return add_place(p, CUDA_IN_STATE, info->slot, offset);
    default:
        return 0;
    }
}

static uint32_t moment(const cuda_node *n, bool prologue)
{
    return prologue ? 0 : n->index;
}

cuda_place cuda_temporary(cuda_plan *p, const cuda_node *n, uint64_t bytes, sodet_err *err)
{
    const uint32_t at = moment(n, n->node->prologue);
    cuda_place place = cuda_add_buffer(p, 0, SODET_LIFE_RUN, bytes, at, at);
    if (!place)
        cuda_out_of_memory(err);
    return place;
}

static cuda_place work_place(cuda_plan *p, uint32_t value, const sodet_shape *shape, uint32_t form, uint32_t node, bool fixed,
                             sodet_err *err)
{
    const uint32_t last = p->value[value].last[form];
    const bool keeps = fixed || last == UINT32_MAX;
    const uint32_t end = last == UINT32_MAX ? p->n_nodes - 1 : last > node ? last : node;
    cuda_place place = cuda_add_buffer(p, value, keeps ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, cuda_form_bytes(p, shape, form), node, end);
    if (!place) {
        cuda_out_of_memory(err);
        return 0;
    }
    occupy(p, place, fixed ? UINT32_MAX : last);
    return place;
}

void cuda_same_place(cuda_plan *p, sodet_value v, uint32_t form, cuda_place place)
{
    cuda_value *value = &p->value[v.id];
    value->place[form] = place;
    occupy(p, place, value->last[form]);
    cuda_use_until(p, place, value->last[form] != UINT32_MAX ? value->last[form] : p->n_nodes - 1);
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

static cuda_place scratch_for(cuda_plan *p, const cuda_node *n, bool prologue, uint64_t bytes)
{
    if (!prologue)
        return cuda_add_buffer(p, 0, SODET_LIFE_RUN, bytes, n->index, n->index);
    if (!p->prologue_scratch) /* steps of the prologue follow each other before node 0: one scratch does for all */
        p->prologue_scratch = cuda_add_buffer(p, 0, SODET_LIFE_RUN, bytes, 0, 0);
    cuda_buffer *b = buffer_of(p, p->prologue_scratch);
    if (b && b->bytes < bytes)
        b->bytes = bytes;
    return p->prologue_scratch;
}

sodet_status cuda_emit_kernel(cuda_plan *p, const cuda_node *n, const sodet_cuda_kernel *k, const sodet_tensor *tensor,
                              const cuda_place *place, uint32_t n_in, uint32_t n_out, const void *attr, uint32_t part, bool prologue,
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
        cuda_use_until(p, place[i], moment(n, prologue));
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
    const cuda_place where = scratch ? scratch_for(p, n, prologue, scratch) : 0;
    p->steps[prologue].step[at].scratch = where;
    return scratch && !where ? cuda_out_of_memory(err) : SODET_OK;
}

static sodet_status emit_pass(cuda_plan *p, const cuda_node *n, uint32_t kind, cuda_place to, cuda_place from, uint64_t bytes,
                              sodet_err *err)
{
    cuda_step *s = cuda_add_step(p, kind, n->index, n->node->prologue != 0, err);
    if (!s)
        return SODET_E_MEMORY;
    s->to = to;
    s->from = from;
    s->bytes = bytes;
    cuda_use_until(p, to, moment(n, n->node->prologue));
    cuda_use_until(p, from, moment(n, n->node->prologue));
    return SODET_OK;
}

sodet_status cuda_emit_zero(cuda_plan *p, const cuda_node *n, cuda_place to, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CUDA_ZERO, to, 0, bytes, err);
}

sodet_status cuda_emit_copy(cuda_plan *p, const cuda_node *n, cuda_place to, cuda_place from, uint64_t bytes, sodet_err *err)
{
    return emit_pass(p, n, CUDA_COPY, to, from, bytes, err);
}

static sodet_status emit_convert(cuda_plan *p, const cuda_node *n, const sodet_shape *shape, cuda_place from, uint32_t from_form,
                                 cuda_place to, uint32_t to_form, bool prologue, sodet_err *err)
{
    const sodet_tensor t[2] = {cuda_tensor(p, shape, from_form), cuda_tensor(p, shape, to_form)};
    return cuda_emit_kernel(p, n, &cuda_convert, t, (const cuda_place[]){from, to}, 1, 1, NULL, 0, prologue, err);
}

static sodet_status emit_add(cuda_plan *p, const cuda_node *n, const sodet_tensor *what, cuda_place to, cuda_place from, sodet_err *err)
{
    const sodet_tensor t[3] = {*what, *what, *what};
    return cuda_emit_kernel(p, n, &cuda_add, t, (const cuda_place[]){from, to, to}, 2, 1, NULL, 0, n->node->prologue != 0, err);
}

/* The device waits, before this node, for the collective that made the value. */
static sodet_status join(cuda_plan *p, uint32_t node, cuda_value *value, sodet_err *err)
{
    const uint32_t event = value->pending - 1;
    value->pending = 0;
    for (uint64_t i = 0; i < p->steps[0].n; i++) {
        const cuda_step *c = &p->steps[0].step[i];
        if (c->kind == CUDA_JOIN && c->event == event)
            return SODET_OK;
        for (uint32_t k = 0; c->kind == CUDA_COLLECTIVE && c->event == event && k < c->call.n_in + c->call.n_out; k++)
            cuda_use_until(p, c->tensor_place[k], node); /* it may still be at them */
    }
    cuda_step *s = cuda_add_step(p, CUDA_JOIN, node, false, err);
    if (!s)
        return SODET_E_MEMORY;
    s->event = event;
    return SODET_OK;
}

sodet_status cuda_join_all(cuda_plan *p, sodet_err *err)
{
    for (uint32_t v = 1; v <= p->n_values; v++)
        if (p->value[v].pending) {
            sodet_status s = join(p, p->n_nodes ? p->n_nodes - 1 : 0, &p->value[v], err);
            if (s != SODET_OK)
                return s;
        }
    return SODET_OK;
}

/* ---- values ---- */
static cuda_place value_in(cuda_plan *p, const cuda_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err)
{
    cuda_value *value = &p->value[v.id];
    if (value->pending && join(p, n->index, value, err) != SODET_OK)
        return 0;
    if (value->place[form])
        return value->place[form];
    const bool prologue = n->node->prologue || value->fixed;
    const cuda_place from = value->place[value->home];
    if (!from) {
        SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): value %u is used before it is made", n->node->layer, n->node->op->name, v.id);
        return 0;
    }
    const cuda_place to = work_place(p, v.id, shape, form, moment(n, prologue), value->fixed, err);
    if (!to || emit_convert(p, n, shape, from, value->home, to, form, prologue, err) != SODET_OK)
        return 0;
    return p->value[v.id].place[form] = to;
}

cuda_place cuda_read(cuda_plan *p, cuda_node *n, uint32_t input, sodet_err *err)
{
    const sodet_value v = n->node->in[input];
    if (!v.id)
        return 0;
    const cuda_place place = value_in(p, n, v, &n->node->in_shape[input], n->form_in[input], err);
    cuda_use_until(p, place, moment(n, n->node->prologue));
    return place;
}

bool cuda_dies(const cuda_plan *p, const cuda_node *n, uint32_t input)
{
    const cuda_buffer *b = buffer_of(p, p->value[n->node->in[input].id].place[n->form_in[input]]);
    return b && b->lifetime == SODET_LIFE_RUN && b->busy == n->index && !n->node->prologue;
}

/* Whether no other input lies in the same buffer in another shape or form. */
static bool alone(const cuda_plan *p, const cuda_node *n, uint32_t input)
{
    const cuda_buffer *b = buffer_of(p, p->value[n->node->in[input].id].place[n->form_in[input]]);
    for (uint32_t i = 0; i < n->node->n_in; i++)
        if (n->node->in[i].id && n->node->in[i].id != n->node->in[input].id)
            for (uint32_t f = 0; f < CUDA_FORMS; f++)
                if (buffer_of(p, p->value[n->node->in[i].id].place[f]) == b)
                    return false;
    return true;
}

static bool has_base(const sodet_node *n, uint32_t o)
{
    return n->base && n->base[o].id;
}

cuda_place cuda_write(cuda_plan *p, cuda_node *n, uint32_t o, uint32_t over, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value v = node->out[o];
    const sodet_value_info *info = sodet_graph_value(p->graph, v);
    cuda_value *value = &p->value[v.id];
    const uint32_t form = n->form_out[o], shared = node->op->shares ? node->op->shares(node, o) : 0;
    const sodet_shape *shape = &node->out_shape[o];
    if (shared) {
        const cuda_place place = p->value[node->in[shared - 1].id].place[CUDA_PLAIN];
        cuda_same_place(p, v, CUDA_PLAIN, place);
        return place;
    }
    if (has_base(node, o) || form != value->home) /* cuda_written takes it from there */
        return cuda_temporary(p, n, cuda_form_bytes(p, shape, form), err);
    if (info->store != SODET_STORE_WORK) {
        value->place[CUDA_PLAIN] = cuda_place_of_arena(p, info);
        if (!value->place[CUDA_PLAIN])
            SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has no place", node->layer, node->op->name, o);
        return value->place[CUDA_PLAIN];
    }
    if (over != UINT32_MAX && value->last[form] != UINT32_MAX && cuda_dies(p, n, over) && alone(p, n, over)) {
        const cuda_place place = p->value[node->in[over].id].place[n->form_in[over]];
        if (buffer_of(p, place)->bytes >= cuda_form_bytes(p, shape, form)) {
            cuda_same_place(p, v, form, place);
            return place;
        }
    }
    return p->value[v.id].place[form] = work_place(p, v.id, shape, form, moment(n, node->prologue), node->prologue != 0, err);
}

static sodet_status written_to_base(cuda_plan *p, cuda_node *n, uint32_t o, cuda_place where, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value_info *info = sodet_graph_value(p->graph, node->out[o]);
    cuda_value *value = &p->value[node->out[o].id];
    const sodet_shape *shape = &node->out_shape[o];
    const uint32_t home = value->home;
    const cuda_place base = value_in(p, n, node->base[o], shape, home, err);
    cuda_place to = base;
    if (base && info->store != SODET_STORE_WORK) {
        to = cuda_place_of_arena(p, info);
        if (to && memcmp(&p->place[to], &p->place[base], sizeof(cuda_place_info)) != 0 &&
            cuda_emit_copy(p, n, to, base, cuda_form_bytes(p, shape, home), err) != SODET_OK)
            return SODET_E_MEMORY;
        value->place[home] = to;
    } else if (base) {
        cuda_same_place(p, node->out[o], home, base);
    }
    if (!to)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has nothing to be added to", node->layer, node->op->name, o);
    if (n->form_out[o] != home) {
        const cuda_place same = cuda_temporary(p, n, cuda_form_bytes(p, shape, home), err);
        sodet_status s = same ? emit_convert(p, n, shape, where, n->form_out[o], same, home, node->prologue != 0, err) : SODET_E_MEMORY;
        if (s != SODET_OK)
            return s;
        where = same;
    }
    const sodet_tensor t = cuda_tensor(p, shape, home);
    return emit_add(p, n, &t, to, where, err);
}

sodet_status cuda_written(cuda_plan *p, cuda_node *n, uint32_t o, cuda_place where, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value v = node->out[o];
    const sodet_shape *shape = &node->out_shape[o];
    const uint32_t home = p->value[v.id].home;
    if (node->op->shares && node->op->shares(node, o))
        return SODET_OK;
    if (has_base(node, o))
        return written_to_base(p, n, o, where, err);
    if (n->form_out[o] != home) {
        const uint32_t form = n->form_out[o];
        n->form_out[o] = (uint8_t)home;
        const cuda_place to = cuda_write(p, n, o, UINT32_MAX, err);
        return to ? emit_convert(p, n, shape, where, form, to, home, node->prologue != 0, err) : SODET_E_MEMORY;
    }
    if (home != CUDA_PLAIN && sodet_graph_value(p->graph, v)->is_output) /* the host reads the plain form */
        return value_in(p, n, v, shape, CUDA_PLAIN, err) ? SODET_OK : SODET_E_MEMORY;
    return SODET_OK;
}

cuda_place cuda_derived(cuda_plan *p, cuda_node *n, uint32_t i, sodet_err *err)
{
    const sodet_value v = n->node->in[i];
    const cuda_place from = cuda_read(p, n, i, err);
    if (!from)
        return 0;
    for (uint64_t k = 0; k < p->n_copies; k++)
        if (p->copy[k].value == v.id) {
            cuda_use_until(p, p->copy[k].place, n->index);
            return p->copy[k].place;
        }
    const bool fixed = p->value[v.id].fixed, map = n->node->in_shape[i].rank == 4;
    sodet_tensor t[2] = {{.shape = n->node->in_shape[i]}, {.shape = n->node->in_shape[i]}};
    t[1].shape.dtype = p->device->map_type;
    t[1].layout = map ? SODET_CHANNELS_LAST : SODET_PLAIN;
    const uint32_t at = fixed ? 0 : n->index;
    const cuda_place to = cuda_add_buffer(p, 0, fixed ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, tensor_bytes(&t[1]), at, n->index);
    if (!to || sd_grow(&p->copy, &p->copy_capacity, p->n_copies + 1, sizeof *p->copy, err) != SODET_OK) {
        cuda_out_of_memory(err);
        return 0;
    }
    p->copy[p->n_copies++] = (cuda_copy){v.id, to};
    const sodet_cuda_kernel *kernel = map ? &cuda_convert : &cuda_cast;
    return cuda_emit_kernel(p, n, kernel, t, (const cuda_place[]){from, to}, 1, 1, NULL, 0, fixed, err) == SODET_OK ? to : 0;
}
