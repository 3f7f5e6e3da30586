/* all_reduce: shapes, gradient, builder. */
#include "kernels/all_reduce/all_reduce.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    if (n->n_in == 0 || n->n_in != n->n_out)
        return SODET_FAIL(err, SODET_E_INVALID, "all_reduce: %u inputs and %u outputs: as many outputs as inputs expected", n->n_in,
                          n->n_out);
    for (uint32_t i = 0; i < n->n_in; i++) {
        OP_TRY(op_check_rank(n, i, "x", SODET_F32, UINT32_MAX, err));
        out[i] = n->in_shape[i];
    }
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (dout[i].id && OP_WANTED(want, i))
            din[i] = sodet_all_reduce(g, dout[i]);
    return sodet_graph_status(g, err);
}

static uint32_t shares(const sodet_node *n, uint32_t o)
{
    return ((const sodet_all_reduce_attr *)n->attr)->in_place ? 1 + o : 0;
}

const sodet_op sodet_op_all_reduce = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_all_reduce,
                                      .name = "all_reduce",
                                      .n_parts = 1,
                                      .flags = SODET_OP_COLLECTIVE,
                                      .attr_size = sizeof(sodet_all_reduce_attr),
                                      .infer = infer,
                                      .gradient = gradient,
                                      .shares = shares};

sodet_value sodet_all_reduce(sodet_graph *g, sodet_value x)
{
    sodet_all_reduce_attr a = {0, 0};
    return sodet_apply(g, &sodet_op_all_reduce, &a, &x, 1);
}
