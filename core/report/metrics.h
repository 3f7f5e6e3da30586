/* report/metrics.h: a run's metrics.jsonl (report/report.h) read back: one series a name, points in the order of the file. */
#ifndef SD_REPORT_METRICS_H
#define SD_REPORT_METRICS_H

#include "core/base/base.h"

typedef struct sd_point {
    double step, value; /* finite */
    uint64_t line;      /* of the file, from 0 */
} sd_point;
typedef struct sd_series {
    const char *name; /* "loss", "loss/box", "lr"; of evaluations "voc/mAP", and their own keys as "eval/best", "eval/seconds" */
    bool evaluation;
    uint64_t n, capacity;
    sd_point *point;
} sd_series;
typedef struct sd_metrics {
    sd_pool pool;
    uint64_t n, capacity, lines;
    sd_series *series; /* in the order of first mention */
} sd_metrics;

/* A value that is null (not finite) is no point. A last line without its end, of a run that was killed, is left out. */
sodet_status sd_metrics_read(const char *path, sd_metrics *out, sodet_err *err);
void sd_metrics_free(sd_metrics *m); /* accepts a zeroed one */
/* NULL: there is none. */
const sd_series *sd_metrics_find(const sd_metrics *m, const char *name);
/* A table with a row a line and a column a series, empty where the line does not have it. */
void sd_metrics_csv(const sd_metrics *m, sd_text *out);

#endif
