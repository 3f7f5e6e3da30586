#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/eval/eval.h"

void sodet_emit_metric(sodet_eval_sink *out, const char *name, double value)
{
    sd_metric m = {sd_pool_strdup(&out->strings, name), value};
    if (!m.name || sd_grow(&out->metrics, &out->capacity, out->n + 1, sizeof *out->metrics, NULL) != SODET_OK)
        out->failed = true;
    else
        out->metrics[out->n++] = m;
}

void sodet_emit_line(sodet_eval_sink *out, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sd_text_append(&out->lines, text, strlen(text));
    sd_text_append(&out->lines, "\n", 1);
}

void sodet_emit_phase(sodet_eval_sink *out, const char *name)
{
    double now = sd_now();
    if (out->n_phases < SD_EVAL_PHASES) {
        sd_eval_phase *p = &out->phases[out->n_phases++];
        snprintf(p->name, sizeof p->name, "%s", name);
        p->seconds = now - out->since;
    }
    out->since = now;
}

void sd_eval_sink_clear(sodet_eval_sink *sink)
{
    sd_free(sink->metrics);
    sd_text_free(&sink->lines);
    sd_pool_clear(&sink->strings);
    *sink = (sodet_eval_sink){.n = 0};
}

double sd_eval_sink_get(const sodet_eval_sink *sink, const char *name, bool *found)
{
    for (uint64_t i = 0; i < sink->n; i++)
        if (strcmp(sink->metrics[i].name, name) == 0) {
            if (found)
                *found = true;
            return sink->metrics[i].value;
        }
    if (found)
        *found = false;
    return (double)NAN;
}

static void put_json_name(sd_text *out, const char *prefix, const char *name)
{
    sd_text_append(out, "\"", 1);
    for (int part = 0; part < 2; part++)
        for (const char *p = part ? name : prefix; *p; p++) {
            if (*p == '"' || *p == '\\')
                sd_text_append(out, "\\", 1);
            if ((unsigned char)*p < 0x20)
                sd_text_printf(out, "\\u%04x", (unsigned)*p);
            else
                sd_text_append(out, p, 1);
        }
    sd_text_append(out, "\": ", 3);
}

void sd_eval_sink_json(const sodet_eval_sink *sink, const char *prefix, sd_text *out)
{
    for (uint64_t i = 0; i < sink->n; i++) {
        if (i)
            sd_text_append(out, ", ", 2);
        put_json_name(out, prefix, sink->metrics[i].name);
        if (isfinite(sink->metrics[i].value))
            sd_text_printf(out, "%.17g", sink->metrics[i].value);
        else
            sd_text_append(out, "null", 4);
    }
}

sodet_status sd_evaluate(const sd_instance *evaluator, const sodet_eval_input *in, sodet_eval_sink *sink, sodet_err *err)
{
    const sodet_evaluator_ops *ops = evaluator->ops;
    sd_eval_sink_clear(sink);
    sink->since = sd_now();
    sodet_status s = ops->evaluate(evaluator->self, in, sink, err);
    if (s == SODET_OK && (sink->failed || sink->lines.failed))
        s = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the report");
    if (s != SODET_OK) {
        sd_eval_sink_clear(sink);
        return sd_fail_in(err, s, "[%s]", evaluator->section);
    }
    return SODET_OK;
}
