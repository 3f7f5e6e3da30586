/* sodet/evaluator.h: from (ground truth, detections) to numbers. Plain single-process code; the core has gathered over ranks,
 * removed duplicates and sorted by image before an evaluator sees anything. */
#ifndef SODET_EVALUATOR_H
#define SODET_EVALUATOR_H

#include "sodet/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_detection {
    sodet_box box; /* pixels of the original picture, 0-based, end-exclusive */
    float score;
    int32_t label; /* index in the class list */
} sodet_detection;

/* Everything, flat. Objects and detections of image i are [first[i], first[i + 1]). Borrowed for the call. */
typedef struct sodet_eval_input {
    uint32_t struct_size;
    uint32_t n_classes;
    const char *const *class_names; /* [n_classes] */
    uint64_t n_images;
    const uint64_t *object_first, *detection_first; /* [n_images + 1] */
    const sodet_object *objects;
    /* Double-precision boxes x y w h, as read from a COCO file, or NULL: then computed from the float corners. [objects][4] and [detections][4] */
    const double *object_xywh, *detection_xywh;
    const sodet_detection *detections; /* of an image: in the order in which they were given */
    const double *detection_scores;    /* full precision, or NULL */
    uint32_t n_threads;
} sodet_eval_input;

/* One number of a result: "mAP", "AP50", "AP/dog". The evaluator emits them in the order in which they are printed. NaN: undefined
 * (no objects of the class); reports print it as a dash, JSON as null. `coco` emits -1 there, as pycocotools does. */
typedef struct sodet_eval_sink sodet_eval_sink;
SODET_EXPORT void sodet_emit_metric(sodet_eval_sink *out, const char *name, double value);
SODET_EXPORT void sodet_emit_line(sodet_eval_sink *out, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* of the printed report */
/* What was done since the last such call, or since evaluate was called, has this name: `sodet bench` tells how long each took. */
SODET_EXPORT void sodet_emit_phase(sodet_eval_sink *out, const char *name);

typedef struct sodet_evaluator_ops {
    uint32_t struct_size, flags;
    sodet_status (*evaluate)(const void *self, const sodet_eval_input *in, sodet_eval_sink *out, sodet_err *err);
    const char *headline; /* the metric that `best` means when only the evaluator is named */
} sodet_evaluator_ops;

/* ---- what evaluators share ---- */
/* Calls work(context, i) for i = 0 .. n_items - 1 on up to n_threads threads, each i once, in any order; returns when all are done.
 * Whatever work writes for i must depend on i alone, so that the number of threads changes nothing. */
SODET_EXPORT void sodet_eval_parallel(uint32_t n_threads, uint64_t n_items, void (*work)(void *context, uint64_t item), void *context);

/* Indices of scores in descending order; equal ones stay in the order in which they came. scores: finite. scratch: [n]. */
SODET_EXPORT void sodet_eval_rank(const double *scores, uint64_t n, uint64_t *order, uint64_t *scratch);

/* The input by class: objects and detections of class c are entries [first[c], first[c + 1]) of the index arrays, in the order of the
 * images and inside an image as given; *_image says which image an entry belongs to. Detections with a value that is not finite
 * are left out and counted. A label outside the class list is SODET_E_INVALID. */
typedef struct sodet_eval_groups {
    uint64_t *object_first, *detection_first; /* [n_classes + 1] */
    uint64_t *objects, *detections;           /* indices into the input's arrays */
    uint64_t *object_image, *detection_image; /* of each entry */
    double *object_xywh, *detection_xywh;     /* [4] of each entry: the input's, or computed from the corners */
    double *scores;                           /* of each detection entry */
    uint64_t dropped;                         /* detections that were left out */
} sodet_eval_groups;
SODET_EXPORT sodet_status sodet_eval_group(const sodet_eval_input *in, sodet_eval_groups *out, sodet_err *err);
SODET_EXPORT void sodet_eval_groups_free(sodet_eval_groups *g);

/* Average precision of a curve whose points come in the order of falling score, recall ascending. The 11-point form (PASCAL VOC until
 * 2009): the mean over t = 0, 0.1 .. 1 of the best precision at recall >= t, where t is i * 0.1 in double, as in the devkit. The area
 * form (since 2010): the area under the precision made monotone from the right. Both are 0 for n = 0. */
SODET_EXPORT double sodet_ap_11point(const double *recall, const double *precision, uint64_t n);
SODET_EXPORT double sodet_ap_area(const double *recall, const double *precision, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
