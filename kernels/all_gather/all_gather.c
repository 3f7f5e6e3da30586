/* all_gather: shapes, builder. */
#include "kernels/all_gather/all_gather.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_all_gather_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank >= SODET_MAX_RANK || a->world < 1)
        return SODET_FAIL(err, SODET_E_INVALID, "all_gather: rank %u over %u devices: at most rank %d and at least one device expected",
                          x->rank, a->world, SODET_MAX_RANK - 1);
    *out = (sodet_shape){.dtype = x->dtype, .rank = x->rank + 1, .dim = {a->world}};
    for (uint32_t i = 0; i < x->rank; i++)
        out->dim[i + 1] = x->dim[i];
    return SODET_OK;
}

const sodet_op sodet_op_all_gather = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_all_gather,
                                      .name = "all_gather",
                                      .n_parts = 1,
                                      .flags = SODET_OP_COLLECTIVE,
                                      .attr_size = sizeof(sodet_all_gather_attr),
                                      .infer = infer};

sodet_value sodet_all_gather(sodet_graph *g, sodet_value x, uint32_t world)
{
    sodet_all_gather_attr a = {world};
    return sodet_apply(g, &sodet_op_all_gather, &a, &x, 1);
}
