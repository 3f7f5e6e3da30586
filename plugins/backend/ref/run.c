/* From a graph to a plan, from a plan to a program, and its run. */
#include <string.h>

#include "plugins/backend/ref/ref.h"

/* Where a value lies: value `root` owns the memory; views, new values of a state and sums into a base share their root's. */
typedef struct place {
    uint32_t root;
    uint32_t buffer; /* 1 + index in the plan, of roots that need memory of their own; 0: in an arena */
    uint32_t first, last;
    bool keep; /* an output or an input: readable outside the run */
} place;

typedef struct plan_handle {
    const sodet_graph *graph;
    uint32_t n_values, n_nodes;
    place *places;     /* [n_values + 1] */
    uint32_t *scratch; /* [n_nodes]: 1 + plan buffer where the results lie that are then added to their bases; 0: none */
} plan_handle;

typedef struct step {
    const sodet_node *node;
    sodet_ref_kernel kernel;
    sodet_kernel_args args;
    void **bases; /* [n_out] addresses that the kernel's results are added to; NULL: none */
} step;

typedef struct program {
    ref_device *device;
    const sodet_graph *graph;
    sd_pool pool;
    uint32_t n_steps, n_values;
    step *steps;
    void **address; /* [n_values + 1] */
} program;

static const char *describe(const void *handle, uint32_t node)
{
    (void)handle;
    (void)node;
    return "ref";
}

static uint32_t root_of(const place *places, uint32_t id)
{
    while (places[id].root != id)
        id = places[id].root;
    return id;
}

static bool has_base(const sodet_node *n, uint32_t o)
{
    return n->base && n->base[o].id;
}

static void find_places(plan_handle *h)
{
    for (uint32_t v = 1; v <= h->n_values; v++)
        h->places[v] = (place){.root = v, .first = UINT32_MAX};
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        const sodet_node *n = sodet_graph_node(h->graph, i);
        for (uint32_t o = 0; o < n->n_out; o++) {
            uint32_t shared = n->op->shares ? n->op->shares(n, o) : 0, id = n->out[o].id;
            if (shared)
                h->places[id].root = n->in[shared - 1].id;
            else if (has_base(n, o))
                h->places[id].root = n->base[o].id;
            else if (n->op->flags & SODET_OP_VIEW)
                h->places[id].root = n->in[0].id;
            h->places[id].first = i;
        }
    }
    for (uint32_t v = 1; v <= h->n_values; v++) {
        const sodet_value_info *info = sodet_graph_value(h->graph, (sodet_value){v});
        place *own = &h->places[v], *root = &h->places[root_of(h->places, v)];
        uint32_t last, uses = sodet_graph_uses(h->graph, (sodet_value){v}, &last);
        if (uses == 0 || last == UINT32_MAX)
            last = own->first == UINT32_MAX ? 0 : own->first;
        if (last > root->last)
            root->last = last;
        if (info->is_output)
            root->keep = true;
    }
}

static sodet_status collect_buffers(const ref_device *d, plan_handle *h, sodet_plan *plan, sodet_err *err)
{
    plan->buffers = sd_alloc((size_t)h->n_values + h->n_nodes + 1, sizeof *plan->buffers);
    if (!plan->buffers)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the plan of %u nodes", h->n_nodes);
    for (uint32_t v = 1; v <= h->n_values; v++) {
        const sodet_value_info *info = sodet_graph_value(h->graph, (sodet_value){v});
        place *p = &h->places[v];
        bool work = info->store == SODET_STORE_WORK, own = info->store == SODET_STORE_INPUT || info->store == SODET_STORE_CONST;
        if (p->root != v || !(work || own) || (work && p->first == UINT32_MAX))
            continue;
        plan->buffers[plan->n_buffers] = (sodet_plan_buffer){.value = v,
                                                             .lifetime = own || p->keep ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN,
                                                             .bytes = ref_bytes(d, &info->shape),
                                                             .first = work ? p->first : 0,
                                                             .last = p->last};
        p->buffer = ++plan->n_buffers;
    }
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        const sodet_node *n = sodet_graph_node(h->graph, i);
        uint64_t bytes = 0;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (has_base(n, o))
                bytes += (ref_bytes(d, &n->out_shape[o]) + 63) / 64 * 64;
        if (bytes == 0)
            continue;
        plan->buffers[plan->n_buffers] = (sodet_plan_buffer){.lifetime = SODET_LIFE_RUN, .bytes = bytes, .first = i, .last = i};
        h->scratch[i] = ++plan->n_buffers;
    }
    return SODET_OK;
}

sodet_status ref_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err)
{
    const ref_device *d = device;
    *out = (sodet_plan){.struct_size = sizeof *out, .describe = describe};
    plan_handle *h = sd_alloc(1, sizeof *h);
    if (!h)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a plan");
    out->handle = h;
    *h = (plan_handle){.graph = g, .n_values = sodet_graph_value_count(g), .n_nodes = sodet_graph_node_count(g)};
    h->places = sd_alloc((size_t)h->n_values + 1, sizeof *h->places);
    h->scratch = sd_alloc((size_t)h->n_nodes + 1, sizeof *h->scratch);
    sodet_status status = SODET_OK;
    if (!h->places || !h->scratch)
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the plan of %u nodes", h->n_nodes);
    for (uint32_t i = 0; status == SODET_OK && i < h->n_nodes; i++) {
        sodet_ref_kernel kernel;
        status = ref_kernel_of(d, sodet_graph_node(g, i), &kernel, err);
    }
    if (status == SODET_OK) {
        find_places(h);
        status = collect_buffers(d, h, out, err);
    }
    if (status != SODET_OK)
        ref_discard(device, out);
    return status;
}

void ref_discard(void *device, sodet_plan *plan)
{
    (void)device;
    plan_handle *h = plan->handle;
    if (h) {
        sd_free(h->places);
        sd_free(h->scratch);
        sd_free(h);
    }
    sd_free(plan->buffers);
    *plan = (sodet_plan){.struct_size = sizeof *plan};
}

static void *arena_of(const sodet_binding *b, const sodet_value_info *info)
{
    switch (info->store) {
    case SODET_STORE_PARAM:
        return b->param;
    case SODET_STORE_FROZEN:
        return b->frozen;
    case SODET_STORE_GRAD:
        return b->grad;
    case SODET_STORE_STATE:
        return info->slot < SODET_MAX_STATE ? b->state[info->slot] : NULL;
    default:
        return NULL;
    }
}

static char *buffer_address(const sodet_plan *plan, const sodet_binding *b, uint32_t index)
{
    const sodet_plan_buffer *buffer = &plan->buffers[index];
    return (char *)(buffer->lifetime == SODET_LIFE_PROGRAM ? b->own : b->work) + buffer->offset;
}

static void write_constant(const ref_device *d, const sodet_value_info *info, void *to)
{
    if (info->shape.dtype == SODET_F32 && d->real_size == 8)
        for (int64_t i = 0, n = sodet_elements(&info->shape); i < n; i++)
            ((double *)to)[i] = (double)((const float *)info->data)[i];
    else if (sodet_elements(&info->shape) > 0)
        memcpy(to, info->data, ref_bytes(d, &info->shape));
}

static sodet_status find_addresses(program *p, const plan_handle *h, const sodet_plan *plan, const sodet_binding *b, sodet_err *err)
{
    for (uint32_t v = 1; v <= h->n_values; v++) {
        uint32_t root = root_of(h->places, v);
        const sodet_value_info *info = sodet_graph_value(h->graph, (sodet_value){root});
        if (h->places[root].buffer) {
            p->address[v] = buffer_address(plan, b, h->places[root].buffer - 1);
            if (v == root && info->store == SODET_STORE_CONST)
                write_constant(p->device, info, p->address[v]);
            continue;
        }
        if (info->store == SODET_STORE_WORK)
            continue; /* nobody makes it: a value of a node that was dropped */
        char *arena = arena_of(b, info);
        if (!arena)
            return SODET_FAIL(err, SODET_E_INTERNAL, "value %u (%s) lies in arena %u.%u, which was not given", v, info->name, info->store,
                              info->slot);
        p->address[v] = arena + info->offset * p->device->real_size;
    }
    return SODET_OK;
}

static sodet_status make_step(program *p, const plan_handle *h, const sodet_plan *plan, const sodet_binding *b, uint32_t i, sodet_err *err)
{
    step *s = &p->steps[i];
    const sodet_node *n = sodet_graph_node(p->graph, i);
    sodet_tensor *in = sd_pool_alloc(&p->pool, (n->n_in + n->n_out + 1) * sizeof *in), *out = in + n->n_in;
    if (!in)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a node", n->layer);
    s->node = n;
    sodet_status status = ref_kernel_of(p->device, n, &s->kernel, err);
    if (status != SODET_OK)
        return status;
    for (uint32_t k = 0; k < n->n_in; k++)
        in[k] = (sodet_tensor){.data = n->in[k].id ? p->address[n->in[k].id] : NULL, .shape = n->in_shape[k]};
    for (uint32_t o = 0; o < n->n_out; o++)
        out[o] = (sodet_tensor){.data = p->address[n->out[o].id], .shape = n->out_shape[o]};
    if (h->scratch[i]) {
        s->bases = sd_pool_alloc(&p->pool, n->n_out * sizeof *s->bases);
        if (!s->bases)
            return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a node", n->layer);
        char *at = buffer_address(plan, b, h->scratch[i] - 1);
        for (uint32_t o = 0; o < n->n_out; o++)
            if (has_base(n, o)) {
                s->bases[o] = out[o].data;
                out[o].data = at;
                at += (ref_bytes(p->device, &n->out_shape[o]) + 63) / 64 * 64;
            }
    }
    s->args = (sodet_kernel_args){.struct_size = sizeof s->args,
                                  .n_in = n->n_in,
                                  .n_out = n->n_out,
                                  .in = in,
                                  .out = out,
                                  .attr = n->attr,
                                  .part = n->part,
                                  .n_threads = 1};
    return SODET_OK;
}

sodet_status ref_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **out, sodet_err *err)
{
    const plan_handle *h = plan->handle;
    *out = NULL;
    program *p = sd_alloc(1, sizeof *p);
    if (!p)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a program");
    *p = (program){.device = device, .graph = h->graph, .n_steps = h->n_nodes, .n_values = h->n_values};
    p->steps = sd_alloc((size_t)h->n_nodes + 1, sizeof *p->steps);
    p->address = sd_alloc((size_t)h->n_values + 1, sizeof *p->address);
    sodet_status status =
        p->steps && p->address ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "no memory for a program of %u nodes", h->n_nodes);
    if (status == SODET_OK)
        status = find_addresses(p, h, plan, b, err);
    for (uint32_t i = 0; status == SODET_OK && i < h->n_nodes; i++)
        status = make_step(p, h, plan, b, i, err);
    if (status != SODET_OK) {
        ref_unbind(p);
        return status;
    }
    *out = p;
    return SODET_OK;
}

void ref_unbind(void *self)
{
    program *p = self;
    if (!p)
        return;
    sd_pool_clear(&p->pool);
    sd_free(p->steps);
    sd_free(p->address);
    sd_free(p);
}

void *ref_address(void *self, sodet_value v)
{
    const program *p = self;
    return v.id && v.id <= p->n_values ? p->address[v.id] : NULL;
}

static sodet_status all_reduce(const program *p, const step *s, sodet_err *err)
{
    enum { AT_ONCE = 64 };
    const ref_device *d = p->device;
    sd_host_part part[AT_ONCE];
    for (uint32_t begin = 0; begin < s->args.n_in; begin += AT_ONCE) {
        uint32_t n = s->args.n_in - begin < AT_ONCE ? s->args.n_in - begin : AT_ONCE;
        for (uint32_t i = 0; i < n; i++) {
            const sodet_tensor *in = &s->args.in[begin + i], *out = &s->args.out[begin + i];
            part[i] = (sd_host_part){in->data, out->data, (uint64_t)sodet_elements(&in->shape)};
            if (d->world == 1 && out->data != in->data)
                memcpy(out->data, in->data, ref_bytes(d, &in->shape));
        }
        sodet_status status = d->world == 1 ? SODET_OK : sd_host_group_sum(d->group, d->rank, part, n, d->real_size, err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

static sodet_status all_gather(const program *p, const step *s, sodet_err *err)
{
    const ref_device *d = p->device;
    const sodet_tensor *in = &s->args.in[0], *out = &s->args.out[0];
    if (out->shape.dim[0] != d->world)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "the graph gathers from %lld devices, but %u take part in this process",
                          (long long)out->shape.dim[0], d->world);
    if (d->world > 1)
        return sd_host_group_gather(d->group, d->rank, in->data, out->data, ref_bytes(d, &in->shape), err);
    memcpy(out->data, in->data, ref_bytes(d, &in->shape));
    return SODET_OK;
}

static sodet_status collective(const program *p, const step *s, sodet_err *err)
{
    if (s->node->op->id == SODET_OP_all_reduce)
        return all_reduce(p, s, err);
    if (s->node->op->id == SODET_OP_all_gather)
        return all_gather(p, s, err);
    return SODET_FAIL(err, SODET_E_UNSUPPORTED, "the reference backend has no collective %s", s->node->op->name);
}

static void add_to_bases(const ref_device *d, const step *s)
{
    for (uint32_t o = 0; o < s->args.n_out; o++) {
        if (!s->bases[o])
            continue;
        for (int64_t i = 0, n = sodet_elements(&s->args.out[o].shape); i < n; i++)
            if (d->real_size == 8)
                ((double *)s->bases[o])[i] += ((const double *)s->args.out[o].data)[i];
            else
                ((float *)s->bases[o])[i] += ((const float *)s->args.out[o].data)[i];
    }
}

static sodet_status run_all(program *p, const sodet_run *r, sodet_err *err)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        step *s = &p->steps[i];
        double start = r->node_seconds ? sd_now() : 0;
        s->args.seed = r->seed;
        s->args.step = r->step;
        if (s->kernel)
            s->kernel(&s->args);
        else if (s->node->op->flags & SODET_OP_COLLECTIVE) {
            sodet_status status = collective(p, s, err);
            if (status != SODET_OK)
                return sd_fail_in(err, status, "%s", s->node->layer);
        }
        if (s->bases)
            add_to_bases(p->device, s);
        if (r->node_seconds)
            r->node_seconds[i] += sd_now() - start;
    }
    return SODET_OK;
}

sodet_status ref_run(void *self, const sodet_run *r, sodet_err *err)
{
    program *p = self;
    const double began = sd_now();
    const sodet_status status = run_all(p, r, err);
    p->device->in_runs += sd_now() - began;
    return status;
}
