/* batch_norm_sync: shapes, gradient, cost. */
#include "kernels/batch_norm_sync/batch_norm_sync.h"

#include "kernels/all_reduce/all_reduce.h"
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    static const uint32_t inputs[] = {1, 6, 4, 8}, outputs[] = {1, 6, 1, 3};
    OP_TRY(op_check_arity(n, inputs[n->part], inputs[n->part], outputs[n->part], outputs[n->part], err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank < 2)
        return SODET_FAIL(err, SODET_E_INVALID, "batch_norm: x has rank %u, at least 2 expected ([N, C, ...])", x->rank);
    const int64_t channels = x->dim[1];
    const sodet_shape vector = sodet_shape_make(SODET_F32, 1, channels, 0, 0, 0), sums = sodet_shape_make(SODET_F32, 2, 2, channels, 0, 0);
    switch (n->part) {
    case 0:
        out[0] = sodet_shape_make(SODET_F32, 2, 3, channels, 0, 0);
        return SODET_OK;
    case 1: {
        OP_TRY(op_check_rank(n, 3, "gathered statistics", SODET_F32, 3, err));
        sodet_shape all = sodet_shape_make(SODET_F32, 3, n->in_shape[3].dim[0], 3, channels, 0);
        OP_TRY(op_check_shape(n, 3, "gathered statistics", &all, err));
        OP_TRY(op_check_channels(n, 1, "scale", channels, err));
        OP_TRY(op_check_channels(n, 2, "shift", channels, err));
        OP_TRY(op_check_channels(n, 4, "running mean", channels, err));
        OP_TRY(op_check_channels(n, 5, "running variance", channels, err));
        out[0] = *x;
        out[1] = out[2] = out[4] = out[5] = vector;
        out[3] = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
        return SODET_OK;
    }
    case 2:
        OP_TRY(op_check_shape(n, 1, "dy", x, err));
        OP_TRY(op_check_channels(n, 2, "mean", channels, err));
        OP_TRY(op_check_channels(n, 3, "inverse deviation", channels, err));
        out[0] = sums;
        return SODET_OK;
    default:
        OP_TRY(op_check_shape(n, 1, "dy", x, err));
        for (uint32_t i = 2; i < 5; i++)
            OP_TRY(op_check_channels(n, i, "scale or statistics", channels, err));
        OP_TRY(op_check_channels(n, 5, "count", 1, err));
        OP_TRY(op_check_shape(n, 6, "sums of all", &sums, err));
        OP_TRY(op_check_shape(n, 7, "own sums", &sums, err));
        out[0] = *x;
        out[1] = out[2] = vector;
        return SODET_OK;
    }
}

/* The derivative through all devices' statistics is in part 3, so part 1's gradient is the layer's, and nothing flows back to part 0. */
static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part > 1)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "batch_norm_sync: there is no second derivative");
    (void)want;
    if (n->part == 0 || !dout[0].id)
        return SODET_OK;
    const sodet_value x = n->in[0], dy = dout[0], mean = n->out[1], r = n->out[2];
    sodet_value own, out[3];
    sodet_add_node(g, n->op, 2, n->attr, (const sodet_value[]){x, dy, mean, r}, 4, &own, 1);
    sodet_value all = sodet_all_reduce(g, own);
    sodet_add_node(g, n->op, 3, n->attr, (const sodet_value[]){x, dy, n->in[1], mean, r, n->out[3], all, own}, 8, out, 3);
    memcpy(din, out, sizeof out);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    static const uint32_t flops[] = {5, 2, 5, 6};
    out->macs = 0;
    out->flops = flops[n->part] * (uint64_t)sodet_elements(&n->in_shape[0]);
    out->bytes = op_bytes(n);
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    return n->part == 1 && o >= 4 ? 1 + o : 0;
}

const sodet_op sodet_op_batch_norm_sync = {.struct_size = sizeof(sodet_op),
                                           .id = SODET_OP_batch_norm_sync,
                                           .name = "batch_norm_sync",
                                           .n_parts = 4,
                                           .flags = SODET_OP_STATE,
                                           .attr_size = sizeof(sodet_batch_norm_attr),
                                           .infer = infer,
                                           .gradient = gradient,
                                           .cost = cost,
                                           .shares = shares};
