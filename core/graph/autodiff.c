/* Reverse-mode differentiation: from the loss terms back to every trainable parameter, in one walk over the nodes. */
#include <stdio.h>
#include <string.h>

#include "core/graph/internal.h"
#include "kernels/kernels.h"

typedef struct contribution {
    uint32_t value, next; /* next: 1 + index, 0 ends */
} contribution;

typedef struct walk {
    sodet_graph *g;
    uint64_t n_values;   /* of the forward graph */
    bool *live;          /* [n_values] depends on a trainable parameter */
    uint32_t *head;      /* [n_values] 1 + index of the newest contribution to the value's gradient; 0: none */
    uint32_t *first_use; /* [n_values] first node that uses it */
    contribution *list;
    uint64_t n, capacity;
} walk;

static void contribute(walk *w, sodet_value to, sodet_value gradient)
{
    sodet_err err = SODET_ERR_INIT;
    if (!gradient.id || gradient.id == SODET_POISON.id)
        return;
    if (sd_grow(&w->list, &w->capacity, w->n + 1, sizeof *w->list, &err) != SODET_OK) {
        sodet_graph_fail(w->g, SODET_E_MEMORY, "%s", err.text);
        return;
    }
    w->list[w->n] = (contribution){gradient.id, w->head[to.id]};
    w->head[to.id] = (uint32_t)++w->n;
}

/* The node adds into the buffer of `sum`: its output becomes sum + what it computes. Only for outputs that nothing else has seen. */
static bool accumulate_into(walk *w, sodet_value gradient, sodet_value sum)
{
    sodet_graph *g = w->g;
    sodet_node *n = sd_producer(g, gradient);
    const sodet_node *before = sd_producer(g, sum);
    if (!n || !before || n == before || n->part == 0 || before->part == 0 || g->values[sum.id].producer > g->values[gradient.id].producer)
        return false;
    sodet_value *base = (sodet_value *)(uintptr_t)n->base;
    if (!base) {
        base = sd_pool_alloc(&g->pool, n->n_out * sizeof *base);
        if (!base)
            return false;
        n->base = base;
    }
    base[g->values[gradient.id].output] = sum;
    return true;
}

static sodet_value total(walk *w, uint32_t value, bool parameter)
{
    sodet_value terms[64], sum = SODET_NONE;
    uint32_t n = 0;
    for (uint32_t i = w->head[value]; i; i = w->list[i - 1].next) {
        if (n == 64) { /* newest first: fold what is there */
            terms[0] = sodet_add(w->g, terms[0], terms[1]);
            memmove(terms + 1, terms + 2, 62 * sizeof *terms);
            n = 63;
        }
        terms[n++] = (sodet_value){w->list[i - 1].value};
    }
    while (n-- > 0) { /* oldest first, so that the order of summation is that of the walk */
        if (!sum.id)
            sum = terms[n];
        else if (parameter && accumulate_into(w, terms[n], sum))
            sum = terms[n];
        else
            sum = sodet_add(w->g, sum, terms[n]);
    }
    return sum;
}

/* A parameter's gradient needs a place of its own: a value that is also something else's gradient is copied. */
static void finish_parameter(walk *w, uint32_t value)
{
    sodet_graph *g = w->g;
    if (!w->head[value] || g->values[value].gradient.id)
        return;
    sodet_value sum = total(w, value, true);
    const sd_value *s = sd_value_at(g, sum);
    if (!s)
        return;
    bool own = s->producer != SD_NOWHERE && !(g->nodes[s->producer]->op->flags & SODET_OP_VIEW) && s->info.store == SODET_STORE_WORK;
    for (uint64_t v = 1; v < w->n_values && own; v++)
        own = g->values[v].gradient.id != sum.id;
    uint32_t seen = 0; /* as a contribution to several values */
    for (uint64_t i = 0; i < w->n && own; i++)
        seen += w->list[i].value == sum.id;
    if (!own || seen > 1)
        sum = sodet_add(g, sum, sodet_scalar(g, 0));
    g->values[value].gradient = sum;
}

static void differentiate(walk *w, uint32_t index)
{
    sodet_graph *g = w->g;
    const sodet_node *n = g->nodes[index];
    sodet_value dout[16], din[64];
    bool any = false;
    if (n->n_out > 16 || n->n_in > 64) {
        sodet_graph_fail(g, SODET_E_INTERNAL, "%s has %u inputs and %u outputs: 64 and 16 are the most that can be differentiated",
                         n->op->name, n->n_in, n->n_out);
        return;
    }
    g->layer = n->layer;
    uint64_t want = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        din[i] = SODET_NONE;
        if (n->in[i].id && w->live[n->in[i].id])
            want |= 1ull << i;
    }
    for (uint32_t o = 0; o < n->n_out && want; o++) {
        dout[o] = n->out[o].id < w->n_values && w->live[n->out[o].id] ? total(w, n->out[o].id, false) : SODET_NONE;
        any |= dout[o].id != 0;
    }
    if (want && any && n->op->gradient) {
        sodet_err err = SODET_ERR_INIT;
        sodet_status status = n->op->gradient(g, n, dout, want, din, &err);
        if (status != SODET_OK)
            sodet_graph_fail(g, status, "%s", err.text);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (want >> i & 1 && din[i].id) {
                if (sd_value_at(g, din[i]) && sodet_elements(&g->values[din[i].id].info.shape) != sodet_elements(&n->in_shape[i])) {
                    char have[64], should[64];
                    sodet_graph_fail(g, SODET_E_INTERNAL, "%s: gradient of input %u is %s, expected %s", n->op->name, i,
                                     sd_shape_text(&g->values[din[i].id].info.shape, have), sd_shape_text(&n->in_shape[i], should));
                }
                contribute(w, n->in[i], din[i]);
            }
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i].id && g->values[n->in[i].id].parameter && w->live[n->in[i].id] && w->first_use[n->in[i].id] == index)
            finish_parameter(w, n->in[i].id);
}

static sodet_status prepare(walk *w, sodet_err *err)
{
    sodet_graph *g = w->g;
    w->n_values = g->n_values;
    w->live = sd_alloc(g->n_values, sizeof *w->live);
    w->head = sd_alloc(g->n_values, sizeof *w->head);
    w->first_use = sd_alloc(g->n_values, sizeof *w->first_use);
    if (!w->live || !w->head || !w->first_use)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to differentiate a graph of %llu nodes", (unsigned long long)g->n_nodes);
    for (uint64_t v = 1; v < g->n_values; v++) {
        w->live[v] = g->values[v].parameter && g->values[v].info.store == SODET_STORE_PARAM;
        w->first_use[v] = SD_NOWHERE;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const sodet_node *n = g->nodes[i];
        bool live = false;
        for (uint32_t k = 0; k < n->n_in; k++) {
            live |= n->in[k].id && w->live[n->in[k].id];
            if (w->first_use[n->in[k].id] == SD_NOWHERE)
                w->first_use[n->in[k].id] = i;
        }
        for (uint32_t o = 0; o < n->n_out; o++)
            w->live[n->out[o].id] = live && n->op->gradient && n->out_shape[o].dtype != SODET_I32;
    }
    return SODET_OK;
}

sodet_status sd_graph_backward(sodet_graph *g, sodet_err *err)
{
    sodet_status status = sodet_graph_status(g, err);
    if (status != SODET_OK)
        return status;
    if (g->differentiated || g->sealed)
        return SODET_FAIL(err, SODET_E_INTERNAL, "a graph is differentiated once, before it is sealed");
    if (g->n_losses == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "the loss plugin emitted no term: nothing can be trained");
    walk w = {.g = g};
    status = prepare(&w, err);
    uint32_t n_forward = (uint32_t)g->n_nodes;
    if (status == SODET_OK) {
        const sodet_shape scalar = {.dtype = SODET_F32};
        sodet_value sum = SODET_NONE, seed = g->options.scaled ? sodet_input(g, "loss_scale", &scalar) : sodet_scalar(g, 1);
        for (uint64_t i = 0; i < g->n_losses; i++) {
            char name[128];
            snprintf(name, sizeof name, "loss/%.100s", g->losses[i].name);
            sodet_output(g, name, g->losses[i].value);
            if (w.live[g->losses[i].value.id])
                contribute(&w, g->losses[i].value, seed);
            sum = sum.id ? sodet_add(g, sum, g->losses[i].value) : g->losses[i].value;
        }
        sodet_output(g, "loss", sum);
        for (uint32_t i = n_forward; i-- > 0 && g->failure.code == SODET_OK;)
            differentiate(&w, i);
        g->layer = NULL;
        g->differentiated = true;
        status = sodet_graph_status(g, err);
    }
    sd_free(w.live);
    sd_free(w.head);
    sd_free(w.first_use);
    sd_free(w.list);
    return status;
}
