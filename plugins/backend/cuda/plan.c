/* prepare(): from a graph to steps and buffers. */
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "plugins/backend/cuda/cuda.h"

/* ---- the operators' entries ---- */
#define OP(name, parts) extern const sodet_cuda_kernel sodet_cuda_##name[parts];
#include "ops_cuda.inc"
#undef OP

static const struct {
    uint32_t id;
    const sodet_cuda_kernel *kernel;
} entries[] = {
#define OP(name, parts) {SODET_OP_##name, sodet_cuda_##name},
#include "ops_cuda.inc"
#undef OP
    {0, NULL}};

const sodet_cuda_kernel *cuda_kernel_of(uint32_t op, uint32_t part)
{
    for (uint32_t i = 0; entries[i].id; i++)
        if (entries[i].id == op)
            return entries[i].kernel[part].launch ? &entries[i].kernel[part] : NULL;
    return NULL;
}

static bool is_conv(const sodet_node *n)
{
    return n->op->id == SODET_OP_conv2d;
}

/* ---- forms ---- */
static bool one_shape(const sodet_shape *a, const sodet_shape *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t i = 0; i < a->rank && same; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* Permutations that only say how a map lies: channels-last of a map, and a map of channels-last. */
static bool names_last(const sodet_node *n, uint32_t first)
{
    static const uint32_t orders[2][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}};
    return n->op->id == SODET_OP_permute && n->part == 0 && cuda_can_map(&n->in_shape[0]) &&
           memcmp(n->attr, orders[first], sizeof orders[first]) == 0;
}

/* Whether tensor `s` of the call follows the maps' layout, if the kernel computes on maps. */
static bool follows(const cuda_node *n, const sodet_shape *s)
{
    return cuda_can_map(s) && (!(n->kernel->flags & SODET_CUDA_FLAT) || one_shape(s, &n->node->out_shape[0]));
}

/* Whether this node can compute on maps at all. */
static bool can_map(const cuda_plan *p, const cuda_node *n)
{
    const sodet_node *node = n->node;
    if (!n->kernel || !(n->kernel->flags & (SODET_CUDA_FLAT | SODET_CUDA_LAST)) ||
        (p->device->map_type != SODET_F32 && !(n->kernel->flags & SODET_CUDA_NARROW)))
        return false;
    bool any = false;
    for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
        const sodet_shape *s = i < node->n_in ? &node->in_shape[i] : &node->out_shape[i - node->n_in];
        if (i < node->n_in && !node->in[i].id)
            continue;
        any = any || follows(n, s);
        /* A flat kernel wants all its tensors alike, but for a factor with one element. */
        if ((n->kernel->flags & SODET_CUDA_FLAT) && !follows(n, s) && sodet_elements(s) != 1)
            return false;
    }
    for (uint32_t o = 0; o < node->n_out; o++)
        if (node->op->shares && node->op->shares(node, o) && follows(n, &node->out_shape[o]))
            return false;
    return any;
}

/* Who would like to have its inputs as maps, seen from the end. */
static void find_wishes(cuda_plan *p)
{
    for (uint32_t i = p->forms.n_nodes; i-- > 0;) {
        const cuda_node *n = &p->node[i];
        const sodet_node *node = n->node;
        bool wish = is_conv(node) || names_last(node, 0);
        if (can_map(p, n))
            for (uint32_t o = 0; o < node->n_out; o++)
                wish = wish || p->forms.value[node->out[o].id].wanted;
        for (uint32_t k = 0; wish && k < node->n_in; k++)
            if (node->in[k].id && (n->kernel && !names_last(node, 0) ? follows(n, &node->in_shape[k]) : cuda_can_map(&node->in_shape[k])) &&
                sodet_graph_value(p->graph, node->in[k])->store == SODET_STORE_WORK)
                p->forms.value[node->in[k].id].wanted = true;
    }
}

static void choose_kernel(cuda_plan *p, cuda_node *n)
{
    const sodet_node *node = n->node;
    snprintf(n->text, sizeof n->text, "own");
    if (names_last(node, 0) && p->forms.value[node->in[0].id].home == CUDA_MAP) {
        n->form_in[0] = CUDA_MAP;
        snprintf(n->text, sizeof n->text, "copy of a channels-last map");
        return;
    }
    if (names_last(node, 1) && p->forms.value[node->out[0].id].wanted) {
        n->form_out[0] = CUDA_MAP;
        snprintf(n->text, sizeof n->text, "copy to a channels-last map");
        return;
    }
    if (!can_map(p, n))
        return;
    bool map = false;
    for (uint32_t i = 0; i < node->n_in; i++)
        map = map || (node->in[i].id && follows(n, &node->in_shape[i]) && p->forms.value[node->in[i].id].home == CUDA_MAP);
    for (uint32_t o = 0; o < node->n_out; o++)
        map = map || p->forms.value[node->out[o].id].wanted;
    for (uint32_t o = 0; o < node->n_out; o++) /* a place in an arena is plain */
        if (follows(n, &node->out_shape[o]) && sodet_graph_value(p->graph, node->out[o])->store != SODET_STORE_WORK)
            map = false;
    if (!map)
        return;
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i].id && follows(n, &node->in_shape[i]))
            n->form_in[i] = CUDA_MAP;
    for (uint32_t o = 0; o < node->n_out; o++)
        if (follows(n, &node->out_shape[o]))
            n->form_out[o] = CUDA_MAP;
    snprintf(n->text, sizeof n->text, "own, channels last");
}

static uint32_t nodes_with(const cuda_plan *p, uint64_t conv)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->forms.n_nodes; i++)
        n += is_conv(p->node[i].node) && p->node[i].conv == conv;
    return n;
}

/* What `deterministic = yes` costs, measured once for each set of convolutions. */
static sodet_status say_determinism(const cuda_plan *p, sodet_err *err)
{
    cuda_device *d = p->device;
    const uint64_t first = d->convs_told;
    uint32_t all = 0, other = 0, fallback = 0;
    double taken = 0, least = 0;
    char cost[96] = "which may be slower: there was no room on the device to measure it";
    bool measured = true;
    d->convs_told = d->n_convs;
    if (!d->config->deterministic || d->rank != 0)
        return SODET_OK;
    for (uint64_t i = first; i < d->n_convs; i++) {
        const cuda_conv *c = &d->conv[i];
        const uint32_t n = nodes_with(p, i);
        float ms[2] = {0};
        bool done = true;
        all += n;
        if (!c->plan.varying)
            continue;
        sodet_status s = measured ? cuda_tune_against_first(d, c, ms, &done, err) : SODET_OK;
        if (s != SODET_OK)
            return sd_fail_in(err, s, CUDA_SECTION " deterministic: what it costs");
        measured = measured && done;
        other += n;
        fallback += strncmp(c->plan.text, "fallback", 8) == 0 ? n : 0;
        taken += n * (double)ms[0];
        least += n * (double)ms[1];
    }
    if (measured)
        snprintf(cost, sizeof cost, "which takes %.3g ms where the first choice takes %.3g", taken, least);
    if (all)
        sd_log(SD_LOG_INFO,
               "deterministic = yes: of %u convolutions and gradients, %u take a later engine of cuDNN than its first choice (%u of them "
               "one of its fallback list)%s%s",
               all, other, fallback, other ? ", " : "", other ? cost : "");
    return SODET_OK;
}

static sodet_status choose(cuda_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cuda_node *n = &p->node[i];
        const sodet_node *node = n->node;
        if (is_conv(node)) {
            sodet_status s = cuda_choose_conv(p, n, err);
            if (s != SODET_OK)
                return s;
        } else if (n->kernel) {
            choose_kernel(p, n);
        }
        const sd_form_node at = cuda_at(n);
        sd_forms_settle(&p->forms, &at);
    }
    return say_determinism(p, err);
}

/* ---- nodes ---- */
static sodet_status no_place(const cuda_node *n, sodet_err *err)
{
    return err && err->code ? err->code : SODET_FAIL(err, SODET_E_MEMORY, "%s: no host memory to plan it", n->node->layer);
}

static sodet_status emit_view(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sd_place from = cuda_read(p, n, 0, err);
    if (!from)
        return no_place(n, err);
    if (sodet_graph_value(p->graph, node->out[0])->store == SODET_STORE_WORK && !(node->base && node->base[0].id)) {
        sd_forms_same(&p->forms, node->out[0], n->form_out[0], from);
        return SODET_OK;
    }
    const sd_place to = cuda_write(p, n, 0, UINT32_MAX, err);
    sodet_status s = to ? cuda_emit_copy(p, n, to, from, cuda_form_bytes(p, &node->out_shape[0], CUDA_PLAIN), err) : no_place(n, err);
    return s == SODET_OK ? cuda_written(p, n, 0, to, err) : s;
}

/* The bytes of a channels-last map are those of its permutation. */
static sodet_status emit_named_last(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const bool out = n->form_out[0] == CUDA_MAP;
    const sd_place from = cuda_read(p, n, 0, err), to = from ? cuda_write(p, n, 0, UINT32_MAX, err) : 0;
    if (!to)
        return no_place(n, err);
    sodet_tensor t[2] = {cuda_tensor(p, &node->in_shape[0], CUDA_PLAIN), cuda_tensor(p, &node->in_shape[0], CUDA_PLAIN)};
    t[out].shape.dtype = p->device->map_type;
    sodet_status s = cuda_emit_kernel(p, n, &cuda_cast, t, (const sd_place[]){from, to}, 1, 1, NULL, 0, node->prologue != 0, err);
    return s == SODET_OK ? cuda_written(p, n, 0, to, err) : s;
}

static sodet_status emit_kernel(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const uint32_t all = node->n_in + node->n_out;
    sodet_tensor *tensor = sd_pool_alloc(&p->pool, (all + 1) * sizeof *tensor);
    sd_place *place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *place);
    if (!tensor || !place)
        return cuda_out_of_memory(err);
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (!node->in[i].id)
            continue;
        tensor[i] = cuda_tensor(p, &node->in_shape[i], n->form_in[i]);
        place[i] = cuda_read(p, n, i, err);
        if (!place[i])
            return no_place(n, err);
    }
    for (uint32_t o = 0; o < node->n_out; o++) {
        uint32_t over = UINT32_MAX;
        if (o == 0 && (node->op->flags & SODET_OP_ELEMENTWISE))
            for (uint32_t i = 0; i < node->n_in && over == UINT32_MAX; i++)
                if (node->in[i].id && n->form_in[i] == n->form_out[0] && one_shape(&node->in_shape[i], &node->out_shape[0]) &&
                    cuda_dies(p, n, i))
                    over = i;
        tensor[node->n_in + o] = cuda_tensor(p, &node->out_shape[o], n->form_out[o]);
        place[node->n_in + o] = cuda_write(p, n, o, over, err);
        if (!place[node->n_in + o])
            return no_place(n, err);
    }
    sodet_status s =
        cuda_emit_kernel(p, n, n->kernel, tensor, place, node->n_in, node->n_out, node->attr, node->part, node->prologue != 0, err);
    for (uint32_t o = 0; o < node->n_out && s == SODET_OK; o++)
        s = cuda_written(p, n, o, place[node->n_in + o], err);
    return s;
}

static sodet_status emit_collective(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const uint32_t all = node->n_in + node->n_out;
    sodet_tensor *tensor = sd_pool_alloc(&p->pool, (all + 1) * sizeof *tensor);
    sd_place *place = sd_pool_alloc(&p->pool, (all + 1) * sizeof *place);
    if (!tensor || !place)
        return cuda_out_of_memory(err);
    for (uint32_t i = 0; i < all; i++) {
        const bool in = i < node->n_in;
        tensor[i] = (sodet_tensor){.shape = in ? node->in_shape[i] : node->out_shape[i - node->n_in]};
        place[i] = in ? cuda_read(p, n, i, err) : cuda_write(p, n, i - node->n_in, UINT32_MAX, err);
        if (!place[i])
            return no_place(n, err);
        sd_forms_until(&p->forms, place[i], n->index);
    }
    cuda_step *s = cuda_add_step(p, CUDA_COLLECTIVE, n->index, false, err);
    if (!s)
        return SODET_E_MEMORY;
    s->tensor = tensor;
    s->tensor_place = place;
    s->call = (sodet_kernel_args){.n_in = node->n_in, .n_out = node->n_out, .in = tensor, .out = tensor + node->n_in, .attr = node->attr};
    s->event = p->n_events++;
    for (uint32_t o = 0; o < node->n_out; o++) {
        p->pending[node->out[o].id] = s->event + 1;
        if (node->base && node->base[o].id)
            return SODET_FAIL(err, SODET_E_INTERNAL, "%s: a collective's output cannot be added to another value", node->layer);
    }
    snprintf(n->text, sizeof n->text, p->device->world > 1 ? "nccl" : "one device");
    return SODET_OK;
}

static sodet_status emit(cuda_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cuda_node *n = &p->node[i];
        sodet_status s;
        if (n->node->op->flags & SODET_OP_VIEW)
            s = emit_view(p, n, err);
        else if (n->node->op->flags & SODET_OP_COLLECTIVE)
            s = emit_collective(p, n, err);
        else if (is_conv(n->node))
            s = cuda_emit_conv(p, n, err);
        else if (n->form_in[0] != n->form_out[0] && n->node->op->id == SODET_OP_permute)
            s = emit_named_last(p, n, err);
        else
            s = emit_kernel(p, n, err);
        if (s != SODET_OK)
            return s;
    }
    return cuda_join_all(p, err);
}

static sodet_status make_nodes(cuda_plan *p, sodet_err *err)
{
    for (uint32_t i = 0; i < p->forms.n_nodes; i++) {
        cuda_node *n = &p->node[i];
        const sodet_node *node = sodet_graph_node(p->graph, i);
        n->node = node;
        n->index = i;
        n->form_in = sd_pool_alloc(&p->pool, node->n_in + 1);
        n->form_out = sd_pool_alloc(&p->pool, node->n_out + 1);
        if (!n->form_in || !n->form_out)
            return cuda_out_of_memory(err);
        sd_forms_node(&p->forms, node, i);
        if ((node->op->flags & (SODET_OP_VIEW | SODET_OP_COLLECTIVE)) || is_conv(node))
            continue;
        if (!node->op->id) {
            sodet_status s = cuda_own_kernel(p, node, &n->kernel, err);
            if (s != SODET_OK)
                return sd_fail_in(err, s, "%s", node->layer);
            continue;
        }
        n->kernel = cuda_kernel_of(node->op->id, node->part);
        if (!n->kernel)
            return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                              "%s: the CUDA backend has no kernel for part %u of operator %s; devices = cpu runs every operator",
                              node->layer, node->part, node->op->name);
    }
    return SODET_OK;
}

static const char *describe(const void *handle, uint32_t node)
{
    const cuda_plan *p = handle;
    return node < p->forms.n_nodes && p->node[node].text[0] ? p->node[node].text : NULL;
}

void cuda_release_plan(cuda_plan *p)
{
    if (!p || --p->references > 0)
        return;
    sd_free(p->steps[0].step);
    sd_free(p->steps[1].step);
    sd_forms_close(&p->forms);
    sd_free(p->copy);
    sd_free(p->node);
    sd_free(p->pending);
    sd_pool_clear(&p->pool);
    sd_free(p);
}

sodet_status cuda_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err)
{
    sodet_err local = SODET_ERR_INIT;
    if (!err)
        err = &local;
    cuda_device *d = device;
    *out = (sodet_plan){.struct_size = sizeof *out};
    sodet_status s = cuda_use(d, err);
    if (s != SODET_OK)
        return s;
    cuda_plan *p = sd_alloc(1, sizeof *p);
    if (!p)
        return cuda_out_of_memory(err);
    p->references = 1;
    p->device = d;
    p->graph = g;
    s = sd_forms_open(&p->forms, &cuda_form_ops, p, g, err);
    p->node = sd_alloc(p->forms.n_nodes + 1, sizeof *p->node);
    p->pending = sd_alloc(p->forms.n_values + 1, sizeof *p->pending);
    if (s == SODET_OK && (!p->node || !p->pending))
        s = cuda_out_of_memory(err);
    if (s == SODET_OK)
        s = make_nodes(p, err);
    if (s == SODET_OK) {
        find_wishes(p);
        s = choose(p, err);
        if (s == SODET_OK)
            s = cuda_tuned(d, err);
    }
    for (uint32_t i = 0; s == SODET_OK && i < p->forms.n_nodes; i++) {
        const sd_form_node at = cuda_at(&p->node[i]);
        sd_forms_uses(&p->forms, &at, true);
    }
    if (s == SODET_OK)
        s = sd_forms_live(&p->forms, err);
    if (s == SODET_OK)
        s = emit(p, err);
    if (s == SODET_OK)
        s = sd_forms_export(&p->forms, out, err);
    out->handle = p;
    out->describe = describe;
    if (s != SODET_OK)
        cuda_release_plan(p);
    return s;
}

void cuda_discard(void *device, sodet_plan *plan)
{
    (void)device;
    cuda_release_plan(plan->handle);
    *plan = (sodet_plan){.struct_size = sizeof *plan};
}
