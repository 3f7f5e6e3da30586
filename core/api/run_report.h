/* api/run_report.h: a trained network, and the run that it comes from, as one HTML page (report/html.h): what `sodet report` writes, and a
 * training with [run] report at its end. */
#ifndef SD_API_RUN_REPORT_H
#define SD_API_RUN_REPORT_H

#include "core/api/trained.h"

#define SD_RUN_REPORT_SCORE 0.5
enum { SD_RUN_REPORT_PICTURES = 12 };
typedef struct sd_run_report_request {
    sd_config *cfg; /* of the network; its [data] val is evaluated, if there is one */
    const sd_trained *net;
    const char *weights;         /* as a person called them */
    const char *folder;          /* where metrics.jsonl and log.txt are, if they are */
    const char *out;             /* the page */
    double threshold;            /* score from which on a detection is looked at */
    uint32_t pictures;           /* at most so many of the worst */
    sd_infer_progress *progress; /* or NULL */
    void *context;
} sd_run_report_request;
sodet_status sd_run_report_write(const sd_run_report_request *q, sodet_err *err);

/* After a training with cfg: <folder>/report.html of its best weights, else of its last. */
sodet_status sd_run_report_of(sd_config *cfg, const char *folder, sodet_err *err);

#endif
