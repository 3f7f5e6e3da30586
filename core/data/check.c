/* Workers take one picture each and keep a record of it: what it is compared by afterwards. Findings go into one table under a lock; of each
 * kind the examples that come first by (set, item, object) stay, so that chance among threads does not show. */
#include "core/data/check.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/parallel.h"
#include "core/data/frame.h"
#include "core/data/sample.h"

typedef struct kind {
    const char *name, *what, *remedy;
    bool error;
} kind;
static const kind kinds[SD_CHECK_KINDS] = {
    [SD_CHECK_MISSING] = {"missing", "files that are missing or cannot be opened",
                          "add the file or remove the sample; [data] bad_files = skip trains without it", true},
    [SD_CHECK_UNDECODABLE] = {"undecodable", "pictures that cannot be decoded",
                              "get the file again or remove the sample; [data] bad_files = skip trains without it", true},
    [SD_CHECK_ANNOTATION] = {"annotation", "annotations that cannot be used",
                             "correct the annotation or remove the sample; [data] bad_files = skip trains without it", true},
    [SD_CHECK_SIZE] = {"size", "annotations made for another size than the picture has",
                       "label the picture that is there, or put the one that was labelled in its place: the boxes do not fit", true},
    [SD_CHECK_UNKNOWN_CLASS] = {"unknown_class", "objects of a class that is not in the list",
                                "correct the name, add it to [data] classes, or leave such objects out by [data] unknown_class = skip",
                                true},
    [SD_CHECK_NOT_FINITE] = {"not_finite", "boxes with coordinates that are not finite",
                             "correct or remove the box; [data] bad_boxes = drop says that they are to be left out", true},
    [SD_CHECK_NO_AREA] = {"no_area", "boxes of zero or negative size",
                          "correct or remove the box; [data] bad_boxes = drop says that they are to be left out", true},
    [SD_CHECK_OUTSIDE] = {"outside", "boxes that lie outside their picture",
                          "correct or remove the box: is it another picture's, or in other units? They are left out of training", true},
    [SD_CHECK_OVER_EDGE] = {"over_edge", "boxes that reach over their picture's edge",
                            "they are clipped to it; [data] bad_boxes = drop leaves them out, bad_boxes = fail makes them an error", false},
    [SD_CHECK_SAME_FILE] = {"same_file", "files that are listed twice in a set",
                            "remove one of the two: it counts twice, in training and in results", true},
    [SD_CHECK_LEAK] = {"leak", "pictures that are in two sets", "remove them from one of the sets: what was trained on is no validation",
                       true},
    [SD_CHECK_COPY] = {"copy", "pictures that a set has twice, under two names", "keep one of them, with the boxes of both", false},
    [SD_CHECK_SAME_BOX] = {"same_box", "boxes that are there twice, with the same class", "remove one of the two", false},
    [SD_CHECK_TINY] = {"tiny", "boxes with a side of at most 2 pixels in the network's input",
                       "use a larger [input] size, or cut the pictures up, or remove them", false},
    [SD_CHECK_CLASS_NAMES] = {"class_names", "class names that differ by case or blanks alone",
                              "if they are one class, write one name everywhere, and once in [data] classes", false},
    [SD_CHECK_ABSENT_CLASS] = {"absent_class", "classes without an object in a set",
                               "add pictures of it or take it out of [data] classes: it is not learnt, or not judged", false},
    [SD_CHECK_EMPTY] = {"empty", "pictures without objects", "they train as background; [data] drop_empty = yes leaves them out", false},
    [SD_CHECK_ORIENTATION] = {"orientation", "pictures with an EXIF orientation", NULL, false},
    [SD_CHECK_PICTURE_SHAPE] = {"picture_shape", "pictures more than 4 times as long as wide",
                                "a fixed [input] size distorts them: cut them up, or resize with mode = fit or sides", false},
    [SD_CHECK_BOX_SHAPE] = {"box_shape", "boxes more than 10 times as long as wide",
                            "are they right? Few anchors fit such boxes: see sodet data anchors", false},
};

typedef struct record { /* of a picture */
    uint64_t hash;      /* of its pixels; meaningful if `decoded` */
    uint64_t device, inode;
    bool decoded, filed, same; /* filed: device and inode are a file's; same: as another's of its set */
} record;

typedef struct checker checker;
typedef struct scout { /* what a worker thread owns */
    checker *c;
    sodet_sample **sample; /* [n_sets] */
    sd_listener listener;
    uint32_t set;
    uint64_t item;
    uint32_t *bad; /* ordinals of the objects that were not taken, ascending */
    uint64_t n_bad, bad_capacity;
    struct box {
        sodet_box box;
        int32_t label;
        uint32_t object;
    } * boxes;
    uint64_t boxes_capacity;
} scout;
struct checker {
    const sd_check_config *config;
    sd_check *out;
    scout *scouts;
    sd_frames **frames;   /* [n_sets] */
    record **records;     /* [n_sets] */
    uint64_t *first, n;   /* [n_sets] of all items together */
    pthread_mutex_t lock; /* of all below, and of out */
    uint64_t begun;       /* pictures */
    sodet_status status;
    sodet_err err;
};

sd_data_rules sd_check_rules(sd_data_rules rules)
{
    rules.unknown_class = rules.bad_box = SD_SKIP;
    rules.outside = SD_OUTSIDE_CLIP;
    rules.bad_file = SD_KEEP;
    rules.drop_empty = 0;
    return rules;
}

/* ---- findings ---- */

static void give_up(checker *c, sodet_status status, const sodet_err *err)
{
    pthread_mutex_lock(&c->lock);
    if (c->status == SODET_OK) {
        c->status = status;
        c->err = *err;
    }
    pthread_mutex_unlock(&c->lock);
}

static void no_memory(checker *c)
{
    sodet_err err = SODET_ERR_INIT;
    give_up(c, SODET_FAIL(&err, SODET_E_MEMORY, "no memory for what is found in the data"), &err);
}

static bool before(const sd_check_example *a, uint32_t set, uint64_t item, uint32_t object)
{
    if (a->set != set)
        return a->set < set;
    return a->item != item ? a->item < item : a->object <= object;
}

/* Copies the texts; class, value and expected may be NULL. */
static void found(checker *c, uint32_t what, uint32_t set, uint64_t item, uint32_t object, const char *file, const char *class,
                  const char *value, const char *expected)
{
    sd_check_finding *f = &c->out->finding[what];
    sd_pool *pool = &c->out->pool;
    pthread_mutex_lock(&c->lock);
    f->count++;
    uint32_t at = f->n_examples, most = c->config->examples;
    while (at && !before(&f->examples[at - 1], set, item, object))
        at--;
    bool failed = false;
    if (at < most) {
        uint32_t behind = (f->n_examples < most ? f->n_examples : most - 1) - at;
        memmove(f->examples + at + 1, f->examples + at, behind * sizeof *f->examples);
        f->n_examples += f->n_examples < most;
        const char *const from[4] = {file, class, value, expected};
        char *to[4] = {NULL};
        for (uint32_t i = 0; i < 4; i++)
            failed |= from[i] && !(to[i] = sd_pool_strdup(pool, from[i]));
        f->examples[at] = (sd_check_example){set, object, item, to[0] ? to[0] : "", to[1], to[2], to[3]};
    }
    pthread_mutex_unlock(&c->lock);
    if (failed)
        no_memory(c);
}

static const char *id_of(const checker *c, uint32_t set, uint64_t item)
{
    return sd_dataset_item(c->config->sets[set].dataset, item)->id;
}

/* The picture, as a person finds it. */
static const char *picture_of(const scout *w, const sodet_sample *s)
{
    return s->path.length ? s->path.text : id_of(w->c, w->set, w->item);
}

static const char *annotation_of(const scout *w, const sodet_sample *s)
{
    return s->source.length ? s->source.text : id_of(w->c, w->set, w->item);
}

static const char *box_text(const sodet_box *b, char text[120])
{
    snprintf(text, 120, "%g %g %g %g", (double)b->x1, (double)b->y1, (double)b->x2, (double)b->y2);
    return text;
}

/* An error's text without the file's name in front, which is said already; "file:3: " becomes "line 3: ", in `out`. */
static const char *without(const char *text, const char *file, char out[600])
{
    size_t n = strlen(file);
    if (strncmp(text, file, n) != 0 || (text[n] != ':' && text[n] != ','))
        return text;
    if (text[n + 1] == ' ')
        return text + n + 2;
    size_t digits = strspn(text + n + 1, "0123456789");
    if (text[n] != ':' || !digits || text[n + 1 + digits] != ':')
        return text;
    snprintf(out, 600, "line %s", text + n + 1);
    return out;
}

/* ---- a picture ---- */

static void heard(void *context, uint32_t what, const char *class_name, const sodet_box *box, const char *sentence)
{
    scout *w = context;
    const sodet_sample *s = w->sample[w->set];
    char text[120];
    (void)sentence;
    if (sd_grow(&w->bad, &w->bad_capacity, w->n_bad + 1, sizeof *w->bad, NULL) != SODET_OK) {
        no_memory(w->c);
        return;
    }
    w->bad[w->n_bad++] = s->added;
    if (what == SD_NOTE_UNKNOWN_CLASS) {
        const char *near = sd_nearest(class_name, s->classes->names, s->classes->n);
        char expected[260];
        snprintf(expected, sizeof expected, near ? "one of the list: \"%.200s\"?" : "one of the list", near ? near : "");
        found(w->c, SD_CHECK_UNKNOWN_CLASS, w->set, w->item, s->added, annotation_of(w, s), class_name, NULL, expected);
        return;
    }
    bool finite = isfinite(box->x1) && isfinite(box->y1) && isfinite(box->x2) && isfinite(box->y2);
    found(w->c, finite ? SD_CHECK_NO_AREA : SD_CHECK_NOT_FINITE, w->set, w->item, s->added, annotation_of(w, s), class_name,
          box_text(box, text), finite ? "x1 < x2 and y1 < y2" : "four numbers");
}

static int by_box(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    const float p[4] = {x->box.x1, x->box.y1, x->box.x2, x->box.y2}, q[4] = {y->box.x1, y->box.y1, y->box.x2, y->box.y2};
    for (uint32_t i = 0; i < 4; i++) {
        if (p[i] < q[i] || p[i] > q[i])
            return p[i] < q[i] ? -1 : 1;
    }
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static void same_boxes(scout *w, const sodet_sample *s, uint64_t n)
{
    char text[120], expected[60];
    qsort(w->boxes, n, sizeof *w->boxes, by_box);
    for (uint64_t i = 1; i < n; i++) {
        const struct box *a = &w->boxes[i - 1], *b = &w->boxes[i];
        struct box key = *b;
        key.object = a->object;
        if (by_box(a, &key) != 0)
            continue;
        snprintf(expected, sizeof expected, "once; object %u is the same", a->object);
        found(w->c, SD_CHECK_SAME_BOX, w->set, w->item, b->object, annotation_of(w, s), s->classes->names[b->label],
              box_text(&b->box, text), expected);
    }
}

/* Object i that was taken, as the annotation counts. */
static uint32_t ordinal(const scout *w, uint64_t i)
{
    uint64_t at = i + 1;
    for (uint64_t k = 0; k < w->n_bad && w->bad[k] <= at; k++)
        at++;
    return (uint32_t)at;
}

static double longer_by(double a, double b)
{
    return a > b ? a / b : b / a;
}

/* width, height: of the upright picture. */
static sodet_status look_at_boxes(scout *w, const sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err)
{
    checker *c = w->c;
    sd_frame frame;
    char text[120], value[200], expected[120];
    const char *file = annotation_of(w, s);
    sodet_status status = sd_frames_get(c->frames[w->set], width, height, &frame, err);
    bool framed = status == SODET_OK; /* or the annotation claims a size that is too large for a picture */
    if (status != SODET_E_MEMORY)
        status = sd_grow(&w->boxes, &w->boxes_capacity, s->n_objects + 1, sizeof *w->boxes, err);
    for (uint64_t i = 0; i < s->n_objects && status == SODET_OK; i++) {
        const sodet_object *o = &s->objects[i];
        const char *class = s->classes->names[o->label];
        uint32_t k = ordinal(w, i);
        sodet_box in;
        double over = sd_box_over(&o->box, width, height);
        w->boxes[i] = (struct box){o->box, o->label, k};
        if (over > SD_EDGE) {
            snprintf(expected, sizeof expected, "inside %ux%u", width, height);
            found(c, over < HUGE_VAL ? SD_CHECK_OVER_EDGE : SD_CHECK_OUTSIDE, w->set, w->item, k, file, class, box_text(&o->box, text),
                  expected);
        }
        if (!framed || !sd_frame_box(&frame, &o->box, &in))
            continue;
        double wide = (double)in.x2 - (double)in.x1, high = (double)in.y2 - (double)in.y1;
        if ((wide < high ? wide : high) <= SD_CHECK_TINY_SIDE) {
            snprintf(value, sizeof value, "%s, %.3g x %.3g in the input", box_text(&o->box, text), wide, high);
            snprintf(expected, sizeof expected, "at least %g to train", c->config->min_side);
            found(c, SD_CHECK_TINY, w->set, w->item, k, file, class, value,
                  (wide < high ? wide : high) < c->config->min_side ? expected : NULL);
        }
        double ratio = longer_by((double)o->box.x2 - (double)o->box.x1, (double)o->box.y2 - (double)o->box.y1);
        if (ratio > SD_CHECK_BOX_RATIO) {
            snprintf(value, sizeof value, "%s, ratio %.3g", box_text(&o->box, text), ratio);
            found(c, SD_CHECK_BOX_SHAPE, w->set, w->item, k, file, class, value, NULL);
        }
    }
    if (status == SODET_OK)
        same_boxes(w, s, s->n_objects);
    return status;
}

static void look_at_picture(scout *w, const sodet_sample *s)
{
    checker *c = w->c;
    char value[120], expected[120];
    uint32_t width = s->stored.width, height = s->stored.height;
    if (s->stored.orientation > 1) {
        snprintf(value, sizeof value, "orientation %u, upright %ux%u", s->stored.orientation,
                 c->config->turned || s->stored.orientation < 5 ? width : height,
                 c->config->turned || s->stored.orientation < 5 ? height : width);
        found(c, SD_CHECK_ORIENTATION, w->set, w->item, 0, picture_of(w, s), NULL, value, NULL);
    }
    if (longer_by(width, height) > SD_CHECK_PICTURE_RATIO) {
        snprintf(value, sizeof value, "%ux%u", width, height);
        found(c, SD_CHECK_PICTURE_SHAPE, w->set, w->item, 0, picture_of(w, s), NULL, value, NULL);
    }
    if (s->width && s->height && (s->width != width || s->height != height)) {
        snprintf(value, sizeof value, "%ux%u%s", s->width, s->height,
                 s->width == height && s->height == width ? ", labelled without its EXIF orientation" : "");
        snprintf(expected, sizeof expected, "%ux%u", width, height);
        found(c, SD_CHECK_SIZE, w->set, w->item, 0, annotation_of(w, s), NULL, value, expected);
    }
}

/* Eight bytes at a time: byte by byte it would cost half of what decoding costs. */
static uint64_t hash_pixels(const uint8_t *bytes, uint64_t n, uint64_t h)
{
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        h = sd_mix64(h ^ word);
    }
    return sd_fnv1a64(bytes, n, h);
}

static void look_at(checker *c, scout *w, uint64_t number)
{
    w->set = c->config->n_sets - 1;
    while (number < c->first[w->set])
        w->set--;
    w->item = number - c->first[w->set];
    w->n_bad = 0;
    sodet_sample *s = w->sample[w->set];
    record *r = &c->records[w->set][w->item];
    sodet_err err = SODET_ERR_INIT;
    char said[600];
    sodet_status status = sd_dataset_locate(c->config->sets[w->set].dataset, w->item, s, &err);
    if (status == SODET_E_MEMORY || status == SODET_E_INTERNAL) {
        give_up(c, status, &err);
        return;
    }
    if (status != SODET_OK) {
        const char *file = annotation_of(w, s);
        found(c, status == SODET_E_IO ? SD_CHECK_MISSING : SD_CHECK_ANNOTATION, w->set, w->item, 0, file, NULL,
              without(err.text, file, said), NULL);
        return;
    }
    struct stat st;
    if (s->path.length && stat(s->path.text, &st) == 0) {
        r->filed = true;
        r->device = (uint64_t)st.st_dev;
        r->inode = (uint64_t)st.st_ino;
    }
    if (s->n_objects == 0 && w->n_bad == 0)
        found(c, SD_CHECK_EMPTY, w->set, w->item, 0, annotation_of(w, s), NULL, NULL, NULL);
    /* The boxes as the annotation has them: decoding clips, and refuses a size that is turned. */
    uint64_t n = s->n_objects;
    uint32_t width = s->width, height = s->height;
    s->n_objects = 0;
    s->width = s->height = 0;
    status = sd_sample_decode(s, &err);
    s->n_objects = n;
    s->width = width;
    s->height = height;
    if (status == SODET_E_MEMORY) {
        give_up(c, status, &err);
        return;
    }
    if (status == SODET_OK) {
        r->decoded = true;
        r->hash = sd_fnv1a64(&s->stored.width, sizeof s->stored.width, SD_FNV_START);
        r->hash = hash_pixels(s->stored.rgb, (uint64_t)s->stored.width * s->stored.height * 3, r->hash);
        look_at_picture(w, s);
        width = s->stored.width;
        height = s->stored.height;
    } else {
        const char *file = picture_of(w, s);
        found(c, status == SODET_E_IO ? SD_CHECK_MISSING : SD_CHECK_UNDECODABLE, w->set, w->item, 0, file, NULL,
              without(err.text, file, said), NULL);
    }
    if (width && height && (status = look_at_boxes(w, s, width, height, &err)) != SODET_OK)
        give_up(c, status, &err);
}

static void look(void *context, uint32_t worker, uint64_t number)
{
    enum { OFTEN = 16 };
    checker *c = context;
    const sd_check_config *config = c->config;
    pthread_mutex_lock(&c->lock);
    bool stop = c->status != SODET_OK;
    if (!stop && config->progress && c->begun++ % OFTEN == 0)
        config->progress(config->context, c->begun - 1, c->n);
    pthread_mutex_unlock(&c->lock);
    if (!stop)
        look_at(c, &c->scouts[worker], number);
}

/* ---- what pictures have in common ---- */

typedef struct place {
    uint64_t key[2];
    uint32_t set;
    uint64_t item;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    for (uint32_t i = 0; i < 2; i++) {
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    }
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Places of one key stand behind one another, set by set. */
static void compare(checker *c, place *p, uint64_t n, bool files)
{
    if (n)
        qsort(p, n, sizeof *p, by_place);
    for (uint64_t i = 1, begin = 0, own = 0; i < n; i++) { /* begin: of the key; own: of the key in this set */
        if (p[i].key[0] != p[begin].key[0] || p[i].key[1] != p[begin].key[1]) {
            begin = own = i;
            continue;
        }
        const char *file = id_of(c, p[i].set, p[i].item);
        bool same_set = p[own].set == p[i].set;
        own = same_set ? own : i;
        char value[400];
        snprintf(value, sizeof value, "the same as %.250s", id_of(c, p[own].set, p[own].item));
        if (files && same_set) {
            c->records[p[i].set][p[i].item].same = true;
            found(c, SD_CHECK_SAME_FILE, p[i].set, p[i].item, 0, file, NULL, value, NULL);
        } else if (!files && same_set && !c->records[p[i].set][p[i].item].same) {
            found(c, SD_CHECK_COPY, p[i].set, p[i].item, 0, file, NULL, value, NULL);
        }
        if (!files && p[i].set != p[begin].set) {
            snprintf(value, sizeof value, "also in %.60s: %.250s", c->config->sets[p[begin].set].name,
                     id_of(c, p[begin].set, p[begin].item));
            found(c, SD_CHECK_LEAK, p[i].set, p[i].item, 0, file, NULL, value, NULL);
        }
    }
}

static void compare_pictures(checker *c)
{
    place *p = sd_alloc(c->n + 1, sizeof *p);
    if (!p) {
        no_memory(c);
        return;
    }
    for (uint32_t files = 2; files-- > 0;) {
        uint64_t n = 0;
        for (uint32_t k = 0; k < c->config->n_sets; k++) {
            for (uint64_t i = 0; i < sd_dataset_size(c->config->sets[k].dataset); i++) {
                const record *r = &c->records[k][i];
                if (files && r->filed)
                    p[n++] = (place){{r->device, r->inode}, k, i};
                else if (!files && r->decoded)
                    p[n++] = (place){{r->hash, 0}, k, i};
            }
        }
        compare(c, p, n, files);
    }
    sd_free(p);
}

/* ---- classes ---- */

/* Lower case, without blanks, - and _. */
static char *plain(sd_pool *pool, const char *name)
{
    char *out = sd_pool_strdup(pool, name), *to = out;
    for (; out && *name; name++) {
        if (!strchr(" \t-_", *name))
            *to++ = (char)tolower((unsigned char)*name);
    }
    if (out)
        *to = 0;
    return out;
}

typedef struct spelling {
    const char *plain;
    uint32_t class;
} spelling;

static int by_spelling(const void *a, const void *b)
{
    const spelling *x = a, *y = b;
    int order = strcmp(x->plain, y->plain);
    return order ? order : x->class < y->class ? -1 : x->class > y->class;
}

/* Each class whose plain name an earlier one has, too, with the first that has it. */
static void compare_names(checker *c, const sd_classes *classes)
{
    spelling *s = sd_pool_alloc(&c->out->pool, classes->n * sizeof *s);
    for (uint32_t i = 0; i < classes->n && s; i++) {
        s[i] = (spelling){plain(&c->out->pool, classes->names[i]), i};
        s = s[i].plain ? s : NULL;
    }
    if (!s) {
        no_memory(c);
        return;
    }
    qsort(s, classes->n, sizeof *s, by_spelling);
    for (uint32_t i = 1, first = 0; i < classes->n; i++) {
        char value[300];
        first = strcmp(s[i].plain, s[first].plain) == 0 ? first : i;
        if (first == i)
            continue;
        snprintf(value, sizeof value, "\"%.120s\" and \"%.120s\"", classes->names[s[first].class], classes->names[s[i].class]);
        found(c, SD_CHECK_CLASS_NAMES, 0, s[i].class, 0, "the class list", NULL, value, NULL);
    }
}

static void look_at_classes(checker *c)
{
    for (uint32_t k = 0; k < c->config->n_sets; k++) {
        const sd_check_set *set = &c->config->sets[k];
        const sd_classes *classes = sd_dataset_classes(set->dataset);
        const sd_census *census = sd_dataset_census(set->dataset);
        for (uint32_t i = 0; i < classes->n; i++) {
            if (!census->per_class[i])
                found(c, SD_CHECK_ABSENT_CLASS, k, i, 0, set->name, NULL, classes->names[i], NULL);
        }
        if (k == 0)
            compare_names(c, classes);
    }
}

/* ---- all of it ---- */

static sodet_status begin(checker *c, sodet_err *err)
{
    const sd_check_config *config = c->config;
    c->scouts = sd_alloc(config->threads, sizeof *c->scouts);
    c->frames = sd_alloc(config->n_sets, sizeof *c->frames);
    c->records = sd_alloc(config->n_sets, sizeof *c->records);
    c->first = sd_alloc(config->n_sets, sizeof *c->first);
    bool ok = c->scouts && c->frames && c->records && c->first;
    sodet_status status = SODET_OK;
    for (uint32_t k = 0; k < SD_CHECK_KINDS && ok; k++) {
        sd_check_finding *f = &c->out->finding[k];
        *f = (sd_check_finding){.name = kinds[k].name,
                                .what = kinds[k].what,
                                .remedy = kinds[k].remedy,
                                .error = kinds[k].error && !(config->allowed >> k & 1)};
        f->examples = sd_pool_alloc(&c->out->pool, (config->examples + 1) * sizeof *f->examples);
        ok = f->examples != NULL;
    }
    for (uint32_t k = 0; k < config->n_sets && ok && status == SODET_OK; k++) {
        uint64_t n = sd_dataset_size(config->sets[k].dataset);
        c->first[k] = c->n;
        c->n += n;
        ok = (c->records[k] = sd_alloc(n, sizeof **c->records)) != NULL;
        if (ok)
            status = sd_frames_open(config->sets[k].frames, &c->frames[k], err);
    }
    for (uint32_t i = 0; i < config->threads && ok && status == SODET_OK; i++) {
        scout *w = &c->scouts[i];
        w->c = c;
        w->listener = (sd_listener){heard, w};
        ok = (w->sample = sd_alloc(config->n_sets, sizeof *w->sample)) != NULL;
        for (uint32_t k = 0; k < config->n_sets && ok && status == SODET_OK; k++) {
            status = sd_sample_new(config->sets[k].dataset, &w->sample[k], err);
            if (status == SODET_OK)
                w->sample[k]->listener = &w->listener;
        }
    }
    return ok ? status : SODET_FAIL(err, SODET_E_MEMORY, "no memory to check %llu pictures", (unsigned long long)c->n);
}

static void end(checker *c)
{
    for (uint32_t i = 0; c->scouts && i < c->config->threads; i++) {
        scout *w = &c->scouts[i];
        for (uint32_t k = 0; w->sample && k < c->config->n_sets; k++)
            sd_sample_free(w->sample[k]);
        sd_free(w->sample);
        sd_free(w->bad);
        sd_free(w->boxes);
    }
    for (uint32_t k = 0; k < c->config->n_sets; k++) {
        if (c->frames)
            sd_frames_close(c->frames[k]);
        if (c->records)
            sd_free(c->records[k]);
    }
    sd_free(c->scouts);
    sd_free(c->frames);
    sd_free(c->records);
    sd_free(c->first);
    pthread_mutex_destroy(&c->lock);
}

sodet_status sd_check_run(const sd_check_config *config, sd_check *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    checker c = {.config = config, .out = out};
    pthread_mutex_init(&c.lock, NULL);
    sodet_status status = begin(&c, err);
    if (status == SODET_OK) {
        out->finding[SD_CHECK_ORIENTATION].remedy =
            config->turned ? "sodet turns pictures upright, boxes are taken to be on the upright picture; if they were drawn on the stored "
                             "one, set [data] ignore_orientation = yes"
                           : "sodet leaves them as stored ([data] ignore_orientation = yes); if the boxes were drawn on the upright "
                             "picture, set it to no";
        look_at_classes(&c);
        sd_parallel(config->threads, c.n, look, &c);
        if (c.status == SODET_OK)
            compare_pictures(&c);
        status = c.status;
        if (status != SODET_OK)
            *err = c.err;
    }
    for (uint32_t k = 0; k < config->n_sets && status == SODET_OK; k++) {
        sd_check_set *set = &config->sets[k];
        set->decoded = set->broken = 0;
        for (uint64_t i = 0; i < sd_dataset_size(set->dataset); i++)
            set->decoded += c.records[k][i].decoded;
        set->broken = sd_dataset_size(set->dataset) - set->decoded;
    }
    end(&c);
    return status;
}

void sd_check_clear(sd_check *c)
{
    sd_pool_clear(&c->pool);
    memset(c, 0, sizeof *c);
}
