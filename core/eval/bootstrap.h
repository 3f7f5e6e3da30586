/* eval/bootstrap.h: how sure a difference between two detectors on the same pictures is. The pictures are drawn anew, with replacement, many
 * times; both detectors are judged by what they found on the same draw, so what the choice of pictures does to both falls out of the
 * difference (the paired bootstrap; B. Efron, R. Tibshirani: An Introduction to the Bootstrap, 1993, chapters 8 and 13). */
#ifndef SD_EVAL_BOOTSTRAP_H
#define SD_EVAL_BOOTSTRAP_H

#include "core/eval/eval.h"

/* What the images `picks`[n] of `in` hold, in that order, the same one as often as it is picked. Freed by sd_resample_free. */
typedef struct sd_resample {
    sodet_eval_input in;
    void *memory[7];
} sd_resample;
sodet_status sd_resample_make(const sodet_eval_input *in, const uint64_t *picks, uint64_t n, sd_resample *out, sodet_err *err);
void sd_resample_free(sd_resample *r); /* accepts a zeroed one */

typedef struct sd_interval {
    double low, high; /* NaN: the metric was undefined in every draw */
    uint64_t n;       /* draws in which it was defined for both */
} sd_interval;
/* a, b: two detectors' detections on the same images. intervals[k]: of metric k of the evaluator, in the order in which it emits them, b's
 * minus a's: the middle `share` (0.95) of `draws` draws. Draw i is a function of (seed, i). Metrics that are NaN, or -1 where an
 * evaluator means that by it, do not count. */
typedef struct sd_bootstrap {
    const sd_instance *evaluator;
    const sodet_eval_input *a, *b;
    uint64_t seed, draws;
    double share;
    uint32_t n_threads;
    uint64_t n_metrics;
} sd_bootstrap;
sodet_status sd_bootstrap_run(const sd_bootstrap *q, sd_interval *intervals, sodet_err *err);

#endif
