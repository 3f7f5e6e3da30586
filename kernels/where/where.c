/* Shapes, gradient and builder of where. */
#include "kernels/broadcast_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    sodet_status status = op_check_arity(n, 3, 3, 1, 1, err);
    if (status != SODET_OK)
        return status;
    const sodet_shape *c = &n->in_shape[0], *a = &n->in_shape[1], *b = &n->in_shape[2];
    char first[64], second[64];
    if (c->dtype != SODET_F32 && c->dtype != SODET_I32)
        return SODET_FAIL(err, SODET_E_INVALID, "where: the condition is %s, float32 or int32 expected", sd_shape_text(c, first));
    if (a->dtype != b->dtype || (a->dtype != SODET_F32 && a->dtype != SODET_I32))
        return SODET_FAIL(err, SODET_E_INVALID, "where: the choices are %s and %s; both must be float32 or both int32 (sodet_cast)",
                          sd_shape_text(a, first), sd_shape_text(b, second));
    out->dtype = a->dtype;
    return broadcast_shape(n, out, err);
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (!dout[0].id || n->in_shape[1].dtype != SODET_F32)
        return SODET_OK;
    sodet_value zero = sodet_scalar(g, 0);
    if (OP_WANTED(want, 1))
        din[1] = broadcast_sum(g, sodet_where(g, n->in[0], dout[0], zero), &n->in_shape[1]);
    if (OP_WANTED(want, 2))
        din[2] = broadcast_sum(g, sodet_where(g, n->in[0], zero, dout[0]), &n->in_shape[2]);
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_where = {.struct_size = sizeof(sodet_op),
                                 .id = SODET_OP_where,
                                 .name = "where",
                                 .n_parts = 1,
                                 .flags = SODET_OP_ELEMENTWISE,
                                 .infer = infer,
                                 .gradient = gradient};

sodet_value sodet_where(sodet_graph *g, sodet_value condition, sodet_value a, sodet_value b)
{
    sodet_value in[3] = {condition, a, b};
    return sodet_apply(g, &sodet_op_where, NULL, in, 3);
}
