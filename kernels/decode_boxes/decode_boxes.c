/* Shapes and builders of decode_boxes. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_decode_boxes_attr *attr = n->attr;
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "codes", SODET_F32, 3, err));
    sodet_shape full = n->in_shape[0], table = sodet_shape_make(SODET_F32, 2, full.dim[1], 4, 0, 0);
    full.dim[2] = 4;
    OP_TRY(op_check_shape(n, 0, "codes", &full, err));
    OP_TRY(op_check_shape(n, 1, "anchors", n->in_shape[1].rank == 3 ? &full : &table, err));
    if (!(attr->clamp >= 0) || !(attr->clip_height >= 0) || !(attr->clip_width >= 0))
        return SODET_FAIL(err, SODET_E_INVALID, "decode_boxes: clamp %g, clip %g x %g; none may be below 0", attr->clamp, attr->clip_height,
                          attr->clip_width);
    *out = full;
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 6 * (uint64_t)sodet_elements(&n->out_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_decode_boxes = {.struct_size = sizeof(sodet_op),
                                        .id = SODET_OP_decode_boxes,
                                        .name = "decode_boxes",
                                        .n_parts = 1,
                                        .attr_size = sizeof(sodet_decode_boxes_attr),
                                        .infer = infer,
                                        .cost = cost};

sodet_value sodet_decode_boxes(sodet_graph *g, sodet_value codes, sodet_value anchors, const float variance[4], const sodet_decode *options)
{
    sodet_decode o = {0};
    if (options)
        op_descriptor(&o, sizeof o, options);
    sodet_decode_boxes_attr attr = {.clamp = o.clamp, .clip_height = o.clip_height, .clip_width = o.clip_width, .plus_one = o.plus_one};
    memcpy(attr.variance, variance, sizeof attr.variance);
    sodet_value in[2] = {codes, anchors};
    return sodet_apply(g, &sodet_op_decode_boxes, &attr, in, 2);
}

sodet_value sodet_clip_boxes(sodet_graph *g, sodet_value boxes, double height, double width)
{
    const float most[4] = {(float)width, (float)height, (float)width, (float)height};
    sodet_shape four = sodet_shape_make(SODET_F32, 1, 4, 0, 0, 0);
    return sodet_min(g, sodet_max(g, boxes, sodet_scalar(g, 0)), sodet_constant(g, &four, most));
}
