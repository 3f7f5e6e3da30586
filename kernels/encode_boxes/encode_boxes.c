/* Shapes and builder of encode_boxes. */
#include "kernels/describe.h"
#include "sodet/detection.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_encode_boxes_attr *attr = n->attr;
    OP_TRY(op_check_arity(n, 3, 3, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "index", SODET_I32, 2, err));
    int64_t images = n->in_shape[0].dim[0], anchors = n->in_shape[0].dim[1];
    OP_TRY(op_check_rank(n, 1, "truth", SODET_F32, 3, err));
    sodet_shape truth = sodet_shape_make(SODET_F32, 3, images, n->in_shape[1].dim[1], 4, 0),
                table = sodet_shape_make(SODET_F32, 2, anchors, 4, 0, 0);
    OP_TRY(op_check_shape(n, 1, "truth", &truth, err));
    OP_TRY(op_check_shape(n, 2, "anchors", &table, err));
    for (int k = 0; k < 4; k++)
        if (!(attr->variance[k] > 0))
            return SODET_FAIL(err, SODET_E_INVALID, "encode_boxes: variance %d is %g, more than 0 expected", k, (double)attr->variance[k]);
    *out = sodet_shape_make(SODET_F32, 3, images, anchors, 4, 0);
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 4 * (uint64_t)sodet_elements(&n->out_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_encode_boxes = {.struct_size = sizeof(sodet_op),
                                        .id = SODET_OP_encode_boxes,
                                        .name = "encode_boxes",
                                        .n_parts = 1,
                                        .attr_size = sizeof(sodet_encode_boxes_attr),
                                        .infer = infer,
                                        .cost = cost};

sodet_value sodet_encode_boxes(sodet_graph *g, const sodet_targets *t, const float variance[4], const sodet_encode *options)
{
    sodet_encode o = {0};
    if (options)
        op_descriptor(&o, sizeof o, options);
    sodet_encode_boxes_attr attr = {.epsilon = o.epsilon, .plus_one = o.plus_one};
    memcpy(attr.variance, variance, sizeof attr.variance);
    sodet_value in[3] = {t->index, t->truth, t->anchors};
    return sodet_apply(g, &sodet_op_encode_boxes, &attr, in, 3);
}
