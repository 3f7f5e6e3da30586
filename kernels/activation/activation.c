/* activation: shapes, gradient, cost, builders. */
#include "kernels/activation/activation.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_activation_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1 + n->part, 1 + n->part, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    if (a->kind == SODET_ACT_NONE || a->kind >= SODET_ACT_COUNT)
        return SODET_FAIL(err, SODET_E_INVALID, "activation: kind %u: there is none of this number", a->kind);
    if (!(a->slope >= 0))
        return SODET_FAIL(err, SODET_E_INVALID, "activation: slope = %g: 0 or more expected (the derivative is taken from the output)",
                          (double)a->slope);
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 1, "dy", &n->in_shape[0], err));
    out[0] = n->in_shape[0];
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    const sodet_activation_attr *a = n->attr;
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "activation: there is no second derivative");
    if (OP_WANTED(want, 0))
        din[0] = sodet_activation_gradient(g, a->kind, a->slope, sodet_activation_from_output(a->kind) ? n->out[0] : n->in[0], dout[0]);
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_activation = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_activation,
                                      .name = "activation",
                                      .n_parts = 2,
                                      .flags = SODET_OP_ELEMENTWISE,
                                      .attr_size = sizeof(sodet_activation_attr),
                                      .infer = infer,
                                      .gradient = gradient};

static sodet_value apply(sodet_graph *g, uint32_t kind, float slope, sodet_value x)
{
    sodet_activation_attr a = {kind, slope};
    return sodet_apply(g, &sodet_op_activation, &a, &x, 1);
}

sodet_value sodet_activation(sodet_graph *g, uint32_t kind, sodet_value x)
{
    return kind == SODET_ACT_NONE ? x : apply(g, kind, 0, x);
}

sodet_value sodet_activation_gradient(sodet_graph *g, uint32_t kind, float slope, sodet_value kept, sodet_value dy)
{
    sodet_activation_attr a = {kind, slope};
    sodet_value dx;
    sodet_add_node(g, &sodet_op_activation, 1, &a, (const sodet_value[]){kept, dy}, 2, &dx, 1);
    return dx;
}

sodet_value sodet_relu(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_RELU, 0, x);
}

sodet_value sodet_relu6(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_RELU6, 0, x);
}

sodet_value sodet_leaky_relu(sodet_graph *g, sodet_value x, float slope)
{
    return apply(g, SODET_ACT_LEAKY_RELU, slope, x);
}

sodet_value sodet_hard_swish(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_HARD_SWISH, 0, x);
}

sodet_value sodet_hard_sigmoid(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_HARD_SIGMOID, 0, x);
}

sodet_value sodet_sigmoid(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_SIGMOID, 0, x);
}

sodet_value sodet_silu(sodet_graph *g, sodet_value x)
{
    return apply(g, SODET_ACT_SILU, 0, x);
}
