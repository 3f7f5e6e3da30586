/* max_pool: shapes, gradient, cost, builders. */
#include "kernels/max_pool/max_pool.h"

#include "kernels/pool.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_pool_attr *a = n->attr;
    if (n->part == 0) {
        OP_TRY(op_check_arity(n, 1, 1, 1, 2, err));
        OP_TRY(pool_infer(n, out, err));
        if (n->n_out == 2) {
            out[1] = out[0];
            out[1].dtype = SODET_I32;
        }
        return SODET_OK;
    }
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "where", SODET_I32, 4, err));
    OP_TRY(op_check_rank(n, 1, "dy", SODET_F32, 4, err));
    *out = sodet_shape_make(SODET_F32, 4, n->in_shape[1].dim[0], n->in_shape[1].dim[1], a->in_h, a->in_w);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0 || n->n_out != 2)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "max_pool: only part 0 of a training graph, with its second output, has a derivative");
    if (!OP_WANTED(want, 0) || !dout[0].id)
        return SODET_OK;
    sodet_pool_attr a = *(const sodet_pool_attr *)n->attr;
    a.in_h = (int32_t)n->in_shape[0].dim[2];
    a.in_w = (int32_t)n->in_shape[0].dim[3];
    sodet_add_node(g, n->op, 1, &a, (const sodet_value[]){n->out[1], dout[0]}, 2, din, 1);
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_max_pool = {.struct_size = sizeof(sodet_op),
                                    .id = SODET_OP_max_pool,
                                    .name = "max_pool",
                                    .n_parts = 2,
                                    .attr_size = sizeof(sodet_pool_attr),
                                    .infer = infer,
                                    .gradient = gradient,
                                    .cost = pool_cost};

static sodet_value apply(sodet_graph *g, const sodet_pool_attr *a, sodet_value x)
{
    sodet_value out[2];
    sodet_add_node(g, &sodet_op_max_pool, 0, a, &x, 1, out, sodet_is_training(g) ? 2 : 1);
    return out[0];
}

sodet_value sodet_max_pool(sodet_graph *g, sodet_value x, const sodet_pool_desc *desc)
{
    sodet_pool_attr a = pool_attr(desc);
    return apply(g, &a, x);
}

sodet_value sodet_global_max_pool(sodet_graph *g, sodet_value x)
{
    sodet_pool_attr a = pool_global(g, x);
    return apply(g, &a, x);
}
