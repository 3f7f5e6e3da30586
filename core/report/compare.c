#include "core/report/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/report/markup.h"

enum { CELL = 64, FACTS = 5 };
static const char DASH[] = "-";

static void fact_name(const sd_comparison *c, uint32_t k, char text[CELL])
{
    static const char *const names[FACTS] = {"parameters", "multiply-adds, G", "", "img/s, training (log)", "img/s, evaluation (now)"};
    snprintf(text, CELL, "%s", names[k]);
    if (k != 2)
        return;
    bool same = true;
    for (uint32_t i = 1; i < c->n; i++)
        same = same && c->run[i].batch == c->run[0].batch;
    if (same)
        snprintf(text, CELL, "planned MiB, batch %u", c->run[0].batch);
    else
        snprintf(text, CELL, "planned MiB");
}

static void fact(const sd_compared *r, uint32_t k, char text[CELL])
{
    const double values[FACTS] = {0, (double)r->macs * 1e-9, (double)r->planned / 1048576, r->logged, r->measured};
    if (k == 0)
        snprintf(text, CELL, "%" PRIu64, r->parameters);
    else if (!isfinite(values[k]))
        snprintf(text, CELL, "%s", DASH);
    else
        snprintf(text, CELL, k == 1 ? "%.4g" : "%.1f", values[k]);
}

/* An interval without 0 inside: more than the choice of pictures. */
static bool sure(const sd_interval *i)
{
    return i->low > 0 || i->high < 0;
}

static void metric(const sd_comparison *c, const sd_compared *r, uint64_t k, char text[2 * CELL])
{
    double v = r->value[k], first = c->run[0].value[k];
    int n = isfinite(v) ? snprintf(text, CELL, "%.4f", v) : snprintf(text, CELL, "%s", DASH);
    if (r == c->run || !isfinite(v - first))
        return;
    n += snprintf(text + n, CELL, " %+.4f", v - first);
    if (r->interval && isfinite(r->interval[k].low))
        snprintf(text + n, CELL, " [%+.4f %+.4f]%s", r->interval[k].low, r->interval[k].high, sure(&r->interval[k]) ? " *" : "");
}

static void sentence(const sd_comparison *c, sd_text *t)
{
    sd_text_printf(t, "%" PRIu64 " pictures, on %s.", c->images, c->device);
    if (c->n > 1)
        sd_text_printf(t, " Behind a value: its difference to the first");
    if (c->n > 1 && c->draws)
        sd_text_printf(t,
                       ", and where that lies in %g%% of %" PRIu64 " draws of the same pictures with replacement (seed %" PRIu64
                       "); *: 0 is outside",
                       100 * c->share, c->draws, c->seed);
    if (c->n > 1)
        sd_text_printf(t, ".");
}

/* A cell: row 0 names, then facts, then metrics; column 0 what the row is. */
static void cell(const sd_comparison *c, uint64_t row, uint32_t column, char *text, size_t size)
{
    char small[2 * CELL] = "";
    if (row == 0)
        snprintf(text, size, "%s", column ? c->run[column - 1].name : "");
    else if (row <= FACTS && !column)
        fact_name(c, (uint32_t)row - 1, small);
    else if (row <= FACTS)
        fact(&c->run[column - 1], (uint32_t)row - 1, small);
    else if (!column)
        snprintf(text, size, "%s", c->metric[row - 1 - FACTS]);
    else
        metric(c, &c->run[column - 1], row - 1 - FACTS, small);
    if (*small)
        snprintf(text, size, "%s", small);
}

void sd_compare_text(const sd_comparison *c, sd_text *t)
{
    char text[512];
    uint64_t rows = 1 + FACTS + c->n_metrics;
    int *width = sd_alloc((size_t)c->n + 1, sizeof *width);
    t->failed = t->failed || !width;
    for (uint64_t r = 0; width && r < rows; r++)
        for (uint32_t k = 0; k <= c->n; k++) {
            cell(c, r, k, text, sizeof text);
            int n = (int)strlen(text);
            width[k] = n > width[k] ? n : width[k];
        }
    for (uint64_t r = 0; width && r < rows; r++) {
        for (uint32_t k = 0; k <= c->n; k++) {
            cell(c, r, k, text, sizeof text);
            sd_text_printf(t, "%s%-*s", k ? "  " : "", k < c->n ? width[k] : 0, text);
        }
        sd_text_printf(t, "\n");
    }
    sd_text_printf(t, "\n");
    sentence(c, t);
    sd_text_printf(t, "\n");
    sd_free(width);
}

static void json_pair(sd_text *t, const char *before, const char *name, double v)
{
    sd_text_printf(t, "%s", before);
    sd_json_write_string(t, name);
    sd_text_printf(t, ": ");
    sd_json_write_double(t, v);
}

static void json_run(const sd_comparison *c, const sd_compared *r, sd_text *t)
{
    sd_text_printf(t, "{\"run\": ");
    sd_json_write_string(t, r->name);
    sd_text_printf(t,
                   ", \"parameters\": %" PRIu64 ", \"macs\": %" PRIu64 ", \"planned_bytes\": %" PRIu64
                   ", \"batch\": %u, \"width\": %u, \"height\": %u",
                   r->parameters, r->macs, r->planned, r->batch, r->width, r->height);
    json_pair(t, ", ", "logged_training_images_per_second", r->logged);
    json_pair(t, ", ", "measured_images_per_second", r->measured);
    sd_text_printf(t, ", \"metrics\": {");
    for (uint64_t k = 0; k < c->n_metrics; k++)
        json_pair(t, k ? ", " : "", c->metric[k], r->value[k]);
    sd_text_printf(t, "}");
    if (r->interval) {
        sd_text_printf(t, ", \"difference\": {");
        for (uint64_t k = 0; k < c->n_metrics; k++) {
            sd_text_printf(t, "%s", k ? ", " : "");
            sd_json_write_string(t, c->metric[k]);
            json_pair(t, ": {", "value", r->value[k] - c->run[0].value[k]);
            json_pair(t, ", ", "low", r->interval[k].low);
            json_pair(t, ", ", "high", r->interval[k].high);
            sd_text_printf(t, "}");
        }
        sd_text_printf(t, "}");
    }
    sd_text_printf(t, "}");
}

void sd_compare_json(const sd_comparison *c, sd_text *t)
{
    sd_text_printf(t, "{\"images\": %" PRIu64 ", \"draws\": %" PRIu64 ", \"seed\": %" PRIu64 ", \"share\": %g, \"device\": ", c->images,
                   c->draws, c->seed, c->share);
    sd_json_write_string(t, c->device);
    sd_text_printf(t, ", \"runs\": [");
    for (uint32_t i = 0; i < c->n; i++) {
        sd_text_printf(t, "%s\n ", i ? "," : "");
        json_run(c, &c->run[i], t);
    }
    sd_text_printf(t, "\n]}\n");
}

void sd_compare_html(const sd_comparison *c, sd_text *t)
{
    char text[512];
    sd_text said = {0};
    sd_html_begin(t, "Comparison");
    sd_html_element(t, "h1", "", "Comparison");
    sentence(c, &said);
    sd_html_element(t, "p", " class=\"quiet\"", said.text ? said.text : "");
    t->failed = t->failed || said.failed;
    sd_text_free(&said);
    sd_text_printf(t, "<div class=\"wide\"><table>\n");
    for (uint64_t r = 0; r < 1 + FACTS + c->n_metrics; r++) {
        sd_text_printf(t, "<tr>");
        for (uint32_t k = 0; k <= c->n; k++) {
            cell(c, r, k, text, sizeof text);
            sd_text_printf(t, r ? "<td>" : "<th>");
            sd_html_text(t, text);
            sd_text_printf(t, r ? "</td>" : "</th>");
        }
        sd_text_printf(t, "</tr>\n");
    }
    sd_text_printf(t, "</table></div>\n");
    sd_html_end(t);
}
