/* Shapes and builders of nms. */
#include "kernels/describe.h"
#include "sodet/detection.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_nms_options *o = &((const sodet_nms_attr *)n->attr)->o;
    OP_TRY(op_check_arity(n, 3, 3, 2, 2, err));
    OP_TRY(op_check_rank(n, 1, "score", SODET_F32, 2, err));
    int64_t images = n->in_shape[1].dim[0], k = n->in_shape[1].dim[1];
    sodet_shape boxes = sodet_shape_make(SODET_F32, 3, images, k, 4, 0), label = sodet_shape_make(SODET_I32, 2, images, k, 0, 0);
    OP_TRY(op_check_shape(n, 0, "boxes", &boxes, err));
    if (op_has(n, 2)) {
        if (n->in_shape[2].rank == 1)
            label = sodet_shape_make(SODET_I32, 1, k, 0, 0, 0);
        OP_TRY(op_check_shape(n, 2, "label", &label, err));
    }
    if (!(o->iou_threshold >= 0 && o->iou_threshold <= 1) || o->score_threshold != o->score_threshold)
        return SODET_FAIL(err, SODET_E_INVALID, "nms: iou_threshold = %g, score_threshold = %g; a number in [0, 1] and a number expected",
                          o->iou_threshold, o->score_threshold);
    int64_t most = o->most && o->most < k ? o->most : k;
    out[0] = sodet_shape_make(SODET_I32, 2, images, most, 0, 0);
    out[1] = sodet_shape_make(SODET_I32, 1, images, 0, 0, 0);
    return SODET_OK;
}

/* An upper bound would be quadratic; what is counted is one comparison of every candidate with every kept one. */
static void cost(const sodet_node *n, sodet_cost *out)
{
    uint64_t k = (uint64_t)sodet_elements(&n->in_shape[1]), kept = (uint64_t)n->out_shape[0].dim[1];
    *out = (sodet_cost){.flops = k * kept, .bytes = op_bytes(n)};
}

const sodet_op sodet_op_nms = {.struct_size = sizeof(sodet_op),
                               .id = SODET_OP_nms,
                               .name = "nms",
                               .n_parts = 1,
                               .attr_size = sizeof(sodet_nms_attr),
                               .infer = infer,
                               .cost = cost};

void sodet_nms(sodet_graph *g, sodet_value boxes, sodet_value score, sodet_value label, const sodet_nms_options *options,
               sodet_value *index, sodet_value *count)
{
    sodet_nms_attr attr;
    op_descriptor(&attr.o, sizeof attr.o, options);
    attr.o.struct_size = sizeof attr.o;
    sodet_value in[3] = {boxes, score, label}, out[2];
    sodet_add_node(g, &sodet_op_nms, 0, &attr, in, 3, out, 2);
    *index = out[0];
    *count = out[1];
}

void sodet_nms_detections(sodet_graph *g, sodet_value boxes, sodet_value score, sodet_value label, uint32_t agnostic,
                          const sodet_nms_options *options, sodet_detections *out)
{
    sodet_value index, count;
    sodet_nms(g, boxes, score, agnostic ? SODET_NONE : label, options, &index, &count);
    *out =
        (sodet_detections){.struct_size = sizeof *out,
                           .boxes = sodet_gather_per_image(g, boxes, index),
                           .scores = sodet_gather_per_image(g, score, index),
                           .labels = sodet_rank(g, label) == 1 ? sodet_gather(g, label, index, 0) : sodet_gather_per_image(g, label, index),
                           .count = count};
}
