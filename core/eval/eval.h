/* eval/eval.h: from detections to a report: gathering by image, result files, running evaluators. */
#ifndef SD_EVAL_EVAL_H
#define SD_EVAL_EVAL_H

#include "core/base/base.h"
#include "core/plugin/plugin.h"
#include "sodet/evaluator.h"

/* ---- what an evaluator said ---- */
typedef struct sd_metric {
    const char *name;
    double value; /* NaN: undefined */
} sd_metric;
#define SD_EVAL_PHASES 8
typedef struct sd_eval_phase {
    char name[24];
    double seconds;
} sd_eval_phase;
struct sodet_eval_sink { /* zero-initialise */
    sd_metric *metrics;
    uint64_t n, capacity;
    sd_text lines; /* the printed report, each line with its newline */
    sd_pool strings;
    bool failed;                          /* memory ran out */
    sd_eval_phase phases[SD_EVAL_PHASES]; /* later ones are not kept */
    uint32_t n_phases;
    double since; /* the last phase's end */
};
void sd_eval_sink_clear(sodet_eval_sink *sink);
/* NaN if there is no such metric; found may be NULL. */
double sd_eval_sink_get(const sodet_eval_sink *sink, const char *name, bool *found);
/* "AP": 0.5, ...: the members of an object, full precision, NaN as null; prefix goes in front of every name. */
void sd_eval_sink_json(const sodet_eval_sink *sink, const char *prefix, sd_text *out);

/* Runs one evaluator. The sink is cleared first; a failed one is cleared again. */
sodet_status sd_evaluate(const sd_instance *evaluator, const sodet_eval_input *in, sodet_eval_sink *sink, sodet_err *err);

/* ---- gathering ---- */
/* Images with their objects and detections, in any order, some of them twice (padded batches, overlapping shards of ranks). */
typedef struct sd_gather sd_gather;
/* class_names: NULL at the end or n_classes of them; copied. category_ids: NULL: i + 1. */
sodet_status sd_gather_new(const char *const *class_names, const int64_t *category_ids, uint32_t n_classes, sd_gather **out,
                           sodet_err *err);
void sd_gather_free(sd_gather *g);
/* One image. key orders the images and tells them apart (COCO's image id, or the row of the data set); name is for files. *_xywh: [n][4]
 * in double, or NULL: from the corners (all images of a gather alike). scores: NULL: the detections' own. Everything is copied. */
typedef struct sd_gather_image {
    int64_t key;
    const char *name;
    const sodet_object *objects;
    const double *object_xywh;
    uint64_t n_objects;
    const sodet_detection *detections;
    const double *detection_xywh, *scores;
    uint64_t n_detections;
} sd_gather_image;
sodet_status sd_gather_add(sd_gather *g, const sd_gather_image *image, sodet_err *err);
/* Sorts by key, keeps the first of each key, and describes it as an evaluator wants it. The arrays are the gather's and live until
 * it is freed or added to. */
sodet_status sd_gather_finish(sd_gather *g, uint32_t n_threads, sodet_eval_input *out, sodet_err *err);
uint64_t sd_gather_duplicates(const sd_gather *g); /* images that finish left out */
const char *sd_gather_name(const sd_gather *g, uint64_t image);
int64_t sd_gather_key(const sd_gather *g, uint64_t image);
int64_t sd_gather_category(const sd_gather *g, uint32_t label);

/* ---- files ---- */
/* Both take n_threads where a list is long; what is read does not depend on it. */
/* COCO's instances file: images, annotations, categories. Classes are sorted by category id. iscrowd and area may be missing (0; w * h);
 * "difficult" and "ignore" set SODET_BOX_DIFFICULT, which `coco` does not look at. Image ids may be strings that are integers.
 * Annotations of an image that is not listed are left out with a warning. */
sodet_status sd_read_coco_truth(const char *path, uint32_t n_threads, sd_gather **out, sodet_err *err);
/* COCO's result list [{image_id, category_id, bbox, score}], or an object whose "annotations" is such a list; if that object has
 * images and categories of its own, these are matched by file_name and name instead of by id. Detections are added to the images of
 * the ground truth; one on an unknown image is an error, of an unknown category is left out with a warning. */
sodet_status sd_read_coco_detections(const char *path, sd_gather *g, uint32_t n_threads, sodet_err *err);
/* The result list of everything gathered (after finish), one line per detection, numbers as short as exactly readable. */
sodet_status sd_write_coco_detections(const char *path, const sd_gather *g, const sodet_eval_input *in, sodet_err *err);
/* The devkit's result files, <folder>/<prefix><class>.txt: `image score xmin ymin xmax ymax`, corners 1-based and inclusive. */
sodet_status sd_write_voc_detections(const char *folder, const char *prefix, const sd_gather *g, const sodet_eval_input *in,
                                     sodet_err *err);

/* ---- the whole: files to a report ---- */
typedef struct sd_eval_files_request {
    const char *detections, *ground_truth;
    sd_config *config;           /* where the evaluators' options are */
    const char *const *sections; /* "evaluator.coco", ...; NULL at the end */
    uint32_t n_threads;
    bool json;
} sd_eval_files_request;
/* out: the report's lines, or one JSON object (of one evaluator: its metrics; of several: "coco/AP"). */
sodet_status sd_eval_files(const sd_eval_files_request *request, sd_text *out, sodet_err *err);

#endif
