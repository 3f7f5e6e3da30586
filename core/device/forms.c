#include "core/device/forms.h"

#include <string.h>

sodet_status sd_forms_out_of_memory(const sd_form_ops *ops, sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "no host memory to plan a program for %s", ops->device);
}

sodet_status sd_forms_open(sd_forms *f, const sd_form_ops *ops, void *plan, const sodet_graph *g, sodet_err *err)
{
    *f = (sd_forms){.ops = ops, .plan = plan, .graph = g, .n_nodes = sodet_graph_node_count(g), .n_values = sodet_graph_value_count(g)};
    f->value = sd_alloc(f->n_values + 1, sizeof *f->value);
    if (!f->value || sd_grow(&f->place, &f->place_capacity, 2, sizeof *f->place, NULL) != SODET_OK)
        return sd_forms_out_of_memory(f->ops, err);
    f->n_places = 1; /* 0 is nowhere */
    for (uint32_t v = 1; v <= f->n_values; v++) {
        const uint32_t store = sodet_graph_value(g, (sodet_value){v})->store;
        f->value[v].producer = UINT32_MAX;
        f->value[v].fixed = store == SODET_STORE_PARAM || store == SODET_STORE_FROZEN || store == SODET_STORE_CONST;
    }
    return SODET_OK;
}

void sd_forms_close(sd_forms *f)
{
    sd_free(f->value);
    sd_free(f->place);
    sd_free(f->buffer);
    sd_free(f->out);
    *f = (sd_forms){0};
}

/* ---- who makes and uses what ---- */
static bool has_base(const sodet_node *n, uint32_t o)
{
    return n->base && n->base[o].id;
}

static uint32_t shared_input(const sodet_node *n, uint32_t o)
{
    return n->op->shares ? n->op->shares(n, o) : 0;
}

void sd_forms_node(sd_forms *f, const sodet_node *node, uint32_t index)
{
    for (uint32_t o = 0; o < node->n_out; o++) {
        f->value[node->out[o].id].producer = index;
        f->value[node->out[o].id].fixed = node->prologue != 0;
    }
    for (uint32_t o = 0; o < node->n_out; o++) /* states that this graph changes */
        if (shared_input(node, o))
            f->value[node->in[shared_input(node, o) - 1].id].fixed = false;
}

void sd_forms_settle(sd_forms *f, const sd_form_node *n)
{
    const sodet_node *node = n->node;
    for (uint32_t o = 0; o < node->n_out; o++) {
        uint32_t home = n->form_out[o];
        if (has_base(node, o))
            home = f->value[node->base[o].id].home;
        else if (sodet_graph_value(f->graph, node->out[o])->store != SODET_STORE_WORK)
            home = SD_FORM_PLAIN;
        f->value[node->out[o].id].home = home;
    }
}

void sd_forms_use(sd_forms *f, sodet_value v, uint32_t form, uint32_t node)
{
    sd_form_value *value = &f->value[v.id];
    if (form != value->home && value->last[form] == 0 && value->last[value->home] < node) /* the conversion reads the home form here */
        value->last[value->home] = node;
    if (value->last[form] < node)
        value->last[form] = node;
}

void sd_forms_uses(sd_forms *f, const sd_form_node *n, bool inputs)
{
    const sodet_node *node = n->node;
    for (uint32_t o = 0; o < node->n_out; o++)
        sd_forms_use(f, node->out[o], f->value[node->out[o].id].home, n->index);
    for (uint32_t i = 0; inputs && i < node->n_in; i++)
        if (node->in[i].id)
            sd_forms_use(f, node->in[i], n->form_in[i], n->index);
    for (uint32_t o = 0; o < node->n_out; o++)
        if (has_base(node, o))
            sd_forms_use(f, node->base[o], f->value[node->base[o].id].home, n->index);
}

/* Of a value that no node makes. */
static sodet_status place_source(sd_forms *f, sodet_value v, sodet_err *err)
{
    const sodet_value_info *info = sodet_graph_value(f->graph, v);
    sd_place *place = &f->value[v.id].place[SD_FORM_PLAIN];
    const bool constant = info->store == SODET_STORE_CONST;
    if (info->store == SODET_STORE_WORK)
        return SODET_OK;
    if (info->store != SODET_STORE_INPUT && !(constant && !f->ops->constants_on_host)) {
        *place = sd_forms_arena(f, info);
        return *place ? SODET_OK : sd_forms_out_of_memory(f->ops, err);
    }
    const uint64_t bytes = f->ops->bytes(f->plan, &info->shape, SD_FORM_PLAIN);
    *place = sd_forms_buffer(f, v.id, SODET_LIFE_PROGRAM, bytes, 0, f->n_nodes ? f->n_nodes - 1 : 0, err);
    if (!*place)
        return SODET_E_MEMORY;
    sd_form_buffer *b = sd_forms_buffer_of(f, *place);
    b->busy = UINT32_MAX;
    if (constant && sodet_elements(&info->shape))
        b->constant = info->data;
    return SODET_OK;
}

sodet_status sd_forms_live(sd_forms *f, sodet_err *err)
{
    sodet_status s = SODET_OK;
    for (uint32_t v = 1; v <= f->n_values && s == SODET_OK; v++) {
        sd_form_value *value = &f->value[v];
        if (sodet_graph_value(f->graph, (sodet_value){v})->is_output) { /* the host reads the plain form */
            if (value->home != SD_FORM_PLAIN && value->producer != UINT32_MAX)
                sd_forms_use(f, (sodet_value){v}, SD_FORM_PLAIN, value->producer);
            value->last[SD_FORM_PLAIN] = UINT32_MAX;
        }
        if (value->producer == UINT32_MAX)
            s = place_source(f, (sodet_value){v}, err);
    }
    return s;
}

/* ---- places and buffers ---- */
static sd_place add_place(sd_forms *f, uint32_t in, uint32_t index, uint64_t offset, void *address)
{
    if (sd_grow(&f->place, &f->place_capacity, f->n_places + 1, sizeof *f->place, NULL) != SODET_OK)
        return 0;
    f->place[f->n_places] = (sd_place_info){in, index, offset, address};
    return (sd_place)f->n_places++;
}

sd_place sd_forms_buffer(sd_forms *f, uint32_t value, uint32_t lifetime, uint64_t bytes, uint32_t first, uint32_t last, sodet_err *err)
{
    sd_place place = 0;
    if (sd_grow(&f->buffer, &f->buffer_capacity, f->n_buffers + 1, sizeof *f->buffer, NULL) == SODET_OK) {
        f->buffer[f->n_buffers] =
            (sd_form_buffer){.value = value, .lifetime = lifetime, .first = first, .last = last, .busy = last, .bytes = bytes ? bytes : 64};
        place = add_place(f, SD_IN_BUFFER, (uint32_t)f->n_buffers++, 0, NULL);
    }
    if (!place)
        sd_forms_out_of_memory(f->ops, err);
    return place;
}

sd_place sd_forms_temporary(sd_forms *f, const sodet_node *node, uint32_t index, uint64_t bytes, sodet_err *err)
{
    const uint32_t at = node->prologue ? 0 : index;
    return sd_forms_buffer(f, 0, SODET_LIFE_RUN, bytes, at, at, err);
}

sd_place sd_forms_scratch(sd_forms *f, uint32_t node, bool prologue, uint64_t bytes, sodet_err *err)
{
    if (!prologue)
        return sd_forms_buffer(f, 0, SODET_LIFE_RUN, bytes, node, node, err);
    if (!f->prologue_scratch)
        f->prologue_scratch = sd_forms_buffer(f, 0, SODET_LIFE_RUN, bytes, 0, 0, err);
    sd_form_buffer *b = sd_forms_buffer_of(f, f->prologue_scratch);
    if (b && b->bytes < bytes)
        b->bytes = bytes;
    return f->prologue_scratch;
}

sd_form_buffer *sd_forms_buffer_of(const sd_forms *f, sd_place place)
{
    return place && f->place[place].in == SD_IN_BUFFER ? &f->buffer[f->place[place].index] : NULL;
}

void sd_forms_until(sd_forms *f, sd_place place, uint32_t node)
{
    sd_form_buffer *b = sd_forms_buffer_of(f, place);
    if (b && b->last < node)
        b->last = node;
}

/* The value there will be read until `last` (UINT32_MAX: it is an output). */
static void occupy(sd_forms *f, sd_place place, uint32_t last)
{
    sd_form_buffer *b = sd_forms_buffer_of(f, place);
    if (!b)
        return;
    if (b->busy < last)
        b->busy = last;
    if (last == UINT32_MAX)
        b->lifetime = SODET_LIFE_PROGRAM;
}

sd_place sd_forms_arena(sd_forms *f, const sodet_value_info *info)
{
    const uint64_t offset = info->offset * sizeof(float);
    switch (info->store) {
    case SODET_STORE_PARAM:
        return add_place(f, SD_IN_PARAM, 0, offset, NULL);
    case SODET_STORE_FROZEN:
        return add_place(f, SD_IN_FROZEN, 0, offset, NULL);
    case SODET_STORE_GRAD:
        return add_place(f, SD_IN_GRAD, 0, offset, NULL);
    case SODET_STORE_STATE:
        return add_place(f, SD_IN_STATE, info->slot, offset, NULL);
    case SODET_STORE_CONST:
        return f->ops->constants_on_host ? add_place(f, SD_IN_HOST, 0, 0, (void *)(uintptr_t)info->data) : 0; /* nothing writes there */
    default:
        return 0;
    }
}

static sd_place work_place(sd_forms *f, uint32_t value, const sodet_shape *shape, uint32_t form, uint32_t node, bool fixed, sodet_err *err)
{
    const uint32_t last = f->value[value].last[form];
    const bool keeps = fixed || last == UINT32_MAX;
    const uint32_t end = last == UINT32_MAX ? f->n_nodes - 1 : last > node ? last : node;
    const uint64_t bytes = f->ops->bytes(f->plan, shape, form);
    const sd_place place = sd_forms_buffer(f, value, keeps ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN, bytes, node, end, err);
    occupy(f, place, fixed ? UINT32_MAX : last);
    return place;
}

void sd_forms_same(sd_forms *f, sodet_value v, uint32_t form, sd_place place)
{
    sd_form_value *value = &f->value[v.id];
    value->place[form] = place;
    occupy(f, place, value->last[form]);
    sd_forms_until(f, place, value->last[form] != UINT32_MAX ? value->last[form] : f->n_nodes - 1);
}

/* ---- values ---- */
sd_place sd_forms_in(sd_forms *f, const sd_form_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err)
{
    sd_form_value *value = &f->value[v.id];
    if (f->ops->before && f->ops->before(f->plan, n->self, v, err) != SODET_OK)
        return 0;
    if (value->place[form])
        return value->place[form];
    const bool prologue = n->node->prologue || value->fixed;
    const sd_place from = value->place[value->home];
    if (!from) {
        SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): value %u is used before it is made", n->node->layer, n->node->op->name, v.id);
        return 0;
    }
    const sd_place to = work_place(f, v.id, shape, form, prologue ? 0 : n->index, value->fixed, err);
    if (!to || f->ops->convert(f->plan, n->self, shape, from, value->home, to, form, prologue, err) != SODET_OK)
        return 0;
    return value->place[form] = to;
}

sd_place sd_forms_read(sd_forms *f, const sd_form_node *n, uint32_t input, sodet_err *err)
{
    const sodet_value v = n->node->in[input];
    if (!v.id)
        return 0;
    const sd_place place = sd_forms_in(f, n, v, &n->node->in_shape[input], n->form_in[input], err);
    sd_forms_until(f, place, n->node->prologue ? 0 : n->index);
    return place;
}

static bool dies_in(const sd_form_buffer *b, uint32_t node)
{
    return b && b->lifetime == SODET_LIFE_RUN && b->busy == node;
}

static sd_form_buffer *input_buffer(const sd_forms *f, const sd_form_node *n, uint32_t input)
{
    return sd_forms_buffer_of(f, f->value[n->node->in[input].id].place[n->form_in[input]]);
}

bool sd_forms_dies(const sd_forms *f, const sd_form_node *n, uint32_t input)
{
    return !n->node->prologue && dies_in(input_buffer(f, n, input), n->index);
}

/* Whether no other input lies in the same buffer in another shape or form. */
static bool alone(const sd_forms *f, const sd_form_node *n, uint32_t input)
{
    const sd_form_buffer *b = input_buffer(f, n, input);
    for (uint32_t i = 0; i < n->node->n_in; i++)
        if (n->node->in[i].id && n->node->in[i].id != n->node->in[input].id)
            for (uint32_t form = 0; form < f->ops->forms; form++)
                if (sd_forms_buffer_of(f, f->value[n->node->in[i].id].place[form]) == b)
                    return false;
    return true;
}

sd_place sd_forms_write(sd_forms *f, const sd_form_node *n, uint32_t o, uint32_t over, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value v = node->out[o];
    const sodet_value_info *info = sodet_graph_value(f->graph, v);
    sd_form_value *value = &f->value[v.id];
    const uint32_t form = n->form_out[o], shared = shared_input(node, o);
    const sodet_shape *shape = &node->out_shape[o];
    const uint64_t bytes = f->ops->bytes(f->plan, shape, form);
    if (shared) {
        const sd_place place = f->value[node->in[shared - 1].id].place[SD_FORM_PLAIN];
        sd_forms_same(f, v, SD_FORM_PLAIN, place);
        return place;
    }
    if (has_base(node, o) || form != value->home) /* sd_forms_written takes it from there */
        return sd_forms_temporary(f, node, n->index, bytes, err);
    if (info->store != SODET_STORE_WORK) {
        value->place[SD_FORM_PLAIN] = sd_forms_arena(f, info);
        if (!value->place[SD_FORM_PLAIN])
            SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has no place", node->layer, node->op->name, o);
        return value->place[SD_FORM_PLAIN];
    }
    if (over != UINT32_MAX && value->last[form] != UINT32_MAX && sd_forms_dies(f, n, over) && alone(f, n, over) &&
        input_buffer(f, n, over)->bytes >= bytes) {
        const sd_place place = f->value[node->in[over].id].place[n->form_in[over]];
        sd_forms_same(f, v, form, place);
        return place;
    }
    return value->place[form] = work_place(f, v.id, shape, form, node->prologue ? 0 : n->index, node->prologue != 0, err);
}

sd_place sd_forms_write_value(sd_forms *f, uint32_t index, sodet_value v, uint32_t form, sodet_value over, uint32_t over_form,
                              sodet_err *err)
{
    sd_form_value *value = &f->value[v.id];
    const sodet_shape *shape = &sodet_graph_value(f->graph, v)->shape;
    const sd_place taken = f->value[over.id].place[over_form];
    const sd_form_buffer *b = sd_forms_buffer_of(f, taken);
    if (dies_in(b, index) && value->last[form] != UINT32_MAX && b->bytes >= f->ops->bytes(f->plan, shape, form)) {
        sd_forms_same(f, v, form, taken);
        return taken;
    }
    return value->place[form] = work_place(f, v.id, shape, form, index, false, err);
}

sd_place sd_forms_base(sd_forms *f, const sd_form_node *n, uint32_t o, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value_info *info = sodet_graph_value(f->graph, node->out[o]);
    const uint32_t home = f->value[node->out[o].id].home;
    const sd_place base = sd_forms_in(f, n, node->base[o], &node->out_shape[o], home, err);
    if (!base)
        return 0;
    if (info->store == SODET_STORE_WORK) {
        sd_forms_same(f, node->out[o], home, base);
        return base;
    }
    const sd_place to = sd_forms_arena(f, info);
    if (!to) {
        SODET_FAIL(err, SODET_E_INTERNAL, "%s (%s): output %u has nothing to be added to", node->layer, node->op->name, o);
        return 0;
    }
    const sd_place_info *a = &f->place[to], *b = &f->place[base];
    const bool same = a->in == b->in && a->index == b->index && a->offset == b->offset;
    if (!same && f->ops->copy(f->plan, n->self, to, base, f->ops->bytes(f->plan, &node->out_shape[o], home), err) != SODET_OK)
        return 0;
    return f->value[node->out[o].id].place[home] = to;
}

sodet_status sd_forms_written(sd_forms *f, const sd_form_node *n, uint32_t o, sd_place where, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_value v = node->out[o];
    const sodet_shape *shape = &node->out_shape[o];
    const uint32_t home = f->value[v.id].home, form = n->form_out[o];
    if (shared_input(node, o))
        return SODET_OK;
    if (has_base(node, o)) {
        const sd_place to = sd_forms_base(f, n, o, err);
        return to ? f->ops->add(f->plan, n->self, shape, where, form, to, home, err) : err->code;
    }
    if (form != home) {
        n->form_out[o] = (uint8_t)home;
        const sd_place to = sd_forms_write(f, n, o, UINT32_MAX, err);
        return to ? f->ops->convert(f->plan, n->self, shape, where, form, to, home, node->prologue != 0, err) : err->code;
    }
    if (home != SD_FORM_PLAIN && sodet_graph_value(f->graph, v)->is_output)
        return sd_forms_in(f, n, v, shape, SD_FORM_PLAIN, err) ? SODET_OK : err->code;
    return SODET_OK;
}

/* ---- at the end ---- */
sodet_status sd_forms_export(sd_forms *f, sodet_plan *out, sodet_err *err)
{
    f->out = sd_alloc(f->n_buffers + 1, sizeof *f->out);
    if (!f->out)
        return sd_forms_out_of_memory(f->ops, err);
    for (uint64_t i = 0; i < f->n_buffers; i++) {
        const sd_form_buffer *b = &f->buffer[i];
        const uint64_t bytes = (b->bytes + f->ops->align - 1) / f->ops->align * f->ops->align;
        f->out[i] = (sodet_plan_buffer){.value = b->value, .lifetime = b->lifetime, .bytes = bytes, .first = b->first, .last = b->last};
    }
    out->n_buffers = (uint32_t)f->n_buffers;
    out->buffers = f->out;
    return SODET_OK;
}

void sd_forms_resolve(sd_forms *f, const sodet_binding *b)
{
    for (uint64_t i = 1; i < f->n_places; i++) {
        sd_place_info *at = &f->place[i];
        const void *base = NULL;
        switch (at->in) {
        case SD_IN_BUFFER:
            base = (char *)(f->buffer[at->index].lifetime == SODET_LIFE_RUN ? b->work : b->own) + f->out[at->index].offset;
            break;
        case SD_IN_PARAM:
            base = b->param;
            break;
        case SD_IN_FROZEN:
            base = b->frozen;
            break;
        case SD_IN_GRAD:
            base = b->grad;
            break;
        case SD_IN_STATE:
            base = b->state[at->index];
            break;
        default: /* SD_IN_HOST */
            continue;
        }
        at->address = (char *)(uintptr_t)base + at->offset;
    }
}
