#include "sodet/coco.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base.h"
#include "core/base/json.h"

typedef struct picture {
    int64_t id;
    const char *name;
    uint32_t width, height;
    uint64_t first, n; /* of the annotations in order */
} picture;

typedef struct annotation {
    int64_t id, image, category; /* category: index of the class after reading */
    double box[4], area;         /* area < 0: not given */
    uint32_t flags;              /* SODET_BOX_* */
    uint32_t picture;
} annotation;

typedef struct category {
    int64_t id;
    const char *name;
} category;

struct sodet_coco {
    const char *path, *folder;
    picture *pictures;
    uint64_t n_pictures, pictures_capacity;
    annotation *annotations;
    uint64_t n_annotations, annotations_capacity;
    annotation *ordered; /* by picture, in the file's order */
    category *categories;
    uint64_t n_categories, categories_capacity;
    const char **classes; /* [n_categories + 1] */
    uint64_t odd_areas;
    sd_pool pool;
};

static void grow(sd_json *j, void *items, uint64_t *capacity, uint64_t need, size_t size)
{
    if (j->status == SODET_OK && sd_grow(items, capacity, need, size, j->err) != SODET_OK) {
        j->status = SODET_E_MEMORY;
        j->at = j->end;
    }
}

static uint32_t side(sd_json *j)
{
    int64_t v = sd_json_int64(j);
    if (v < 0 || v > 1000000000)
        sd_json_fail(j, "%lld pixels are no picture's width or height", (long long)v);
    return (uint32_t)v;
}

static void read_picture(sodet_coco *c, sd_json *j)
{
    picture p = {0};
    bool has_id = false;
    sd_json_string key;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "id")) {
            p.id = sd_json_int64(j);
            has_id = true;
        } else if (sd_json_is(key, "file_name")) {
            p.name = sd_json_copy(j, &c->pool, sd_json_text(j));
        } else if (sd_json_is(key, "width")) {
            p.width = side(j);
        } else if (sd_json_is(key, "height")) {
            p.height = side(j);
        } else {
            sd_json_skip(j);
        }
    }
    if (!has_id)
        sd_json_fail(j, "image %llu has no \"id\"", (unsigned long long)c->n_pictures + 1);
    if (!p.name)
        sd_json_fail(j, "image %lld has no \"file_name\"", (long long)p.id);
    grow(j, &c->pictures, &c->pictures_capacity, c->n_pictures + 1, sizeof p);
    if (j->status == SODET_OK)
        c->pictures[c->n_pictures++] = p;
}

static void read_annotation(sodet_coco *c, sd_json *j)
{
    enum { IMAGE = 1, CATEGORY = 2, BOX = 4 };
    annotation a = {.area = -1};
    uint32_t seen = 0;
    sd_json_string key;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "segmentation")) { /* the longest by far: polygons or run lengths */
            sd_json_skip(j);
        } else if (sd_json_is(key, "id")) {
            a.id = sd_json_int64(j);
        } else if (sd_json_is(key, "image_id")) {
            a.image = sd_json_int64(j);
            seen |= IMAGE;
        } else if (sd_json_is(key, "category_id")) {
            a.category = sd_json_int64(j);
            seen |= CATEGORY;
        } else if (sd_json_is(key, "bbox")) {
            uint32_t n = 0;
            for (sd_json_enter(j, '['); sd_json_item(j); n++) {
                double v = sd_json_double(j);
                if (n < 4)
                    a.box[n] = v;
            }
            if (n != 4)
                sd_json_fail(j, "annotation %lld: bbox has %u numbers; x, y, width, height are wanted", (long long)a.id, n);
            seen |= BOX;
        } else if (sd_json_is(key, "area")) {
            if (!sd_json_null(j))
                a.area = sd_json_double(j);
        } else if (sd_json_is(key, "iscrowd")) {
            a.flags |= !sd_json_null(j) && sd_json_bool(j) ? SODET_BOX_CROWD : 0u;
        } else if (sd_json_is(key, "difficult")) {
            a.flags |= !sd_json_null(j) && sd_json_bool(j) ? SODET_BOX_DIFFICULT : 0u;
        } else if (sd_json_is(key, "truncated")) {
            a.flags |= !sd_json_null(j) && sd_json_bool(j) ? SODET_BOX_TRUNCATED : 0u;
        } else {
            sd_json_skip(j);
        }
    }
    static const char *const names[] = {"image_id", "category_id", "bbox"};
    for (uint32_t i = 0; i < 3; i++) {
        if (!(seen & 1u << i))
            sd_json_fail(j, "annotation %lld has no \"%s\"", (long long)a.id, names[i]);
    }
    double own = a.box[2] * a.box[3];
    if (a.area >= 0 && own > 0 && !(a.flags & SODET_BOX_CROWD))
        c->odd_areas += a.area > own * 1.01 + 1 || (a.area < own * 0.001 && own > 100);
    grow(j, &c->annotations, &c->annotations_capacity, c->n_annotations + 1, sizeof a);
    if (j->status == SODET_OK)
        c->annotations[c->n_annotations++] = a;
}

static void read_category(sodet_coco *c, sd_json *j)
{
    category k = {0};
    bool has_id = false;
    sd_json_string key;
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "id")) {
            k.id = sd_json_int64(j);
            has_id = true;
        } else if (sd_json_is(key, "name")) {
            k.name = sd_json_copy(j, &c->pool, sd_json_text(j));
        } else {
            sd_json_skip(j);
        }
    }
    if (!has_id || !k.name)
        sd_json_fail(j, "category %llu has no \"%s\"", (unsigned long long)c->n_categories + 1, has_id ? "name" : "id");
    grow(j, &c->categories, &c->categories_capacity, c->n_categories + 1, sizeof k);
    if (j->status == SODET_OK)
        c->categories[c->n_categories++] = k;
}

static sodet_status parse(sodet_coco *c, const char *text, uint64_t n, sodet_err *err)
{
    enum { IMAGES = 1, ANNOTATIONS = 2, CATEGORIES = 4 };
    static const char *const names[] = {"images", "annotations", "categories"};
    static void (*const readers[])(sodet_coco *, sd_json *) = {read_picture, read_annotation, read_category};
    sd_json j;
    sd_json_string key;
    uint32_t seen = 0;
    sd_json_open(&j, c->path, text, n, err);
    if (sd_json_peek(&j) == '[')
        sd_json_fail(&j, "a list, as of detections; an object with \"images\", \"annotations\" and \"categories\" is wanted");
    for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
        uint32_t which = 0;
        while (which < 3 && !sd_json_is(key, names[which]))
            which++;
        if (which == 3) {
            sd_json_skip(&j);
            continue;
        }
        if (seen & 1u << which)
            sd_json_fail(&j, "\"%s\" stands twice", names[which]);
        seen |= 1u << which;
        for (sd_json_enter(&j, '['); sd_json_item(&j);)
            readers[which](c, &j);
    }
    sodet_status status = sd_json_close(&j);
    for (uint32_t i = 0; i < 3 && status == SODET_OK; i++) {
        if (!(seen & 1u << i))
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: no \"%s\"; an instances file of COCO's format is wanted", c->path, names[i]);
    }
    return status;
}

typedef struct reference {
    int64_t id;
    uint32_t index;
} reference;

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const reference *)a)->id, y = ((const reference *)b)->id;
    return x < y ? -1 : x > y;
}

static int category_by_id(const void *a, const void *b)
{
    int64_t x = ((const category *)a)->id, y = ((const category *)b)->id;
    return x < y ? -1 : x > y;
}

static const reference *find(const reference *list, uint64_t n, int64_t id)
{
    const reference key = {.id = id};
    return n ? bsearch(&key, list, n, sizeof *list, by_id) : NULL;
}

static sodet_status sort_categories(sodet_coco *c, sodet_err *err)
{
    if (c->n_categories == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: \"categories\" is empty", c->path);
    qsort(c->categories, c->n_categories, sizeof *c->categories, category_by_id);
    c->classes = sd_alloc(c->n_categories + 1, sizeof *c->classes);
    if (!c->classes)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for class names", c->path);
    for (uint64_t i = 0; i < c->n_categories; i++) {
        c->classes[i] = c->categories[i].name;
        if (i && c->categories[i].id == c->categories[i - 1].id)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: categories \"%s\" and \"%s\" have the same id %lld", c->path,
                              c->categories[i - 1].name, c->categories[i].name, (long long)c->categories[i].id);
    }
    return SODET_OK;
}

/* Annotations go behind one another picture by picture, each picture's in the file's order. */
static sodet_status join(sodet_coco *c, sodet_err *err)
{
    sodet_status status = sort_categories(c, err);
    if (status != SODET_OK)
        return status;
    reference *ids = sd_alloc(c->n_pictures, sizeof *ids);
    c->ordered = sd_alloc(c->n_annotations, sizeof *c->ordered);
    if (!ids || !c->ordered) {
        sd_free(ids);
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu annotations", c->path, (unsigned long long)c->n_annotations);
    }
    for (uint64_t i = 0; i < c->n_pictures; i++)
        ids[i] = (reference){c->pictures[i].id, (uint32_t)i};
    if (c->n_pictures)
        qsort(ids, c->n_pictures, sizeof *ids, by_id);
    for (uint64_t i = 1; i < c->n_pictures && status == SODET_OK; i++) {
        if (ids[i].id == ids[i - 1].id)
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: images %s and %s have the same id %lld", c->path,
                                c->pictures[ids[i - 1].index].name, c->pictures[ids[i].index].name, (long long)ids[i].id);
    }
    const reference *last = NULL; /* neighbours mostly share their picture */
    for (uint64_t i = 0; i < c->n_annotations && status == SODET_OK; i++) {
        annotation *a = &c->annotations[i];
        if (!last || last->id != a->image)
            last = find(ids, c->n_pictures, a->image);
        if (!last) {
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: annotation %lld belongs to image %lld, which is not in \"images\"", c->path,
                                (long long)a->id, (long long)a->image);
            break;
        }
        const category key = {.id = a->category}, *k = bsearch(&key, c->categories, c->n_categories, sizeof key, category_by_id);
        if (!k) {
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: annotation %lld has category %lld, which is not in \"categories\"", c->path,
                                (long long)a->id, (long long)a->category);
            break;
        }
        a->category = k - c->categories;
        a->picture = last->index;
        c->pictures[last->index].n++;
    }
    uint64_t first = 0;
    for (uint64_t i = 0; i < c->n_pictures; i++) {
        c->pictures[i].first = first;
        first += c->pictures[i].n;
        c->pictures[i].n = 0;
    }
    for (uint64_t i = 0; i < c->n_annotations && status == SODET_OK; i++) {
        picture *p = &c->pictures[c->annotations[i].picture];
        c->ordered[p->first + p->n++] = c->annotations[i];
    }
    sd_free(ids);
    sd_free(c->annotations);
    c->annotations = NULL;
    if (status == SODET_OK && c->odd_areas)
        sodet_warn("%s: %llu of %llu annotations have an \"area\" that is larger than their box or next to nothing; results by object size "
                   "follow it",
                   c->path, (unsigned long long)c->odd_areas, (unsigned long long)c->n_annotations);
    return status;
}

sodet_status sodet_coco_open(const char *annotations, const char *pictures, sodet_coco **out, sodet_err *err)
{
    *out = NULL;
    sodet_coco *c = sd_alloc(1, sizeof *c);
    if (!c)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", annotations);
    char *text = NULL;
    uint64_t n = 0;
    sodet_status status = sd_file_read(annotations, 0, &text, &n, err);
    if (status == SODET_OK) {
        const char *slash = strrchr(annotations, '/');
        c->path = sd_pool_strdup(&c->pool, annotations);
        c->folder = pictures ? sd_pool_strdup(&c->pool, pictures)
                             : sd_pool_printf(&c->pool, "%.*s", slash ? (int)(slash - annotations) : 1, slash ? annotations : ".");
        status = c->path && c->folder ? parse(c, text, n, err) : SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", annotations);
    }
    sd_free(text);
    if (status == SODET_OK)
        status = join(c, err);
    if (status != SODET_OK) {
        sodet_coco_close(c);
        return status;
    }
    *out = c;
    return SODET_OK;
}

uint64_t sodet_coco_size(const sodet_coco *c)
{
    return c->n_pictures;
}

sodet_status sodet_coco_describe(const sodet_coco *c, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const picture *p = &c->pictures[index];
    sodet_sample_set_id(out, p->name, p->id);
    sodet_sample_set_size(out, p->width, p->height);
    for (uint64_t i = 0; i < p->n; i++) {
        const annotation *a = &c->ordered[p->first + i];
        sodet_box box = {(float)a->box[0], (float)a->box[1], (float)(a->box[0] + a->box[2]), (float)(a->box[1] + a->box[3])};
        sodet_status status = sodet_sample_add_object(out, c->classes[a->category], box, a->flags, a->area, a->id, err);
        if (status != SODET_OK)
            return sd_fail_in(err, status, "%s: annotation %lld", c->path, (long long)a->id);
    }
    return SODET_OK;
}

sodet_status sodet_coco_pixels(const sodet_coco *c, uint64_t index, sodet_sample *out, sodet_err *err)
{
    char path[4096];
    const char *name = c->pictures[index].name;
    int n = name[0] == '/' ? snprintf(path, sizeof path, "%s", name) : snprintf(path, sizeof path, "%s/%s", c->folder, name);
    if (n >= (int)sizeof path)
        return SODET_FAIL(err, SODET_E_INVALID, "%s/%s: the path is too long", c->folder, name);
    sodet_sample_set_path(out, path);
    return SODET_OK;
}

const char *const *sodet_coco_classes(const sodet_coco *c)
{
    return c ? c->classes : NULL;
}

int64_t sodet_coco_category_id(const sodet_coco *c, uint32_t class_index)
{
    return class_index < c->n_categories ? c->categories[class_index].id : 0;
}

void sodet_coco_close(sodet_coco *c)
{
    if (!c)
        return;
    sd_free(c->pictures);
    sd_free(c->annotations);
    sd_free(c->ordered);
    sd_free(c->categories);
    sd_free(c->classes);
    sd_pool_clear(&c->pool);
    sd_free(c);
}
