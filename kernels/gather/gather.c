/* Shapes, gradient and builders of gather. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_gather_attr *attr = n->attr;
    char first[64], second[64];
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 1, "index", SODET_I32, UINT32_MAX, err));
    const sodet_shape *x = n->part == 0 ? &n->in_shape[0] : &attr->x, *index = &n->in_shape[1];
    if (x->dtype != SODET_F32 && x->dtype != SODET_I32)
        return SODET_FAIL(err, SODET_E_INVALID, "gather: x is %s, float32 or int32 expected", sd_shape_text(x, first));
    int fits = attr->axis < x->rank && attr->batch <= attr->axis && attr->batch <= index->rank &&
               x->rank - 1 + index->rank - attr->batch <= SODET_MAX_RANK;
    for (uint32_t i = 0; fits && i < attr->batch; i++)
        fits = x->dim[i] == index->dim[i];
    if (!fits)
        return SODET_FAIL(err, SODET_E_INVALID, "gather: x %s by index %s along axis %u, the first %u dimensions in common, does not go",
                          sd_shape_text(x, first), sd_shape_text(index, second), attr->axis, attr->batch);
    sodet_shape y = {.dtype = x->dtype};
    for (uint32_t i = 0; i < attr->axis; i++)
        y.dim[y.rank++] = x->dim[i];
    for (uint32_t i = attr->batch; i < index->rank; i++)
        y.dim[y.rank++] = index->dim[i];
    for (uint32_t i = attr->axis + 1; i < x->rank; i++)
        y.dim[y.rank++] = x->dim[i];
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 0, "gradient", &y, err));
    *out = n->part == 0 ? y : *x;
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (!dout[0].id || !OP_WANTED(want, 0) || n->part != 0 || n->in_shape[0].dtype != SODET_F32)
        return SODET_OK;
    sodet_gather_attr attr = *(const sodet_gather_attr *)n->attr;
    attr.x = n->in_shape[0];
    sodet_value in[2] = {dout[0], n->in[1]};
    sodet_add_node(g, n->op, 1, &attr, in, 2, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = n->part == 0 ? 0 : (uint64_t)sodet_elements(&n->in_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_gather = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_gather,
                                  .name = "gather",
                                  .n_parts = 2,
                                  .attr_size = sizeof(sodet_gather_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

sodet_value sodet_gather(sodet_graph *g, sodet_value x, sodet_value index, uint32_t axis)
{
    sodet_value in[2] = {x, index};
    return sodet_apply(g, &sodet_op_gather, &(sodet_gather_attr){.axis = axis}, in, 2);
}

sodet_value sodet_gather_per_image(sodet_graph *g, sodet_value x, sodet_value index)
{
    sodet_value in[2] = {x, index};
    return sodet_apply(g, &sodet_op_gather, &(sodet_gather_attr){.axis = 1, .batch = 1}, in, 2);
}
