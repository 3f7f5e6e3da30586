/* softmax: shapes, gradient, cost, builder. */
#include "kernels/softmax/softmax.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_softmax_attr *a = n->attr;
    char given[64];
    OP_TRY(op_check_arity(n, 1 + n->part, 1 + n->part, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    if (a->axis >= n->in_shape[0].rank)
        return SODET_FAIL(err, SODET_E_INVALID, "softmax: axis %d of %s: there is none", (int)a->axis,
                          sd_shape_text(&n->in_shape[0], given));
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 1, "dy", &n->in_shape[0], err));
    *out = n->in_shape[0];
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "softmax: there is no second derivative");
    if (OP_WANTED(want, 0))
        sodet_add_node(g, n->op, 1, n->attr, (const sodet_value[]){n->out[0], dout[0]}, 2, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (n->part ? 4u : 5u) * (uint64_t)sodet_elements(&n->out_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_softmax = {.struct_size = sizeof(sodet_op),
                                   .id = SODET_OP_softmax,
                                   .name = "softmax",
                                   .n_parts = 2,
                                   .attr_size = sizeof(sodet_softmax_attr),
                                   .infer = infer,
                                   .gradient = gradient,
                                   .cost = cost};

sodet_value sodet_softmax(sodet_graph *g, sodet_value x, int32_t axis)
{
    sodet_softmax_attr a = {(uint32_t)(axis < 0 ? axis + (int32_t)sodet_rank(g, x) : axis)};
    return sodet_apply(g, &sodet_op_softmax, &a, &x, 1);
}
