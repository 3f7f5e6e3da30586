#include "core/data/cover.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/detect/match.h"

/* ---- measuring ---- */

typedef struct measure {
    const sd_model *m;
    const sd_boxes *b;
    const sd_model_grid **grid; /* [n_canvases] */
    float *iou;                 /* [n] */
    int32_t *anchor;            /* [n] */
    uint32_t *positives;        /* [n] anchors that the matching gives the box */
    int32_t **index;            /* [workers] scratch for the largest grid */
    pthread_mutex_t lock;
    sodet_status status;
    sodet_err err;
} measure;

/* One picture: what is written is its own. */
static void cover_picture(void *context, uint32_t worker, uint64_t item)
{
    measure *c = context;
    const sd_boxes *b = c->b;
    uint64_t first = b->first[item], n = b->first[item + 1] - first;
    const sd_model_grid *g = c->grid[b->canvas[item]];
    if (!n)
        return;
    sd_best_anchors(g->anchors, b->box + first, n, c->iou + first, c->anchor + first);
    const sodet_boxes truth = {
        .struct_size = sizeof truth, .n = (uint32_t)n, .box = b->box + first, .label = b->label + first, .flags = b->flags + first};
    sodet_err err = SODET_ERR_INIT;
    sodet_status status = sd_model_assign(c->m, g, &truth, c->index[worker], NULL, &err);
    if (status != SODET_OK) {
        pthread_mutex_lock(&c->lock);
        if (c->status == SODET_OK) {
            c->status = status;
            c->err = err;
        }
        pthread_mutex_unlock(&c->lock);
        return;
    }
    for (uint64_t a = 0; a < g->anchors->n; a++) {
        int32_t row = c->index[worker][a];
        if (row >= 0 && (uint64_t)row < n)
            c->positives[first + (uint64_t)row]++;
    }
}

static void count(sd_cover *c, double iou, uint32_t positives, double threshold)
{
    uint32_t bin = (uint32_t)(iou * SD_COVER_BINS);
    c->n++;
    c->bin[bin < SD_COVER_BINS ? bin : SD_COVER_BINS - 1]++;
    c->below += (float)iou < (float)threshold;
    c->without += positives == 0;
    c->positives += positives;
    c->iou += iou;
}

static void sum_up(const measure *c, double threshold, sd_cover *all, sd_cover *of_class)
{
    uint32_t classes = sd_model_context(c->m)->n_classes;
    memset(all, 0, sizeof *all);
    memset(of_class, 0, classes * sizeof *of_class);
    for (uint64_t i = 0; i < c->b->n; i++) {
        if (c->b->flags[i] & SODET_BOX_CROWD)
            continue;
        count(all, (double)c->iou[i], c->positives[i], threshold);
        count(&of_class[c->b->label[i]], (double)c->iou[i], c->positives[i], threshold);
    }
    for (uint32_t k = 0; k <= classes; k++) {
        sd_cover *o = k ? &of_class[k - 1] : all;
        o->iou /= o->n ? (double)o->n : 1;
    }
}

sodet_status sd_cover_measure(const sd_model *m, const sd_boxes *b, double threshold, uint32_t threads, sd_cover *all, sd_cover *of_class,
                              sodet_err *err)
{
    measure c = {.m = m, .b = b};
    uint64_t most = 0;
    sodet_status status = SODET_OK;
    c.grid = sd_alloc(b->n_canvases + 1u, sizeof *c.grid);
    c.iou = sd_alloc(b->n + 1, sizeof *c.iou);
    c.anchor = sd_alloc(b->n + 1, sizeof *c.anchor);
    c.positives = sd_alloc(b->n + 1, sizeof *c.positives);
    c.index = sd_alloc(threads, sizeof *c.index);
    bool ok = c.grid && c.iou && c.anchor && c.positives && c.index;
    for (uint32_t i = 0; i < b->n_canvases && ok && status == SODET_OK; i++) {
        status = sd_model_grid_of(m, b->canvases[i].height, b->canvases[i].width, &c.grid[i], err);
        if (status == SODET_OK && c.grid[i]->anchors->n > most)
            most = c.grid[i]->anchors->n;
    }
    for (uint32_t i = 0; i < threads && ok && status == SODET_OK; i++)
        ok = (c.index[i] = sd_alloc(most + 1, sizeof **c.index)) != NULL;
    if (!ok)
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the anchors of %llu boxes", (unsigned long long)b->n);
    if (status == SODET_OK) {
        pthread_mutex_init(&c.lock, NULL);
        sd_parallel(threads, b->n_items, cover_picture, &c);
        pthread_mutex_destroy(&c.lock);
        status = c.status;
        if (status != SODET_OK && err)
            *err = c.err;
    }
    if (status == SODET_OK)
        sum_up(&c, threshold, all, of_class);
    for (uint32_t i = 0; i < threads && c.index; i++)
        sd_free(c.index[i]);
    sd_free(c.grid);
    sd_free(c.iou);
    sd_free(c.anchor);
    sd_free(c.positives);
    sd_free(c.index);
    return status;
}

/* ---- the head's options ---- */

static const void *option(const sd_model *m, const char *name, const sodet_opt **row)
{
    const sd_instance *head = sd_model_part(m, SODET_KIND_HEAD);
    const sd_schema *s = &head->plugin->schema;
    for (uint32_t i = 0; i < s->n_opts; i++) {
        *row = (const sodet_opt *)(const void *)((const char *)s->opts + (size_t)i * s->opt_size);
        if ((*row)->name && strcmp((*row)->name, name) == 0)
            return (const char *)head->cfg + (*row)->offset;
    }
    return NULL;
}

bool sd_head_number(const sd_model *m, const char *name, double *value)
{
    const sodet_opt *row;
    const void *field = option(m, name, &row);
    if (!field)
        return false;
    switch (row->type) {
    case SODET_T_DOUBLE:
        *value = *(const double *)field;
        return true;
    case SODET_T_UINT:
    case SODET_T_BOOL:
    case SODET_T_ENUM:
        *value = *(const uint32_t *)field;
        return true;
    default:
        return false;
    }
}

static uint32_t list_length(const sd_model *m, const char *name)
{
    const sodet_opt *row;
    const void *field = option(m, name, &row);
    return field && row->type == SODET_T_DOUBLE_LIST ? ((const sodet_double_list *)field)->n : 0;
}

/* ---- suggesting ---- */

typedef struct shapes { /* what there is to cluster */
    double (*size)[2];  /* [n] squares of the boxes' area */
    double (*ratio)[2]; /* [n] boxes of area 1 */
    uint64_t n;
    double shorter; /* side of the input that most pictures have */
    uint32_t levels;
    const sodet_shape2d *level;
} shapes;

static sodet_status look_at(const sd_model *m, const sd_boxes *b, bool folded, shapes *s, sodet_err *err)
{
    const sd_model_grid *grid;
    const sd_canvas_size *canvas = sd_boxes_canvas(b);
    memset(s, 0, sizeof *s);
    if (!b->n)
        return SODET_FAIL(err, SODET_E_INVALID, "the data set has no boxes, so there is nothing to suggest anchors from");
    sodet_status status = sd_model_grid_of(m, canvas->height, canvas->width, &grid, err);
    if (status != SODET_OK)
        return status;
    s->shorter = grid->width < grid->height ? grid->width : grid->height;
    s->levels = grid->n_levels;
    s->level = grid->level;
    s->size = sd_alloc(b->n, sizeof *s->size);
    s->ratio = sd_alloc(b->n, sizeof *s->ratio);
    if (!s->size || !s->ratio)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the shapes of %llu boxes", (unsigned long long)b->n);
    for (uint64_t i = 0; i < b->n; i++) {
        if (b->flags[i] & SODET_BOX_CROWD)
            continue;
        double w = (double)b->box[i].x2 - (double)b->box[i].x1, h = (double)b->box[i].y2 - (double)b->box[i].y1, r = sqrt(w / h);
        r = folded && r < 1 ? 1 / r : r;
        s->size[s->n][0] = s->size[s->n][1] = sqrt(w * h);
        s->ratio[s->n][0] = r;
        s->ratio[s->n++][1] = 1 / r;
    }
    return s->n ? SODET_OK : SODET_FAIL(err, SODET_E_INVALID, "every box is a crowd, so there is nothing to suggest anchors from");
}

/* Pixels from cell to cell. */
static double cell(const shapes *s, uint32_t level)
{
    return s->level[level].stride ? s->level[level].stride : s->shorter / s->level[level].width;
}

static void put(sd_suggestions *out, const char *key, const double *value, uint32_t n, int decimals)
{
    sd_suggestion *s = &out->row[out->n++];
    size_t at = 0;
    snprintf(s->key, sizeof s->key, "%s", key);
    for (uint32_t i = 0; i < n && at < sizeof s->value; i++)
        at += (size_t)snprintf(s->value + at, sizeof s->value - at, "%s%.*f", i ? " " : "", decimals, value[i]);
}

/* The larger an anchor is beside its cells, the better the one next to a box fits it, but the more of them there are and the less a cell of
 * the map sees of the box. So a box counts for the coarsest level of whose cells it measures `cells`, else for the finest; of each level's
 * boxes `each` centres are made, level after level in `side`. A level without boxes gets anchors of so many cells, larger than the ones
 * before, and no larger than the input. */
static sodet_status sides(const shapes *s, double cells, uint32_t each, uint64_t seed, double *side, sodet_err *err)
{
    double(*own)[2] = sd_alloc(s->n, sizeof *own), low = 0, high = 0, iou;
    sd_cluster c[2];
    sodet_status status =
        own ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the sides of %llu boxes", (unsigned long long)s->n);
    for (uint32_t l = 0; l < s->levels && status == SODET_OK; l++) {
        uint64_t n = 0;
        uint32_t used = 0;
        low = l ? high : 0;
        high = l + 1 < s->levels ? cells * cell(s, l + 1) : HUGE_VAL;
        for (uint64_t i = 0; i < s->n; i++) {
            own[n][0] = own[n][1] = s->size[i][0];
            n += s->size[i][0] >= low && s->size[i][0] < high;
        }
        if (n)
            status = sd_cluster_sizes((const double(*)[2])own, n, each, seed, c, &used, &iou, err);
        for (uint32_t i = 0; i < each && status == SODET_OK; i++) {
            double *here = &side[l * each + i], next = l + i ? here[-1] * 1.25 : 0;
            *here = i < used ? c[i].width : fmin(i ? next : fmax(cells * cell(s, l), next), s->shorter * (i ? 1 : 0.9));
        }
    }
    sd_free(own);
    return status;
}

enum { RATIOS_MOST = 16 };

static int by_count(const void *a, const void *b)
{
    const sd_cluster *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->width < y->width ? -1 : x->width > y->width;
}

/* Squares are there anyway, so one cluster more than ratios is made and the one next to the square goes. The first ratios are those of most
 * boxes: levels with few boxes per cell take these alone. */
static sodet_status ssd_ratios(const shapes *s, uint32_t n, uint64_t seed, sd_suggestions *out, sodet_err *err)
{
    sd_cluster c[RATIOS_MOST + 1];
    uint32_t used, squarest = 0, kept = 0;
    double iou, ratio[RATIOS_MOST];
    sodet_status status = sd_cluster_sizes((const double(*)[2])s->ratio, s->n, n + 1, seed, c, &used, &iou, err);
    if (status != SODET_OK)
        return status;
    for (uint32_t i = 1; i < used; i++)
        squarest = c[i].width / c[i].height < c[squarest].width / c[squarest].height ? i : squarest;
    c[squarest] = c[used - 1];
    qsort(c, used - 1, sizeof *c, by_count);
    for (uint32_t i = 0; i + 1 < used; i++)
        ratio[kept++] = fmax(c[i].width / c[i].height, 1.01);
    if (kept == n) /* boxes of fewer shapes: the present ratios stay */
        put(out, "ratios", ratio, kept, 2);
    return status;
}

static sodet_status suggest_ssd(const sd_model *m, const sd_boxes *b, double cells, uint64_t seed, sd_suggestions *out, sodet_err *err)
{
    shapes s;
    double both[2 * SODET_MAX_LEVELS] = {0}, side[SODET_MAX_LEVELS], second[SODET_MAX_LEVELS], unit = 0;
    uint32_t n_ratios = list_length(m, "ratios");
    sodet_status status = look_at(m, b, true, &s, err);
    if (status == SODET_OK)
        status = sides(&s, cells, 2, seed, both, err);
    if (status == SODET_OK) {
        bool fraction = sd_head_number(m, "size_unit", &unit) && unit > 0;
        for (uint32_t i = 0; i < s.levels; i++) {
            side[i] = both[2 * i] / (fraction ? s.shorter : 1);
            second[i] = both[2 * i + 1] / (fraction ? s.shorter : 1);
        }
        put(out, "sizes", side, s.levels, fraction ? 4 : 1);
        put(out, "second_sizes", second, s.levels, fraction ? 4 : 1);
        if (n_ratios && n_ratios <= RATIOS_MOST)
            status = ssd_ratios(&s, n_ratios, seed, out, err);
    }
    sd_free(s.size);
    sd_free(s.ratio);
    return status;
}

/* A level's anchors are b, b 2^(1/octaves) ..: the middle of these comes to lie on the centre of its boxes. */
static sodet_status suggest_retina(const sd_model *m, const sd_boxes *b, double cells, uint64_t seed, sd_suggestions *out, sodet_err *err)
{
    shapes s;
    sd_cluster c[RATIOS_MOST];
    double side[SODET_MAX_LEVELS] = {0}, octaves = 1, means = 0, ratio[RATIOS_MOST], iou;
    uint32_t n_ratios = list_length(m, "ratios"), used;
    sodet_status status = look_at(m, b, false, &s, err);
    if (status == SODET_OK)
        status = sides(&s, cells, 1, seed, side, err);
    if (status == SODET_OK) {
        sd_head_number(m, "octaves", &octaves);
        sd_head_number(m, "ratio_means", &means);
        for (uint32_t i = 0; i < s.levels; i++)
            side[i] /= exp2((octaves - 1) / (2 * octaves));
        put(out, "sizes", side, s.levels, 1);
    }
    if (status == SODET_OK && n_ratios && n_ratios <= RATIOS_MOST)
        status = sd_cluster_sizes((const double(*)[2])s.ratio, s.n, n_ratios, seed, c, &used, &iou, err);
    if (status == SODET_OK && n_ratios && n_ratios <= RATIOS_MOST && used == n_ratios) {
        for (uint32_t i = 0; i < used; i++)
            ratio[i] = means > 0 ? c[i].width / c[i].height : c[i].height / c[i].width;
        for (uint32_t i = 1; i < used; i++) { /* rising, as people write them */
            for (uint32_t k = i; k && ratio[k] < ratio[k - 1]; k--) {
                double swap = ratio[k];
                ratio[k] = ratio[k - 1];
                ratio[k - 1] = swap;
            }
        }
        put(out, "ratios", ratio, used, 2);
    }
    sd_free(s.size);
    sd_free(s.ratio);
    return status;
}

sodet_status sd_cover_suggest(const sd_model *m, const sd_boxes *b, double cells, uint64_t seed, sd_suggestions *out, sodet_err *err)
{
    const sodet_opt *row;
    out->n = 0;
    if (option(m, "second_sizes", &row) && option(m, "sizes", &row))
        return suggest_ssd(m, b, cells, seed, out, err);
    if (option(m, "octaves", &row) && option(m, "sizes", &row))
        return suggest_retina(m, b, cells, seed, out, err);
    return SODET_OK;
}
