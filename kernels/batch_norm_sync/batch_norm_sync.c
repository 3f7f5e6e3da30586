/* batch_norm_sync: shapes, gradient, cost. */
#include "kernels/batch_norm_sync/batch_norm_sync.h"

#include "kernels/all_reduce/all_reduce.h"
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    static const uint32_t inputs[] = {1, 3, 6, 4, 8}, outputs[] = {1, 5, 1, 1, 3};
    OP_TRY(op_check_arity(n, inputs[n->part], inputs[n->part], outputs[n->part], outputs[n->part], err));
    if (n->part == 1) {
        OP_TRY(op_check_rank(n, 0, "gathered statistics", SODET_F32, 3, err));
        const int64_t channels = n->in_shape[0].dim[2];
        const sodet_shape all = sodet_shape_make(SODET_F32, 3, n->in_shape[0].dim[0], 3, channels, 0);
        OP_TRY(op_check_shape(n, 0, "gathered statistics", &all, err));
        OP_TRY(op_check_channels(n, 1, "running mean", channels, err));
        OP_TRY(op_check_channels(n, 2, "running variance", channels, err));
        for (uint32_t o = 0; o < 5; o++)
            out[o] = sodet_shape_make(SODET_F32, 1, o == 2 ? 1 : channels, 0, 0, 0);
        return SODET_OK;
    }
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank < 2)
        return SODET_FAIL(err, SODET_E_INVALID, "batch_norm: x has rank %u, at least 2 expected ([N, C, ...])", x->rank);
    const int64_t channels = x->dim[1];
    const sodet_shape sums = sodet_shape_make(SODET_F32, 2, 2, channels, 0, 0);
    switch (n->part) {
    case 0:
        out[0] = sodet_shape_make(SODET_F32, 2, 3, channels, 0, 0);
        return SODET_OK;
    case 2:
        for (uint32_t i = 1; i < 5; i++)
            OP_TRY(op_check_channels(n, i, "scale, shift or statistics", channels, err));
        out[0] = *x;
        return op_check_channels(n, 5, "count", 1, err);
    case 3:
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
        out[1] = out[2] = sodet_shape_make(SODET_F32, 1, channels, 0, 0, 0);
        return SODET_OK;
    }
}

/* The derivative through all devices' statistics is in part 4, so part 2's gradient is the layer's, and nothing flows back to part 0. */
static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    (void)want;
    if (n->part < 2 || !dout[0].id)
        return SODET_OK;
    if (n->part > 2)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "batch_norm_sync: there is no second derivative");
    const sodet_value x = n->in[0], dy = dout[0], mean = n->in[3], r = n->in[4], count = n->in[5];
    sodet_value own;
    sodet_add_node(g, n->op, 3, n->attr, (const sodet_value[]){x, dy, mean, r}, 4, &own, 1);
    sodet_value all = sodet_all_reduce(g, own);
    sodet_add_node(g, n->op, 4, n->attr, (const sodet_value[]){x, dy, n->in[1], mean, r, count, all, own}, 8, din, 3);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    static const uint32_t flops[] = {5, 6, 2, 5, 6};
    out->macs = 0;
    out->flops = flops[n->part] * (uint64_t)sodet_elements(&n->in_shape[0]);
    out->bytes = op_bytes(n);
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    return n->part == 1 && o >= 3 ? o - 1 : 0;
}

const sodet_op sodet_op_batch_norm_sync = {.struct_size = sizeof(sodet_op),
                                           .id = SODET_OP_batch_norm_sync,
                                           .name = "batch_norm_sync",
                                           .n_parts = 5,
                                           .flags = SODET_OP_STATE,
                                           .attr_size = sizeof(sodet_batch_norm_attr),
                                           .infer = infer,
                                           .gradient = gradient,
                                           .cost = cost,
                                           .shares = shares};
