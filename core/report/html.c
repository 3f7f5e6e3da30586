#include "core/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/report/markup.h"

static const char DASH[] = "\xe2\x80\x93";

/* ---- curves ---- */
static sd_chart_line line_of(const sd_series *s, bool marks)
{
    return (sd_chart_line){.name = s->name, .point = s->point, .n = s->n, .marks = marks};
}

/* The series that begin with `prefix`, after the one of that very name. */
static uint32_t gather(const sd_metrics *m, const char *first, const char *prefix, sd_chart_line *lines, uint32_t most)
{
    uint32_t n = 0;
    const sd_series *s = sd_metrics_find(m, first);
    if (s && s->n)
        lines[n++] = line_of(s, false);
    for (uint64_t i = 0; prefix && i < m->n && n < most; i++)
        if (strncmp(m->series[i].name, prefix, strlen(prefix)) == 0 && m->series[i].n)
            lines[n++] = line_of(&m->series[i], false);
    return n;
}

/* What evaluations said, but for the classes: the headline first. */
static uint32_t gather_evaluations(const sd_metrics *m, const char *headline, sd_chart_line *lines, uint32_t most)
{
    uint32_t n = 0;
    const sd_series *first = headline ? sd_metrics_find(m, headline) : NULL;
    if (first && first->n)
        lines[n++] = line_of(first, true);
    for (uint64_t i = 0; i < m->n && n < most; i++) {
        const sd_series *s = &m->series[i];
        const char *metric = strchr(s->name, '/');
        if (s->evaluation && s->n && s != first && metric && !strchr(metric + 1, '/') && strncmp(s->name, "eval/", 5) != 0)
            lines[n++] = line_of(s, true);
    }
    return n;
}

static void chart(sd_text *t, const char *title, sd_chart_line *lines, uint32_t n)
{
    const sd_chart c = {.title = title, .x = "step", .width = 530, .height = 260, .line = lines, .n = n};
    if (n)
        sd_html_chart(t, &c);
}

static void curves(const sd_page *p, sd_text *t)
{
    sd_chart_line lines[16];
    sd_html_element(t, "h2", "", "Course of the run");
    if (!p->metrics || !p->metrics->n) {
        sd_html_element(t, "p", " class=\"quiet\"",
                        "There is no metrics.jsonl beside these weights, so nothing is known of their training.");
        return;
    }
    sd_text_printf(t, "<div class=\"grid\">\n");
    chart(t, "loss", lines, gather(p->metrics, "loss", "loss/", lines, 8));
    chart(t, "evaluation", lines, gather_evaluations(p->metrics, p->headline, lines, 8));
    chart(t, "learning rate", lines, gather(p->metrics, "lr", NULL, lines, 1));
    chart(t, "gradient norm", lines, gather(p->metrics, "grad_norm", NULL, lines, 1));
    chart(t, "pictures per second", lines, gather(p->metrics, "images_per_second", NULL, lines, 1));
    chart(t, "positive anchors per step", lines, gather(p->metrics, "positives", NULL, lines, 1));
    sd_text_printf(t, "</div>\n");
}

/* ---- what was said ---- */
static void facts(const sd_page *p, sd_text *t)
{
    sd_text_printf(t, "<table class=\"facts\">\n");
    for (uint32_t i = 0; i < p->n_facts; i++) {
        sd_text_printf(t, "<tr><td>");
        sd_html_text(t, p->facts[i].what);
        sd_text_printf(t, "</td><td>");
        sd_html_text(t, p->facts[i].value);
        sd_text_printf(t, "</td></tr>\n");
    }
    sd_text_printf(t, "</table>\n");
}

static void results(const sd_page *p, sd_text *t)
{
    sd_html_element(t, "h2", "", "Evaluation");
    if (!p->in) {
        sd_html_element(t, "p", " class=\"quiet\"", p->data ? p->data : "Nothing was evaluated.");
        return;
    }
    sd_html_element(t, "p", "", p->data ? p->data : "");
    sd_text_printf(t, "<table>\n<tr><th>metric</th><th>value</th></tr>\n");
    for (uint32_t i = 0; i < p->n_results; i++)
        for (uint64_t k = 0; k < p->results[i].sink->n; k++) {
            const sd_metric *m = &p->results[i].sink->metrics[k];
            if (strchr(m->name, '/'))
                continue;
            sd_text_printf(t, "<tr><td>");
            sd_html_text(t, p->results[i].label);
            sd_text_printf(t, "/");
            sd_html_text(t, m->name);
            sd_text_printf(t, "</td>");
            sd_html_number(t, "%.4f", m->value);
            sd_text_printf(t, "</tr>\n");
        }
    sd_text_printf(t, "</table>\n");
}

static double class_ap(const sd_page *p, uint32_t c)
{
    char name[300];
    snprintf(name, sizeof name, "AP/%.290s", p->in->class_names[c]);
    return p->n_results ? sd_eval_sink_get(p->results[0].sink, name, NULL) : (double)NAN;
}

static void classes(const sd_page *p, sd_text *t)
{
    const sd_errors *e = p->errors;
    sd_html_element(t, "h2", "", "Classes");
    sd_text_printf(
        t,
        "<p class=\"quiet\">AP is what %s says; everything else is counted at IoU %g: detections and hits from a score of %g on, and the "
        "score at which 2 p r / (p + r) is best. Crowds and objects marked difficult are not counted.</p>\n",
        p->n_results ? "the first evaluator" : "nobody", e->options.iou, e->options.score);
    sd_text_printf(t, "<div class=\"wide\"><table>\n<tr><th>class</th><th>AP</th><th>objects</th><th>detections</th><th>hits</th>"
                      "<th>precision</th><th>recall</th><th>best F1</th><th>at score</th></tr>\n");
    for (uint32_t c = 0; c < e->n_classes; c++) {
        const sd_class_curve *x = &e->classes[c];
        sd_text_printf(t, "<tr><td>");
        sd_html_text(t, p->in->class_names[c]);
        sd_text_printf(t, "</td>");
        sd_html_number(t, "%.4f", class_ap(p, c));
        sd_html_number(t, "%.0f", (double)x->objects);
        sd_html_number(t, "%.0f", (double)x->sure);
        sd_html_number(t, "%.0f", (double)x->correct);
        sd_html_number(t, "%.3f", x->sure ? (double)x->correct / (double)x->sure : (double)NAN);
        sd_html_number(t, "%.3f", x->objects ? (double)x->correct / (double)x->objects : (double)NAN);
        sd_html_number(t, "%.3f", x->n ? x->f1 : (double)NAN);
        sd_html_number(t, "%.2f", x->f1 > 0 ? x->f1_score : (double)NAN);
        sd_text_printf(t, "</tr>\n");
    }
    sd_text_printf(t, "</table></div>\n");
}

/* Corners of a staircase are enough: the last point of each recall, and the first of the next. */
static sodet_status thin(const sd_class_curve *x, sd_point **points, uint64_t *capacity, uint64_t *n)
{
    *n = 0;
    for (uint64_t k = 0; k < x->n; k++) {
        bool corner = k == 0 || k + 1 == x->n || x->recall[k] > x->recall[k - 1] || x->recall[k + 1] > x->recall[k];
        if (!corner)
            continue;
        if (sd_grow(points, capacity, *n + 1, sizeof **points, NULL) != SODET_OK)
            return SODET_E_MEMORY;
        (*points)[(*n)++] = (sd_point){.step = x->recall[k], .value = x->precision[k]};
    }
    return SODET_OK;
}

static void precision_recall(const sd_page *p, sd_text *t)
{
    sd_point *points = NULL;
    uint64_t capacity = 0, n;
    sd_html_element(t, "h2", "", "Precision over recall");
    sd_text_printf(t, "<p class=\"quiet\">At IoU %g; AP here is the area under the curve made monotone.</p>\n<div class=\"grid\">\n",
                   p->errors->options.iou);
    for (uint32_t c = 0; c < p->errors->n_classes; c++) {
        const sd_class_curve *x = &p->errors->classes[c];
        char title[320];
        if (!x->objects)
            continue;
        if (thin(x, &points, &capacity, &n) != SODET_OK)
            t->failed = true;
        snprintf(title, sizeof title, "%.200s  %.3f", p->in->class_names[c], x->ap);
        const sd_chart_line line = {.name = "", .point = points, .n = n};
        const sd_chart chart_c = {
            .title = title, .x = "recall", .width = 240, .height = 190, .most_x = 1, .most_y = 1, .line = &line, .n = 1};
        sd_html_chart(t, &chart_c);
    }
    sd_text_printf(t, "</div>\n");
    sd_free(points);
}

static void confusion(const sd_page *p, sd_text *t)
{
    const sd_errors *e = p->errors;
    uint32_t side = e->n_classes + 1;
    sd_html_element(t, "h2", "", "Who was taken for whom");
    sd_text_printf(t,
                   "<p class=\"quiet\">Rows: what is there. Columns: what was said, from a score of %g on, at IoU %g. The last row holds "
                   "detections where nothing is, the last column objects that nothing was said about.</p>\n"
                   "<div class=\"wide\"><table class=\"matrix\">\n<tr><th></th>",
                   e->options.score, e->options.iou);
    for (uint32_t c = 0; c < side; c++) {
        sd_text_printf(t, "<th>");
        sd_html_text(t, c < e->n_classes ? p->in->class_names[c] : "background");
        sd_text_printf(t, "</th>");
    }
    sd_text_printf(t, "</tr>\n");
    for (uint32_t r = 0; r < side; r++) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < side; c++)
            sum += e->confusion[(uint64_t)r * side + c];
        sd_text_printf(t, "<tr><th>");
        sd_html_text(t, r < e->n_classes ? p->in->class_names[r] : "background");
        sd_text_printf(t, "</th>");
        for (uint32_t c = 0; c < side; c++) {
            uint64_t v = e->confusion[(uint64_t)r * side + c];
            bool right = r == c && r < e->n_classes;
            if (!v) {
                sd_text_printf(t, right ? "<td class=\"right\"></td>" : "<td></td>");
                continue;
            }
            sd_text_printf(t, "<td%s style=\"background: rgba(%s, %.2f)\">%llu</td>", right ? " class=\"right\"" : "",
                           right ? "44, 138, 60" : "200, 64, 44", 0.08 + 0.72 * (double)v / (double)sum, (unsigned long long)v);
        }
        sd_text_printf(t, "</tr>\n");
    }
    sd_text_printf(t, "</table></div>\n");
}

static void error_kinds(const sd_page *p, sd_text *t)
{
    static const char *const says[SD_ERROR_KINDS] = {"right place, wrong class",     "right class, overlaps too little",
                                                     "wrong class and wrong place",  "an object that was found already",
                                                     "nothing of the kind is there", "an object that nothing was said about"};
    const sd_errors *e = p->errors;
    sd_html_element(t, "h2", "", "Kinds of errors");
    sd_text_printf(
        t,
        "<p class=\"quiet\">After TIDE (Bolya, Foley, Hays, Hoffman: A General Toolbox for Identifying Object Detection Errors, ECCV "
        "2020): foreground from IoU %g, background up to %g. The last column is what mAP at that IoU (%s",
        e->options.iou, e->options.background, isfinite(e->map) ? "" : DASH);
    if (isfinite(e->map))
        sd_text_printf(t, "%.4f", e->map);
    sd_text_printf(t,
                   ") would gain if the errors of this kind alone were mended.</p>\n<table>\n<tr><th>kind</th><th></th><th>all</th>"
                   "<th>from score %g</th><th>mAP</th></tr>\n",
                   e->options.score);
    for (uint32_t k = 0; k < SD_ERROR_KINDS; k++) {
        sd_text_printf(t, "<tr><td>%s</td><td class=\"words\">%s</td>", sd_error_names[k], says[k]);
        sd_html_number(t, "%.0f", (double)e->count[k]);
        sd_html_number(t, "%.0f", (double)e->sure[k]);
        sd_html_number(t, "%+.4f", e->gain[k]);
        sd_text_printf(t, "</tr>\n");
    }
    sd_text_printf(t, "</table>\n");
}

/* ---- pictures ---- */
static void say_wrong(const sd_page *p, const sd_page_picture *x, sd_text *t)
{
    enum { MOST = 6 };
    const sodet_eval_input *in = p->in;
    const sd_image_faults *f = &p->errors->images[x->image];
    uint32_t said = 0;
    sd_text_printf(t, ": %llu missed, %llu wrong", (unsigned long long)f->missed, (unsigned long long)f->wrong);
    for (uint64_t d = in->detection_first[x->image]; d < in->detection_first[x->image + 1] && said <= MOST; d++) {
        uint8_t fate = p->errors->fate[d];
        double score = in->detection_scores ? in->detection_scores[d] : (double)in->detections[d].score;
        if (fate >= SD_ERROR_KINDS || score < p->errors->options.score)
            continue;
        sd_text_printf(t, "%s", said == MOST ? ", ..." : said ? ", " : " (");
        if (said++ == MOST)
            continue;
        sd_html_text(t, in->class_names[in->detections[d].label]);
        sd_text_printf(t, " %.2f %s", score, sd_error_names[fate]);
    }
    sd_text_printf(t, "%s", said ? ")" : "");
}

static void pictures(const sd_page *p, sd_text *t)
{
    sd_html_element(t, "h2", "", "The worst pictures");
    if (!p->n_pictures) {
        sd_html_element(t, "p", " class=\"quiet\"", "None has an error from that score on.");
        return;
    }
    sd_text_printf(
        t,
        "<p class=\"quiet\">Most missed objects and surest wrong detections first. Left: what is there; right: what was said, from "
        "a score of %g on.</p>\n<div class=\"grid\">\n",
        p->errors->options.score);
    for (uint32_t i = 0; i < p->n_pictures; i++) {
        const sd_page_picture *x = &p->pictures[i];
        sd_text_printf(t, "<figure>");
        sd_html_jpeg(t, x->truth.jpeg.text, x->truth.jpeg.length, x->truth.width, x->truth.height, "what is there");
        sd_text_printf(t, " ");
        sd_html_jpeg(t, x->found.jpeg.text, x->found.jpeg.length, x->found.width, x->found.height, "what was said");
        sd_text_printf(t, "<figcaption>");
        sd_html_text(t, x->name);
        say_wrong(p, x, t);
        sd_text_printf(t, "</figcaption></figure>\n");
    }
    sd_text_printf(t, "</div>\n");
}

void sd_page_write(const sd_page *p, sd_text *t)
{
    sd_html_begin(t, p->title);
    sd_html_element(t, "h1", "", p->title);
    facts(p, t);
    curves(p, t);
    results(p, t);
    if (p->in) {
        classes(p, t);
        precision_recall(p, t);
        confusion(p, t);
        error_kinds(p, t);
        pictures(p, t);
    }
    if (p->ini) {
        sd_html_element(t, "h2", "", "Configuration");
        sd_html_element(t, "pre", "", p->ini);
    }
    if (p->log) {
        sd_html_element(t, "h2", "", "What the run said");
        sd_html_element(t, "pre", "", p->log);
    }
    sd_html_end(t);
}
