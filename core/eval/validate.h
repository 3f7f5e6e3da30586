/* eval/validate.h: the validation set of a configuration, run through a detector and its evaluators: what training does every n epochs and
 * `sodet eval` once. */
#ifndef SD_EVAL_VALIDATE_H
#define SD_EVAL_VALIDATE_H

#include "core/data/recipe.h"
#include "core/eval/eval.h"
#include "core/eval/infer.h"

typedef struct sd_validation sd_validation;
/* [data] val, [transform] val and the labels of [eval] evaluators. classes: the detector's, in its order. */
sodet_status sd_validation_open(sd_config *cfg, const char *const *classes, uint32_t n_classes, sd_validation **out, sodet_err *err);
void sd_validation_close(sd_validation *v); /* accepts NULL */
const sd_dataset *sd_validation_dataset(const sd_validation *v);
uint32_t sd_validation_count(const sd_validation *v); /* evaluators */
const char *sd_validation_label(const sd_validation *v, uint32_t i);
const sodet_eval_sink *sd_validation_result(const sd_validation *v, uint32_t i); /* of the last run */
/* "voc/mAP": [eval] best with the headline filled in, and its value in the last run (NaN if it is undefined). */
const char *sd_validation_best_name(const sd_validation *v);
double sd_validation_best(const sd_validation *v);
/* "voc/mAP": 0.5, ... of every evaluator, without brackets. */
void sd_validation_json(const sd_validation *v, sd_text *out);

/* What the last run gathered, until the next one or close; NULL: there was none, or it failed. Names of images: sd_gather_name. */
const sodet_eval_input *sd_validation_input(const sd_validation *v);
const sd_gather *sd_validation_gathered(const sd_validation *v);
const sd_instance *sd_validation_evaluator(const sd_validation *v, uint32_t i);
/* Image i of what was gathered, as an index in the data set. */
uint64_t sd_validation_sample(const sd_validation *v, uint64_t image);

/* detections: NULL, or the path of a COCO result list to write. progress gets `context`. */
sodet_status sd_validation_run(sd_validation *v, sd_infer *f, const char *detections, sd_infer_progress *progress, void *context,
                               sd_infer_stats *stats, sodet_err *err);

#endif
