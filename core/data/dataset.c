#include "core/data/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/sample.h"
#include "sodet/files.h"

typedef struct files { /* the part behind sd_dataset_of_files */
    const char **paths;
    uint64_t n;
    sd_pool pool;
} files;

typedef struct listed { /* a line of the rules' list */
    const char *id;
    uint64_t line;
    bool seen;
} listed;

struct sd_dataset {
    sd_dataset_part *parts;
    uint32_t n_parts;
    sd_data_rules rules;
    sd_classes classes;
    const char **names;
    int64_t *category_id;
    uint32_t *by_name;
    sd_item *items;
    uint64_t n_items, capacity;
    sd_census census;
    uint64_t *per_class;
    sd_unknown *unknown;
    uint64_t unknown_capacity;
    uint64_t fingerprint;
    sd_pool pool;
    sodet_sample *probe;
    sodet_lines *list; /* of rules.list, while the set is opened */
    listed *listed;    /* by id */
    uint64_t n_listed;
    bool failed;  /* the listener ran out of memory */
    files *files; /* NULL unless the set is one of files */
};

void sd_data_rules_init(sd_data_rules *rules)
{
    *rules = (sd_data_rules){.unknown_class = SD_STOP, .bad_box = SD_SKIP, .bad_file = SD_STOP, .max_pixels = (uint64_t)1 << 28};
}

/* ---- classes ---- */

static int compare_names(const void *a, const void *b, void *names)
{
    const char *const *n = names;
    return strcmp(n[*(const uint32_t *)a], n[*(const uint32_t *)b]);
}

static sodet_status set_classes(sd_dataset *d, const char *const *names, uint32_t n, sodet_err *err)
{
    d->names = sd_alloc(n, sizeof *d->names);
    d->category_id = sd_alloc(n, sizeof *d->category_id);
    d->by_name = sd_alloc(n, sizeof *d->by_name);
    d->per_class = sd_alloc(n, sizeof *d->per_class);
    if (!d->names || !d->category_id || !d->by_name || !d->per_class)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u class names", n);
    for (uint32_t i = 0; i < n; i++) {
        d->by_name[i] = i;
        d->category_id[i] = (int64_t)i + 1;
        size_t length = 0;
        const char *name = names[i] ? sd_class_name(names[i], &length) : NULL;
        if (!length)
            return SODET_FAIL(err, SODET_E_INVALID, "class %u of %u has an empty name; name it, or leave it out", i + 1, n);
        if (sd_not_utf8(name))
            return SODET_FAIL(err, SODET_E_INVALID, "class %u of %u (\"%s\"): the name is no UTF-8; save the file that names it as UTF-8",
                              i + 1, n, name);
        if (!(d->names[i] = sd_pool_printf(&d->pool, "%.*s", (int)length, name)))
            return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u class names", n);
    }
    d->classes = (sd_classes){n, d->names, d->category_id};
    d->census.per_class = d->per_class;
    qsort_r(d->by_name, n, sizeof *d->by_name, compare_names, d->names);
    for (uint32_t i = 1; i < n; i++) {
        if (strcmp(d->names[d->by_name[i - 1]], d->names[d->by_name[i]]) == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "class \"%s\" stands twice in the class list", d->names[d->by_name[i]]);
    }
    return SODET_OK;
}

static uint32_t count_names(const char *const *names)
{
    uint32_t n = 0;
    while (names && names[n])
        n++;
    return n;
}

static const char *const *names_of(const sd_dataset_part *p)
{
    return p->ops->classes ? p->ops->classes(p->self) : NULL;
}

static sodet_status classes_of_parts(sd_dataset *d, sodet_err *err)
{
    const sd_dataset_part *first = NULL;
    const char *const *have = NULL;
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const char *const *names = names_of(&d->parts[p]);
        if (!names || !names[0])
            continue;
        if (!have) {
            have = names;
            first = &d->parts[p];
            continue;
        }
        uint32_t n = count_names(have), m = count_names(names), i = 0;
        while (i < n && i < m && strcmp(have[i], names[i]) == 0)
            i++;
        if (i < n || i < m)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "data sets \"%s\" (%u classes) and \"%s\" (%u classes) differ from class %u on (\"%s\" and \"%s\"); write "
                              "the list in [data] classes",
                              first->label, n, d->parts[p].label, m, i + 1, i < n ? have[i] : "none", i < m ? names[i] : "none");
    }
    if (!have)
        return SODET_FAIL(err, SODET_E_INVALID, "data set \"%s\" does not know its class names; write them in [data] classes = a, b, c",
                          d->parts[0].label);
    return set_classes(d, have, count_names(have), err);
}

/* Ids of the first part that numbers a class of that name. */
static void number_classes(sd_dataset *d)
{
    for (uint32_t p = d->n_parts; p-- > 0;) { /* the first has the last word */
        const sd_dataset_part *part = &d->parts[p];
        const char *const *names = part->ops->category_id ? names_of(part) : NULL;
        for (uint32_t i = count_names(names); i-- > 0;) {
            int32_t c = sd_class_find(&d->classes, d->by_name, names[i]);
            if (c >= 0)
                d->category_id[c] = part->ops->category_id(part->self, i);
        }
    }
}

/* ---- the first look at every annotation ---- */

static int by_id(const void *a, const void *b)
{
    return strcmp(((const listed *)a)->id, ((const listed *)b)->id);
}

static sodet_status read_list(sd_dataset *d, sodet_err *err)
{
    sodet_status status = sodet_lines_read(d->rules.list, &d->list, err);
    uint64_t n = sodet_lines_count(d->list);
    if (status == SODET_OK && !(d->listed = sd_alloc(n + 1, sizeof *d->listed)))
        status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu names", d->rules.list, (unsigned long long)n);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        if (*sodet_lines_at(d->list, i))
            d->listed[d->n_listed++] = (listed){sodet_lines_at(d->list, i), i + 1, false};
    }
    if (d->n_listed)
        qsort(d->listed, d->n_listed, sizeof *d->listed, by_id);
    return status;
}

/* The probe's sample is to be used. */
static bool wanted(sd_dataset *d)
{
    const listed key = {.id = d->probe->id.length ? d->probe->id.text : ""};
    if (!d->rules.list)
        return true;
    listed *l = bsearch(&key, d->listed, d->n_listed, sizeof *l, by_id);
    if (l)
        l->seen = true;
    return l != NULL;
}

static sodet_status all_seen(const sd_dataset *d, sodet_err *err)
{
    const listed *first = NULL;
    uint64_t n = 0;
    for (uint64_t i = 0; i < d->n_listed; i++) {
        bool twice = i && strcmp(d->listed[i].id, d->listed[i - 1].id) == 0;
        if (d->listed[i].seen || twice)
            continue;
        n++;
        if (!first || d->listed[i].line < first->line)
            first = &d->listed[i];
    }
    if (!first)
        return SODET_OK;
    char more[60] = "";
    if (n > 1)
        snprintf(more, sizeof more, " (and %llu more)", (unsigned long long)(n - 1));
    return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: %s: no sample has that name%s; correct or remove the line", d->rules.list,
                      (unsigned long long)first->line, first->id, more);
}

static void note(void *context, uint32_t kind, const char *class_name, const sodet_box *box, const char *sentence)
{
    sd_dataset *d = context;
    (void)box;
    if (!wanted(d))
        return;
    if (kind == SD_NOTE_BAD_BOX) {
        if (d->census.bad_boxes++ == 0)
            d->census.first_bad_box = sd_pool_strdup(&d->pool, sentence);
        return;
    }
    if (kind == SD_NOTE_OUTSIDE) {
        if (d->census.outside++ == 0)
            d->census.first_outside = sd_pool_strdup(&d->pool, sentence);
        return;
    }
    d->census.unknown_objects++;
    uint32_t i = 0;
    while (i < d->census.n_unknown && strcmp(d->unknown[i].name, class_name) != 0)
        i++;
    if (i < d->census.n_unknown) {
        d->unknown[i].count++;
        return;
    }
    if (sd_grow(&d->unknown, &d->unknown_capacity, (uint64_t)i + 1, sizeof *d->unknown, NULL) != SODET_OK) {
        d->failed = true;
        return;
    }
    const sodet_sample *s = d->probe;
    const char *example = s->source.length ? s->source.text : s->id.length ? s->id.text : "a sample";
    d->unknown[i] = (sd_unknown){sd_pool_strdup(&d->pool, class_name), sd_pool_strdup(&d->pool, example), 1};
    d->failed = d->failed || !d->unknown[i].name || !d->unknown[i].example;
    d->census.unknown = d->unknown;
    d->census.n_unknown++;
}

static sodet_status fail_unknown(const sd_dataset *d, sodet_err *err)
{
    char text[sizeof err->text];
    int at = snprintf(text, sizeof text, "%llu object%s of a class that is not in the list:", (unsigned long long)d->census.unknown_objects,
                      d->census.unknown_objects == 1 ? "" : "s");
    for (uint32_t i = 0; i < d->census.n_unknown; i++) {
        const sd_unknown *u = &d->unknown[i];
        const char *near = sd_nearest(u->name, d->classes.names, d->classes.n);
        char entry[400];
        int n = snprintf(entry, sizeof entry, "%s \"%s\": %llu (%s)%s%s%s", i ? "," : "", u->name, (unsigned long long)u->count, u->example,
                         near ? " like \"" : "", near ? near : "", near ? "\"" : "");
        if (n >= (int)sizeof entry || at + n > (int)sizeof text - 120) {
            at += snprintf(text + at, sizeof text - (size_t)at, " and %u more", d->census.n_unknown - i);
            break;
        }
        memcpy(text + at, entry, (size_t)n + 1);
        at += n;
    }
    return SODET_FAIL(err, SODET_E_INVALID, "%s; correct them, add them to [data] classes, or set unknown_class = skip", text);
}

static void hash_sample(sd_dataset *d, const sodet_sample *s)
{
    uint64_t h = d->fingerprint;
    h = sd_fnv1a64(s->id.text ? s->id.text : "", s->id.length, h);
    h = sd_fnv1a64(&s->number, sizeof s->number, h);
    h = sd_fnv1a64(&s->width, sizeof s->width, h);
    h = sd_fnv1a64(&s->height, sizeof s->height, h);
    for (uint64_t i = 0; i < s->n_objects; i++) {
        const sodet_object *o = &s->objects[i];
        h = sd_fnv1a64(&o->box, sizeof o->box, h);
        h = sd_fnv1a64(&o->label, sizeof o->label, h);
        h = sd_fnv1a64(&o->flags, sizeof o->flags, h);
    }
    d->fingerprint = h;
}

static sodet_status take(sd_dataset *d, uint32_t part, uint64_t row, sodet_err *err)
{
    sodet_sample *s = d->probe;
    sd_census *c = &d->census;
    sd_sample_reset(s);
    sodet_err local = SODET_ERR_INIT;
    sodet_status status = d->parts[part].ops->describe(d->parts[part].self, row, s, &local);
    if (status == SODET_OK && s->broken != SODET_OK)
        status = SODET_FAIL(&local, s->broken, "sample %llu: no memory", (unsigned long long)row);
    if (status == SODET_OK)
        status = sd_sample_apply_edges(s, s->width, s->height, &local);
    if (status != SODET_E_MEMORY && !wanted(d))
        return SODET_OK;
    if (status == SODET_E_MEMORY || (status != SODET_OK && d->rules.bad_file == SD_STOP))
        return SODET_FAIL(err, status, "data set \"%s\": %s", d->parts[part].label, local.text);
    bool broken = status != SODET_OK;
    if (broken) {
        if (c->skipped++ == 0)
            c->first_skipped = sd_pool_strdup(&d->pool, local.text);
        if (d->rules.bad_file != SD_KEEP)
            return SODET_OK;
        s->n_objects = 0;
    } else if (s->n_objects == 0 && d->rules.drop_empty) {
        c->dropped_empty++;
        return SODET_OK;
    }
    status = sd_grow(&d->items, &d->capacity, d->n_items + 1, sizeof *d->items, err);
    if (status != SODET_OK)
        return status;
    sd_item *item = &d->items[d->n_items++];
    *item = (sd_item){
        .number = s->number, .width = s->width, .height = s->height, .n_objects = (uint32_t)s->n_objects, .part = part, .row = row};
    item->id = s->id.length ? sd_pool_strdup(&d->pool, s->id.text)
                            : sd_pool_printf(&d->pool, "%s/%llu", d->parts[part].label, (unsigned long long)row);
    if (!item->id)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the names of %llu samples", (unsigned long long)d->n_items);
    if (broken)
        return SODET_OK;
    c->images++;
    c->empty += s->n_objects == 0;
    c->objects += s->n_objects;
    c->most_objects = (uint32_t)s->n_objects > c->most_objects ? (uint32_t)s->n_objects : c->most_objects;
    for (uint64_t i = 0; i < s->n_objects; i++) {
        const sodet_object *o = &s->objects[i];
        c->difficult += (o->flags & SODET_BOX_DIFFICULT) != 0;
        c->crowd += (o->flags & SODET_BOX_CROWD) != 0;
        c->truncated += (o->flags & SODET_BOX_TRUNCATED) != 0;
        d->per_class[o->label]++;
        double over = s->width && s->height ? sd_box_over(&o->box, s->width, s->height) : 0;
        c->clipped += over > 0;
        if (over < HUGE_VAL)
            continue;
        if (c->beyond++ == 0)
            c->first_beyond =
                sd_pool_printf(&d->pool, "%s: %s: box %g %g %g %g, the picture has %ux%u", item->id, d->names[o->label], (double)o->box.x1,
                               (double)o->box.y1, (double)o->box.x2, (double)o->box.y2, s->width, s->height);
    }
    hash_sample(d, s);
    return SODET_OK;
}

sodet_status sd_dataset_open(const sd_dataset_part *parts, uint32_t n_parts, const char *const *classes, uint32_t n_classes,
                             const sd_data_rules *rules, sd_dataset **out, sodet_err *err)
{
    *out = NULL;
    if (n_parts == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "no data set is named; write [data] train = <label> or val = <label>");
    sd_dataset *d = sd_alloc(1, sizeof *d);
    if (!d)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a data set");
    sodet_status status = SODET_OK;
    d->rules = *rules;
    d->n_parts = n_parts;
    d->fingerprint = SD_FNV_START;
    d->parts = sd_alloc(n_parts, sizeof *d->parts);
    if (!d->parts) {
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u data sets", n_parts);
        goto done;
    }
    memcpy(d->parts, parts, n_parts * sizeof *parts);
    uint64_t *counts = sd_alloc(n_parts, sizeof *counts);
    if (!counts) {
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u data sets", n_parts);
        goto done;
    }
    for (uint32_t p = 0; p < n_parts && status == SODET_OK; p++) {
        status = parts[p].ops->open ? parts[p].ops->open(parts[p].self, &counts[p], err) : SODET_E_INVALID;
        if (status != SODET_OK)
            sd_fail_in(err, status, "data set \"%s\"", parts[p].label);
    }
    if (status == SODET_OK)
        status = classes ? set_classes(d, classes, n_classes, err) : classes_of_parts(d, err);
    if (status == SODET_OK && d->rules.list)
        status = read_list(d, err);
    if (status == SODET_OK)
        status = sd_sample_new(d, &d->probe, err);
    if (status == SODET_OK) {
        const sd_listener listener = {note, d};
        d->probe->listener = &listener;
        number_classes(d);
        for (uint32_t p = 0; p < n_parts && status == SODET_OK; p++) {
            for (uint64_t i = 0; i < counts[p] && status == SODET_OK && !(d->rules.limit && d->n_items >= d->rules.limit); i++)
                status = take(d, p, i, err);
        }
        sd_sample_free(d->probe);
        d->probe = NULL;
    }
    sd_free(counts);
    if (status == SODET_OK && !d->rules.limit)
        status = all_seen(d, err);
    if (status == SODET_OK && d->failed)
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for a table of class names");
    if (status == SODET_OK && d->census.n_unknown && d->rules.unknown_class == SD_STOP)
        status = fail_unknown(d, err);
    if (status == SODET_OK && d->n_items == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "data set \"%s\"%s has no samples%s%s", parts[0].label,
                            n_parts > 1 ? " and its neighbours" : "",
                            d->census.first_skipped   ? ": the first that was skipped: "
                            : d->census.dropped_empty ? ": all are without objects and drop_empty is set"
                                                      : "",
                            d->census.first_skipped ? d->census.first_skipped : "");
done:
    if (status != SODET_OK) {
        sd_dataset_close(d);
        return status;
    }
    *out = d;
    return SODET_OK;
}

/* ---- pictures by path ---- */

static void files_free(files *f)
{
    if (!f)
        return;
    sd_pool_clear(&f->pool);
    sd_free(f->paths);
    sd_free(f);
}

static sodet_status files_open(void *self, uint64_t *n, sodet_err *err)
{
    (void)err;
    *n = ((const files *)self)->n;
    return SODET_OK;
}

static sodet_status files_describe(const void *self, uint64_t i, sodet_sample *s, sodet_err *err)
{
    (void)err;
    sodet_sample_set_id(s, ((const files *)self)->paths[i], (int64_t)i);
    return SODET_OK;
}

static sodet_status files_pixels(const void *self, uint64_t i, sodet_sample *s, sodet_err *err)
{
    (void)err;
    sodet_sample_set_path(s, ((const files *)self)->paths[i]);
    return SODET_OK;
}

sodet_status sd_dataset_of_files(const char *const *paths, uint64_t n, const char *const *classes, uint32_t n_classes,
                                 const sd_data_rules *rules, sd_dataset **out, sodet_err *err)
{
    static const sodet_dataset_ops ops = {
        .struct_size = sizeof ops, .open = files_open, .describe = files_describe, .pixels = files_pixels};
    *out = NULL;
    files *f = sd_alloc(1, sizeof *f);
    if (!f)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a list of files");
    f->paths = sd_alloc(n, sizeof *f->paths);
    bool ok = f->paths != NULL;
    for (; ok && f->n < n; f->n++)
        ok = (f->paths[f->n] = sd_pool_strdup(&f->pool, paths[f->n])) != NULL;
    const sd_dataset_part part = {"files", &ops, f};
    sodet_status status = ok ? sd_dataset_open(&part, 1, classes, n_classes, rules, out, err)
                             : SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu file names", (unsigned long long)n);
    if (status != SODET_OK)
        files_free(f);
    else
        (*out)->files = f;
    return status;
}

void sd_dataset_close(sd_dataset *d)
{
    if (!d)
        return;
    sd_sample_free(d->probe);
    sodet_lines_free(d->list);
    sd_free(d->listed);
    files_free(d->files);
    sd_free(d->parts);
    sd_free(d->names);
    sd_free(d->category_id);
    sd_free(d->by_name);
    sd_free(d->per_class);
    sd_free(d->items);
    sd_free(d->unknown);
    sd_pool_clear(&d->pool);
    sd_free(d);
}

uint64_t sd_dataset_size(const sd_dataset *d)
{
    return d->n_items;
}

const sd_item *sd_dataset_item(const sd_dataset *d, uint64_t i)
{
    return i < d->n_items ? &d->items[i] : NULL;
}

const sd_classes *sd_dataset_classes(const sd_dataset *d)
{
    return &d->classes;
}

const sd_census *sd_dataset_census(const sd_dataset *d)
{
    return &d->census;
}

uint64_t sd_dataset_fingerprint(const sd_dataset *d)
{
    return d->fingerprint;
}

static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void sd_dataset_report(const sd_dataset *d, sd_text *out)
{
    const sd_census *c = &d->census;
#define N(x) (unsigned long long)(x)
    sd_text_printf(out, "  %llu image%s", N(c->images), s_of(c->images));
    if (c->empty)
        sd_text_printf(out, " (%llu without objects)", N(c->empty));
    sd_text_printf(out, ", %llu object%s of %u class%s", N(c->objects), s_of(c->objects), d->classes.n, d->classes.n == 1 ? "" : "es");
    if (c->difficult)
        sd_text_printf(out, ", %llu difficult", N(c->difficult));
    if (c->crowd)
        sd_text_printf(out, ", %llu crowd", N(c->crowd));
    sd_text_printf(out, "\n");
    if (c->dropped_empty)
        sd_text_printf(out, "  %llu image%s without objects left out\n", N(c->dropped_empty), s_of(c->dropped_empty));
    if (c->skipped)
        sd_text_printf(out, "  %llu image%s skipped: %s\n", N(c->skipped), s_of(c->skipped), c->first_skipped ? c->first_skipped : "");
    if (c->bad_boxes)
        sd_text_printf(out, "  %llu object%s skipped: %s\n", N(c->bad_boxes), s_of(c->bad_boxes), c->first_bad_box ? c->first_bad_box : "");
    if (c->clipped)
        sd_text_printf(out, "  %llu box%s reach%s over the picture's edge and %s clipped\n", N(c->clipped), c->clipped == 1 ? "" : "es",
                       c->clipped == 1 ? "es" : "", c->clipped == 1 ? "is" : "are");
    if (c->beyond)
        sd_text_printf(out, "  %llu of them lie%s wholly outside and %s left out: %s\n", N(c->beyond), c->beyond == 1 ? "s" : "",
                       c->beyond == 1 ? "is" : "are", c->first_beyond ? c->first_beyond : "");
    if (c->outside)
        sd_text_printf(out, "  %llu object%s left out: %s\n", N(c->outside), s_of(c->outside), c->first_outside ? c->first_outside : "");
    for (uint32_t i = 0; i < c->n_unknown; i++)
        sd_text_printf(out, "  class \"%s\" is not in the list: %llu object%s skipped, first in %s\n", c->unknown[i].name,
                       N(c->unknown[i].count), s_of(c->unknown[i].count), c->unknown[i].example);
    if (c->objects && c->crowd == c->objects)
        sd_text_printf(out, "  every object is a crowd: there is nothing to learn from\n");
#undef N
}

/* ---- samples ---- */

sodet_status sd_sample_new(const sd_dataset *d, sodet_sample **out, sodet_err *err)
{
    sodet_sample *s = sd_alloc(1, sizeof *s);
    *out = s;
    if (!s)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a sample");
    s->classes = &d->classes;
    s->by_name = d->by_name;
    s->rules = &d->rules;
    sd_sample_reset(s);
    return SODET_OK;
}

void sd_sample_free(sodet_sample *s)
{
    if (!s)
        return;
    sd_sample_clear(s);
    sd_free(s);
}

sodet_status sd_dataset_describe(const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sd_sample_reset(s);
    if (i >= d->n_items)
        return SODET_FAIL(err, SODET_E_INTERNAL, "sample %llu of %llu", (unsigned long long)i, (unsigned long long)d->n_items);
    const sd_item *item = &d->items[i];
    const sd_dataset_part *part = &d->parts[item->part];
    sodet_status status = part->ops->describe(part->self, item->row, s, err);
    if (status == SODET_OK && s->broken != SODET_OK)
        status = SODET_FAIL(err, s->broken, "%s: no memory", item->id);
    return status == SODET_OK ? sd_sample_apply_edges(s, s->width, s->height, err) : status;
}

sodet_status sd_dataset_locate(const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sodet_status status = sd_dataset_describe(d, i, s, err);
    if (status != SODET_OK)
        return status;
    const sd_item *item = &d->items[i];
    const sd_dataset_part *part = &d->parts[item->part];
    status = part->ops->pixels(part->self, item->row, s, err);
    if (status == SODET_OK && s->broken != SODET_OK) /* the path is lost: what reads files without decoding them would find none */
        status = SODET_FAIL(err, s->broken, "%s: no memory", item->id);
    return status;
}

sodet_status sd_dataset_load(const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sodet_status status = sd_dataset_locate(d, i, s, err);
    return status == SODET_OK ? sd_sample_decode(s, err) : status;
}
