/* Detections and ground truth from files, evaluators from a configuration. */
#include <stdio.h>
#include <string.h>

#include "core/eval/eval.h"

static sodet_status one(const sd_eval_files_request *q, const char *section, bool several, const sodet_eval_input *in, sd_text *out,
                        sodet_err *err)
{
    sd_instance evaluator;
    sodet_eval_sink sink = {.n = 0};
    sodet_status s = sd_instance_create(q->config, section, &evaluator, err);
    if (s == SODET_OK)
        s = sd_evaluate(&evaluator, in, &sink, err);
    if (s == SODET_OK && q->json) {
        char prefix[200] = "";
        if (several)
            snprintf(prefix, sizeof prefix, "%s/", strchr(section, '.') ? strchr(section, '.') + 1 : section);
        if (out->length > 1)
            sd_text_append(out, ", ", 2);
        sd_eval_sink_json(&sink, prefix, out);
    } else if (s == SODET_OK)
        sd_text_join(out, &sink.lines);
    sd_eval_sink_clear(&sink);
    sd_instance_destroy(&evaluator);
    return s;
}

sodet_status sd_eval_files(const sd_eval_files_request *q, sd_text *out, sodet_err *err)
{
    sd_gather *g = NULL;
    sodet_eval_input in;
    sodet_status s = sd_read_coco_truth(q->ground_truth, q->n_threads, &g, err);
    if (s == SODET_OK)
        s = sd_read_coco_detections(q->detections, g, q->n_threads, err);
    if (s == SODET_OK)
        s = sd_gather_finish(g, q->n_threads, &in, err);
    if (s == SODET_OK && q->json)
        sd_text_append(out, "{", 1);
    for (uint64_t i = 0; s == SODET_OK && q->sections[i]; i++)
        s = one(q, q->sections[i], q->sections[1] != NULL, &in, out, err);
    if (s == SODET_OK && q->json)
        sd_text_append(out, "}\n", 2);
    if (s == SODET_OK && out->failed)
        s = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the report");
    sd_gather_free(g);
    return s;
}
