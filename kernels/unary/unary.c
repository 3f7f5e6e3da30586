/* Shapes, gradient and builders of unary. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_unary_attr *attr = n->attr;
    sodet_status status = op_check_arity(n, 1, 1, 1, 1, err);
    if (status == SODET_OK)
        status = op_check_rank(n, 0, "operand", SODET_F32, UINT32_MAX, err);
    if (status != SODET_OK)
        return status;
    if (attr->kind < SODET_UNARY_EXP || attr->kind > SODET_UNARY_FLOOR)
        return SODET_FAIL(err, SODET_E_INVALID, "unary: there is no kind %u", attr->kind);
    *out = n->in_shape[0];
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    sodet_value x = n->in[0], y = n->out[0], dy = dout[0];
    if (!dy.id || !OP_WANTED(want, 0))
        return SODET_OK;
    switch (((const sodet_unary_attr *)n->attr)->kind) {
    case SODET_UNARY_EXP:
        din[0] = sodet_mul(g, dy, y);
        break;
    case SODET_UNARY_LOG:
        din[0] = sodet_div(g, dy, x);
        break;
    case SODET_UNARY_SQRT:
        din[0] = sodet_div(g, dy, sodet_add(g, y, y));
        break;
    case SODET_UNARY_ABS:
        din[0] = sodet_mul(g, dy, sodet_sign(g, x));
        break;
    case SODET_UNARY_NEG:
        din[0] = sodet_neg(g, dy);
        break;
    case SODET_UNARY_SQUARE:
        din[0] = sodet_mul(g, dy, sodet_add(g, x, x));
        break;
    case SODET_UNARY_RECIPROCAL:
        din[0] = sodet_neg(g, sodet_mul(g, dy, sodet_square(g, y)));
        break;
    default:
        break;
    }
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_unary = {.struct_size = sizeof(sodet_op),
                                 .id = SODET_OP_unary,
                                 .name = "unary",
                                 .n_parts = 1,
                                 .flags = SODET_OP_ELEMENTWISE,
                                 .attr_size = sizeof(sodet_unary_attr),
                                 .infer = infer,
                                 .gradient = gradient};

static sodet_value build(sodet_graph *g, uint32_t kind, sodet_value x)
{
    return sodet_apply(g, &sodet_op_unary, &(sodet_unary_attr){.kind = kind}, &x, 1);
}

sodet_value sodet_exp(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_EXP, x);
}

sodet_value sodet_log(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_LOG, x);
}

sodet_value sodet_sqrt(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_SQRT, x);
}

sodet_value sodet_abs(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_ABS, x);
}

sodet_value sodet_neg(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_NEG, x);
}

sodet_value sodet_square(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_SQUARE, x);
}

sodet_value sodet_reciprocal(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_RECIPROCAL, x);
}

sodet_value sodet_sign(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_SIGN, x);
}

sodet_value sodet_floor(sodet_graph *g, sodet_value x)
{
    return build(g, SODET_UNARY_FLOOR, x);
}
