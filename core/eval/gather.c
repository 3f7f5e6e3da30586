/* Images in any order, some twice, become the flat arrays that evaluators read. */
#include <stdlib.h>
#include <string.h>

#include "core/eval/internal.h"

sodet_status sd_gather_new(const char *const *class_names, const int64_t *category_ids, uint32_t n_classes, sd_gather **out, sodet_err *err)
{
    *out = NULL;
    sd_gather *g = sd_alloc(1, sizeof *g);
    if (!g)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to gather detections");
    g->n_classes = n_classes;
    g->class_names = sd_pool_alloc(&g->strings, (n_classes + 1) * sizeof *g->class_names);
    g->category_ids = sd_pool_alloc(&g->strings, (n_classes + 1) * sizeof *g->category_ids);
    bool good = g->class_names && g->category_ids;
    for (uint32_t c = 0; c < n_classes && good; c++) {
        g->class_names[c] = sd_pool_strdup(&g->strings, class_names[c]);
        g->category_ids[c] = category_ids ? category_ids[c] : (int64_t)c + 1;
        good = g->class_names[c] != NULL;
    }
    if (!good) {
        sd_gather_free(g);
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to gather detections");
    }
    *out = g;
    return SODET_OK;
}

void sd_gather_free(sd_gather *g)
{
    if (!g)
        return;
    sd_free(g->images);
    sd_free(g->objects.items);
    sd_free(g->objects.xywh);
    sd_free(g->detections.items);
    sd_free(g->detections.xywh);
    sd_free(g->scores);
    sd_flat_free(&g->flat);
    sd_pool_clear(&g->strings);
    sd_free(g);
}

/* Room for n more rows of a list; xywh is kept only if the first row brought it. */
static sodet_status reserve(sd_rows *r, uint64_t n, size_t size, bool xywh, sodet_err *err)
{
    if (r->n == 0 && n)
        r->has_xywh = xywh;
    sodet_status s = sd_grow(&r->items, &r->capacity, r->n + n, size, err);
    if (s == SODET_OK && r->has_xywh)
        s = sd_grow(&r->xywh, &r->xywh_capacity, 4 * (r->n + n), sizeof *r->xywh, err);
    return s;
}

static sodet_status add_objects(sd_gather *g, const sodet_object *objects, const double *xywh, uint64_t n, sodet_err *err)
{
    sodet_status s = reserve(&g->objects, n, sizeof *objects, xywh != NULL, err);
    if (s != SODET_OK || n == 0)
        return s;
    memcpy((sodet_object *)g->objects.items + g->objects.n, objects, n * sizeof *objects);
    if (g->objects.has_xywh)
        memcpy(g->objects.xywh + 4 * g->objects.n, xywh, 4 * n * sizeof *xywh);
    g->objects.n += n;
    return SODET_OK;
}

static sodet_status add_detections(sd_gather *g, const sodet_detection *detections, const double *xywh, const double *scores, uint64_t n,
                                   sodet_err *err)
{
    if (g->detections.n == 0 && n)
        g->has_scores = scores != NULL;
    sodet_status s = reserve(&g->detections, n, sizeof *detections, xywh != NULL, err);
    if (s == SODET_OK && g->has_scores)
        s = sd_grow(&g->scores, &g->scores_capacity, g->detections.n + n, sizeof *g->scores, err);
    if (s != SODET_OK || n == 0)
        return s;
    memcpy((sodet_detection *)g->detections.items + g->detections.n, detections, n * sizeof *detections);
    if (g->detections.has_xywh)
        memcpy(g->detections.xywh + 4 * g->detections.n, xywh, 4 * n * sizeof *xywh);
    if (g->has_scores)
        memcpy(g->scores + g->detections.n, scores, n * sizeof *scores);
    g->detections.n += n;
    return SODET_OK;
}

sodet_status sd_gather_add(sd_gather *g, const sd_gather_image *image, sodet_err *err)
{
    if ((g->objects.n && image->n_objects && g->objects.has_xywh != (image->object_xywh != NULL)) ||
        (g->detections.n && image->n_detections &&
         (g->detections.has_xywh != (image->detection_xywh != NULL) || g->has_scores != (image->scores != NULL))))
        return SODET_FAIL(err, SODET_E_INTERNAL, "image %s: double values for some images and not for others",
                          image->name ? image->name : "");
    sodet_status s = sd_grow(&g->images, &g->image_capacity, g->n_images + 1, sizeof *g->images, err);
    if (s != SODET_OK)
        return s;
    sd_gather_row *x = &g->images[g->n_images];
    *x = (sd_gather_row){.key = image->key,
                         .name = sd_pool_strdup(&g->strings, image->name ? image->name : ""),
                         .object = g->objects.n,
                         .n_objects = image->n_objects,
                         .detection = g->detections.n,
                         .n_detections = image->n_detections,
                         .turn = g->n_images};
    if (!x->name)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to gather detections");
    s = add_objects(g, image->objects, image->object_xywh, image->n_objects, err);
    if (s == SODET_OK)
        s = add_detections(g, image->detections, image->detection_xywh, image->scores, image->n_detections, err);
    g->n_images += s == SODET_OK;
    return s;
}

static int by_key(const void *a, const void *b)
{
    const sd_gather_row *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->turn > y->turn) - (x->turn < y->turn);
}

void sd_gather_sort(sd_gather *g)
{
    if (g->n_images > 1)
        qsort(g->images, g->n_images, sizeof *g->images, by_key);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < g->n_images; i++)
        if (kept == 0 || g->images[kept - 1].key != g->images[i].key)
            g->images[kept++] = g->images[i];
    g->duplicates += g->n_images - kept;
    g->n_images = kept;
}

uint64_t sd_gather_lower_bound(const sd_gather *g, int64_t key)
{
    uint64_t lo = 0, hi = g->n_images;
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (g->images[middle].key < key)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

void sd_flat_free(sd_flat *f)
{
    sd_free(f->object_first);
    sd_free(f->detection_first);
    sd_free(f->objects);
    sd_free(f->object_xywh);
    sd_free(f->detections);
    sd_free(f->detection_xywh);
    sd_free(f->scores);
    *f = (sd_flat){.objects = NULL};
}

static sodet_status new_flat(const sd_gather *g, uint64_t n_objects, uint64_t n_detections, sd_flat *f, sodet_err *err)
{
    *f = (sd_flat){.objects = NULL};
    f->object_first = sd_alloc(g->n_images + 1, sizeof *f->object_first);
    f->detection_first = sd_alloc(g->n_images + 1, sizeof *f->detection_first);
    f->objects = sd_alloc(n_objects + 1, sizeof *f->objects);
    f->detections = sd_alloc(n_detections + 1, sizeof *f->detections);
    bool good = f->object_first && f->detection_first && f->objects && f->detections;
    if (g->objects.has_xywh)
        good = (f->object_xywh = sd_alloc(n_objects + 1, 4 * sizeof *f->object_xywh)) && good;
    if (g->detections.has_xywh)
        good = (f->detection_xywh = sd_alloc(n_detections + 1, 4 * sizeof *f->detection_xywh)) && good;
    if (g->has_scores)
        good = (f->scores = sd_alloc(n_detections + 1, sizeof *f->scores)) && good;
    if (good)
        return SODET_OK;
    sd_flat_free(f);
    return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu detections", (unsigned long long)n_detections);
}

static void copy_image(const sd_gather *g, const sd_gather_row *x, sd_flat *f, uint64_t o, uint64_t d)
{
    if (x->n_objects) {
        memcpy(f->objects + o, (const sodet_object *)g->objects.items + x->object, x->n_objects * sizeof *f->objects);
        if (f->object_xywh)
            memcpy(f->object_xywh + 4 * o, g->objects.xywh + 4 * x->object, 4 * x->n_objects * sizeof *f->object_xywh);
    }
    if (!x->n_detections)
        return;
    memcpy(f->detections + d, (const sodet_detection *)g->detections.items + x->detection, x->n_detections * sizeof *f->detections);
    if (f->detection_xywh)
        memcpy(f->detection_xywh + 4 * d, g->detections.xywh + 4 * x->detection, 4 * x->n_detections * sizeof *f->detection_xywh);
    if (f->scores)
        memcpy(f->scores + d, g->scores + x->detection, x->n_detections * sizeof *f->scores);
}

static sodet_status flatten(sd_gather *g, sodet_err *err)
{
    uint64_t n_objects = 0, n_detections = 0;
    for (uint64_t i = 0; i < g->n_images; i++) {
        n_objects += g->images[i].n_objects;
        n_detections += g->images[i].n_detections;
    }
    sd_flat f;
    sodet_status s = new_flat(g, n_objects, n_detections, &f, err);
    if (s != SODET_OK)
        return s;
    for (uint64_t i = 0, o = 0, d = 0; i < g->n_images; i++) {
        copy_image(g, &g->images[i], &f, o, d);
        o += g->images[i].n_objects;
        d += g->images[i].n_detections;
        f.object_first[i + 1] = o;
        f.detection_first[i + 1] = d;
    }
    sd_flat_free(&g->flat);
    g->flat = f;
    return SODET_OK;
}

sodet_status sd_gather_finish(sd_gather *g, uint32_t n_threads, sodet_eval_input *out, sodet_err *err)
{
    *out = (sodet_eval_input){.struct_size = sizeof *out};
    if (!g->from_files) {
        sd_gather_sort(g);
        sodet_status s = flatten(g, err);
        if (s != SODET_OK)
            return s;
    }
    const sd_flat *f = &g->flat;
    out->n_classes = g->n_classes;
    out->class_names = g->class_names;
    out->n_images = g->n_images;
    out->object_first = f->object_first;
    out->detection_first = f->detection_first;
    out->objects = f->objects;
    out->object_xywh = f->object_xywh;
    out->detections = f->detections;
    out->detection_xywh = f->detection_xywh;
    out->detection_scores = f->scores;
    out->n_threads = n_threads ? n_threads : 1;
    return SODET_OK;
}

uint64_t sd_gather_duplicates(const sd_gather *g)
{
    return g->duplicates;
}

const char *sd_gather_name(const sd_gather *g, uint64_t image)
{
    return g->images[image].name;
}

int64_t sd_gather_key(const sd_gather *g, uint64_t image)
{
    return g->images[image].key;
}

int64_t sd_gather_category(const sd_gather *g, uint32_t label)
{
    return g->category_ids[label];
}
