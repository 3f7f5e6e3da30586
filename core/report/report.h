/* report/report.h: what a run says while it goes: a progress line on a terminal, plain lines elsewhere, both on stderr; metrics.jsonl and
 * log.txt in the run's folder, and if it is wanted a file for TensorBoard.
 *
 * metrics.jsonl, one object a line:
 *   {"step", "epoch", "lr", "loss", "loss/<term>".., "grad_norm", "positives", "images_per_second", "data_wait",
 *    "seconds"}   every log_every steps; loss, terms and positives are means since the line before, seconds the time since then (without
 *       evaluations), data_wait its share that was spent waiting for the loader
 *   {"step", "epoch", "eval": {"<evaluator>/<metric>": ..}, "best", "seconds"}                                      every evaluation
 *   {"step", "epoch", "devices": [..], "efficiency", ..}    at the end: what the devices did since the run began or was resumed (train/usage.h)
 * When a run is resumed, lines of steps behind the checkpoint are dropped first, so that no step is there twice. */
#ifndef SD_REPORT_REPORT_H
#define SD_REPORT_REPORT_H

#include "core/base/base.h"

typedef struct sd_report sd_report;
typedef struct sd_report_config {
    const char *folder; /* NULL: no files */
    uint32_t log_every;
    bool quiet;            /* nothing but errors on stderr */
    bool events;           /* the figures of metrics.jsonl as TensorBoard reads them, too (report/events.h) */
    uint64_t resumed_step; /* lines behind it go; 0: a new run */
    double resumed_epoch;  /* unused when resumed_step is 0 */
    uint32_t n_terms;
    const char *const *terms; /* borrowed */
} sd_report_config;
sodet_status sd_report_open(const sd_report_config *config, sd_report **out, sodet_err *err);
void sd_report_close(sd_report *r); /* accepts NULL */

/* A line for a person: to stderr (unless quiet) and log.txt. */
void sd_report_line(sd_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct sd_report_step {
    uint64_t step, steps; /* done, and of the whole run */
    double epoch, epochs;
    double lr, loss, norm;
    const double *terms;
    uint64_t images, positives; /* of this step */
    double wait;                /* seconds waited for data, since the run began */
    double loss_scale;          /* 0: the loss is not scaled */
    uint64_t skipped;           /* steps that overflowed, since the run began */
} sd_report_step;
void sd_report_train(sd_report *r, const sd_report_step *s);
/* While it evaluates: a progress line on a terminal. */
void sd_report_evaluating(sd_report *r, uint64_t done, uint64_t of);
/* members: "voc/mAP": 0.5, ... ; headline: a name and its value; best: the best so far. */
void sd_report_evaluation(sd_report *r, uint64_t step, double epoch, const char *members, const char *headline, double value, double best,
                          double seconds);
/* At the end: text, lines; members: for metrics.jsonl. */
void sd_report_devices(sd_report *r, uint64_t step, double epoch, const char *text, const char *members);
/* The first error that writing one of the files met. */
sodet_status sd_report_status(const sd_report *r, sodet_err *err);

/* curve.png of a metrics.jsonl: loss (left axis) and the headline metric, "voc/mAP" (right axis), over the steps. */
sodet_status sd_report_curve(const char *metrics, const char *headline, const char *png, sodet_err *err);

#endif
