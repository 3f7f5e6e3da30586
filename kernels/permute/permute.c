/* permute: shapes, gradient, builder. */
#include "kernels/permute/permute.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_permute_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    const sodet_shape *x = &n->in_shape[0];
    uint32_t seen = 0;
    *out = *x;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (a->order[i] >= x->rank || (seen >> a->order[i]) & 1u)
            return SODET_FAIL(err, SODET_E_INVALID, "permute: axis %u at place %u: each of the %u axes once expected", a->order[i], i,
                              x->rank);
        seen |= 1u << a->order[i];
        out->dim[i] = x->dim[a->order[i]];
    }
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    const sodet_permute_attr *a = n->attr;
    sodet_permute_attr inverse = {{0}};
    for (uint32_t i = 0; i < n->in_shape[0].rank; i++)
        inverse.order[a->order[i]] = i;
    if (OP_WANTED(want, 0))
        din[0] = sodet_apply(g, n->op, &inverse, dout, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.bytes = op_bytes(n)};
}

const sodet_op sodet_op_permute = {.struct_size = sizeof(sodet_op),
                                   .id = SODET_OP_permute,
                                   .name = "permute",
                                   .n_parts = 1,
                                   .attr_size = sizeof(sodet_permute_attr),
                                   .infer = infer,
                                   .gradient = gradient,
                                   .cost = cost};

sodet_value sodet_permute(sodet_graph *g, sodet_value x, const uint32_t *order)
{
    sodet_permute_attr a = {{0}};
    uint32_t rank = sodet_rank(g, x);
    for (uint32_t i = 0; i < rank && i < SODET_MAX_RANK; i++)
        a.order[i] = order[i];
    return sodet_apply(g, &sodet_op_permute, &a, &x, 1);
}
