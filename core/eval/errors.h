/* eval/errors.h: what went wrong: curves and counts of each class, who was taken for whom, and every wrong detection put down to one kind
 * of error. One IoU threshold, boxes as an evaluator gets them.
 *
 * Matching: in an image, detections by falling score; each takes the object of its class, not yet taken, that it overlaps most, if that
 * is at least `iou`. Crowds and objects marked difficult count for nothing: a detection that finds no object but lies on one of these (of
 * a crowd: by the share of its own area) is left out.
 *
 * Kinds of errors, and their order where several would fit: D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection
 * Errors", ECCV 2020, section 2, and tidecv's quantify.py. A detection without an object is
 *   place       its class is right, the overlap with an object is in [background, iou]
 *   class       it overlaps an object of another class by at least iou
 *   duplicate   it overlaps an object of its class by at least iou, which one with a higher score has taken
 *   background  it overlaps no object by more than `background`
 *   both        what is left: wrong class and wrong place
 * and an object is missed that no detection has found, nor would have without its error of place or class.
 *
 * gain: how much mAP would rise if the errors of that kind alone were mended: place and class errors become hits (the highest score of an
 * object's; the others go, as do all of an object that was found), duplicates, background and both go, missed objects are not counted. */
#ifndef SD_EVAL_ERRORS_H
#define SD_EVAL_ERRORS_H

#include "core/base/base.h"
#include "sodet/evaluator.h"

enum { SD_ERROR_CLASS, SD_ERROR_PLACE, SD_ERROR_BOTH, SD_ERROR_DUPLICATE, SD_ERROR_BACKGROUND, SD_ERROR_MISSED, SD_ERROR_KINDS };
enum { SD_FATE_HIT = SD_ERROR_KINDS, SD_FATE_LEFT_OUT }; /* of a detection, beside the kinds of errors */

typedef struct sd_errors_options {
    double iou, background; /* 0: 0.5 and 0.1 */
    double score;           /* what a person would look at: counts "sure", the table of confusions and the images' faults begin there */
} sd_errors_options;

typedef struct sd_class_curve {
    uint64_t objects, detections; /* that count; detections with a value that is not finite are left out */
    uint64_t n;                   /* points, by falling score */
    const double *recall, *precision, *score;
    double ap;              /* area under the curve (sodet_ap_area); NaN: no objects */
    double f1, f1_score;    /* the best 2 p r / (p + r) of the curve, and the score it begins at; 0 without points */
    uint64_t sure, correct; /* detections from options.score on, and the hits among them */
} sd_class_curve;

typedef struct sd_image_faults {
    uint64_t missed, wrong; /* objects without a hit and detections without an object, from options.score on */
    double weight;          /* missed + the scores of the wrong: what "worst first" means */
} sd_image_faults;

typedef struct sd_errors {
    sd_pool pool;
    uint32_t n_classes;
    uint64_t n_images;
    sd_errors_options options;
    sd_class_curve *classes;        /* [n_classes] */
    double map;                     /* mean of ap over the classes that have objects; NaN: none has */
    uint64_t count[SD_ERROR_KINDS]; /* over all detections */
    uint64_t sure[SD_ERROR_KINDS];  /* from options.score on; missed: objects that none of these has found, nor would have */
    double gain[SD_ERROR_KINDS];    /* NaN as map */
    uint8_t *fate;                  /* [detections] SD_ERROR_* or SD_FATE_* */
    /* [n_classes + 1][n_classes + 1]: row: what is there, column: what was said; the last of each is background. From options.score on;
     * hits first, then detections and objects that are left, by falling score, whatever their classes, from iou on. */
    uint64_t *confusion;
    sd_image_faults *images; /* [n_images] */
    uint64_t *worst;         /* [n_images] by falling weight, equal ones in their order */
} sd_errors;

extern const char *const sd_error_names[SD_ERROR_KINDS];
sodet_status sd_errors_find(const sodet_eval_input *in, const sd_errors_options *options, sd_errors *out, sodet_err *err);
void sd_errors_free(sd_errors *e); /* accepts a zeroed one */

#endif
