/* Shapes and builder of cast. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_cast_attr *attr = n->attr;
    char given[64];
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    uint32_t from = n->in_shape[0].dtype;
    if ((from != SODET_F32 && from != SODET_I32) || (attr->dtype != SODET_F32 && attr->dtype != SODET_I32))
        return SODET_FAIL(err, SODET_E_INVALID, "cast: %s to type %u; float32 and int32 are known", sd_shape_text(&n->in_shape[0], given),
                          attr->dtype);
    *out = n->in_shape[0];
    out->dtype = attr->dtype;
    return SODET_OK;
}

const sodet_op sodet_op_cast = {.struct_size = sizeof(sodet_op),
                                .id = SODET_OP_cast,
                                .name = "cast",
                                .n_parts = 1,
                                .attr_size = sizeof(sodet_cast_attr),
                                .infer = infer};

sodet_value sodet_cast(sodet_graph *g, sodet_value x, uint32_t dtype)
{
    if (sodet_shape_of(g, x).dtype == dtype)
        return x;
    return sodet_apply(g, &sodet_op_cast, &(sodet_cast_attr){.dtype = dtype}, &x, 1);
}
