/* Shapes, cost and builders of square_sum. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_square_sum_attr *attr = n->attr;
    sodet_status status = op_check_arity(n, 3, 3, 2, 2, err);
    if (status == SODET_OK)
        status = op_check_rank(n, 0, "x", SODET_F32, 1, err);
    if (status != SODET_OK)
        return status;
    if (n->in_shape[0].dim[0] < 1)
        return SODET_FAIL(err, SODET_E_INVALID, "square_sum: x has no elements");
    if (attr->groups < 1 || attr->groups > SODET_SQUARE_SUM_GROUPS)
        return SODET_FAIL(err, SODET_E_INVALID, "square_sum: %u groups, 1 to %d expected", attr->groups, SODET_SQUARE_SUM_GROUPS);
    if (op_has(n, 1) || op_has(n, 2)) {
        status = op_check_rank(n, 1, "start", SODET_I32, 1, err);
        if (status == SODET_OK)
            status = op_check_shape(n, 2, "group", &n->in_shape[1], err);
        if (status != SODET_OK)
            return status;
        if (n->in_shape[1].dim[0] < 1)
            return SODET_FAIL(err, SODET_E_INVALID, "square_sum: a table of segments has at least one");
    }
    out[0] = sodet_shape_make(SODET_F32, 1, attr->groups, 0, 0, 0);
    out[1] = (sodet_shape){.dtype = SODET_F32};
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 2 * (uint64_t)sodet_elements(&n->in_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_square_sum = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_square_sum,
                                      .name = "square_sum",
                                      .n_parts = 1,
                                      .attr_size = sizeof(sodet_square_sum_attr),
                                      .infer = infer,
                                      .cost = cost};

sodet_value sodet_square_sum(sodet_graph *g, sodet_value x, sodet_value start, sodet_value group, uint32_t groups, sodet_value *finite)
{
    sodet_value in[3] = {x, start, group}, out[2];
    sodet_add_node(g, &sodet_op_square_sum, 0, &(sodet_square_sum_attr){.groups = groups}, in, 3, out, 2);
    if (finite)
        *finite = out[1];
    return out[0];
}

sodet_value sodet_clip_factor(sodet_graph *g, sodet_value square_sum, sodet_value limit, sodet_value scale, sodet_value *norm)
{
    sodet_value length = sodet_sqrt(g, square_sum);
    if (scale.id)
        length = sodet_mul(g, length, scale);
    if (norm)
        *norm = length;
    sodet_value factor = sodet_min(g, sodet_div(g, limit, sodet_add(g, length, sodet_scalar(g, 1e-6))), sodet_scalar(g, 1));
    return scale.id ? sodet_mul(g, factor, scale) : factor;
}
