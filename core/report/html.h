/* report/html.h: a run as one HTML page (report/markup.h): curves, what the evaluators said, classes, who was taken for whom, kinds of
 * errors, the worst pictures, the configuration, what it ran on. */
#ifndef SD_REPORT_HTML_H
#define SD_REPORT_HTML_H

#include "core/eval/errors.h"
#include "core/eval/eval.h"
#include "core/report/metrics.h"
#include "core/report/shots.h"

typedef struct sd_page_fact {
    const char *what, *value;
} sd_page_fact;
typedef struct sd_page_result { /* of one evaluator */
    const char *label;
    const sodet_eval_sink *sink;
} sd_page_result;
typedef struct sd_page_picture {
    const char *name;
    uint64_t image; /* of the evaluated data */
    sd_shot truth, found;
} sd_page_picture;

/* Borrowed. What is NULL or 0 is left out; the page says that it was not there. */
typedef struct sd_page {
    const char *title;
    const sd_page_fact *facts;
    uint32_t n_facts;
    const sd_metrics *metrics;
    const char *headline;       /* "voc/mAP": what the run was judged by */
    const sodet_eval_input *in; /* with errors and results */
    const sd_errors *errors;
    const sd_page_result *results; /* the first one's AP/<class> goes into the table of classes */
    uint32_t n_results;
    const char *data; /* a sentence: what was evaluated */
    const sd_page_picture *pictures;
    uint32_t n_pictures;
    const char *ini;
    const char *log; /* lines */
} sd_page;
/* Appends the whole page; out->failed tells that memory ran out. */
void sd_page_write(const sd_page *p, sd_text *out);

#endif
