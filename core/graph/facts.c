/* What can be asked of a graph: nodes, values, outputs, costs, text. */
#include <stdio.h>
#include <string.h>

#include "core/graph/internal.h"

uint32_t sodet_graph_node_count(const sodet_graph *g)
{
    return (uint32_t)g->n_nodes;
}

const sodet_node *sodet_graph_node(const sodet_graph *g, uint32_t i)
{
    return i < g->n_nodes ? g->nodes[i] : NULL;
}

uint32_t sodet_graph_value_count(const sodet_graph *g)
{
    return (uint32_t)g->n_values - 1;
}

const sodet_value_info *sodet_graph_value(const sodet_graph *g, sodet_value v)
{
    const sd_value *value = sd_value_at(g, v);
    return value ? &value->info : NULL;
}

uint32_t sodet_graph_uses(const sodet_graph *g, sodet_value v, uint32_t *last)
{
    const sd_value *value = sd_value_at(g, v);
    *last = value ? value->last : SD_NOWHERE;
    return value ? value->uses : 0;
}

sodet_value sd_graph_find_input(const sodet_graph *g, const char *name)
{
    for (uint32_t i = 1; i < g->n_values; i++)
        if (g->values[i].info.store == SODET_STORE_INPUT && strcmp(g->values[i].info.name, name) == 0)
            return (sodet_value){i};
    return SODET_NONE;
}

sodet_value sd_graph_find_output(const sodet_graph *g, const char *name)
{
    for (uint64_t i = 0; i < g->n_outputs; i++)
        if (strcmp(g->outputs[i].name, name) == 0)
            return g->outputs[i].value;
    return SODET_NONE;
}

uint32_t sd_graph_output_count(const sodet_graph *g)
{
    return (uint32_t)g->n_outputs;
}

const char *sd_graph_output_name(const sodet_graph *g, uint32_t i, sodet_value *v)
{
    *v = g->outputs[i].value;
    return g->outputs[i].name;
}

uint32_t sd_graph_loss_count(const sodet_graph *g)
{
    return (uint32_t)g->n_losses;
}

const sd_loss_term *sd_graph_loss(const sodet_graph *g, uint32_t i)
{
    return &g->losses[i];
}

sodet_cost sd_node_cost(const sodet_node *n)
{
    sodet_cost cost = {0, 0, 0};
    if (n->op->cost)
        n->op->cost(n, &cost);
    else if (!(n->op->flags & SODET_OP_VIEW))
        for (uint32_t i = 0; i < n->n_out; i++)
            cost.flops += (uint64_t)sodet_elements(&n->out_shape[i]);
    if (cost.bytes == 0 && !(n->op->flags & SODET_OP_VIEW)) {
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i].id)
                cost.bytes += 4 * (uint64_t)sodet_elements(&n->in_shape[i]);
        for (uint32_t i = 0; i < n->n_out; i++)
            cost.bytes += 4 * (uint64_t)sodet_elements(&n->out_shape[i]);
    }
    return cost;
}

const char *sd_graph_path(const sodet_graph *g)
{
    return g->path;
}

const char *sd_shape_text(const sodet_shape *s, char out[64])
{
    static const char *const names[] = {"absent", "f32", "i32", "bf16", "f16"};
    size_t at = 0;
    for (uint32_t i = 0; i < s->rank && at < 50; i++)
        at += (size_t)snprintf(out + at, 64 - at, "%s%lld", i ? "x" : "", (long long)s->dim[i]);
    if (at < 58)
        snprintf(out + at, 64 - at, "%s%s", at ? " " : "scalar ", names[s->dtype <= SODET_F16 ? s->dtype : 0]);
    return out;
}
