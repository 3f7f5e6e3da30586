/* batch_norm_train: shapes, gradient, cost. */
#include "kernels/batch_norm_train/batch_norm_train.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    OP_TRY(op_check_arity(n, 5, 5, n->part ? 3 : 5, n->part ? 3 : 5, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank < 2)
        return SODET_FAIL(err, SODET_E_INVALID, "batch_norm: x has rank %u, at least 2 expected ([N, C, ...])", x->rank);
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 1, "dy", x, err));
    for (uint32_t i = 1 + n->part; i < 5; i++)
        OP_TRY(op_check_channels(n, i, n->part ? "scale or statistics" : "scale, shift or running statistics", x->dim[1], err));
    out[0] = *x;
    for (uint32_t i = 1; i < n->n_out; i++)
        out[i] = sodet_shape_make(SODET_F32, 1, x->dim[1], 0, 0, 0);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "batch_norm_train: there is no second derivative");
    (void)want;
    if (!dout[0].id) /* only the statistics are used further, and these have no derivative here */
        return SODET_OK;
    sodet_value out[3];
    sodet_add_node(g, n->op, 1, n->attr, (const sodet_value[]){n->in[0], dout[0], n->in[1], n->out[1], n->out[2]}, 5, out, 3);
    memcpy(din, out, sizeof out);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    out->macs = 0;
    out->flops = (n->part ? 11u : 7u) * (uint64_t)sodet_elements(&n->in_shape[0]);
    out->bytes = op_bytes(n);
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    return n->part == 0 && o >= 3 ? 1 + o : 0;
}

const sodet_op sodet_op_batch_norm_train = {.struct_size = sizeof(sodet_op),
                                            .id = SODET_OP_batch_norm_train,
                                            .name = "batch_norm_train",
                                            .n_parts = 2,
                                            .flags = SODET_OP_STATE,
                                            .attr_size = sizeof(sodet_batch_norm_attr),
                                            .infer = infer,
                                            .gradient = gradient,
                                            .cost = cost,
                                            .shares = shares};
