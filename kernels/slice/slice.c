/* Shapes, gradient and builder of slice. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_slice_attr *attr = n->attr;
    char given[64];
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    const sodet_shape *x = n->part == 0 ? &n->in_shape[0] : &attr->x;
    if (x->dtype != SODET_F32 && x->dtype != SODET_I32)
        return SODET_FAIL(err, SODET_E_INVALID, "slice: x is %s, float32 or int32 expected", sd_shape_text(x, given));
    sodet_shape block = *x;
    for (uint32_t i = 0; i < x->rank; i++) {
        block.dim[i] = attr->size[i];
        if (attr->start[i] < 0 || attr->size[i] < 0 || attr->start[i] > x->dim[i] - attr->size[i])
            return SODET_FAIL(err, SODET_E_INVALID, "slice: [%lld, %lld) of dimension %u of %s is not there", (long long)attr->start[i],
                              (long long)(attr->start[i] + attr->size[i]), i, sd_shape_text(x, given));
    }
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 0, "gradient", &block, err));
    *out = n->part == 0 ? block : *x;
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (!dout[0].id || !OP_WANTED(want, 0) || n->part != 0)
        return SODET_OK;
    sodet_slice_attr attr = *(const sodet_slice_attr *)n->attr;
    attr.x = n->in_shape[0];
    sodet_add_node(g, n->op, 1, &attr, dout, 1, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.bytes = op_bytes(n)};
}

const sodet_op sodet_op_slice = {.struct_size = sizeof(sodet_op),
                                 .id = SODET_OP_slice,
                                 .name = "slice",
                                 .n_parts = 2,
                                 .attr_size = sizeof(sodet_slice_attr),
                                 .infer = infer,
                                 .gradient = gradient,
                                 .cost = cost};

sodet_value sodet_slice(sodet_graph *g, sodet_value x, int32_t axis, int64_t start, int64_t size)
{
    sodet_shape shape = sodet_shape_of(g, x);
    sodet_slice_attr attr = {0};
    if (axis < 0)
        axis += (int32_t)shape.rank;
    if (axis < 0 || axis >= (int32_t)shape.rank)
        return sodet_graph_fail(g, SODET_E_INVALID, "slice: there is no axis %d among %u", axis, shape.rank);
    memcpy(attr.size, shape.dim, sizeof attr.size);
    attr.start[axis] = start;
    attr.size[axis] = size == -1 ? shape.dim[axis] - start : size;
    return sodet_apply(g, &sodet_op_slice, &attr, &x, 1);
}
