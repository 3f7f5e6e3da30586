/* Order, uses, dead code, prologue marks: the last look at a graph before it is bound. */
#include <string.h>

#include "core/graph/internal.h"

bool sd_is(const sodet_node *n, uint32_t op, uint32_t part)
{
    return n && n->op->id == op && n->part == part;
}

void sd_replace_uses(sodet_graph *g, sodet_value from, sodet_value to)
{
    for (uint64_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k].id == from.id)
                ((sodet_value *)(uintptr_t)g->nodes[i]->in)[k] = to; /* the arrays are the graph's own, see sodet_add_node */
    for (uint64_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i].value.id == from.id) {
            g->outputs[i].value = to;
            g->values[from.id].info.is_output = 0;
            g->values[to.id].info.is_output = 1;
        }
    for (uint64_t i = 0; i < g->n_losses; i++)
        if (g->losses[i].value.id == from.id)
            g->losses[i].value = to;
}

void sd_renumber(sodet_graph *g)
{
    for (uint64_t v = 1; v < g->n_values; v++)
        g->values[v].producer = SD_NOWHERE;
    for (uint64_t i = 0; i < g->n_nodes; i++)
        for (uint32_t o = 0; o < g->nodes[i]->n_out; o++)
            g->values[g->nodes[i]->out[o].id].producer = (uint32_t)i;
}

void sd_move_nodes(sodet_graph *g, uint64_t first, uint64_t at)
{
    uint64_t n = g->n_nodes - first;
    if (n == 0 || at >= first)
        return;
    for (uint64_t k = 0; k < n; k++) { /* few nodes are moved at a time */
        sodet_node *node = g->nodes[first + k];
        memmove(&g->nodes[at + k + 1], &g->nodes[at + k], (first - at) * sizeof *g->nodes);
        g->nodes[at + k] = node;
    }
    sd_renumber(g);
}

void sd_count_uses(sodet_graph *g)
{
    for (uint64_t v = 0; v < g->n_values; v++) {
        g->values[v].uses = 0;
        g->values[v].last = SD_NOWHERE;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const sodet_node *n = g->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            g->values[n->in[k].id].uses++;
            g->values[n->in[k].id].last = i;
        }
        for (uint32_t k = 0; n->base && k < n->n_out; k++) {
            g->values[n->base[k].id].uses++;
            g->values[n->base[k].id].last = i;
        }
    }
    g->values[0].uses = 0;
    uint32_t end = g->n_nodes ? (uint32_t)g->n_nodes - 1 : 0;
    for (uint64_t i = 0; i < g->n_outputs; i++) {
        g->values[g->outputs[i].value.id].uses++;
        g->values[g->outputs[i].value.id].last = end;
    }
    for (uint64_t i = 0; i < g->n_losses; i++) {
        g->values[g->losses[i].value.id].uses++;
        g->values[g->losses[i].value.id].last = end;
    }
}

sodet_status sd_drop_dead(sodet_graph *g, sodet_err *err)
{
    bool *needed = sd_alloc(g->n_values, sizeof *needed);
    if (!needed)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to simplify a graph of %llu nodes", (unsigned long long)g->n_nodes);
    for (uint64_t i = 0; i < g->n_outputs; i++)
        needed[g->outputs[i].value.id] = true;
    for (uint64_t i = 0; i < g->n_losses; i++)
        needed[g->losses[i].value.id] = true;
    for (uint64_t v = 1; v < g->n_values; v++) { /* gradients of parameters are what the program is for */
        if (g->values[v].gradient.id)
            needed[g->values[v].gradient.id] = true;
    }
    uint64_t kept = g->n_nodes;
    for (uint64_t i = g->n_nodes; i-- > 0;) {
        sodet_node *n = g->nodes[i];
        bool use = n->op->flags & (SODET_OP_STATE | SODET_OP_COLLECTIVE);
        for (uint32_t o = 0; o < n->n_out && !use; o++)
            use = needed[n->out[o].id] || (n->op->shares && n->op->shares(n, o));
        if (!use)
            continue;
        for (uint32_t k = 0; k < n->n_in; k++)
            needed[n->in[k].id] = true;
        for (uint32_t k = 0; n->base && k < n->n_out; k++)
            needed[n->base[k].id] = true;
        g->nodes[--kept] = n; /* kept ones gather at the end of the array */
    }
    memmove(g->nodes, g->nodes + kept, (g->n_nodes - kept) * sizeof *g->nodes);
    g->n_nodes -= kept;
    sd_renumber(g);
    sd_free(needed);
    return SODET_OK;
}

/* A node whose inputs are parameters, constants or results of such nodes runs again only when the parameters changed. Buffers count as
 * constant unless this graph updates them. */
static sodet_status mark_prologue(sodet_graph *g, sodet_err *err)
{
    bool *still = sd_alloc(g->n_values, sizeof *still);
    if (!still)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to mark a graph of %llu nodes", (unsigned long long)g->n_nodes);
    for (uint64_t v = 1; v < g->n_values; v++) {
        uint32_t store = g->values[v].info.store;
        still[v] = g->values[v].producer == SD_NOWHERE &&
                   (store == SODET_STORE_CONST || store == SODET_STORE_PARAM || store == SODET_STORE_FROZEN);
    }
    for (uint64_t i = 0; i < g->n_nodes; i++)
        for (uint32_t o = 0; o < g->nodes[i]->n_out; o++) {
            uint32_t shared = g->nodes[i]->op->shares ? g->nodes[i]->op->shares(g->nodes[i], o) : 0;
            if (shared)
                still[g->nodes[i]->in[shared - 1].id] = false;
        }
    for (uint64_t i = 0; i < g->n_nodes; i++) {
        sodet_node *n = g->nodes[i];
        bool all = !(n->op->flags & (SODET_OP_STATE | SODET_OP_COLLECTIVE));
        for (uint32_t k = 0; k < n->n_in && all; k++)
            all = n->in[k].id == 0 || still[n->in[k].id];
        for (uint32_t o = 0; o < n->n_out && all; o++)
            all = g->values[n->out[o].id].info.store == SODET_STORE_WORK;
        n->prologue = all;
        for (uint32_t o = 0; o < n->n_out; o++)
            still[n->out[o].id] = all;
    }
    sd_free(still);
    return SODET_OK;
}

sodet_status sd_graph_seal(sodet_graph *g, sodet_err *err)
{
    sodet_status status = sodet_graph_status(g, err);
    if (status != SODET_OK || g->sealed)
        return status;
    status = sd_drop_dead(g, err);
    if (status == SODET_OK)
        status = mark_prologue(g, err);
    if (status != SODET_OK)
        return status;
    sd_count_uses(g);
    g->sealed = true;
    return SODET_OK;
}
