/* sodet data anchors: how well the head's anchors cover the boxes of a set, and what its options could be instead. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/cli/data.h"
#include "core/data/cover.h"

typedef struct anchors {
    sd_data_sets sets;
    const sd_classes *classes;
    sd_model *model;
    uint32_t threads;
    double threshold;
    sd_boxes boxes;
    sd_cover all, *of_class; /* now */
    sd_cluster *clusters;
    uint32_t n_clusters;
    double cluster_iou;
    sd_suggestions suggested;
    sd_cover then; /* with the suggestions */
} anchors;

/* ---- measuring ---- */

static sodet_status cluster(anchors *a, uint32_t k, sodet_err *err)
{
    const sd_boxes *b = &a->boxes;
    uint64_t n = 0;
    double(*size)[2] = sd_alloc(b->n, sizeof *size);
    a->clusters = sd_alloc(k, sizeof *a->clusters);
    if (!size || !a->clusters) {
        sd_free(size);
        return SODET_FAIL(err, SODET_E_MEMORY, "data anchors: no memory for %u clusters of %" PRIu64 " boxes", k, b->n);
    }
    for (uint64_t i = 0; i < b->n; i++) {
        size[n][0] = (double)b->box[i].x2 - (double)b->box[i].x1;
        size[n][1] = (double)b->box[i].y2 - (double)b->box[i].y1;
        n += !(b->flags[i] & SODET_BOX_CROWD);
    }
    sodet_status status = sd_cluster_sizes((const double(*)[2])size, n, k, (uint64_t)sd_config_core(a->sets.cfg)->run.seed, a->clusters,
                                           &a->n_clusters, &a->cluster_iou, err);
    sd_free(size);
    return status;
}

/* Fewer boxes below the threshold; of as many, a larger mean. */
static bool better(const sd_cover *a, const sd_cover *b)
{
    return a->below < b->below || (a->below == b->below && a->iou > b->iou);
}

/* The same network with suggested options, on the same boxes. */
static sodet_status try_suggested(sd_cli *cli, const anchors *a, const sd_suggestions *s, sd_cover *all, sd_cover *of_class, sodet_err *err)
{
    sd_config *cfg = NULL;
    sd_model *m = NULL;
    sodet_status status = sd_config_open(cli->ini, cli->overrides, cli->n_overrides, &cfg, err);
    for (uint32_t i = 0; i < s->n && status == SODET_OK; i++)
        status = sd_config_set(cfg, "head", s->row[i].key, s->row[i].value, err);
    if (status == SODET_OK)
        status = sd_model_open(cfg, a->classes->n, &m, err);
    if (status == SODET_OK)
        status = sd_cover_measure(m, &a->boxes, a->threshold, a->threads, all, of_class, err);
    sd_model_close(m);
    sd_config_close(cfg);
    return status;
}

/* What fits depends on how densely a level's anchors are to lie: several densities are tried, the best one is told. */
static sodet_status suggest(sd_cli *cli, anchors *a, sodet_err *err)
{
    static const double cells[] = {2, 3, 4, 6};
    uint64_t seed = (uint64_t)sd_config_core(a->sets.cfg)->run.seed;
    sd_cover *of_class = sd_alloc(a->classes->n, sizeof *of_class);
    sodet_status status = of_class ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "data anchors: no memory for %u classes", a->classes->n);
    for (uint32_t i = 0; i < sizeof cells / sizeof *cells && status == SODET_OK; i++) {
        sd_suggestions s;
        sd_cover then;
        status = sd_cover_suggest(a->model, &a->boxes, cells[i], seed, &s, err);
        if (status != SODET_OK || !s.n)
            break;
        status = try_suggested(cli, a, &s, &then, of_class, err);
        if (status == SODET_OK && (!a->suggested.n || better(&then, &a->then))) {
            a->suggested = s;
            a->then = then;
        }
    }
    sd_free(of_class);
    return status;
}

/* ---- for a person ---- */

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void text_row(sd_text *t, const char *name, const sd_cover *c)
{
    sd_text_printf(t, "  %-20s %10" PRIu64, name, c->n);
    if (c->n)
        sd_text_printf(t, " %8.3f %8.1f %% %8.1f %% %8.1f", c->iou, percent(c->below, c->n), percent(c->without, c->n),
                       (double)c->positives / (double)c->n);
    sd_text_printf(t, "\n");
}

static void text_bins(sd_text *t, const char *name, const sd_cover *c)
{
    sd_text_printf(t, "  %-20s", name);
    for (uint32_t i = 0; i < SD_COVER_BINS && c->n; i++)
        sd_text_printf(t, " %5.1f", percent(c->bin[i], c->n));
    sd_text_printf(t, "\n");
}

static void text(const anchors *a, const sd_model_grid *grid, sd_text *t)
{
    char below[20];
    snprintf(below, sizeof below, "below %.2g", a->threshold);
    sd_text_printf(t, "%s: %" PRIu64 " boxes of %" PRIu64 " pictures; input %ux%u, head %s, %" PRIu64 " anchors on %u levels\n",
                   a->sets.name[0], a->all.n, a->boxes.n_items, grid->width, grid->height,
                   sd_model_part(a->model, SODET_KIND_HEAD)->plugin->desc.name, grid->anchors->n, grid->n_levels);
    sd_text_printf(t, "largest IoU with an anchor\n  %-20s %10s %8s %10s %10s %8s\n", "", "boxes", "mean", below, "without", "anchors");
    text_row(t, "all", &a->all);
    for (uint32_t k = 0; k < a->classes->n; k++)
        text_row(t, a->classes->names[k], &a->of_class[k]);
    sd_text_printf(t, "percent of the boxes by it\n  %-20s", "");
    for (uint32_t i = 0; i < SD_COVER_BINS; i++)
        sd_text_printf(t, "  %.1f-", i / (double)SD_COVER_BINS);
    sd_text_printf(t, "\n");
    text_bins(t, "all", &a->all);
    for (uint32_t k = 0; k < a->classes->n; k++)
        text_bins(t, a->classes->names[k], &a->of_class[k]);
    sd_text_printf(t, "k-means of width and height in the input, distance 1 - IoU: mean IoU %.3f\n", a->cluster_iou);
    for (uint32_t i = 0; i < a->n_clusters; i++) {
        const sd_cluster *c = &a->clusters[i];
        sd_text_printf(t, "  %8.1f x %-8.1f %6.1f %% of the boxes, IoU %.3f\n", c->width, c->height, percent(c->n, a->all.n), c->iou);
    }
    if (!a->suggested.n) {
        sd_text_printf(t, "this head has neither the options of ssd's anchors nor of retinanet's: nothing is suggested\n");
        return;
    }
    sd_text_printf(t, "from k-means of sides and of shapes%s:\n[head]\n",
                   better(&a->then, &a->all) ? "" : ", but the present options cover the boxes as well");
    for (uint32_t i = 0; i < a->suggested.n; i++)
        sd_text_printf(t, "%s = %s\n", a->suggested.row[i].key, a->suggested.row[i].value);
    sd_text_printf(t, "  %-20s %10s %8s %10s %10s %8s\n", "", "boxes", "mean", below, "without", "anchors");
    text_row(t, "with these", &a->then);
    text_row(t, "now", &a->all);
}

/* ---- for a program ---- */

static void json_cover(sd_text *t, const sd_cover *c)
{
    sd_text_printf(t, "{\"boxes\": %" PRIu64 ", \"mean_iou\": ", c->n);
    sd_json_write_double(t, c->iou);
    sd_text_printf(t, ", \"below\": %" PRIu64 ", \"without\": %" PRIu64 ", \"anchors\": %" PRIu64 ", \"histogram\": [", c->below,
                   c->without, c->positives);
    for (uint32_t i = 0; i < SD_COVER_BINS; i++)
        sd_text_printf(t, "%s%" PRIu64, i ? ", " : "", c->bin[i]);
    sd_text_printf(t, "]}");
}

static void json(const anchors *a, const sd_model_grid *grid, sd_text *t)
{
    sd_text_printf(t,
                   "{\"set\": \"%s\", \"pictures\": %" PRIu64 ", \"width\": %u, \"height\": %u, \"anchors\": %" PRIu64 ", \"threshold\": ",
                   a->sets.name[0], a->boxes.n_items, grid->width, grid->height, grid->anchors->n);
    sd_json_write_double(t, a->threshold);
    sd_text_printf(t, ",\n\"all\": ");
    json_cover(t, &a->all);
    sd_text_printf(t, ",\n\"classes\": {");
    for (uint32_t k = 0; k < a->classes->n; k++) {
        sd_text_printf(t, "%s", k ? ",\n  " : "\n  ");
        sd_json_write_string(t, a->classes->names[k]);
        sd_text_printf(t, ": ");
        json_cover(t, &a->of_class[k]);
    }
    sd_text_printf(t, "},\n\"cluster_iou\": ");
    sd_json_write_double(t, a->cluster_iou);
    sd_text_printf(t, ", \"clusters\": [");
    for (uint32_t i = 0; i < a->n_clusters; i++) {
        const sd_cluster *c = &a->clusters[i];
        sd_text_printf(t, "%s\n  {\"width\": ", i ? "," : "");
        sd_json_write_double(t, c->width);
        sd_text_printf(t, ", \"height\": ");
        sd_json_write_double(t, c->height);
        sd_text_printf(t, ", \"boxes\": %" PRIu64 ", \"iou\": ", c->n);
        sd_json_write_double(t, c->iou);
        sd_text_printf(t, "}");
    }
    sd_text_printf(t, "]");
    if (a->suggested.n) {
        sd_text_printf(t, ",\n\"suggested\": {\"better\": %s, \"head\": {", better(&a->then, &a->all) ? "true" : "false");
        for (uint32_t i = 0; i < a->suggested.n; i++) {
            sd_text_printf(t, "%s\"%s\": ", i ? ", " : "", a->suggested.row[i].key);
            sd_json_write_string(t, a->suggested.row[i].value);
        }
        sd_text_printf(t, "}, \"all\": ");
        json_cover(t, &a->then);
        sd_text_printf(t, "}");
    }
    sd_text_printf(t, "}\n");
}

static sodet_status measure(sd_cli *cli, anchors *a, uint32_t k, sodet_err *err)
{
    const sd_core_cfg *core = sd_config_core(a->sets.cfg);
    a->classes = sd_dataset_classes(a->sets.split[0].dataset);
    a->threads = core->run.threads ? core->run.threads : sd_processors();
    a->of_class = sd_alloc(a->classes->n, sizeof *a->of_class);
    if (!a->of_class)
        return SODET_FAIL(err, SODET_E_MEMORY, "data anchors: no memory for %u classes", a->classes->n);
    sodet_status status = sd_model_open(a->sets.cfg, a->classes->n, &a->model, err);
    if (status == SODET_OK)
        status = sd_boxes_gather(&a->sets.frames[0], &a->boxes, err);
    if (status != SODET_OK)
        return status;
    if (!sd_head_number(a->model, "positive_iou", &a->threshold))
        a->threshold = 0.5;
    status = sd_cover_measure(a->model, &a->boxes, a->threshold, a->threads, &a->all, a->of_class, err);
    if (status == SODET_OK && !a->all.n)
        status = SODET_FAIL(err, SODET_E_INVALID, "data anchors: %s has no boxes, so there is nothing to cover", a->sets.name[0]);
    if (status == SODET_OK)
        status = cluster(a, k, err);
    return status == SODET_OK ? suggest(cli, a, err) : status;
}

sodet_status sd_data_anchors(sd_cli *cli, sodet_err *err)
{
    anchors a = {0};
    sd_text out = {0};
    uint64_t k;
    const sd_model_grid *grid = NULL;
    sodet_status status = sd_cli_flag_uint(cli, "--clusters", 1, 9, &k, err);
    if (status == SODET_OK && k > 1000)
        status = SODET_FAIL(err, SODET_E_INVALID, "data anchors: --clusters %" PRIu64 ": at most 1000", k);
    if (status == SODET_OK)
        status = sd_data_sets_open(cli, SD_SPLIT_TRAIN, NULL, &a.sets, err);
    if (status == SODET_OK)
        status = measure(cli, &a, (uint32_t)k, err);
    if (status == SODET_OK) {
        const sd_canvas_size *c = sd_boxes_canvas(&a.boxes);
        status = sd_model_grid_of(a.model, c->height, c->width, &grid, err);
    }
    if (status == SODET_OK) {
        if (cli->json)
            json(&a, grid, &out);
        else
            text(&a, grid, &out);
        status = out.failed ? SODET_FAIL(err, SODET_E_MEMORY, "data anchors: no memory for the report") : SODET_OK;
    }
    if (status == SODET_OK)
        fputs(out.text, stdout);
    sd_text_free(&out);
    sd_free(a.of_class);
    sd_free(a.clusters);
    sd_boxes_free(&a.boxes);
    sd_model_close(a.model);
    sd_data_sets_close(&a.sets);
    return status;
}
