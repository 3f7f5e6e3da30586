/* Non-maximum suppression and the way to it. All exact: IoU is float on every backend. */
#include "opcase.h"

enum { IOU, SCORE, MOST, PER_CLASS, CANDIDATES, INCLUSIVE, PLUS_ONE, CLASSES };

static const sodet_nms_options *options(const opcase *c, sodet_nms_options *o)
{
    *o = (sodet_nms_options){.struct_size = sizeof *o,
                             .most = (uint32_t)op_option(c, MOST),
                             .most_per_class = (uint32_t)op_option(c, PER_CLASS),
                             .candidates = (uint32_t)op_option(c, CANDIDATES),
                             .inclusive = (uint32_t)op_option(c, INCLUSIVE),
                             .plus_one = (uint32_t)op_option(c, PLUS_ONE),
                             .iou_threshold = op_option(c, IOU),
                             .score_threshold = op_option(c, SCORE)};
    return o;
}

static void nms(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_nms_options o;
    sodet_value index, count, boxes = op_boxes(c, 0), score = op_fixed(c, 1), label = SODET_NONE;
    if (op_option(c, CLASSES) > 0)
        label = op_int(c, 2, 0, (int32_t)op_option(c, CLASSES) - 1);
    sodet_nms(g, boxes, score, label, options(c, &o), &index, &count);
    op_result(c, index);
    op_result(c, count);
}

/* Whole coordinates and few scores: many equal boxes, equal scores and IoU at the threshold. */
static void nms_ties(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_nms_options o;
    sodet_value index, count, boxes = sodet_floor(g, sodet_mul(g, op_boxes(c, 0), sodet_scalar(g, 0.08))), score = op_fixed(c, 1);
    sodet_nms(g, boxes, score, op_int(c, 2, 0, 1), options(c, &o), &index, &count);
    op_result(c, index);
    op_result(c, count);
}

static void detections(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_nms_options o;
    sodet_detections d;
    sodet_value score, anchor, label, boxes = op_boxes(c, 0);
    sodet_top_per_class(g, op_fixed(c, 1), 10, &score, &anchor, &label);
    sodet_nms_detections(g, sodet_gather_per_image(g, boxes, anchor), score, label, 0, options(c, &o), &d);
    op_result(c, d.boxes);
    op_result(c, d.scores);
    op_result(c, d.labels);
    op_result(c, d.count);
}

static void detections_of_pairs(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_nms_options o;
    sodet_detections d;
    sodet_value score, anchor, label, boxes = op_boxes(c, 0);
    sodet_top_pairs(g, op_fixed(c, 1), 50, &score, &anchor, &label);
    sodet_nms_detections(g, sodet_gather_per_image(g, boxes, anchor), score, label, 1, options(c, &o), &d);
    op_result(c, d.boxes);
    op_result(c, d.scores);
    op_result(c, d.labels);
    op_result(c, d.count);
}

#define EXACT .forward = OP_EXACT

const opcase_entry opcases_detection[] = {
    {.name = "nms", .build = nms, .shape = {"3x80x4", "3x80", "3x80"}, .option = {0.3, 0, 0, 0, 0, 0, 0, 3}},
    {.name = "nms, agnostic", .build = nms, .shape = {"3x80x4", "3x80"}, .option = {0.3, -1}},
    {.name = "nms, labels of all images", .build = nms, .shape = {"3x80x4", "3x80", "80"}, .option = {0.3, 0.1, 0, 0, 0, 0, 0, 3}},
    {.name = "nms, at most 10", .build = nms, .shape = {"3x300x4", "3x300", "3x300"}, .option = {0.5, 0.2, 10, 0, 0, 0, 0, 2}},
    {.name = "nms, at most 4 of a class", .build = nms, .shape = {"3x300x4", "3x300", "3x300"}, .option = {0.5, 0.2, 0, 4, 0, 0, 0, 5}},
    {.name = "nms, 40 candidates", .build = nms, .shape = {"3x300x4", "3x300", "3x300"}, .option = {0.2, 0.2, 0, 0, 40, 0, 0, 5}},
    {.name = "nms, plus one", .build = nms, .shape = {"2x200x4", "2x200", "2x200"}, .option = {0.2, 0, 0, 0, 0, 0, 1, 2}},
    {.name = "nms, many", .build = nms, .shape = {"2x3000x4", "2x3000", "2x3000"}, .option = {0.45, 0.01, 200, 0, 0, 0, 0, 20}},
    {.name = "nms, many kept", .build = nms, .shape = {"1x1500x4", "1x1500", "1x1500"}, .option = {0.9, -2, 0, 0, 0, 0, 0, 3}},
    {.name = "nms, ties", .build = nms_ties, .shape = {"3x200x4", "3x200", "3x200"}, .option = {0.5}, .data = OP_TIES},
    {.name = "nms, ties, inclusive",
     .build = nms_ties,
     .shape = {"3x200x4", "3x200", "3x200"},
     .option = {0.5, -2, 0, 0, 0, 1},
     .data = OP_TIES},
    {.name = "nms, ties, a third", .build = nms_ties, .shape = {"3x200x4", "3x200", "3x200"}, .option = {1.0 / 3, -2}, .data = OP_TIES},
    {.name = "nms, ties, a third, inclusive",
     .build = nms_ties,
     .shape = {"3x200x4", "3x200", "3x200"},
     .option = {1.0 / 3, -2, 0, 0, 0, 1},
     .data = OP_TIES},
    {.name = "nms, special scores",
     .build = nms,
     .shape = {"2x200x4", "2x200", "2x200"},
     .option = {0.3, -1, 0, 0, 0, 0, 0, 2},
     .data = OP_SPECIAL},
    {.name = "nms, none above the threshold", .build = nms, .shape = {"2x20x4", "2x20", "2x20"}, .option = {0.3, 2, 5, 0, 0, 0, 0, 2}},
    {.name = "nms, one", .build = nms, .shape = {"2x1x4", "2x1", "2x1"}, .option = {0.3, -1, 5, 0, 0, 0, 0, 2}},
    {.name = "nms, nothing", .build = nms, .shape = {"2x0x4", "2x0", "2x0"}, .option = {0.3, 0, 5, 0, 0, 0, 0, 2}},
    {.name = "nms, no images", .build = nms, .shape = {"0x5x4", "0x5", "0x5"}, .option = {0.3, 0, 5, 0, 0, 0, 0, 2}},
    {.name = "detections", .build = detections, .shape = {"2x60x4", "2x60x5"}, .option = {0.4, 0.3, 12}, EXACT},
    {.name = "detections of pairs", .build = detections_of_pairs, .shape = {"2x60x4", "2x60x5"}, .option = {0.4, 0.3, 12}, EXACT},
    {.name = NULL}};
