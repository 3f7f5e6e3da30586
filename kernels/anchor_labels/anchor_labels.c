/* Shapes and builders of anchor_labels. */
#include "kernels/describe.h"
#include "sodet/detection.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    char first[64], second[64];
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "index", SODET_I32, 2, err));
    OP_TRY(op_check_rank(n, 1, "label", SODET_I32, 2, err));
    if (n->in_shape[0].dim[0] != n->in_shape[1].dim[0])
        return SODET_FAIL(err, SODET_E_INVALID, "anchor_labels: index is %s and label %s; the same number of images expected",
                          sd_shape_text(&n->in_shape[0], first), sd_shape_text(&n->in_shape[1], second));
    *out = n->in_shape[0];
    return SODET_OK;
}

const sodet_op sodet_op_anchor_labels = {.struct_size = sizeof(sodet_op),
                                         .id = SODET_OP_anchor_labels,
                                         .name = "anchor_labels",
                                         .n_parts = 1,
                                         .attr_size = sizeof(sodet_anchor_labels_attr),
                                         .infer = infer};

sodet_value sodet_anchor_labels(sodet_graph *g, sodet_value index, sodet_value label, const sodet_anchor_labels_attr *attr)
{
    sodet_value in[2] = {index, label};
    return sodet_apply(g, &sodet_op_anchor_labels, attr, in, 2);
}

sodet_value sodet_softmax_labels(sodet_graph *g, const sodet_targets *t)
{
    return sodet_anchor_labels(g, t->index, t->label, &(sodet_anchor_labels_attr){.shift = 1, .background = 0, .ignore = -1});
}

sodet_value sodet_sigmoid_labels(sodet_graph *g, const sodet_targets *t)
{
    return sodet_anchor_labels(g, t->index, t->label, &(sodet_anchor_labels_attr){.shift = 0, .background = -1, .ignore = -2});
}
