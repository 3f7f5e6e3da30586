/* COCO's result list. Ids are those of the ground truth, or, where the file has images and categories of its own, names are. */
#include <stdlib.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/eval/read.h"

typedef struct row {
    int64_t image, category;
    double xywh[4], score;
} row;

typedef struct results {
    sd_json json;
    uint32_t n_threads;
    sd_pool names;
    sd_json_rows rows;             /* of `row` */
    sd_named *images, *categories; /* the file's own */
    uint64_t n_images, image_capacity, n_categories, category_capacity;
} results;

static void read_result(sd_json *j, void *context, void *out)
{
    enum { IMAGE = 1, CATEGORY = 2, BOX = 4, SCORE = 8, EVERYTHING = 15 };
    static const char *const members[] = {"image_id", "category_id", "bbox", "score"};
    row *to = out;
    sd_json_string key;
    unsigned seen = 0;
    (void)context;
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
    sd_json_read_rows(&r->json, r->n_threads, sizeof(row), read_result, NULL, &r->rows);
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

/* Detections of one image that follow one another, those of strange categories apart; `at`: where the first is to stand. */
typedef struct run {
    uint64_t image, n, at;
} run;

/* What became of a piece of the rows. */
typedef struct resolved {
    run *runs;
    uint64_t n_runs, capacity;
    uint64_t strangers; /* of categories that the ground truth does not have */
    uint64_t lost;      /* the first row whose image the ground truth does not have, or the number of rows */
    bool no_memory;
} resolved;

typedef struct placing {
    results *r;
    sd_gather *g;
    link_row *images, *categories; /* NULL: ids are the ground truth's */
    resolved *pieces;
} placing;

static int64_t label_of(const placing *p, int64_t category)
{
    return p->categories ? linked(p->categories, p->r->n_categories, category) : sd_gather_label(p->g, category);
}

static int64_t image_of(const placing *p, int64_t image)
{
    return p->images ? linked(p->images, p->r->n_images, image) : sd_gather_image_of(p->g, image);
}

static bool count(resolved *to, int64_t image)
{
    if (to->n_runs && to->runs[to->n_runs - 1].image == (uint64_t)image) {
        to->runs[to->n_runs - 1].n++;
        return true;
    }
    if (sd_grow(&to->runs, &to->capacity, to->n_runs + 1, sizeof *to->runs, NULL) != SODET_OK)
        return false;
    to->runs[to->n_runs++] = (run){.image = (uint64_t)image, .n = 1};
    return true;
}

/* Each row's image becomes its index, its category the label, -1: left out. */
static void resolve_piece(void *context, uint32_t worker, uint64_t item)
{
    enum { RECENT = 256 };
    const placing *p = context;
    const sd_json_piece *from = &p->r->rows.pieces[item];
    resolved *to = &p->pieces[item];
    struct {
        int64_t category, label;
        bool known;
    } recent[RECENT] = {{0}};
    int64_t last_id = 0, last = -1;
    (void)worker;
    to->lost = from->n;
    for (uint64_t i = 0; i < from->n; i++) {
        row *x = (row *)from->rows + i;
        if (last < 0 || x->image != last_id) { /* detections of an image mostly stand together */
            last_id = x->image;
            last = image_of(p, x->image);
        }
        if (last < 0) {
            to->lost = i;
            return;
        }
        uint32_t slot = (uint32_t)((uint64_t)x->category % RECENT);
        if (!recent[slot].known || recent[slot].category != x->category) {
            recent[slot].category = x->category;
            recent[slot].label = label_of(p, x->category);
            recent[slot].known = true;
        }
        x->image = last;
        x->category = recent[slot].label;
        if (x->category < 0)
            to->strangers++;
        else if (!count(to, last)) {
            to->no_memory = true;
            return;
        }
    }
}

/* The flat arrays begin each image's detections with those of the first piece. */
static void place_piece(void *context, uint32_t worker, uint64_t item)
{
    const placing *p = context;
    const sd_json_piece *from = &p->r->rows.pieces[item];
    const run *now = p->pieces[item].runs;
    sd_flat *f = &p->g->flat;
    uint64_t in_run = 0;
    (void)worker;
    for (uint64_t i = 0; i < from->n; i++) {
        const row *x = (const row *)from->rows + i;
        if (x->category < 0)
            continue;
        if (in_run == now->n) {
            now++;
            in_run = 0;
        }
        uint64_t k = now->at + in_run++;
        const double *b = x->xywh;
        f->detections[k] = (sodet_detection){.box = {(float)b[0], (float)b[1], (float)(b[0] + b[2]), (float)(b[1] + b[3])},
                                             .score = (float)x->score,
                                             .label = (int32_t)x->category};
        memcpy(f->detection_xywh + 4 * k, b, sizeof x->xywh);
        f->scores[k] = x->score;
    }
}

/* By what the file's images are matched, and one that would match. */
static sodet_status lost_image(const placing *p, const char *path, uint64_t number, int64_t id, sodet_err *err)
{
    const results *r = p->r;
    const char *example = p->g->n_images ? p->g->images[0].name : NULL;
    const unsigned long long n = (unsigned long long)number;
    for (uint64_t i = 0; i < r->n_images; i++)
        if (r->images[i].id == id)
            return SODET_FAIL(
                err, SODET_E_INVALID,
                "%s: detection %llu is of \"%.120s\" (image %lld), a file_name that the ground truth does not have; %s%.120s%s; make "
                "the names equal, or leave `images` out and use the ground truth's ids",
                path, n, r->images[i].name, (long long)id, example ? "there the first is \"" : "it has no images", example ? example : "",
                example ? "\"" : "");
    if (r->n_images)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: detection %llu is of image %lld, which the file's own `images` do not list; add it there", path, n,
                          (long long)id);
    return SODET_FAIL(
        err, SODET_E_INVALID,
        "%s: detection %llu is of image %lld, an id that the ground truth does not have (its first is %lld); give the detections "
        "that file's ids, or a list `images` with its file_names",
        path, n, (long long)id, p->g->n_images ? (long long)p->g->images[0].key : -1);
}

static sodet_status resolve(placing *p, const char *path, uint64_t *strangers, sodet_err *err)
{
    results *r = p->r;
    if (r->n_images)
        p->images = link_images(r, p->g);
    if (r->n_categories)
        p->categories = link_categories(r, p->g);
    if ((r->n_images && !p->images) || (r->n_categories && !p->categories))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path);
    sd_parallel(r->n_threads, r->rows.n_pieces, resolve_piece, p);
    for (uint64_t i = 0; i < r->rows.n_pieces; i++) {
        const sd_json_piece *from = &r->rows.pieces[i];
        const resolved *x = &p->pieces[i];
        if (x->no_memory)
            return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path);
        if (x->lost < from->n)
            return lost_image(p, path, from->first + x->lost + 1, ((const row *)from->rows)[x->lost].image, err);
        *strangers += x->strangers;
    }
    return SODET_OK;
}

/* Where each image's detections begin, and each run's. */
static void arrange(placing *p, uint64_t *next)
{
    uint64_t *first = p->g->flat.detection_first, n = p->r->rows.n_pieces;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < p->pieces[i].n_runs; k++)
            first[p->pieces[i].runs[k].image + 1] += p->pieces[i].runs[k].n;
    for (uint64_t i = 0; i < p->g->n_images; i++) {
        next[i] = first[i];
        first[i + 1] += first[i];
    }
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < p->pieces[i].n_runs; k++) {
            run *x = &p->pieces[i].runs[k];
            x->at = next[x->image];
            next[x->image] += x->n;
        }
}

static sodet_status place(results *r, sd_gather *g, const char *path, sodet_err *err)
{
    sd_flat *f = &g->flat;
    const uint64_t n = r->rows.n;
    placing p = {.r = r, .g = g, .pieces = sd_alloc(r->rows.n_pieces + 1, sizeof *p.pieces)};
    uint64_t *next = sd_alloc(g->n_images + 1, sizeof *next), strangers = 0;
    sd_free(f->detections);
    sd_free(f->detection_xywh);
    sd_free(f->scores);
    f->detections = sd_room(n + 1, sizeof *f->detections);
    f->detection_xywh = sd_room(n + 1, 4 * sizeof *f->detection_xywh);
    f->scores = sd_room(n + 1, sizeof *f->scores);
    memset(f->detection_first, 0, (g->n_images + 1) * sizeof *f->detection_first);
    sodet_status s = p.pieces && next && f->detections && f->detection_xywh && f->scores
                         ? resolve(&p, path, &strangers, err)
                         : SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu detections", path, (unsigned long long)n);
    if (s == SODET_OK) {
        arrange(&p, next);
        sd_parallel(r->n_threads, r->rows.n_pieces, place_piece, &p);
    }
    for (uint64_t i = 0; p.pieces && i < r->rows.n_pieces; i++)
        sd_free(p.pieces[i].runs);
    sd_free(p.pieces);
    sd_free(p.images);
    sd_free(p.categories);
    sd_free(next);
    if (s == SODET_OK && strangers)
        sd_log(SD_LOG_WARN, "%s: %llu of %llu detections are of categories that the ground truth does not have; they are left out", path,
               (unsigned long long)strangers, (unsigned long long)n);
    return s;
}

sodet_status sd_read_coco_detections(const char *path, sd_gather *g, uint32_t n_threads, sodet_err *err)
{
    char *text;
    uint64_t n;
    if (!g->from_files)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s: detections of a file need ground truth of a file", path);
    sodet_status s = sd_file_read(path, 0, &text, &n, err);
    if (s != SODET_OK)
        return s;
    results r = {.n_threads = n_threads};
    sd_json_open(&r.json, path, text, n, err);
    read_all(&r);
    s = sd_json_close(&r.json);
    sd_free(text);
    if (s == SODET_OK)
        s = place(&r, g, path, err);
    sd_json_rows_free(&r.rows);
    sd_free(r.images);
    sd_free(r.categories);
    sd_pool_clear(&r.names);
    return s;
}
