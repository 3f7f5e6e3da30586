/* dropout: shapes, gradient, cost, builder. */
#include "kernels/dropout/dropout.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_dropout_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    if (!(a->rate >= 0 && a->rate < 1))
        return SODET_FAIL(err, SODET_E_INVALID, "dropout: rate = %g: at least 0 and less than 1 expected", (double)a->rate);
    *out = n->in_shape[0];
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (OP_WANTED(want, 0))
        din[0] = sodet_apply(g, n->op, n->attr, dout, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(&n->out_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_dropout = {.struct_size = sizeof(sodet_op),
                                   .id = SODET_OP_dropout,
                                   .name = "dropout",
                                   .n_parts = 1,
                                   .flags = SODET_OP_ELEMENTWISE,
                                   .attr_size = sizeof(sodet_dropout_attr),
                                   .infer = infer,
                                   .gradient = gradient,
                                   .cost = cost};

sodet_value sodet_dropout(sodet_graph *g, const char *name, sodet_value x, float rate)
{
    if (rate == 0 || !sodet_is_training(g))
        return x;
    sodet_enter(g, "%s", name);
    const char *path = sd_graph_path(g);
    sodet_dropout_attr a = {.key = sd_fnv1a64(path, strlen(path), SD_FNV_START), .rate = rate};
    sodet_value y = sodet_apply(g, &sodet_op_dropout, &a, &x, 1);
    sodet_leave(g);
    return y;
}
