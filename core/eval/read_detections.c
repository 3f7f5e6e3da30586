/* COCO's result list. Ids are those of the ground truth, or, where the file has images and categories of its own, names are. */
#include <stdlib.h>
#include <string.h>

#include "core/eval/read.h"

typedef struct row {
    int64_t image, category;
    double xywh[4], score;
} row;

typedef struct results {
    sd_json json;
    sd_pool names;
    row *rows;
    uint64_t n, capacity;
    sd_named *images, *categories; /* the file's own */
    uint64_t n_images, image_capacity, n_categories, category_capacity;
    uint64_t strangers; /* of categories that the ground truth does not have */
} results;

static void read_result(results *r, row *to)
{
    enum { IMAGE = 1, CATEGORY = 2, BOX = 4, SCORE = 8, EVERYTHING = 15 };
    static const char *const members[] = {"image_id", "category_id", "bbox", "score"};
    sd_json *j = &r->json;
    sd_json_string key;
    unsigned seen = 0;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "image_id")) {
            to->image = sd_read_id(j);
            seen |= IMAGE;
        } else if (sd_json_is(key, "category_id")) {
            to->category = sd_read_id(j);
            seen |= CATEGORY;
        } else if (sd_json_is(key, "bbox")) {
            sd_read_bbox(j, to->xywh);
            seen |= BOX;
        } else if (sd_json_is(key, "score")) {
            to->score = sd_json_double(j);
            seen |= SCORE;
        } else
            sd_json_skip(j);
    }
    for (int i = 0; i < 4; i++)
        if (!(seen >> i & 1))
            sd_json_fail(j, "a detection without %s", members[i]);
}

static void read_list(results *r)
{
    for (sd_json_enter(&r->json, '['); sd_json_item(&r->json);) {
        if (sd_grow(&r->rows, &r->capacity, r->n + 1, sizeof *r->rows, NULL) != SODET_OK) {
            sd_json_fail(&r->json, "no memory");
            return;
        }
        read_result(r, &r->rows[r->n++]);
    }
}

static void read_named_list(results *r, const char *name_key, sd_named **list, uint64_t *n, uint64_t *capacity)
{
    for (sd_json_enter(&r->json, '['); sd_json_item(&r->json);) {
        if (sd_grow(list, capacity, *n + 1, sizeof **list, NULL) != SODET_OK) {
            sd_json_fail(&r->json, "no memory");
            return;
        }
        sd_read_named(&r->json, &r->names, name_key, &(*list)[(*n)++]);
    }
}

static void read_all(results *r)
{
    sd_json_string key;
    bool found = false;
    if (sd_json_peek(&r->json) == '[') {
        read_list(r);
        return;
    }
    for (sd_json_enter(&r->json, '{'); sd_json_key(&r->json, &key);) {
        if (sd_json_is(key, "annotations")) {
            read_list(r);
            found = true;
        } else if (sd_json_is(key, "images"))
            read_named_list(r, "file_name", &r->images, &r->n_images, &r->image_capacity);
        else if (sd_json_is(key, "categories"))
            read_named_list(r, "name", &r->categories, &r->n_categories, &r->category_capacity);
        else
            sd_json_skip(&r->json);
    }
    if (!found)
        sd_json_fail(&r->json, "neither a list of detections nor an object with `annotations`");
}

/* Both tables: id of the file -> index in the ground truth, sorted by id. */
typedef struct link_row {
    int64_t id, index; /* index -1: not in the ground truth */
} link_row;

static int by_id(const void *a, const void *b)
{
    const link_row *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

typedef struct name_row {
    const char *name;
    int64_t index;
} name_row;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const name_row *)a)->name, ((const name_row *)b)->name);
}

/* NULL: no memory. */
static link_row *link_names(const sd_named *list, uint64_t n, name_row *truth, uint64_t n_truth)
{
    link_row *out = sd_alloc(n + 1, sizeof *out);
    if (out && n_truth > 1)
        qsort(truth, n_truth, sizeof *truth, by_name);
    for (uint64_t i = 0; out && i < n; i++) {
        const name_row wanted = {list[i].name, 0};
        const name_row *found = n_truth ? bsearch(&wanted, truth, n_truth, sizeof *truth, by_name) : NULL;
        out[i] = (link_row){list[i].id, found ? found->index : -1};
    }
    if (out && n > 1)
        qsort(out, n, sizeof *out, by_id);
    return out;
}

static link_row *link_images(const results *r, const sd_gather *g)
{
    name_row *names = sd_alloc(g->n_images + 1, sizeof *names);
    link_row *out = NULL;
    for (uint64_t i = 0; names && i < g->n_images; i++)
        names[i] = (name_row){g->images[i].name, (int64_t)i};
    if (names)
        out = link_names(r->images, r->n_images, names, g->n_images);
    sd_free(names);
    return out;
}

static link_row *link_categories(const results *r, const sd_gather *g)
{
    name_row *names = sd_alloc((uint64_t)g->n_classes + 1, sizeof *names);
    link_row *out = NULL;
    for (uint32_t i = 0; names && i < g->n_classes; i++)
        names[i] = (name_row){g->class_names[i], i};
    if (names)
        out = link_names(r->categories, r->n_categories, names, g->n_classes);
    sd_free(names);
    return out;
}

static int64_t linked(const link_row *links, uint64_t n, int64_t id)
{
    const link_row wanted = {id, 0};
    const link_row *found = n ? bsearch(&wanted, links, n, sizeof *links, by_id) : NULL;
    return found ? found->index : -1;
}

/* The row's image becomes its index, its category the label (-1: left out); counts at first[image + 1]. */
static sodet_status resolve(results *r, const sd_gather *g, const char *path, uint64_t *first, sodet_err *err)
{
    link_row *images = r->n_images ? link_images(r, g) : NULL, *categories = r->n_categories ? link_categories(r, g) : NULL;
    sodet_status s = SODET_OK;
    if ((r->n_images && !images) || (r->n_categories && !categories))
        s = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path);
    int64_t last_id = 0, last = -1;
    for (uint64_t i = 0; i < r->n && s == SODET_OK; i++) {
        row *x = &r->rows[i];
        if (last < 0 || x->image != last_id) { /* detections of an image mostly stand together */
            last_id = x->image;
            last = images ? linked(images, r->n_images, x->image) : sd_gather_image_of(g, x->image);
        }
        if (last < 0) {
            s = SODET_FAIL(err, SODET_E_INVALID, "%s: detection %llu is of image %lld, which the ground truth does not have", path,
                           (unsigned long long)i + 1, (long long)x->image);
            break;
        }
        x->image = last;
        x->category = categories ? linked(categories, r->n_categories, x->category) : sd_gather_label(g, x->category);
        if (x->category < 0)
            r->strangers++;
        else
            first[last + 1]++;
    }
    sd_free(images);
    sd_free(categories);
    return s;
}

static sodet_status place(results *r, sd_gather *g, const char *path, sodet_err *err)
{
    sd_flat *f = &g->flat;
    uint64_t *next = sd_alloc(g->n_images + 1, sizeof *next);
    sd_free(f->detections);
    sd_free(f->detection_xywh);
    sd_free(f->scores);
    f->detections = sd_alloc(r->n + 1, sizeof *f->detections);
    f->detection_xywh = sd_alloc(r->n + 1, 4 * sizeof *f->detection_xywh);
    f->scores = sd_alloc(r->n + 1, sizeof *f->scores);
    memset(f->detection_first, 0, (g->n_images + 1) * sizeof *f->detection_first);
    sodet_status s = next && f->detections && f->detection_xywh && f->scores
                         ? resolve(r, g, path, f->detection_first, err)
                         : SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu detections", path, (unsigned long long)r->n);
    for (uint64_t i = 0; i < g->n_images && s == SODET_OK; i++) {
        next[i] = f->detection_first[i];
        f->detection_first[i + 1] += f->detection_first[i];
    }
    for (uint64_t i = 0; i < r->n && s == SODET_OK; i++) {
        const row *x = &r->rows[i];
        if (x->category < 0)
            continue;
        uint64_t k = next[x->image]++;
        const double *b = x->xywh;
        f->detections[k] = (sodet_detection){.box = {(float)b[0], (float)b[1], (float)(b[0] + b[2]), (float)(b[1] + b[3])},
                                             .score = (float)x->score,
                                             .label = (int32_t)x->category};
        memcpy(f->detection_xywh + 4 * k, b, sizeof x->xywh);
        f->scores[k] = x->score;
    }
    sd_free(next);
    if (s == SODET_OK && r->strangers)
        sd_log(SD_LOG_WARN, "%s: %llu of %llu detections are of categories that the ground truth does not have; they are left out", path,
               (unsigned long long)r->strangers, (unsigned long long)r->n);
    return s;
}

sodet_status sd_read_coco_detections(const char *path, sd_gather *g, sodet_err *err)
{
    char *text;
    uint64_t n;
    if (!g->from_files)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s: detections of a file need ground truth of a file", path);
    sodet_status s = sd_file_read(path, 0, &text, &n, err);
    if (s != SODET_OK)
        return s;
    results r = {.n = 0};
    sd_json_open(&r.json, path, text, n, err);
    read_all(&r);
    s = sd_json_close(&r.json);
    sd_free(text);
    if (s == SODET_OK)
        s = place(&r, g, path, err);
    sd_free(r.rows);
    sd_free(r.images);
    sd_free(r.categories);
    sd_pool_clear(&r.names);
    return s;
}
