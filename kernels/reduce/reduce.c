/* Shapes, gradient and builders of reduce. */
#include "kernels/describe.h"

static void result_shape(const sodet_reduce_attr *attr, const sodet_shape *x, sodet_shape *out)
{
    *out = (sodet_shape){.dtype = SODET_F32};
    for (uint32_t i = 0; i < x->rank; i++)
        if (!(attr->drop >> i & 1))
            out->dim[out->rank++] = attr->axes >> i & 1 ? 1 : x->dim[i];
}

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_reduce_attr *attr = n->attr;
    sodet_status status = op_check_arity(n, 1, n->part == 0 ? 1 : 3, 1, 1, err);
    if (status == SODET_OK)
        status = op_check_rank(n, 0, "operand", SODET_F32, UINT32_MAX, err);
    if (status != SODET_OK)
        return status;
    const sodet_shape *x = n->part == 0 ? &n->in_shape[0] : &attr->x;
    if (attr->kind < SODET_REDUCE_SUM || attr->kind > SODET_REDUCE_MAX)
        return SODET_FAIL(err, SODET_E_INVALID, "reduce: there is no kind %u", attr->kind);
    char given[64];
    if (attr->axes >> x->rank || (attr->drop & ~attr->axes))
        return SODET_FAIL(err, SODET_E_INVALID, "reduce: dimensions 0x%x of %s, of which 0x%x are to be dropped: some are not there",
                          attr->axes, sd_shape_text(x, given), attr->drop);
    if (attr->kind != SODET_REDUCE_SUM && sodet_elements(x) == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "reduce: %s has no elements, so no mean and no maximum", sd_shape_text(x, given));
    sodet_shape result;
    result_shape(attr, x, &result);
    if (n->part == 0) {
        *out = result;
        return SODET_OK;
    }
    *out = *x;
    status = op_check_shape(n, 0, "gradient", &result, err);
    if (status == SODET_OK && attr->kind == SODET_REDUCE_MAX) {
        status = op_check_shape(n, 1, "x", x, err);
        if (status == SODET_OK)
            status = op_check_shape(n, 2, "y", &result, err);
    }
    return status;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (!dout[0].id || !OP_WANTED(want, 0))
        return SODET_OK;
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "reduce: its gradient has no gradient");
    sodet_reduce_attr attr = *(const sodet_reduce_attr *)n->attr;
    attr.x = n->in_shape[0];
    sodet_value in[3] = {dout[0], n->in[0], n->out[0]};
    sodet_add_node(g, n->op, 1, &attr, in, attr.kind == SODET_REDUCE_MAX ? 3 : 1, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    const sodet_shape *x = n->part == 0 ? &n->in_shape[0] : &n->out_shape[0];
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(x), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_reduce = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_reduce,
                                  .name = "reduce",
                                  .n_parts = 2,
                                  .attr_size = sizeof(sodet_reduce_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

static sodet_value build(sodet_graph *g, uint32_t kind, sodet_value x, uint32_t axes)
{
    if (axes == 0)
        axes = (1u << sodet_rank(g, x)) - 1;
    return sodet_apply(g, &sodet_op_reduce, &(sodet_reduce_attr){.kind = kind, .axes = axes, .drop = axes}, &x, 1);
}

sodet_value sodet_sum(sodet_graph *g, sodet_value x, uint32_t axes)
{
    return build(g, SODET_REDUCE_SUM, x, axes);
}

sodet_value sodet_mean(sodet_graph *g, sodet_value x, uint32_t axes)
{
    return build(g, SODET_REDUCE_MEAN, x, axes);
}

sodet_value sodet_reduce_max(sodet_graph *g, sodet_value x, uint32_t axes)
{
    return build(g, SODET_REDUCE_MAX, x, axes);
}

sodet_value sodet_sum_per_image(sodet_graph *g, sodet_value x)
{
    uint32_t rank = sodet_rank(g, x);
    return rank == 1 ? x : build(g, SODET_REDUCE_SUM, x, ((1u << rank) - 1) & ~1u);
}
