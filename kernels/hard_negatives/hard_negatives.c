/* Shapes and builder of hard_negatives. */
#include <math.h>

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_hard_negatives_attr *attr = n->attr;
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "loss", SODET_F32, 2, err));
    sodet_shape index = n->in_shape[0];
    index.dtype = SODET_I32;
    OP_TRY(op_check_shape(n, 1, "index", &index, err));
    if (!(attr->ratio >= 0) || isinf(attr->ratio))
        return SODET_FAIL(err, SODET_E_INVALID, "hard_negatives: ratio = %g, a number of at least 0 expected", attr->ratio);
    *out = n->in_shape[0];
    return SODET_OK;
}

const sodet_op sodet_op_hard_negatives = {.struct_size = sizeof(sodet_op),
                                          .id = SODET_OP_hard_negatives,
                                          .name = "hard_negatives",
                                          .n_parts = 1,
                                          .attr_size = sizeof(sodet_hard_negatives_attr),
                                          .infer = infer};

sodet_value sodet_hard_negatives(sodet_graph *g, sodet_value loss, sodet_value index, double ratio, uint32_t least, uint32_t most)
{
    sodet_value in[2] = {loss, index};
    return sodet_apply(g, &sodet_op_hard_negatives, &(sodet_hard_negatives_attr){.ratio = ratio, .least = least, .most = most}, in, 2);
}
