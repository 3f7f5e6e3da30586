/* eval/infer.h: a detector over a data set: batches go to the devices, detections come back in pixels of the original pictures, clipped
 * to them. */
#ifndef SD_EVAL_INFER_H
#define SD_EVAL_INFER_H

#include "core/data/loader.h"
#include "core/detect/model.h"
#include "core/device/program.h"
#include "sodet/evaluator.h"

typedef struct sd_infer sd_infer;
typedef struct sd_infer_config {
    sd_device_pool *pool; /* its arenas are filled */
    const sd_model *model;
    const sd_segments *segments;
    uint32_t param_arena; /* SD_ARENA_PARAM, or the state arena of averaged weights */
} sd_infer_config;
sodet_status sd_infer_open(const sd_infer_config *config, sd_infer **out, sodet_err *err);
void sd_infer_close(sd_infer *f); /* before the pool; accepts NULL */

/* One picture's detections, scores falling; valid for the call. Not called for one that could not be read (bad_files = skip). */
typedef sodet_status sd_infer_put(void *context, const sd_batch_item *item, const sodet_detection *detections, uint64_t n, sodet_err *err);
typedef struct sd_infer_stats {
    uint64_t done, of, missing; /* pictures */
    uint64_t first_missing;     /* index of the first of them in the data set; meaningless if there is none */
    double seconds, wait;       /* of it: waiting for the loader */
} sd_infer_stats;
/* After each batch; false ends the run with SODET_E_INVALID, "stopped". */
typedef bool sd_infer_progress(void *context, const sd_infer_stats *so_far);
/* loader: a configuration whose shuffling and assigner are not used. progress may be NULL. */
sodet_status sd_infer_run(sd_infer *f, const sd_loader_config *loader, sd_infer_put *put, sd_infer_progress *progress, void *context,
                          sd_infer_stats *stats, sodet_err *err);

/* One batch: out receives, for each row, its detections, one row behind the other; first[rows + 1] is the caller's. *detections grows
 * (sd_grow) and is the caller's to free. */
sodet_status sd_infer_batch(sd_infer *f, const sd_batch *batch, uint64_t *first, sodet_detection **detections, uint64_t *capacity,
                            sodet_err *err);

/* The rows that each of `n` devices gets of `rows`: as even as can be, the first devices one more. [n + 1] */
void sd_deal(uint32_t rows, uint32_t n, uint32_t *first);

#endif
