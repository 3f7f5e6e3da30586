/* report/compare.h: detectors side by side, judged on the same pictures: a table as text, JSON or an HTML page. */
#ifndef SD_REPORT_COMPARE_H
#define SD_REPORT_COMPARE_H

#include "core/eval/bootstrap.h"

typedef struct sd_compared {
    const char *name;                   /* as a person called it */
    uint64_t parameters, macs, planned; /* planned: bytes of one device while it was evaluated */
    uint32_t batch, width, height;      /* of the evaluation */
    double logged, measured;     /* pictures a second: in training, the median of its log (NaN: there is none); now, in the evaluation */
    const double *value;         /* [n_metrics] */
    const sd_interval *interval; /* [n_metrics] of the difference to the first; NULL: of the first, or none were drawn */
} sd_compared;
typedef struct sd_comparison {
    uint32_t n;
    const sd_compared *run;
    uint64_t n_metrics;
    const char *const *metric; /* "voc/mAP" */
    uint64_t images, draws, seed;
    double share;       /* of the draws inside an interval: 0.95 */
    const char *device; /* where all of them were evaluated */
} sd_comparison;

void sd_compare_text(const sd_comparison *c, sd_text *out);
void sd_compare_json(const sd_comparison *c, sd_text *out);
void sd_compare_html(const sd_comparison *c, sd_text *out);

#endif
