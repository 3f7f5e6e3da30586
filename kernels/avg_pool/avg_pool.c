/* avg_pool: shapes, gradient, cost, builders. */
#include "kernels/avg_pool/avg_pool.h"

#include "kernels/pool.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_pool_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    if (n->part == 0)
        return pool_infer(n, out, err);
    OP_TRY(op_check_rank(n, 0, "dy", SODET_F32, 4, err));
    *out = sodet_shape_make(SODET_F32, 4, n->in_shape[0].dim[0], n->in_shape[0].dim[1], a->in_h, a->in_w);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "avg_pool: there is no second derivative");
    if (!OP_WANTED(want, 0))
        return SODET_OK;
    sodet_pool_attr a = *(const sodet_pool_attr *)n->attr;
    a.in_h = (int32_t)n->in_shape[0].dim[2];
    a.in_w = (int32_t)n->in_shape[0].dim[3];
    sodet_add_node(g, n->op, 1, &a, dout, 1, din, 1);
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_avg_pool = {.struct_size = sizeof(sodet_op),
                                    .id = SODET_OP_avg_pool,
                                    .name = "avg_pool",
                                    .n_parts = 2,
                                    .attr_size = sizeof(sodet_pool_attr),
                                    .infer = infer,
                                    .gradient = gradient,
                                    .cost = pool_cost};

sodet_value sodet_avg_pool(sodet_graph *g, sodet_value x, const sodet_pool_desc *desc)
{
    sodet_pool_attr a = pool_attr(desc);
    return sodet_apply(g, &sodet_op_avg_pool, &a, &x, 1);
}

sodet_value sodet_global_avg_pool(sodet_graph *g, sodet_value x)
{
    sodet_pool_attr a = pool_global(g, x);
    return sodet_apply(g, &sodet_op_avg_pool, &a, &x, 1);
}
