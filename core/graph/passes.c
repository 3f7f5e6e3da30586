/* Passes over a forward graph: batch norms with known statistics go into the convolution before them; convolution, residual and
 * activation become one node. Both keep the gradients right, since they are made before differentiation. */
#include <string.h>

#include "core/graph/internal.h"
#include "kernels/kernels.h"

/* A convolution to which something can still be added: nothing but `by` uses its result. */
static const sodet_node *open_convolution(const sodet_graph *g, sodet_value v)
{
    const sodet_node *conv = sd_producer(g, v);
    if (!sd_is(conv, SODET_OP_conv2d, 0) || g->values[v.id].uses != 1)
        return NULL;
    const sodet_conv2d_attr *attr = conv->attr;
    return attr->activation == SODET_ACT_NONE && (conv->n_in < 4 || conv->in[3].id == 0) ? conv : NULL;
}

/* The nodes from `first` on take the place in front of node `at`; `from` is replaced by `to` everywhere else. */
static void put(sodet_graph *g, uint64_t first, uint64_t at, sodet_value from, sodet_value to)
{
    if (g->failure.code != SODET_OK)
        return;
    sd_move_nodes(g, first, at);
    sd_replace_uses(g, from, to);
    sd_count_uses(g);
}

/* w' = w * s, b' = beta + (b - mean) * s with s = gamma / sqrt(var + epsilon): nodes on parameters, so that a program runs them once. */
static bool fold_norm(sodet_graph *g, uint64_t at)
{
    const sodet_node *norm = g->nodes[at];
    const sodet_node *conv = sd_is(norm, SODET_OP_batch_norm, 0) ? open_convolution(g, norm->in[0]) : NULL;
    if (!conv)
        return false;
    const sodet_batch_norm_attr *attr = norm->attr;
    const sodet_value gamma = norm->in[1], beta = norm->in[2], mean = norm->in[3], variance = norm->in[4];
    uint64_t first = g->n_nodes;
    g->layer = conv->layer;
    sodet_value deviation = sodet_sqrt(g, sodet_add(g, variance, sodet_scalar(g, (double)attr->epsilon)));
    sodet_value scale = sodet_div(g, gamma, deviation);
    const int64_t column[] = {sodet_dim(g, scale, 0), 1, 1, 1};
    sodet_value weight = sodet_mul(g, conv->in[1], sodet_reshape(g, scale, 4, column));
    sodet_value centre = conv->n_in > 2 && conv->in[2].id ? sodet_sub(g, mean, conv->in[2]) : mean;
    sodet_value bias = sodet_sub(g, beta, sodet_mul(g, centre, scale));
    sodet_value in[4] = {conv->in[0], weight, bias, SODET_NONE};
    sodet_value y = sodet_apply(g, conv->op, conv->attr, in, 4);
    g->layer = NULL;
    put(g, first, at, norm->out[0], y);
    return true;
}

static sodet_value convolve(sodet_graph *g, const sodet_node *conv, sodet_value residual, uint32_t activation, float slope)
{
    sodet_conv2d_attr attr = *(const sodet_conv2d_attr *)conv->attr;
    attr.activation = activation;
    attr.slope = slope;
    sodet_value in[4] = {conv->in[0], conv->in[1], conv->n_in > 2 ? conv->in[2] : SODET_NONE, residual};
    g->layer = conv->layer;
    sodet_value y = sodet_apply(g, conv->op, &attr, in, 4);
    g->layer = NULL;
    return y;
}

/* add(conv, r): of two convolutions, the later one takes the other as its residual. */
static bool fuse_residual(sodet_graph *g, uint64_t at)
{
    const sodet_node *sum = g->nodes[at];
    if (!sd_is(sum, SODET_OP_binary, 0) || ((const sodet_binary_attr *)sum->attr)->kind != SODET_BINARY_ADD)
        return false;
    if (memcmp(&sum->in_shape[0], &sum->in_shape[1], sizeof *sum->in_shape) != 0 || sum->in[0].id == sum->in[1].id)
        return false;
    const sodet_node *a = open_convolution(g, sum->in[0]), *b = open_convolution(g, sum->in[1]);
    bool second = b && (!a || g->values[sum->in[1].id].producer > g->values[sum->in[0].id].producer);
    if (!a && !b)
        return false;
    uint64_t first = g->n_nodes;
    sodet_value y = convolve(g, second ? b : a, sum->in[second ? 0 : 1], SODET_ACT_NONE, 0);
    put(g, first, at, sum->out[0], y);
    return true;
}

static bool fuse_activation(sodet_graph *g, uint64_t at)
{
    const sodet_node *act = g->nodes[at];
    if (!sd_is(act, SODET_OP_activation, 0))
        return false;
    const sodet_activation_attr *attr = act->attr;
    const sodet_node *conv = sd_producer(g, act->in[0]);
    if (!sd_is(conv, SODET_OP_conv2d, 0) || g->values[act->in[0].id].uses != 1 ||
        ((const sodet_conv2d_attr *)conv->attr)->activation != SODET_ACT_NONE)
        return false;
    if (g->options.training && !sodet_activation_from_output(attr->kind))
        return false;
    uint64_t first = g->n_nodes;
    sodet_value y = convolve(g, conv, conv->n_in > 3 ? conv->in[3] : SODET_NONE, attr->kind, attr->slope);
    put(g, first, at, act->out[0], y);
    return true;
}

sodet_status sd_graph_optimize(sodet_graph *g, sodet_err *err)
{
    sodet_status status = sodet_graph_status(g, err);
    if (status != SODET_OK)
        return status;
    if (g->differentiated || g->sealed)
        return SODET_FAIL(err, SODET_E_INTERNAL, "a graph is simplified before it is differentiated and sealed");
    status = sd_drop_dead(g, err);
    if (status != SODET_OK)
        return status;
    sd_count_uses(g);
    bool (*const passes[])(sodet_graph *, uint64_t) = {fold_norm, fuse_residual, fuse_activation};
    for (uint32_t p = 0; p < sizeof passes / sizeof *passes && status == SODET_OK; p++) {
        for (uint64_t i = 0; i < g->n_nodes && g->failure.code == SODET_OK; i++)
            if (g->values[g->nodes[i]->out[0].id].uses) /* what a pass replaced stays behind the replacement, dead */
                passes[p](g, i);
        status = sodet_graph_status(g, err);
        if (status == SODET_OK)
            status = sd_drop_dead(g, err);
        sd_count_uses(g);
    }
    return status;
}
