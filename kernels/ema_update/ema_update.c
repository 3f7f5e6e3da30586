/* Shapes, cost and builder of ema_update. */
#include "kernels/update_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    sodet_status status = op_check_arity(n, 4, 4, 1, 1, err);
    if (status == SODET_OK)
        status = op_check_rank(n, 0, "average", SODET_F32, 1, err);
    if (status == SODET_OK)
        status = op_check_shape(n, 1, "p", &n->in_shape[0], err);
    if (status == SODET_OK && !op_has(n, 2))
        status = SODET_FAIL(err, SODET_E_INVALID, "ema_update: no decay given");
    if (status == SODET_OK)
        status = update_check_one(n, 2, "decay", err);
    if (status == SODET_OK)
        status = update_check_one(n, 3, "ok", err);
    out[0] = n->in_shape[0];
    return status;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(&n->in_shape[0]) * 3, .bytes = op_bytes(n)};
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    (void)n, (void)o;
    return 1;
}

const sodet_op sodet_op_ema_update = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_ema_update,
                                      .name = "ema_update",
                                      .n_parts = 1,
                                      .flags = SODET_OP_STATE,
                                      .infer = infer,
                                      .cost = cost,
                                      .shares = shares};

sodet_value sodet_ema_update(sodet_graph *g, sodet_value average, sodet_value p, sodet_value decay, sodet_value ok)
{
    sodet_value in[4] = {average, p, decay, ok};
    return sodet_apply(g, &sodet_op_ema_update, NULL, in, 4);
}
