/* Shapes, cost and builder of sgd_update. */
#include "kernels/update_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    sodet_status status = op_check_arity(n, 8, 8, 1, 2, err);
    if (status == SODET_OK)
        status = update_check(n, 3, 2, 3, err);
    if (status != SODET_OK)
        return status;
    if ((n->n_out == 2) != op_has(n, 2))
        return SODET_FAIL(err, SODET_E_INVALID, "sgd_update: %u outputs asked for, %d expected", n->n_out, op_has(n, 2) ? 2 : 1);
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = n->in_shape[0];
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(&n->in_shape[0]) * (op_has(n, 2) ? 7 : 5), .bytes = op_bytes(n)};
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    (void)n;
    return o == 0 ? 1 : 3;
}

const sodet_op sodet_op_sgd_update = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_sgd_update,
                                      .name = "sgd_update",
                                      .n_parts = 1,
                                      .flags = SODET_OP_STATE,
                                      .attr_size = sizeof(sodet_sgd_update_attr),
                                      .infer = infer,
                                      .cost = cost,
                                      .shares = shares};

sodet_value sodet_sgd_update(sodet_graph *g, const sodet_update *u, sodet_value v, uint32_t nesterov)
{
    sodet_update in;
    op_descriptor(&in, sizeof in, u);
    sodet_value all[8] = {in.p, in.grad, v, in.start, in.factor, in.hyper, in.scale, in.ok}, out[2];
    sodet_add_node(g, &sodet_op_sgd_update, 0, &(sodet_sgd_update_attr){.nesterov = nesterov}, all, 8, out, v.id ? 2 : 1);
    return out[0];
}
