/* Shapes, cost and builder of adam_update. */
#include "kernels/update_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    sodet_status status = op_check_arity(n, 9, 9, 3, 3, err);
    if (status == SODET_OK)
        status = update_check(n, 4, UINT32_MAX, 7, err);
    if (status != SODET_OK)
        return status;
    for (uint32_t i = 0; i < 3; i++)
        out[i] = n->in_shape[0];
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(&n->in_shape[0]) * 15, .bytes = op_bytes(n)};
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    (void)n;
    return o == 0 ? 1 : o + 2;
}

const sodet_op sodet_op_adam_update = {.struct_size = sizeof(sodet_op),
                                       .id = SODET_OP_adam_update,
                                       .name = "adam_update",
                                       .n_parts = 1,
                                       .flags = SODET_OP_STATE,
                                       .attr_size = sizeof(sodet_adam_update_attr),
                                       .infer = infer,
                                       .cost = cost,
                                       .shares = shares};

sodet_value sodet_adam_update(sodet_graph *g, const sodet_update *u, sodet_value m, sodet_value v, uint32_t decoupled)
{
    sodet_update in;
    op_descriptor(&in, sizeof in, u);
    sodet_value all[9] = {in.p, in.grad, m, v, in.start, in.factor, in.hyper, in.scale, in.ok}, out[3];
    sodet_add_node(g, &sodet_op_adam_update, 0, &(sodet_adam_update_attr){.decoupled = decoupled}, all, 9, out, 3);
    return out[0];
}
