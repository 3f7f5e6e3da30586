/* Values, nodes, scopes and parameters: what the builder calls of sodet/graph.h do. */
#include <stdio.h>
#include <string.h>

#include "core/graph/internal.h"

sodet_status sd_graph_create(const sd_graph_options *options, sodet_graph **out, sodet_err *err)
{
    *out = NULL;
    sodet_graph *g = sd_alloc(1, sizeof *g);
    if (!g)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a graph");
    g->options = *options;
    if (g->options.world == 0)
        g->options.world = 1;
    if (g->options.bucket_bytes == 0)
        g->options.bucket_bytes = 25u << 20;
    g->failure = (sodet_err)SODET_ERR_INIT;
    sodet_status status = sd_grow(&g->values, &g->values_capacity, 64, sizeof *g->values, err);
    if (status != SODET_OK) {
        sd_graph_free(g);
        return status;
    }
    g->n_values = 1;
    *out = g;
    return SODET_OK;
}

void sd_graph_free(sodet_graph *g)
{
    if (!g)
        return;
    sd_free(g->values);
    sd_free(g->nodes);
    sd_free(g->named);
    sd_free(g->losses);
    sd_free(g->outputs);
    sd_pool_clear(&g->pool);
    sd_free(g);
}

const sd_graph_options *sd_graph_get_options(const sodet_graph *g)
{
    return &g->options;
}

/* ---- errors ---- */

sodet_status sodet_graph_status(const sodet_graph *g, sodet_err *err)
{
    if (g->failure.code != SODET_OK && err) {
        uint32_t size = err->struct_size;
        *err = g->failure;
        err->struct_size = size;
    }
    return g->failure.code;
}

sodet_value sodet_graph_fail(sodet_graph *g, sodet_status code, const char *format, ...)
{
    if (g->failure.code != SODET_OK)
        return SODET_POISON;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const char *path = g->layer ? g->layer : g->path;
    SODET_FAIL(&g->failure, code, "%s%s%s", path, *path ? ": " : "", text);
    return SODET_POISON;
}

sodet_status sd_graph_check(const sodet_graph *g, const char *who, sodet_err *err)
{
    sodet_status status = sodet_graph_status(g, err);
    if (status != SODET_OK)
        return sd_fail_in(err, status, "%s", who);
    if (g->depth != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: scope \"%s\" was entered and not left: call sodet_leave as often as sodet_enter", who,
                          g->path);
    return SODET_OK;
}

/* ---- values ---- */

sd_value *sd_value_at(const sodet_graph *g, sodet_value v)
{
    return v.id == 0 || v.id >= g->n_values ? NULL : &g->values[v.id];
}

sodet_node *sd_producer(const sodet_graph *g, sodet_value v)
{
    const sd_value *value = sd_value_at(g, v);
    return value && value->producer != SD_NOWHERE ? g->nodes[value->producer] : NULL;
}

static sodet_value new_value(sodet_graph *g, const sodet_shape *shape, uint32_t store, const char *name)
{
    sodet_err err = SODET_ERR_INIT;
    if (sd_grow(&g->values, &g->values_capacity, g->n_values + 1, sizeof *g->values, &err) != SODET_OK)
        return sodet_graph_fail(g, SODET_E_MEMORY, "%s", err.text);
    sodet_value v = {(uint32_t)g->n_values++};
    g->values[v.id] =
        (sd_value){.info = {.shape = *shape, .store = store, .name = name ? name : ""}, .producer = SD_NOWHERE, .last = SD_NOWHERE};
    return v;
}

int64_t sodet_dim(const sodet_graph *g, sodet_value v, uint32_t axis)
{
    const sd_value *value = sd_value_at(g, v);
    return value && axis < value->info.shape.rank ? value->info.shape.dim[axis] : 1;
}

uint32_t sodet_rank(const sodet_graph *g, sodet_value v)
{
    const sd_value *value = sd_value_at(g, v);
    return value ? value->info.shape.rank : 1;
}

sodet_shape sodet_shape_of(const sodet_graph *g, sodet_value v)
{
    const sd_value *value = sd_value_at(g, v);
    return value ? value->info.shape : (sodet_shape){.dtype = SODET_F32, .rank = SODET_MAX_RANK, .dim = {1, 1, 1, 1, 1}};
}

uint32_t sodet_is_training(const sodet_graph *g)
{
    return g->options.training;
}

/* ---- scopes ---- */

static void enter(sodet_graph *g, bool shared, const char *format, va_list list)
{
    char name[256];
    int n = vsnprintf(name, sizeof name, format, list);
    size_t length = strlen(g->path);
    if (n < 0 || (size_t)n >= sizeof name || length + (size_t)n + 2 > sizeof g->path || g->depth >= 64) {
        sodet_graph_fail(g, SODET_E_INVALID, "the path of scopes is too long or too deep (%u scopes, 512 characters)", g->depth);
        n = 0;
        name[0] = 0;
        if (g->depth >= 64)
            return;
    }
    g->cut[g->depth] = (uint16_t)length;
    g->shared[g->depth] = shared;
    g->depth++;
    if (length)
        g->path[length++] = '/';
    memcpy(g->path + length, name, (size_t)n + 1);
    if (shared && g->shared_depth++ == 0)
        g->entry = ++g->entries;
}

void sodet_enter(sodet_graph *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    enter(g, false, format, list);
    va_end(list);
}

void sodet_enter_shared(sodet_graph *g, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    enter(g, true, format, list);
    va_end(list);
}

void sodet_leave(sodet_graph *g)
{
    if (g->depth == 0) {
        sodet_graph_fail(g, SODET_E_INVALID, "sodet_leave without sodet_enter");
        return;
    }
    g->depth--;
    if (g->shared[g->depth] && --g->shared_depth == 0)
        g->entry = 0;
    g->path[g->cut[g->depth]] = 0;
}

/* ---- parameters, buffers, constants, inputs ---- */

static uint64_t name_hash(const char *name)
{
    return sd_fnv1a64(name, strlen(name), SD_FNV_START);
}

static uint32_t *name_slot(sodet_graph *g, const char *name)
{
    uint64_t i = name_hash(name) & (g->named_capacity - 1);
    while (g->named[i] && strcmp(g->values[g->named[i]].info.name, name) != 0)
        i = (i + 1) & (g->named_capacity - 1);
    return &g->named[i];
}

static bool grow_names(sodet_graph *g)
{
    if (2 * (g->n_named + 1) <= g->named_capacity)
        return true;
    uint64_t old_capacity = g->named_capacity, capacity = old_capacity ? 2 * old_capacity : 256;
    uint32_t *old = g->named, *fresh = sd_alloc(capacity, sizeof *fresh);
    if (!fresh)
        return false;
    g->named = fresh;
    g->named_capacity = capacity;
    for (uint64_t i = 0; i < old_capacity; i++)
        if (old[i])
            *name_slot(g, g->values[old[i]].info.name) = old[i];
    sd_free(old);
    return true;
}

static sodet_value named(sodet_graph *g, const char *name, const sodet_shape *shape, const sodet_param *param, bool buffer, float initial)
{
    if (g->failure.code != SODET_OK)
        return SODET_POISON;
    const char *path = sd_pool_printf(&g->pool, "%s%s%s", g->path, *g->path ? "/" : "", name);
    if (!path || !grow_names(g))
        return sodet_graph_fail(g, SODET_E_MEMORY, "no memory for parameter %s", name);
    if (sodet_elements(shape) <= 0)
        return sodet_graph_fail(g, SODET_E_INVALID, "parameter %s has no elements", name);
    uint32_t *slot = name_slot(g, path);
    if (*slot) {
        sd_value *known = &g->values[*slot];
        char have[64], want[64];
        if (g->shared_depth == 0 || known->entry == g->entry)
            return sodet_graph_fail(g, SODET_E_INVALID,
                                    "parameter %s is used twice: give the layers different names, or share them by sodet_enter_shared",
                                    name);
        if (known->buffer != buffer || memcmp(&known->info.shape, shape, sizeof *shape) != 0)
            return sodet_graph_fail(g, SODET_E_INVALID, "shared parameter %s was %s and is now asked for as %s", name,
                                    sd_shape_text(&known->info.shape, have), sd_shape_text(shape, want));
        known->entry = g->entry;
        return (sodet_value){*slot};
    }
    bool frozen = buffer || (param && param->lr < 0) || (g->options.freeze && g->options.freeze(g->options.freeze_context, path));
    sodet_value v = new_value(g, shape, frozen ? SODET_STORE_FROZEN : SODET_STORE_PARAM, path);
    if (v.id == SODET_POISON.id)
        return v;
    sd_value *value = &g->values[v.id];
    value->parameter = !buffer;
    value->buffer = buffer;
    value->initial = initial;
    value->entry = g->entry;
    if (param)
        value->param = *param;
    *slot = v.id;
    g->n_named++;
    return v;
}

sodet_value sodet_parameter(sodet_graph *g, const char *name, const sodet_shape *shape, const sodet_param *param)
{
    return named(g, name, shape, param, false, 0);
}

sodet_value sodet_buffer(sodet_graph *g, const char *name, const sodet_shape *shape, float initial)
{
    return named(g, name, shape, NULL, true, initial);
}

sodet_value sodet_constant(sodet_graph *g, const sodet_shape *shape, const void *data)
{
    if (g->failure.code != SODET_OK)
        return SODET_POISON;
    size_t bytes = (size_t)sodet_elements(shape) * 4;
    void *copy = sd_pool_alloc(&g->pool, bytes ? bytes : 4);
    if (!copy)
        return sodet_graph_fail(g, SODET_E_MEMORY, "no memory for a constant of %zu bytes", bytes);
    if (bytes)
        memcpy(copy, data, bytes);
    sodet_value v = new_value(g, shape, SODET_STORE_CONST, NULL);
    if (v.id != SODET_POISON.id)
        g->values[v.id].info.data = copy;
    return v;
}

sodet_value sodet_scalar(sodet_graph *g, double value)
{
    float f = (float)value;
    sodet_shape shape = {.dtype = SODET_F32};
    return sodet_constant(g, &shape, &f);
}

sodet_value sodet_input(sodet_graph *g, const char *name, const sodet_shape *shape)
{
    if (g->failure.code != SODET_OK)
        return SODET_POISON;
    if (sd_graph_find_input(g, name).id)
        return sodet_graph_fail(g, SODET_E_INVALID, "input %s is declared twice", name);
    const char *copy = sd_pool_strdup(&g->pool, name);
    return copy ? new_value(g, shape, SODET_STORE_INPUT, copy) : sodet_graph_fail(g, SODET_E_MEMORY, "no memory for input %s", name);
}

sodet_value sd_graph_arena(sodet_graph *g, uint32_t store, uint32_t slot, uint64_t elements)
{
    if (g->failure.code != SODET_OK)
        return SODET_POISON;
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, (int64_t)elements, 0, 0, 0);
    sodet_value v = new_value(g, &shape, store, NULL);
    if (v.id != SODET_POISON.id)
        g->values[v.id].info.slot = slot;
    return v;
}

void sd_graph_arena_at(sodet_graph *g, sodet_value arena, uint64_t offset)
{
    if (sd_value_at(g, arena))
        sd_value_at(g, arena)->info.offset = offset;
}

/* ---- nodes ---- */

void sodet_add_node(sodet_graph *g, const sodet_op *op, uint32_t part, const void *attr, const sodet_value *in, uint32_t n_in,
                    sodet_value *out, uint32_t n_out)
{
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = SODET_POISON;
    for (uint32_t i = 0; i < n_in && g->failure.code == SODET_OK; i++)
        if (in[i].id >= g->n_values)
            sodet_graph_fail(g, SODET_E_INTERNAL, "%s: input %u is not a value of this graph", op->name, i);
    if (g->failure.code != SODET_OK)
        return;
    if (g->sealed) {
        sodet_graph_fail(g, SODET_E_INTERNAL, "%s: the graph is sealed", op->name);
        return;
    }
    sodet_node *n = sd_pool_alloc(&g->pool, sizeof *n);
    sodet_value *ins = sd_pool_alloc(&g->pool, (n_in + n_out + 1) * sizeof *ins);
    sodet_shape *shapes = sd_pool_alloc(&g->pool, (n_in + n_out + 1) * sizeof *shapes);
    void *attrs = op->attr_size ? sd_pool_alloc(&g->pool, op->attr_size) : NULL;
    const char *layer = g->layer ? g->layer : sd_pool_strdup(&g->pool, g->path);
    sodet_err err = SODET_ERR_INIT;
    if (!n || !ins || !shapes || (op->attr_size && !attrs) || !layer ||
        sd_grow(&g->nodes, &g->nodes_capacity, g->n_nodes + 1, sizeof *g->nodes, &err) != SODET_OK) {
        sodet_graph_fail(g, SODET_E_MEMORY, "%s: no memory for a node", op->name);
        return;
    }
    if (attrs && attr)
        memcpy(attrs, attr, op->attr_size);
    for (uint32_t i = 0; i < n_in; i++) {
        ins[i] = in[i];
        if (in[i].id)
            shapes[i] = g->values[in[i].id].info.shape;
    }
    *n = (sodet_node){.struct_size = sizeof *n,
                      .op = op,
                      .part = part,
                      .n_in = n_in,
                      .n_out = n_out,
                      .in = ins,
                      .out = ins + n_in,
                      .in_shape = shapes,
                      .out_shape = shapes + n_in,
                      .attr = attrs,
                      .layer = layer};
    sodet_status status = op->infer(n, shapes + n_in, &err);
    if (status != SODET_OK) {
        sodet_graph_fail(g, status, "%s", err.text);
        return;
    }
    for (uint32_t i = 0; i < n_out; i++) {
        uint32_t shared = op->shares ? op->shares(n, i) : 0;
        const sd_value *with = shared ? sd_value_at(g, in[shared - 1]) : NULL;
        sodet_value v = new_value(g, &n->out_shape[i], SODET_STORE_WORK, NULL);
        if (v.id == SODET_POISON.id)
            return;
        sd_value *value = &g->values[v.id];
        if (with) { /* the new value of a state lies where the state lies */
            with = sd_value_at(g, in[shared - 1]);
            value->info.store = with->info.store;
            value->info.slot = with->info.slot;
            value->info.offset = with->info.offset;
            value->info.name = with->info.name;
        }
        value->producer = (uint32_t)g->n_nodes;
        value->output = i;
        ins[n_in + i] = v;
        out[i] = v;
    }
    g->nodes[g->n_nodes++] = n;
}

sodet_value sodet_apply(sodet_graph *g, const sodet_op *op, const void *attr, const sodet_value *in, uint32_t n_in)
{
    sodet_value out;
    sodet_add_node(g, op, 0, attr, in, n_in, &out, 1);
    return out;
}

void sodet_output(sodet_graph *g, const char *name, sodet_value v)
{
    if (g->failure.code != SODET_OK)
        return;
    sodet_err err = SODET_ERR_INIT;
    const char *copy = sd_pool_strdup(&g->pool, name);
    if (!sd_value_at(g, v)) {
        sodet_graph_fail(g, SODET_E_INVALID, "output %s is not a value of this graph", name);
        return;
    }
    if (sd_graph_find_output(g, name).id) {
        sodet_graph_fail(g, SODET_E_INVALID, "output %s is declared twice", name);
        return;
    }
    if (!copy || sd_grow(&g->outputs, &g->outputs_capacity, g->n_outputs + 1, sizeof *g->outputs, &err) != SODET_OK) {
        sodet_graph_fail(g, SODET_E_MEMORY, "no memory for output %s", name);
        return;
    }
    g->outputs[g->n_outputs++] = (sd_output){copy, v};
    g->values[v.id].info.is_output = 1;
}
