/* eval/made.h: ground truth and detections that nobody labelled or found, for measuring evaluators. */
#ifndef SD_EVAL_MADE_H
#define SD_EVAL_MADE_H

#include "core/data/dataset.h"

typedef struct sd_made {
    uint64_t seed, pictures, objects, detections;
    const sd_classes *classes;
} sd_made;
/* The texts of a COCO instances file and of a result list with these numbers of entries: pictures of 640x480, few classes in each, most objects small, about
 * one in a hundred a crowd; of the detections of a picture those near its objects, moved by some percent and mostly sure, come among
 * others anywhere, mostly unsure. Scores have three decimals, so that some are equal. The same numbers give the same bytes. */
sodet_status sd_make_results(const sd_made *m, sd_text *truth, sd_text *results, sodet_err *err);

#endif
