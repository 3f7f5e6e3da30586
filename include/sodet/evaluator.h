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
 * (no objects of the class); reports print it as a dash. */
typedef struct sodet_eval_sink sodet_eval_sink;
SODET_EXPORT void sodet_emit_metric(sodet_eval_sink *out, const char *name, double value);
SODET_EXPORT void sodet_emit_line(sodet_eval_sink *out, const char *format, ...) __attribute__((format(printf, 2, 3))); /* of the printed report */

typedef struct sodet_evaluator_ops {
    uint32_t struct_size, flags;
    sodet_status (*evaluate)(const void *self, const sodet_eval_input *in, sodet_eval_sink *out, sodet_err *err);
    const char *headline; /* the metric that `best` means when only the evaluator is named */
} sodet_evaluator_ops;

#ifdef __cplusplus
}
#endif
#endif
