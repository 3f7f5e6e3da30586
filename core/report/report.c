#include "core/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/report/events.h"
#include "core/report/metrics.h"

struct sd_report {
    sd_report_config config;
    FILE *metrics, *log;
    sd_events *events;        /* NULL: not wanted */
    bool terminal, line_open; /* a progress line stands on the terminal */
    sodet_status status;
    sodet_err err;
    double last_drawn;
    /* since the last line of metrics.jsonl */
    double loss, terms[16], positives, since, wait_then;
    uint64_t n, images;
    /* smoothed, for the progress line */
    double rate, share, step_seconds, last_step, last_wait;
};

static void failed(sd_report *r, const char *file)
{
    if (r->status != SODET_OK)
        return;
    r->err = (sodet_err)SODET_ERR_INIT;
    char path[4200];
    snprintf(path, sizeof path, "%.4095s/%s", r->config.folder, file);
    r->status = sd_fail_write(&r->err, path, "writing", 0);
}

/* Keeps the lines whose "step" is at most `last`. What curve.png could not be drawn from at the end is refused now. */
static sodet_status cut(const char *path, uint64_t last, sodet_err *err)
{
    char *bytes;
    uint64_t n;
    sd_metrics m;
    if (!sd_path_exists(path))
        return SODET_OK;
    sodet_status s = sd_metrics_read(path, &m, err);
    sd_metrics_free(&m);
    if (s == SODET_OK)
        s = sd_file_read(path, 0, &bytes, &n, err);
    if (s != SODET_OK)
        return s;
    sd_text kept = {0};
    for (char *line = bytes, *end; line < bytes + n; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            break; /* half a line of a run that was killed */
        *end = '\0';
        unsigned long long step;
        if (sscanf(line, "{\"step\": %llu", &step) == 1 && step <= last)
            sd_text_printf(&kept, "%s\n", line);
    }
    s = kept.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %s", path)
                    : sd_file_write_atomic(path, kept.text ? kept.text : "", kept.length, err);
    sd_text_free(&kept);
    sd_free(bytes);
    return s;
}

static sodet_status open_file(const char *folder, const char *name, FILE **out, sodet_err *err)
{
    sd_pool pool = {0};
    char *path = sd_path_join(&pool, folder, name);
    *out = path ? fopen(path, "ae") : NULL;
    sodet_status s = *out ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s/%s: %s", folder, name, strerror(errno));
    sd_pool_clear(&pool);
    return s;
}

static sodet_status open_events(sd_report *r, sodet_err *err)
{
    sd_pool pool = {0};
    char *path = sd_path_join(&pool, r->config.folder, SD_EVENTS_NAME);
    sodet_status s =
        path ? sd_events_open(path, r->config.resumed_step, &r->events, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the report");
    sd_pool_clear(&pool);
    return s;
}

sodet_status sd_report_open(const sd_report_config *config, sd_report **out, sodet_err *err)
{
    *out = NULL;
    sd_report *r = sd_alloc(1, sizeof *r);
    if (!r)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the report");
    r->config = *config;
    r->terminal = isatty(STDERR_FILENO) && !config->quiet;
    r->since = r->last_step = sd_now();
    sodet_status s = SODET_OK;
    if (config->folder) {
        sd_pool pool = {0};
        char *metrics = sd_path_join(&pool, config->folder, "metrics.jsonl");
        s = metrics ? cut(metrics, config->resumed_step, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the report");
        sd_pool_clear(&pool);
        if (s == SODET_OK)
            s = open_file(config->folder, "metrics.jsonl", &r->metrics, err);
        if (s == SODET_OK)
            s = open_file(config->folder, "log.txt", &r->log, err);
        if (s == SODET_OK && config->events)
            s = open_events(r, err);
    }
    if (s != SODET_OK) {
        sd_report_close(r);
        return s;
    }
    *out = r;
    return SODET_OK;
}

static void end_line(sd_report *r)
{
    if (r->line_open)
        fputc('\n', stderr);
    r->line_open = false;
}

void sd_report_close(sd_report *r)
{
    if (!r)
        return;
    end_line(r);
    if (r->metrics)
        fclose(r->metrics);
    if (r->log)
        fclose(r->log);
    sd_events_close(r->events);
    sd_free(r);
}

sodet_status sd_report_status(const sd_report *r, sodet_err *err)
{
    return r->status == SODET_OK ? SODET_OK : sd_fail_in(err, SODET_FAIL(err, r->status, "%s", r->err.text), "the report");
}

void sd_report_line(sd_report *r, const char *format, ...)
{
    va_list args;
    if (!r->config.quiet) {
        if (r->line_open)
            fputs("\r\033[K", stderr);
        r->line_open = false;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
    if (r->log) {
        va_start(args, format);
        vfprintf(r->log, format, args);
        va_end(args);
        if (fputc('\n', r->log) == EOF || fflush(r->log) != 0)
            failed(r, "log.txt");
    }
}

static void draw(sd_report *r, const char *text)
{
    struct winsize size;
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    fprintf(stderr, "\r\033[K%.*s", columns, text);
    fflush(stderr);
    r->line_open = true;
    r->last_drawn = sd_now();
}

static void duration(double seconds, char out[32])
{
    if (!(seconds >= 0) || seconds > 8640000)
        snprintf(out, 32, "?");
    else if (seconds < 3600)
        snprintf(out, 32, "%d:%02d", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(out, 32, "%d:%02d:%02d", (int)seconds / 3600, (int)seconds / 60 % 60, (int)seconds % 60);
}

static void json_number(sd_text *t, double v)
{
    if (isfinite(v))
        sd_text_printf(t, "%.9g", v);
    else
        sd_text_printf(t, "null");
}

/* A number that is lost is a fault of the run, like a disk that is full: a curve with a gap would look like one without. */
static void no_room(sd_report *r, const char *file)
{
    if (r->status != SODET_OK)
        return;
    r->err = (sodet_err)SODET_ERR_INIT;
    r->status = SODET_FAIL(&r->err, SODET_E_MEMORY, "out of memory: a line of %s", file);
}

static void write_line(sd_report *r, const sd_text *t)
{
    if (t->failed)
        no_room(r, "metrics.jsonl");
    else if (!r->metrics)
        return;
    else if (fprintf(r->metrics, "%s\n", t->text) < 0 || fflush(r->metrics) != 0)
        failed(r, "metrics.jsonl");
}

static void progress_text(const sd_report *r, const sd_report_step *s, double loss, const double *terms, double rate, double share,
                          double step_seconds, sd_text *t)
{
    char eta[32];
    uint32_t n = r->config.n_terms < 16 ? r->config.n_terms : 16;
    duration(step_seconds * (double)(s->steps > s->step ? s->steps - s->step : 0), eta);
    sd_text_printf(t, "epoch %.2f/%g  step %llu/%llu  loss %.4f", s->epoch, s->epochs, (unsigned long long)s->step,
                   (unsigned long long)s->steps, loss);
    for (uint32_t i = 0; i < n && n > 1; i++)
        sd_text_printf(t, "%s%s %.4f", i ? " " : " (", r->config.terms[i], terms[i]);
    sd_text_printf(t, "%s  lr %.3g  %.1f img/s  wait %.0f%%  left %s", n > 1 ? ")" : "", s->lr, rate, 100 * share, eta);
}

static void add_events(sd_report *r, uint64_t step, const sd_scalar *scalars, uint64_t n)
{
    if (!r->events || r->status != SODET_OK)
        return;
    r->err = (sodet_err)SODET_ERR_INIT;
    r->status = sd_events_add(r->events, step, scalars, n, &r->err);
}

void sd_report_train(sd_report *r, const sd_report_step *s)
{
    double now = sd_now();
    uint32_t n = r->config.n_terms < 16 ? r->config.n_terms : 16;
    r->loss += s->loss;
    r->positives += (double)s->positives;
    for (uint32_t i = 0; i < n; i++)
        r->terms[i] += s->terms[i];
    r->n++;
    r->images += s->images;
    double took = now - r->last_step, waited = s->wait - r->last_wait, keep = r->step_seconds > 0 ? 0.95 : 0;
    r->step_seconds = keep * r->step_seconds + (1 - keep) * took;
    r->share = keep * r->share + (1 - keep) * (took > 0 ? waited / took : 0);
    r->rate = r->step_seconds > 0 ? (double)s->images / r->step_seconds : 0;
    r->last_step = now;
    r->last_wait = s->wait;
    bool due = s->step % r->config.log_every == 0 || s->step == s->steps;
    if (r->terminal && (now - r->last_drawn > 0.1 || due)) {
        sd_text t = {0};
        progress_text(r, s, s->loss, s->terms, r->rate, r->share, r->step_seconds, &t);
        if (!t.failed)
            draw(r, t.text);
        sd_text_free(&t);
    }
    if (!due)
        return;
    double seconds = now - r->since, means[16] = {0}, loss = r->loss / (double)r->n;
    for (uint32_t i = 0; i < n; i++)
        means[i] = r->terms[i] / (double)r->n;
    double rate = seconds > 0 ? (double)r->images / seconds : 0, share = seconds > 0 ? (s->wait - r->wait_then) / seconds : 0;
    sd_text t = {0};
    sd_text_printf(&t, "{\"step\": %llu, \"epoch\": %.6g, \"lr\": ", (unsigned long long)s->step, s->epoch);
    json_number(&t, s->lr);
    sd_text_printf(&t, ", \"loss\": ");
    json_number(&t, loss);
    for (uint32_t i = 0; i < n; i++) {
        sd_text_printf(&t, ", \"loss/%s\": ", r->config.terms[i]);
        json_number(&t, means[i]);
    }
    sd_text_printf(&t, ", \"grad_norm\": ");
    json_number(&t, s->norm);
    if (s->loss_scale > 0)
        sd_text_printf(&t, ", \"loss_scale\": %.6g, \"skipped\": %llu", s->loss_scale, (unsigned long long)s->skipped);
    sd_text_printf(&t, ", \"positives\": %.6g, \"images_per_second\": %.6g, \"data_wait\": %.4f, \"seconds\": %.6g}",
                   r->positives / (double)r->n, rate, share, seconds);
    write_line(r, &t);
    sd_text_free(&t);
    sd_scalar scalars[16 + 6] = {{"lr", s->lr},
                                 {"loss", loss},
                                 {"grad_norm", s->norm},
                                 {"positives", r->positives / (double)r->n},
                                 {"images_per_second", rate},
                                 {"data_wait", share}};
    char tags[16][64];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(tags[i], sizeof tags[i], "loss/%.58s", r->config.terms[i]);
        scalars[6 + i] = (sd_scalar){tags[i], means[i]};
    }
    add_events(r, s->step, scalars, 6 + n);
    progress_text(r, s, loss, means, rate, share, seconds / (double)r->n, &t);
    if (t.failed)
        no_room(r, "log.txt");
    if (!t.failed && r->log && (fprintf(r->log, "%s\n", t.text) < 0 || fflush(r->log) != 0))
        failed(r, "log.txt");
    if (!t.failed && !r->terminal && !r->config.quiet)
        fprintf(stderr, "%s\n", t.text);
    sd_text_free(&t);
    r->loss = r->positives = 0;
    memset(r->terms, 0, sizeof r->terms);
    r->n = r->images = 0;
    r->since = now;
    r->wait_then = s->wait;
}

void sd_report_evaluating(sd_report *r, uint64_t done, uint64_t of)
{
    if (!r->terminal || (sd_now() - r->last_drawn < 0.1 && done < of))
        return;
    char text[96];
    snprintf(text, sizeof text, "evaluating  %llu/%llu", (unsigned long long)done, (unsigned long long)of);
    draw(r, text);
}

/* "voc/mAP": 0.5, ... : what is a number. */
static void evaluation_events(sd_report *r, uint64_t step, const char *members)
{
    sd_text t = {0};
    sd_pool pool = {0};
    sd_json j;
    sd_json_string key;
    sd_scalar *scalars = NULL;
    uint64_t n = 0, capacity = 0;
    sodet_err err = SODET_ERR_INIT;
    sd_text_printf(&t, "{%s}", members);
    if (t.failed) {
        no_room(r, "the events");
        return;
    }
    sd_json_open(&j, "the evaluation", t.text, t.length, &err);
    for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
        char *tag = sd_json_copy(&j, &pool, key);
        if (sd_json_null(&j))
            continue;
        double value = sd_json_double(&j);
        if (!tag || sd_grow(&scalars, &capacity, n + 1, sizeof *scalars, NULL) != SODET_OK)
            no_room(r, "the events");
        else
            scalars[n++] = (sd_scalar){tag, value};
    }
    if (sd_json_close(&j) == SODET_OK)
        add_events(r, step, scalars, n);
    sd_free(scalars);
    sd_pool_clear(&pool);
    sd_text_free(&t);
}

void sd_report_devices(sd_report *r, uint64_t step, double epoch, const char *text, const char *members)
{
    for (const char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        sd_report_line(r, "%.*s", end ? (int)(end - line) : (int)strlen(line), line);
    }
    sd_text t = {0};
    sd_text_printf(&t, "{\"step\": %llu, \"epoch\": %.6g, %s}", (unsigned long long)step, epoch, members);
    write_line(r, &t);
    sd_text_free(&t);
}

void sd_report_evaluation(sd_report *r, uint64_t step, double epoch, const char *members, const char *headline, double value, double best,
                          double seconds)
{
    sd_text t = {0};
    sd_text_printf(&t, "{\"step\": %llu, \"epoch\": %.6g, \"eval\": {%s}, \"best\": ", (unsigned long long)step, epoch, members);
    json_number(&t, best);
    sd_text_printf(&t, ", \"seconds\": %.3f}", seconds);
    write_line(r, &t);
    sd_text_free(&t);
    if (r->events)
        evaluation_events(r, step, members);
    sd_report_line(r, "epoch %.4g  %s %.4f%s  (best %.4f, %.1f s)", epoch, headline, value, value >= best ? " *" : "", best, seconds);
    /* Evaluation is no part of the training's speed. */
    r->since += seconds;
    r->last_step = sd_now();
}
