/* Shapes and builders of compare. */
#include "kernels/broadcast_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_compare_attr *attr = n->attr;
    sodet_status status = op_check_arity(n, 2, 2, 1, 1, err);
    if (status != SODET_OK)
        return status;
    if (attr->kind < SODET_COMPARE_GE || attr->kind > SODET_COMPARE_NE)
        return SODET_FAIL(err, SODET_E_INVALID, "compare: there is no kind %u", attr->kind);
    for (uint32_t k = 0; k < 2; k++)
        if (n->in_shape[k].dtype != SODET_F32 && n->in_shape[k].dtype != SODET_I32) {
            char given[64];
            return SODET_FAIL(err, SODET_E_INVALID, "compare: operand %u is %s, float32 or int32 expected", k,
                              sd_shape_text(&n->in_shape[k], given));
        }
    out->dtype = SODET_F32;
    return broadcast_shape(n, out, err);
}

const sodet_op sodet_op_compare = {.struct_size = sizeof(sodet_op),
                                   .id = SODET_OP_compare,
                                   .name = "compare",
                                   .n_parts = 1,
                                   .flags = SODET_OP_ELEMENTWISE,
                                   .attr_size = sizeof(sodet_compare_attr),
                                   .infer = infer};

static sodet_value build(sodet_graph *g, uint32_t kind, sodet_value a, sodet_value b)
{
    sodet_value in[2] = {a, b};
    return sodet_apply(g, &sodet_op_compare, &(sodet_compare_attr){.kind = kind}, in, 2);
}

sodet_value sodet_ge(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_GE, a, b);
}

sodet_value sodet_gt(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_GT, a, b);
}

sodet_value sodet_le(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_LE, a, b);
}

sodet_value sodet_lt(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_LT, a, b);
}

sodet_value sodet_eq(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_EQ, a, b);
}

sodet_value sodet_ne(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_COMPARE_NE, a, b);
}
