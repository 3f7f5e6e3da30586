/* sodet/detection.h: the values that backbones, necks, heads and losses exchange, and their tables of functions. */
#ifndef SODET_DETECTION_H
#define SODET_DETECTION_H

#include "sodet/data.h"
#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SODET_MAX_LEVELS 16
/* Feature maps, finest first. stride: input pixels per cell; a map of one cell for the whole picture has stride 0 ("global"). */
typedef struct sodet_features sodet_features;
SODET_EXPORT void sodet_emit_feature(sodet_graph *g, sodet_features *out, sodet_value map, uint32_t stride);
SODET_EXPORT void sodet_emit_global_feature(sodet_graph *g, sodet_features *out, sodet_value map);
SODET_EXPORT uint32_t sodet_feature_count(const sodet_features *f);
SODET_EXPORT sodet_value sodet_feature(const sodet_features *f, uint32_t level); /* [N, C_l, H_l, W_l]; poison if there is no such level */
SODET_EXPORT uint32_t sodet_feature_stride(const sodet_features *f, uint32_t level);

/* Channels under a width factor (an option of every backbone, neck and head): rounded, at least 1. */
static inline uint32_t sodet_widen(uint32_t channels, double width)
{
    uint32_t n = (uint32_t)((double)channels * width + 0.5);
    return n ? n : 1;
}

typedef struct sodet_shape2d {
    uint32_t height, width, stride; /* of a level: cells and input pixels per cell (0: global); of an image: pixels, stride unused */
} sodet_shape2d;

typedef struct sodet_anchors {
    uint32_t struct_size;
    uint64_t n;
    float *box;             /* [n][4] cx cy w h in input pixels. sodet_anchors_resize allocates; the core frees */
    uint32_t height, width; /* of the input; the core sets them before head.anchors */
} sodet_anchors;
SODET_EXPORT sodet_status sodet_anchors_resize(sodet_anchors *a, uint64_t n, sodet_err *err);

typedef struct sodet_boxes { /* ground truth of one image, in input pixels */
    uint32_t struct_size, n;
    const sodet_box *box;
    const int32_t *label;
    const uint32_t *flags; /* SODET_BOX_* */
} sodet_boxes;

enum { SODET_INDEX_BACKGROUND = -1, SODET_INDEX_IGNORE = -2 };

enum {
    SODET_SOFTMAX = 1, /* C + 1 columns, background is column 0 */
    SODET_SIGMOID = 2  /* C columns */
};

/* What the core tells a head. */
typedef struct sodet_head_context {
    uint32_t struct_size;
    uint32_t n_classes;  /* C */
    uint32_t columns;    /* K: C + 1 or C, as the loss's activation has it */
    uint32_t activation; /* SODET_SOFTMAX | SODET_SIGMOID */
} sodet_head_context;

typedef struct sodet_head_out {
    uint32_t struct_size;
    sodet_value logits;                               /* [N, A, K] */
    sodet_value codes;                                /* [N, A, 4] */
    float variance[4];                                /* what the head's coding divides by: code = raw / variance */
    uint32_t n_levels, level_boxes[SODET_MAX_LEVELS]; /* how many of the A boxes are each feature map's, in order */
} sodet_head_out;

/* What head.assign decided on the loader's threads, as inputs of the graph. */
typedef struct sodet_targets {
    uint32_t struct_size;
    sodet_value index;   /* [N, A] int32: row of truth, or SODET_INDEX_BACKGROUND, SODET_INDEX_IGNORE */
    sodet_value truth;   /* [N, T, 4] boxes x1 y1 x2 y2 in input pixels, padded with zeros */
    sodet_value label;   /* [N, T] int32, 0..C-1, padded with 0 */
    sodet_value anchors; /* [A, 4] cx cy w h in input pixels; a constant */
    sodet_value weight;  /* [N] what each image's sums are multiplied by; known before the step ([loss] normaliser) */
    sodet_value share;   /* [N] 1 / images of the step */
} sodet_targets;

/* Adds a scalar term to the loss, logged under `name`: factor * sum_n(weight[n] * per_image[n]). */
SODET_EXPORT void sodet_emit_loss(sodet_graph *g, const char *name, const sodet_targets *t, sodet_value per_image, double factor);
/* A factor for the term of one image whatever its positives are (d2l divides by all anchors): like sodet_emit_loss with `share` for `weight`. */
SODET_EXPORT void sodet_emit_loss_mean(sodet_graph *g, const char *name, const sodet_targets *t, sodet_value per_image, double factor);

/* Column of each anchor's class under softmax: 1 + label, 0 (background) where index is -1, -1 where it is to be ignored.  -> [N, A] int32 */
SODET_EXPORT sodet_value sodet_softmax_labels(sodet_graph *g, const sodet_targets *t);
/* Class of each anchor under sigmoid: label, -1 background, -2 ignored.  -> [N, A] int32 */
SODET_EXPORT sodet_value sodet_sigmoid_labels(sodet_graph *g, const sodet_targets *t);

typedef struct sodet_detections {
    uint32_t struct_size;
    sodet_value boxes;  /* [N, K, 4] x1 y1 x2 y2 in input pixels */
    sodet_value scores; /* [N, K], falling; 0 behind `count` */
    sodet_value labels; /* [N, K] int32, 0..C-1 */
    sodet_value count;  /* [N] int32 */
} sodet_detections;

typedef struct sodet_backbone_ops {
    uint32_t struct_size, flags;
    sodet_status (*build)(const void *self, sodet_graph *g, sodet_value image /* [N, 3, H, W] */, sodet_features *out, sodet_err *err);
} sodet_backbone_ops;

typedef struct sodet_neck_ops {
    uint32_t struct_size, flags;
    sodet_status (*build)(const void *self, sodet_graph *g, const sodet_features *in, sodet_features *out, sodet_err *err);
} sodet_neck_ops;

typedef struct sodet_head_ops {
    uint32_t struct_size, flags;
    sodet_status (*build)(const void *self, sodet_graph *g, const sodet_features *in, const sodet_head_context *ctx, sodet_head_out *out,
                          sodet_err *err);
    /* Anchors in the order of the columns of `build`'s outputs. */
    sodet_status (*anchors)(const void *self, const sodet_shape2d *levels, uint32_t n_levels, sodet_shape2d image, sodet_anchors *out,
                            sodet_err *err);
    /* One image, on a loader thread, several at once: index[a->n]. */
    sodet_status (*assign)(const void *self, const sodet_anchors *a, const sodet_boxes *truth, int32_t *index, sodet_err *err);
    /* Decode, threshold, top-k, NMS as operators. `anchors` [A, 4] is a constant of the graph. */
    sodet_status (*build_infer)(const void *self, sodet_graph *g, const sodet_head_out *raw, sodet_value anchors, sodet_shape2d image,
                                const sodet_head_context *ctx, sodet_detections *out, sodet_err *err);
} sodet_head_ops;

typedef struct sodet_loss_ops {
    uint32_t struct_size;
    uint32_t activation; /* SODET_SOFTMAX | SODET_SIGMOID: decides the head's columns and the score function */
    sodet_status (*build)(const void *self, sodet_graph *g, const sodet_head_out *raw, const sodet_targets *t, sodet_err *err);
} sodet_loss_ops;

#ifdef __cplusplus
}
#endif
#endif
