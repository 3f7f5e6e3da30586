/* sodet data stats: pictures, boxes, classes, sizes and shapes of the sets of a configuration, as text, JSON and a picture. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/data.h"
#include "core/cli/trained.h"
#include "core/data/decode.h"
#include "core/data/stats.h"
#include "core/report/bars.h"

typedef struct report {
    sd_data_sets sets;
    const sd_classes *classes;
    sd_stats of[SD_DATA_SETS];
    uint64_t outside, unread; /* of all sets */
} report;

static const struct spread_row { /* the three that are shown alike */
    const char *name, *title;
    size_t offset;
    uint32_t decimals;
} spreads[] = {
    {"boxes_per_picture", "boxes per picture", offsetof(sd_stats, per_picture), 0},
    {"side", "side in the input, sqrt(area) in pixels", offsetof(sd_stats, side), 1},
    {"ratio", "width / height", offsetof(sd_stats, ratio), 2},
};
enum { N_SPREADS = sizeof spreads / sizeof *spreads };

static const sd_spread *spread_of(const sd_stats *s, uint32_t i)
{
    return (const sd_spread *)(const void *)((const char *)s + spreads[i].offset);
}

/* ---- for a person ---- */

static void heads(const report *r, sd_text *t, const char *title)
{
    sd_text_printf(t, "%-28s", title);
    for (uint32_t k = 0; k < r->sets.n; k++)
        sd_text_printf(t, " %10s", r->sets.name[k]);
    sd_text_printf(t, "\n");
}

static void row(const report *r, sd_text *t, const char *name, size_t offset)
{
    sd_text_printf(t, "%-28s", name);
    for (uint32_t k = 0; k < r->sets.n; k++)
        sd_text_printf(t, " %10" PRIu64, *(const uint64_t *)(const void *)((const char *)&r->of[k] + offset));
    sd_text_printf(t, "\n");
}

static void text_sizes(const report *r, sd_text *t)
{
    sd_text_printf(t, "%-28s %10s %10s %10s\n", "boxes by area, as COCO has it", "small", "medium", "large");
    for (uint32_t k = 0; k < r->sets.n; k++) {
        const uint64_t *const rows[2] = {r->of[k].labelled, r->of[k].input};
        for (uint32_t i = 0; i < 2; i++) {
            char name[60];
            snprintf(name, sizeof name, "  %s, in the %s", r->sets.name[k], i ? "input" : "picture");
            sd_text_printf(t, "%-28s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", name, rows[i][0], rows[i][1], rows[i][2]);
        }
    }
}

static void text(const report *r, sd_text *t)
{
    heads(r, t, "");
    row(r, t, "pictures", offsetof(sd_stats, pictures));
    row(r, t, "  without objects", offsetof(sd_stats, empty));
    row(r, t, "boxes", offsetof(sd_stats, boxes));
    row(r, t, "  difficult", offsetof(sd_stats, difficult));
    row(r, t, "  crowd", offsetof(sd_stats, crowd));
    for (uint32_t pictures = 0; pictures < 2; pictures++) {
        heads(r, t, pictures ? "pictures with it" : "boxes of each class");
        for (uint32_t c = 0; c < r->classes->n; c++) {
            sd_text_printf(t, "  %-26s", r->classes->names[c]);
            for (uint32_t k = 0; k < r->sets.n; k++)
                sd_text_printf(t, " %10" PRIu64, pictures ? r->of[k].of_class[c].pictures : r->of[k].of_class[c].boxes);
            sd_text_printf(t, "\n");
        }
    }
    text_sizes(r, t);
    for (uint32_t i = 0; i < N_SPREADS; i++) {
        sd_text_printf(t, "%s\n%-20s", spreads[i].title, "");
        for (uint32_t q = 0; q < SD_STATS_QUANTILES; q++)
            sd_text_printf(t, " %7.0f %%", 100 * sd_stats_share[q]);
        for (uint32_t k = 0; k < r->sets.n; k++) {
            sd_text_printf(t, "\n  %-18s", r->sets.name[k]);
            for (uint32_t q = 0; q < SD_STATS_QUANTILES; q++)
                sd_text_printf(t, " %9.*f", (int)spreads[i].decimals, spread_of(&r->of[k], i)->quantile[q]);
        }
        sd_text_printf(t, "\n");
    }
    if (r->outside)
        sd_text_printf(t, "%" PRIu64 " boxes that lie outside their picture are not in these figures (sodet data check)\n", r->outside);
    if (r->unread)
        sd_text_printf(t, "%" PRIu64 " pictures that cannot be read are not in these figures (sodet data check)\n", r->unread);
}

/* ---- for a program ---- */

static void json_sizes(sd_text *t, const char *name, const uint64_t n[SD_STATS_SIZES])
{
    sd_text_printf(t, "\"%s\": {", name);
    for (uint32_t i = 0; i < SD_STATS_SIZES; i++)
        sd_text_printf(t, "%s\"%s\": %" PRIu64, i ? ", " : "", sd_stats_size_names[i], n[i]);
    sd_text_printf(t, "}");
}

static void json_spread(sd_text *t, const char *name, const sd_spread *s)
{
    sd_text_printf(t, ",\n   \"%s\": {\"quantiles\": [", name);
    for (uint32_t q = 0; q < SD_STATS_QUANTILES; q++) {
        sd_text_printf(t, "%s", q ? ", " : "");
        sd_json_write_double(t, s->quantile[q]);
    }
    sd_text_printf(t, "], \"edges\": [");
    for (uint32_t i = 0; i < s->n_bins; i++) {
        sd_text_printf(t, "%s", i ? ", " : "");
        sd_json_write_double(t, s->edge[i]);
    }
    sd_text_printf(t, "], \"counts\": [");
    for (uint32_t i = 0; i < s->n_bins; i++)
        sd_text_printf(t, "%s%" PRIu64, i ? ", " : "", s->count[i]);
    sd_text_printf(t, "]}");
}

static void json(const report *r, sd_text *t)
{
    sd_text_printf(t, "{\"shares\": [");
    for (uint32_t q = 0; q < SD_STATS_QUANTILES; q++)
        sd_text_printf(t, "%s%g", q ? ", " : "", sd_stats_share[q]);
    sd_text_printf(t, "], \"outside\": %" PRIu64 ", \"unread\": %" PRIu64 ", \"sets\": [", r->outside, r->unread);
    for (uint32_t k = 0; k < r->sets.n; k++) {
        const sd_stats *s = &r->of[k];
        sd_text_printf(t,
                       "%s\n  {\"name\": \"%s\", \"pictures\": %" PRIu64 ", \"empty\": %" PRIu64 ", \"boxes\": %" PRIu64
                       ", \"difficult\": %" PRIu64 ", \"crowd\": %" PRIu64 ",\n   \"classes\": {",
                       k ? "," : "", r->sets.name[k], s->pictures, s->empty, s->boxes, s->difficult, s->crowd);
        for (uint32_t c = 0; c < r->classes->n; c++) {
            const sd_stats_class *o = &s->of_class[c];
            sd_text_printf(t, "%s", c ? ",\n     " : "\n     ");
            sd_json_write_string(t, r->classes->names[c]);
            sd_text_printf(t, ": {\"boxes\": %" PRIu64 ", \"pictures\": %" PRIu64 ", \"median_side\": ", o->boxes, o->pictures);
            sd_json_write_double(t, o->side);
            sd_text_printf(t, ", ");
            json_sizes(t, "input", o->input);
            sd_text_printf(t, "}");
        }
        sd_text_printf(t, "},\n   \"sizes\": {");
        json_sizes(t, "picture", s->labelled);
        sd_text_printf(t, ", ");
        json_sizes(t, "input", s->input);
        sd_text_printf(t, "}");
        for (uint32_t i = 0; i < N_SPREADS; i++)
            json_spread(t, spreads[i].name, spread_of(s, i));
        sd_text_printf(t, "}");
    }
    sd_text_printf(t, "]}\n");
}

/* ---- as a picture ---- */

enum { CLASSES_MOST = 60 }; /* rows: what a picture of bearable height has room for */

typedef struct order {
    uint32_t label;
    uint64_t boxes;
} order;

static int by_boxes(const void *a, const void *b)
{
    const order *x = a, *y = b;
    if (x->boxes != y->boxes)
        return x->boxes > y->boxes ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* The classes, the most frequent ones first where there are too many; the rest is one row. */
static sodet_status class_bars(report *r, sd_pool *pool, sd_bars *b, sodet_err *err)
{
    uint32_t n = r->classes->n, rows = n < CLASSES_MOST ? n : CLASSES_MOST;
    order *o = sd_pool_alloc(pool, (n + 1u) * sizeof *o);
    const char **label = sd_pool_alloc(pool, (rows + 1u) * sizeof *label);
    double *value = sd_pool_alloc(pool, (size_t)(rows + 1u) * SD_DATA_SETS * sizeof *value);
    if (!o || !label || !value)
        return SODET_FAIL(err, SODET_E_MEMORY, "data stats: no memory for the picture");
    for (uint32_t c = 0; c < n; c++) {
        o[c].label = c;
        for (uint32_t k = 0; k < r->sets.n; k++)
            o[c].boxes += r->of[k].of_class[c].boxes;
    }
    if (n > CLASSES_MOST)
        qsort(o, n, sizeof *o, by_boxes);
    for (uint32_t k = 0; k < r->sets.n; k++) {
        double *v = value + (size_t)k * (rows + 1u);
        b->value[k] = v;
        b->name[k] = r->sets.name[k];
        for (uint32_t c = 0; c < n; c++) {
            v[c < rows ? c : rows] += (double)r->of[k].of_class[o[c].label].boxes;
            label[c < rows ? c : rows] = c < rows ? r->classes->names[o[c].label] : "all others";
        }
    }
    b->title = "boxes of each class";
    b->n_rows = n > CLASSES_MOST ? rows + 1 : rows;
    b->n_series = r->sets.n;
    b->label = label;
    return SODET_OK;
}

static sodet_status spread_bars(report *r, uint32_t which, sd_pool *pool, sd_bars *b, sodet_err *err)
{
    const sd_spread *first = spread_of(&r->of[0], which);
    const char **label = sd_pool_alloc(pool, first->n_bins * sizeof *label);
    double *value = sd_pool_alloc(pool, (size_t)first->n_bins * SD_DATA_SETS * sizeof *value);
    bool ok = label && value;
    for (uint32_t i = 0; i < first->n_bins && ok; i++) {
        bool last = i + 1 == first->n_bins, one = !last && which == 0 && first->edge[i + 1] - first->edge[i] < 1.5;
        label[i] = last  ? sd_pool_printf(pool, "from %.3g on", first->edge[i])
                   : one ? sd_pool_printf(pool, "%.3g", first->edge[i])
                         : sd_pool_printf(pool, "%.3g to %.3g", first->edge[i], which == 0 ? first->edge[i + 1] - 1 : first->edge[i + 1]);
        ok = label[i] != NULL;
    }
    if (!ok)
        return SODET_FAIL(err, SODET_E_MEMORY, "data stats: no memory for the picture");
    uint32_t rows = 1; /* without the empty end */
    for (uint32_t i = 1; i < first->n_bins; i++) {
        for (uint32_t k = 0; k < r->sets.n; k++)
            rows = spread_of(&r->of[k], which)->count[i] ? i + 1 : rows;
    }
    *b = (sd_bars){.title = spreads[which].title, .n_rows = rows, .n_series = r->sets.n, .label = label};
    for (uint32_t k = 0; k < r->sets.n; k++) {
        double *v = value + (size_t)k * first->n_bins;
        for (uint32_t i = 0; i < first->n_bins; i++)
            v[i] = (double)spread_of(&r->of[k], which)->count[i];
        b->value[k] = v;
        b->name[k] = r->sets.name[k];
    }
    return SODET_OK;
}

/* Classes to the left, the three spreads to the right. */
static sodet_status paint(report *r, const char *path, sodet_err *err)
{
    sd_pool pool = {0};
    sd_bars bars[1 + N_SPREADS] = {{0}};
    uint32_t right = 0, left, y = 0;
    sodet_status status = class_bars(r, &pool, &bars[0], err);
    for (uint32_t i = 0; i < N_SPREADS && status == SODET_OK; i++) {
        status = spread_bars(r, i, &pool, &bars[1 + i], err);
        right += sd_bars_height(&bars[1 + i]);
    }
    left = sd_bars_height(&bars[0]);
    sd_canvas c = {.width = 2 * SD_BARS_WIDTH, .height = left > right ? left : right};
    size_t bytes = (size_t)c.width * c.height * 3;
    if (status == SODET_OK && !(c.rgb = sd_alloc(bytes, 1)))
        status = SODET_FAIL(err, SODET_E_MEMORY, "data stats: no memory for the picture");
    if (status == SODET_OK) {
        memset(c.rgb, 255, bytes);
        sd_bars_draw(&c, 0, 0, &bars[0]);
        for (uint32_t i = 0; i < N_SPREADS; i++) {
            sd_bars_draw(&c, SD_BARS_WIDTH, y, &bars[1 + i]);
            y += sd_bars_height(&bars[1 + i]);
        }
        status = sd_png_write(path, c.rgb, c.width, c.height, err);
    }
    sd_free(c.rgb);
    sd_pool_clear(&pool);
    return status;
}

sodet_status sd_data_stats(sd_cli *cli, sodet_err *err)
{
    report r = {0};
    sd_text out = {0};
    const char *png = sd_cli_flag(cli, "--out");
    sodet_status status = sd_cli_check_out(png, err);
    if (status == SODET_OK)
        status = sd_data_sets_open(cli, SD_DATA_SETS, NULL, &r.sets, err);
    if (status != SODET_OK)
        return status;
    r.classes = sd_dataset_classes(r.sets.split[0].dataset);
    for (uint32_t k = 0; k < r.sets.n && status == SODET_OK; k++) {
        sd_boxes b = {0};
        status = sd_boxes_gather(&r.sets.frames[k], &b, err);
        if (status == SODET_OK)
            status = sd_stats_make(&b, r.classes->n, &r.of[k], err);
        r.outside += b.outside;
        r.unread += b.unread;
        sd_boxes_free(&b);
    }
    if (status == SODET_OK && png)
        status = paint(&r, png, err);
    if (status == SODET_OK) {
        if (cli->json)
            json(&r, &out);
        else
            text(&r, &out);
        status = out.failed ? SODET_FAIL(err, SODET_E_MEMORY, "data stats: no memory for the report") : SODET_OK;
    }
    if (status == SODET_OK)
        fputs(out.text, stdout);
    sd_text_free(&out);
    for (uint32_t k = 0; k < SD_DATA_SETS; k++)
        sd_stats_free(&r.of[k]);
    sd_data_sets_close(&r.sets);
    return status;
}
