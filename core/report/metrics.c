#include "core/report/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/json.h"

static sd_series *series_of(sd_metrics *m, const char *name, bool evaluation, sodet_err *err)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (strcmp(m->series[i].name, name) == 0)
            return &m->series[i];
    char *own = sd_pool_strdup(&m->pool, name);
    if (!own || sd_grow(&m->series, &m->capacity, m->n + 1, sizeof *m->series, err) != SODET_OK)
        return NULL;
    m->series[m->n] = (sd_series){.name = own, .evaluation = evaluation};
    return &m->series[m->n++];
}

typedef struct reading { /* of one line */
    sd_metrics *m;
    sd_pool names;
    double step;
    bool evaluation;
    sodet_status status;
    sodet_err *err;
} reading;

/* One member: its value, if it is a number. prefix: "" or "eval/". */
static void take(reading *r, sd_json *j, sd_json_string key, const char *prefix)
{
    char *name = sd_pool_printf(&r->names, "%s%.*s", prefix, (int)key.n, key.text);
    bool number = sd_json_peek(j) == '0';
    double value = number ? sd_json_double(j) : 0;
    if (!number)
        sd_json_skip(j);
    sd_series *s = name && r->status == SODET_OK ? series_of(r->m, name, r->evaluation, r->err) : NULL;
    if (!s)
        r->status = r->status == SODET_OK ? SODET_FAIL(r->err, SODET_E_MEMORY, "out of memory: the run's figures") : r->status;
    else if (number && isfinite(r->step) && (r->status = sd_grow(&s->point, &s->capacity, s->n + 1, sizeof *s->point, r->err)) == SODET_OK)
        s->point[s->n++] = (sd_point){.step = r->step, .value = value, .line = r->m->lines};
}

static void read_line(reading *r, sd_json *j)
{
    sd_json_string key;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "step")) {
            r->step = sd_json_double(j);
        } else if (sd_json_is(key, "eval")) {
            r->evaluation = true;
            for (sd_json_enter(j, '{'); sd_json_key(j, &key);)
                take(r, j, key, "");
        } else if (sd_json_is(key, "devices")) {
            sd_json_skip(j);
        } else {
            take(r, j, key, r->evaluation ? "eval/" : "");
        }
    }
}

sodet_status sd_metrics_read(const char *path, sd_metrics *out, sodet_err *err)
{
    char *bytes;
    uint64_t n;
    memset(out, 0, sizeof *out);
    sodet_status s = sd_file_read(path, 0, &bytes, &n, err);
    if (s != SODET_OK)
        return s;
    for (char *line = bytes, *end; s == SODET_OK && (end = memchr(line, '\n', (size_t)(bytes + n - line))); line = end + 1) {
        reading r = {.m = out, .step = (double)NAN, .err = err};
        sd_json j;
        *end = '\0';
        sd_json_open(&j, path, line, (uint64_t)(end - line), err);
        read_line(&r, &j);
        s = sd_json_close(&j);
        if (s == SODET_E_INVALID)
            s = SODET_FAIL(err, s,
                           "%s: line %" PRIu64
                           " is not what a run writes, a JSON object; remove the line, or the file to do without its figures",
                           path, out->lines + 1);
        s = s == SODET_OK ? r.status : s;
        sd_pool_clear(&r.names);
        out->lines++;
    }
    sd_free(bytes);
    if (s != SODET_OK)
        sd_metrics_free(out);
    return s;
}

void sd_metrics_free(sd_metrics *m)
{
    for (uint64_t i = 0; i < m->n; i++)
        sd_free(m->series[i].point);
    sd_free(m->series);
    sd_pool_clear(&m->pool);
    memset(m, 0, sizeof *m);
}

const sd_series *sd_metrics_find(const sd_metrics *m, const char *name)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (strcmp(m->series[i].name, name) == 0)
            return &m->series[i];
    return NULL;
}

void sd_metrics_csv(const sd_metrics *m, sd_text *out)
{
    uint64_t *next = sd_alloc(m->n + 1, sizeof *next);
    out->failed = out->failed || !next;
    sd_text_printf(out, "step");
    for (uint64_t i = 0; i < m->n; i++) {
        sd_text_append(out, ",", 1);
        sd_text_csv(out, m->series[i].name);
    }
    sd_text_append(out, "\n", 1);
    for (uint64_t line = 0; next && line < m->lines; line++) {
        double step = (double)NAN;
        for (uint64_t i = 0; i < m->n; i++)
            if (next[i] < m->series[i].n && m->series[i].point[next[i]].line == line)
                step = m->series[i].point[next[i]].step;
        if (!isfinite(step))
            continue;
        sd_text_printf(out, "%.17g", step);
        for (uint64_t i = 0; i < m->n; i++) {
            const sd_series *s = &m->series[i];
            sd_text_append(out, ",", 1);
            if (next[i] < s->n && s->point[next[i]].line == line)
                sd_text_printf(out, "%.9g", s->point[next[i]++].value);
        }
        sd_text_append(out, "\n", 1);
    }
    sd_free(next);
}
