/* COCO's instances file: parsed in one pass into plain rows, then put in order. Images and categories may stand behind the annotations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/eval/read.h"

#define MOST_PIXELS 1e9

typedef struct row {
    int64_t image, category, id;
    double xywh[4], area;
    uint32_t flags;
} row;

typedef struct truth {
    sd_json json;
    sd_pool names;
    sd_gather_row *images;
    uint64_t n_images, image_capacity;
    sd_named *categories;
    uint64_t n_categories, category_capacity;
    sd_json_rows rows; /* of `row` */
    uint32_t n_threads;
    uint64_t strangers; /* annotations whose image is not listed */
} truth;

int64_t sd_read_id(sd_json *j)
{
    if (sd_json_peek(j) != '"')
        return sd_json_int64(j);
    sd_json_string s = sd_json_text(j);
    char text[32];
    int64_t id = 0;
    if (s.n < sizeof text) {
        memcpy(text, s.text, s.n);
        text[s.n] = '\0';
    }
    if (s.n >= sizeof text || !sd_parse_int64(text, &id))
        sd_json_fail(j, "id \"%.*s\" is not an integer", s.n > 40 ? 40 : (int)s.n, s.text);
    return id;
}

void sd_read_bbox(sd_json *j, double xywh[4])
{
    uint32_t n = 0;
    for (sd_json_enter(j, '['); sd_json_item(j); n++) {
        double v = sd_json_double(j);
        if (n < 4)
            xywh[n] = v;
    }
    if (n != 4) {
        sd_json_fail(j, "bbox has %u numbers, x y width height are needed", n);
        return;
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (!(fabs(xywh[i]) <= MOST_PIXELS))
            sd_json_fail(j, "bbox is %g %g %g %g: more than %g pixels; x y width height are needed", xywh[0], xywh[1], xywh[2], xywh[3],
                         MOST_PIXELS);
    }
    if (xywh[2] < 0 || xywh[3] < 0)
        sd_json_fail(j, "bbox is %g %g %g %g: width and height are at least 0; are these corners? x y width height are needed", xywh[0],
                     xywh[1], xywh[2], xywh[3]);
}

void sd_read_named(sd_json *j, sd_pool *pool, const char *name_key, sd_named *out)
{
    sd_json_string key;
    bool has_id = false;
    *out = (sd_named){.name = ""};
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "id")) {
            out->id = sd_read_id(j);
            has_id = true;
        } else if (sd_json_is(key, name_key) && sd_json_peek(j) == '"')
            out->name = sd_json_copy(j, pool, sd_json_text(j));
        else
            sd_json_skip(j);
    }
    if (!has_id)
        sd_json_fail(j, "an entry without id");
}

static void read_images(truth *t)
{
    for (sd_json_enter(&t->json, '['); sd_json_item(&t->json);) {
        sd_named image;
        sd_read_named(&t->json, &t->names, "file_name", &image);
        if (sd_grow(&t->images, &t->image_capacity, t->n_images + 1, sizeof *t->images, NULL) != SODET_OK) {
            sd_json_fail(&t->json, "no memory");
            return;
        }
        t->images[t->n_images] = (sd_gather_row){.key = image.id, .name = image.name, .turn = t->n_images};
        t->n_images++;
    }
}

static void read_categories(truth *t)
{
    for (sd_json_enter(&t->json, '['); sd_json_item(&t->json);) {
        if (sd_grow(&t->categories, &t->category_capacity, t->n_categories + 1, sizeof *t->categories, NULL) != SODET_OK) {
            sd_json_fail(&t->json, "no memory");
            return;
        }
        sd_read_named(&t->json, &t->names, "name", &t->categories[t->n_categories++]);
    }
}

static void read_annotation(sd_json *j, void *context, void *out)
{
    enum { IMAGE = 1, CATEGORY = 2, BOX = 4, AREA = 8 };
    row *r = out;
    sd_json_string key;
    unsigned seen = 0;
    (void)context;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "image_id")) {
            r->image = sd_read_id(j);
            seen |= IMAGE;
        } else if (sd_json_is(key, "category_id")) {
            r->category = sd_read_id(j);
            seen |= CATEGORY;
        } else if (sd_json_is(key, "bbox")) {
            sd_read_bbox(j, r->xywh);
            seen |= BOX;
        } else if (sd_json_is(key, "area")) {
            r->area = sd_json_double(j);
            seen |= AREA;
        } else if (sd_json_is(key, "id"))
            r->id = sd_read_id(j);
        else if (sd_json_is(key, "iscrowd"))
            r->flags |= sd_json_bool(j) ? SODET_BOX_CROWD : 0;
        else if (sd_json_is(key, "difficult") || sd_json_is(key, "ignore"))
            r->flags |= sd_json_bool(j) ? SODET_BOX_DIFFICULT : 0;
        else
            sd_json_skip(j);
    }
    if (!(seen & AREA))
        r->area = r->xywh[2] * r->xywh[3];
    if ((seen & (IMAGE | CATEGORY | BOX)) != (IMAGE | CATEGORY | BOX))
        sd_json_fail(j, "an annotation needs image_id, category_id and bbox");
}

static void read_annotations(truth *t)
{
    sd_json_read_rows(&t->json, t->n_threads, sizeof(row), read_annotation, NULL, &t->rows);
}

static void read_all(truth *t)
{
    sd_json_string key;
    unsigned seen = 0;
    for (sd_json_enter(&t->json, '{'); sd_json_key(&t->json, &key);) {
        if (sd_json_is(key, "images")) {
            read_images(t);
            seen |= 1;
        } else if (sd_json_is(key, "categories")) {
            read_categories(t);
            seen |= 2;
        } else if (sd_json_is(key, "annotations")) {
            read_annotations(t);
            seen |= 4;
        } else
            sd_json_skip(&t->json);
    }
    if (seen != 7)
        sd_json_fail(&t->json, "not a COCO instances file: images, annotations and categories are needed");
}

static int by_id(const void *a, const void *b)
{
    const sd_named *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static sodet_status check_categories(truth *t, const char *path, sodet_err *err)
{
    if (t->n_categories > 1)
        qsort(t->categories, t->n_categories, sizeof *t->categories, by_id);
    for (uint64_t i = 1; i < t->n_categories; i++)
        if (t->categories[i].id == t->categories[i - 1].id)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: categories \"%s\" and \"%s\" have the same id %lld", path,
                              t->categories[i - 1].name, t->categories[i].name, (long long)t->categories[i].id);
    return SODET_OK;
}

static sodet_status make_gather(truth *t, sd_gather **out, sodet_err *err)
{
    const char **names = sd_alloc(t->n_categories + 1, sizeof *names);
    int64_t *ids = sd_alloc(t->n_categories + 1, sizeof *ids);
    sodet_status s = names && ids ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the categories");
    for (uint64_t i = 0; i < t->n_categories && s == SODET_OK; i++) {
        names[i] = t->categories[i].name;
        ids[i] = t->categories[i].id;
    }
    if (s == SODET_OK)
        s = sd_gather_new(names, ids, (uint32_t)t->n_categories, out, err);
    sd_free(names);
    sd_free(ids);
    for (uint64_t i = 0; i < t->n_images && s == SODET_OK; i++)
        if (!(t->images[i].name = sd_pool_strdup(&(*out)->strings, t->images[i].name)))
            s = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the images");
    if (s == SODET_OK) {
        (*out)->images = t->images;
        (*out)->n_images = t->n_images;
        (*out)->image_capacity = t->image_capacity;
        (*out)->from_files = true;
        t->images = NULL;
        sd_gather_sort(*out);
    }
    return s;
}

int64_t sd_gather_label(const sd_gather *g, int64_t category)
{
    uint32_t lo = 0, hi = g->n_classes;
    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (g->category_ids[middle] < category)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < g->n_classes && g->category_ids[lo] == category ? (int64_t)lo : -1;
}

int64_t sd_gather_image_of(const sd_gather *g, int64_t key)
{
    uint64_t i = sd_gather_lower_bound(g, key);
    return i < g->n_images && g->images[i].key == key ? (int64_t)i : -1;
}

/* The row's image becomes its index, its category the label; counts at first[image + 1]. */
static sodet_status resolve(truth *t, const sd_gather *g, const char *path, const sd_json_piece *p, uint64_t *first, sodet_err *err)
{
    for (uint64_t i = 0; i < p->n; i++) {
        row *r = (row *)p->rows + i;
        int64_t label = sd_gather_label(g, r->category);
        if (label < 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: annotation %lld has category_id %lld, which `categories` does not list", path,
                              (long long)r->id, (long long)r->category);
        r->category = label;
        r->image = sd_gather_image_of(g, r->image);
        if (r->image < 0)
            t->strangers++;
        else
            first[r->image + 1]++;
    }
    return SODET_OK;
}

static void place_piece(const sd_json_piece *p, sd_flat *f, uint64_t *next)
{
    for (uint64_t i = 0; i < p->n; i++) {
        const row *r = (const row *)p->rows + i;
        if (r->image < 0)
            continue;
        uint64_t k = next[r->image]++;
        const double *b = r->xywh;
        f->objects[k] = (sodet_object){.box = {(float)b[0], (float)b[1], (float)(b[0] + b[2]), (float)(b[1] + b[3])},
                                       .label = (int32_t)r->category,
                                       .flags = r->flags,
                                       .area = r->area,
                                       .id = r->id};
        memcpy(f->object_xywh + 4 * k, b, sizeof r->xywh);
    }
}

static sodet_status place(truth *t, sd_gather *g, const char *path, sodet_err *err)
{
    sd_flat *f = &g->flat;
    const uint64_t n = t->rows.n;
    uint64_t *next = sd_alloc(g->n_images + 1, sizeof *next);
    f->object_first = sd_alloc(g->n_images + 1, sizeof *f->object_first);
    f->detection_first = sd_alloc(g->n_images + 1, sizeof *f->detection_first);
    f->objects = sd_alloc(n + 1, sizeof *f->objects);
    f->object_xywh = sd_alloc(n + 1, 4 * sizeof *f->object_xywh);
    f->detections = sd_alloc(1, sizeof *f->detections);
    sodet_status s = SODET_OK;
    if (!next || !f->object_first || !f->detection_first || !f->objects || !f->object_xywh || !f->detections)
        s = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu annotations", path, (unsigned long long)n);
    for (uint64_t i = 0; i < t->rows.n_pieces && s == SODET_OK; i++)
        s = resolve(t, g, path, &t->rows.pieces[i], f->object_first, err);
    for (uint64_t i = 0; i < g->n_images && s == SODET_OK; i++) {
        next[i] = f->object_first[i];
        f->object_first[i + 1] += f->object_first[i];
    }
    for (uint64_t i = 0; i < t->rows.n_pieces && s == SODET_OK; i++)
        place_piece(&t->rows.pieces[i], f, next);
    sd_free(next);
    if (s == SODET_OK && t->strangers)
        sd_log(SD_LOG_WARN, "%s: %llu annotations are of images that it does not list; they are left out", path,
               (unsigned long long)t->strangers);
    return s;
}

sodet_status sd_read_coco_truth(const char *path, uint32_t n_threads, sd_gather **out, sodet_err *err)
{
    char *text;
    uint64_t n;
    *out = NULL;
    sodet_status s = sd_file_read(path, 0, &text, &n, err);
    if (s != SODET_OK)
        return s;
    truth t = {.n_threads = n_threads};
    sd_json_open(&t.json, path, text, n, err);
    read_all(&t);
    s = sd_json_close(&t.json);
    sd_free(text);
    if (s == SODET_OK)
        s = check_categories(&t, path, err);
    if (s == SODET_OK)
        s = make_gather(&t, out, err);
    if (s == SODET_OK)
        s = place(&t, *out, path, err);
    if (s != SODET_OK) {
        sd_gather_free(*out);
        *out = NULL;
    }
    sd_free(t.images);
    sd_free(t.categories);
    sd_json_rows_free(&t.rows);
    sd_pool_clear(&t.names);
    return s;
}
