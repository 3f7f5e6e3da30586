/* data/loader.c: a ring of batches. The ring's slots are filled in order; the unit of work is one row. A worker takes the next row under
 * the lock, prepares it without, and the one that finishes a slot's last row marks it ready. Which thread does what is chance; what is in
 * a row is a function of (seed, epoch, sample) alone. */
#include "core/data/loader.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/data/pipeline.h"
#include "core/data/sampler.h"
#include "sodet/backend.h"
#include "sodet/detection.h"
#include "sodet/files.h"

enum { SUBSTITUTES = 100 };
#define SUBSTITUTE_LINK 2000000u

typedef struct slot {
    sd_batch batch; /* first: recycle gets it back */
    uint32_t group, rows_taken, rows_done;
    const uint64_t *order, *repeat; /* of the slot's rows */
    uint64_t *samples, *repeats;    /* [batch] copies of the plan's */
    sd_batch_picture *picture;      /* [rows], of `held` */
    sd_held *held;
    sodet_coded *jpeg; /* [rows]: see sd_batch */
    uint64_t rows;
} slot;

struct sd_loader {
    sd_loader_config config;
    sd_sampler sampler;
    sd_plan plan; /* of the epoch whose batches are being handed to workers */
    bool planned;
    const void **grids; /* [groups] */
    uint64_t *anchors;  /* [groups] */
    sd_loader_shape *shapes;
    uint32_t n_shapes, max_objects;
    uint64_t picture_bytes;
    slot *slots;
    pthread_t *threads;
    sd_worker *workers;
    uint32_t n_threads, n_workers;

    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    uint64_t filling; /* batches begun; the one before is being handed out */
    uint64_t taken, recycled;
    uint64_t total;       /* batches until the end; UINT64_MAX with shuffle */
    uint64_t epoch, step; /* of the next batch to begin */
    bool open_slot;       /* slot filling - 1 has rows left */
    bool stop;
    sodet_status status;
    sodet_err error;
    sd_loader_stats stats;
    char first_skipped[sizeof(((sodet_err *)0)->text)], first_by_host[sizeof(((sodet_err *)0)->text)];
};

static slot *slot_of(sd_loader *l, uint64_t batch)
{
    return &l->slots[batch % l->config.depth];
}

/* ---- one row ---- */
static void say_what_helps(sodet_err *err)
{
    const size_t end = err ? strlen(err->text) : 0;
    if (err)
        snprintf(err->text + end, sizeof err->text - end,
                 "; sodet data check lists all that is wrong, [data] bad_files = skip leaves it out");
}

static sodet_status load_row(sd_loader *l, sd_worker *w, const slot *s, uint64_t *sample, uint64_t repeat, uint32_t *missing,
                             sodet_err *err)
{
    uint64_t first = *sample;
    sodet_stream draw = sd_stream(l->config.seed, s->batch.epoch, first, SUBSTITUTE_LINK + (uint32_t)repeat);
    *missing = 0;
    for (uint32_t attempt = 0;; attempt++) {
        sodet_err local = SODET_ERR_INIT;
        sodet_status status = sd_worker_prepare(w, s->batch.epoch, *sample, repeat, &local);
        if (status == SODET_OK)
            return status;
        const sd_data_rules *rules = w->sample->rules;
        if (rules->bad_file == SD_STOP || w->sample->refused || status == SODET_E_MEMORY || status == SODET_E_INTERNAL ||
            attempt == SUBSTITUTES) {
            *err = local;
            if (l->config.shuffle && rules->bad_file == SD_STOP && status != SODET_E_MEMORY)
                say_what_helps(err);
            return status;
        }
        pthread_mutex_lock(&l->lock);
        if (l->stats.skipped++ == 0) {
            memcpy(l->first_skipped, local.text, sizeof l->first_skipped);
            l->stats.first_skipped = l->first_skipped;
        }
        pthread_mutex_unlock(&l->lock);
        if (!l->config.shuffle) {
            *missing = 1;
            return SODET_OK;
        }
        const sd_group *g = &l->sampler.groups[s->group];
        *sample = l->sampler.members[g->first + sd_stream_bits(&draw) % g->n];
    }
}

uint32_t sd_loader_takes(const sd_loader_config *c, const sodet_object *o, uint32_t *flags)
{
    float w = o->box.x2 - o->box.x1, h = o->box.y2 - o->box.y1, least = (float)c->min_side;
    bool difficult = (o->flags & SODET_BOX_DIFFICULT) != 0;
    *flags = difficult && c->difficult == SD_DIFFICULT_IGNORE ? o->flags | SODET_BOX_CROWD : o->flags;
    if (difficult && c->difficult == SD_DIFFICULT_DROP)
        return SD_OBJECT_LEFT_OUT;
    return !(w >= least) || !(h >= least) ? SD_OBJECT_SMALL : SD_OBJECT_TRAINS;
}

/* The pixels of row r: made here, or what is needed to make them. */
static sodet_status fill_pixels(sd_loader *l, sd_worker *w, slot *s, uint32_t r, sodet_err *err)
{
    sd_batch *b = &s->batch;
    sd_batch_item *item = &b->items[r];
    const size_t pixels = (size_t)b->channels * b->height * b->width;
    if (item->missing) {
        item->width = b->width;
        item->height = b->height;
        item->inverse[0] = item->inverse[4] = 1;
    }
    if (!l->config.device_pixels) {
        float *image = b->image + pixels * r;
        if (!item->missing)
            return sd_normalise(w->sample, &l->config.input, b->width, b->height, image, err);
        memset(image, 0, pixels * sizeof *image);
        return SODET_OK;
    }
    sd_pixel_row row = {0};
    const char *name = sd_dataset_item(l->config.dataset, item->sample)->id;
    sodet_status status = item->missing ? SODET_OK : sd_worker_pixel_row(w, b->width, b->height, &s->held[r], &row, err);
    if (status == SODET_OK && row.bytes > b->picture_bytes)
        status = SODET_FAIL(err, SODET_E_INVALID,
                            "%s: a picture of %ux%u, larger than any of the annotations says (%llu bytes of RGB at most); correct the "
                            "annotation, or set [data] pixels = host",
                            name, w->sample->original_width, w->sample->original_height, (unsigned long long)b->picture_bytes);
    s->picture[r] = (sd_batch_picture){.name = name,
                                       .rgb = row.rgb,
                                       .bytes = row.bytes,
                                       .coded = row.coded,
                                       .n_coded = row.n_coded,
                                       .by_host = item->missing ? NULL : w->sample->by_host};
    memcpy(b->place + (size_t)r * SODET_PIXELS_PLACES, row.place, sizeof row.place);
    memcpy(b->value + (size_t)r * SODET_PIXELS_VALUES, row.value, sizeof row.value);
    return status;
}

/* Where each picture begins when they lie one behind the other. Counts who decodes. */
static void pack(sd_loader *l, slot *s)
{
    sd_batch *b = &s->batch;
    uint64_t at = 0;
    uint32_t jpegs = 0;
    for (uint32_t r = 0; r < b->n; r++) {
        int32_t *place = b->place + (size_t)r * SODET_PIXELS_PLACES;
        sd_batch_picture *x = &s->picture[r];
        place[SODET_PIXELS_FIRST] = (int32_t)at;
        x->jpegs_before = jpegs;
        if (x->n_coded)
            s->jpeg[jpegs++] = (sodet_coded){.struct_size = sizeof(sodet_coded),
                                             .width = (uint32_t)place[SODET_PIXELS_ROW],
                                             .height = (uint32_t)place[SODET_PIXELS_ROWS],
                                             .coded = x->coded,
                                             .n_coded = x->n_coded,
                                             .offset = at * SODET_PIXELS_UNIT};
        l->stats.by_host += x->by_host != NULL;
        if (x->by_host && !l->stats.first_by_host) {
            snprintf(l->first_by_host, sizeof l->first_by_host, "%.300s, which %s", x->name, x->by_host);
            l->stats.first_by_host = l->first_by_host;
        }
        at += sodet_pixels_units(x->bytes);
    }
    b->n_jpegs = jpegs;
    l->stats.by_device += jpegs;
}

/* Objects that are large enough, into row r of the tables. */
static sodet_status fill_truth(sd_loader *l, slot *s, uint32_t r, sodet_sample *sample, sodet_err *err)
{
    uint32_t t = l->max_objects, n = 0, small = 0;
    float *truth = s->batch.truth + (size_t)r * t * 4;
    int32_t *label = s->batch.label + (size_t)r * t;
    uint32_t *flags = s->batch.flags + (size_t)r * t;
    for (uint64_t i = 0; i < sample->n_objects; i++) {
        const sodet_object *o = &sample->objects[i];
        uint32_t as, what = sd_loader_takes(&l->config, o, &as);
        small += what == SD_OBJECT_SMALL;
        if (what != SD_OBJECT_TRAINS)
            continue;
        if (n == t)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: more than %u objects after the transforms; raise max_objects",
                              sample->id.text ? sample->id.text : "a sample", t);
        memcpy(truth + (size_t)n * 4, &o->box, sizeof o->box);
        label[n] = o->label;
        flags[n++] = as;
    }
    memset(truth + (size_t)n * 4, 0, (size_t)(t - n) * 4 * sizeof *truth);
    memset(label + n, 0, (size_t)(t - n) * sizeof *label);
    memset(flags + n, 0, (size_t)(t - n) * sizeof *flags);
    s->batch.items[r].n_objects = n;
    if (small) {
        pthread_mutex_lock(&l->lock);
        l->stats.small += small;
        pthread_mutex_unlock(&l->lock);
    }
    return SODET_OK;
}

static sodet_status fill_index(sd_loader *l, slot *s, uint32_t r, sodet_err *err)
{
    sd_batch *b = &s->batch;
    sd_batch_item *item = &b->items[r];
    if (!l->config.assigner.assign)
        return SODET_OK;
    int32_t *index = b->index + (size_t)r * b->n_anchors;
    const sodet_boxes boxes = {.struct_size = sizeof boxes,
                               .n = item->n_objects,
                               .box = (const sodet_box *)(const void *)(b->truth + (size_t)r * l->max_objects * 4),
                               .label = b->label + (size_t)r * l->max_objects,
                               .flags = b->flags + (size_t)r * l->max_objects};
    sodet_status status = l->config.assigner.assign(l->config.assigner.context, l->grids[s->group], &boxes, index, err);
    if (status != SODET_OK)
        return sd_fail_in(err, status, "%s", sd_dataset_item(l->config.dataset, item->sample)->id);
    uint32_t positives = 0;
    for (uint32_t a = 0; a < b->n_anchors; a++) {
        if (index[a] >= (int32_t)item->n_objects || index[a] < SODET_INDEX_IGNORE)
            return SODET_FAIL(err, SODET_E_INTERNAL, "%s: the head assigns anchor %u to object %d of %u",
                              sd_dataset_item(l->config.dataset, item->sample)->id, a, index[a], item->n_objects);
        positives += index[a] >= 0;
    }
    item->positives = positives;
    return SODET_OK;
}

static sodet_status fill_row(sd_loader *l, sd_worker *w, slot *s, uint32_t r, sodet_err *err)
{
    sd_batch *b = &s->batch;
    sd_batch_item *item = &b->items[r];
    *item = (sd_batch_item){.sample = s->samples[r], .planned = s->samples[r]};
    sodet_status status = load_row(l, w, s, &item->sample, s->repeats[r], &item->missing, err);
    if (status != SODET_OK)
        return status;
    sodet_sample *sample = w->sample;
    status = fill_pixels(l, w, s, r, err);
    if (status != SODET_OK)
        return status;
    if (item->missing) {
        sample->n_objects = 0;
    } else {
        sodet_sample_size(sample, &item->width, &item->height);
        sd_affine_inverse(sample->map, item->inverse);
    }
    item->original_width = sample->original_width;
    item->original_height = sample->original_height;
    status = fill_truth(l, s, r, sample, err);
    return status == SODET_OK ? fill_index(l, s, r, err) : status;
}

/* ---- the ring ---- */

/* Sets up the next batch's slot. Called with the lock held; the slot is free. */
static sodet_status begin_batch(sd_loader *l, sodet_err *err)
{
    if (!l->planned || l->plan.epoch != l->epoch) {
        sodet_status status = sd_sampler_plan(&l->sampler, l->epoch, &l->plan, err);
        if (status != SODET_OK)
            return status;
        l->planned = true;
    }
    const sd_planned *p = &l->plan.batches[l->step];
    const sd_group *g = &l->sampler.groups[p->group];
    const sd_loader_config *c = &l->config;
    slot *s = slot_of(l, l->filling);
    uint64_t lo = (uint64_t)p->n * c->part / c->parts, hi = (uint64_t)p->n * (c->part + 1) / c->parts;
    sd_batch *b = &s->batch;
    b->epoch = l->epoch;
    b->step = l->step;
    b->steps = l->sampler.steps;
    b->consumed = l->plan.consumed[l->step];
    b->n = (uint32_t)(hi - lo);
    b->global_n = p->n;
    b->width = g->width;
    b->height = g->height;
    b->n_anchors = (uint32_t)l->anchors[p->group];
    s->group = p->group;
    s->rows_taken = s->rows_done = 0;
    memcpy(s->samples, l->plan.order + p->first + lo, b->n * sizeof *s->samples);
    memcpy(s->repeats, l->plan.repeat + p->first + lo, b->n * sizeof *s->repeats);
    l->filling++;
    l->open_slot = b->n > 0;
    if (++l->step == l->sampler.steps) {
        l->step = 0;
        l->epoch++;
    }
    if (b->n == 0)
        pthread_cond_signal(&l->ready);
    return SODET_OK;
}

static void fail(sd_loader *l, sodet_status status, const sodet_err *err)
{
    if (l->status == SODET_OK) {
        l->status = status;
        l->error = *err;
    }
    pthread_cond_broadcast(&l->ready);
    pthread_cond_broadcast(&l->work);
}

static void *work(void *argument)
{
    sd_worker *w = argument;
    sd_loader *l = w->owner;
    pthread_mutex_lock(&l->lock);
    while (!l->stop && l->status == SODET_OK) {
        sodet_err err = SODET_ERR_INIT;
        if (!l->open_slot) {
            if (l->filling == l->total)
                break;
            if (l->filling - l->recycled == l->config.depth) {
                pthread_cond_wait(&l->work, &l->lock);
                continue;
            }
            sodet_status status = begin_batch(l, &err);
            if (status != SODET_OK)
                fail(l, status, &err);
            else if (l->open_slot)
                pthread_cond_broadcast(&l->work);
            continue;
        }
        slot *s = slot_of(l, l->filling - 1);
        uint32_t row = s->rows_taken++;
        l->open_slot = s->rows_taken < s->batch.n;
        pthread_mutex_unlock(&l->lock);
        sodet_status status = fill_row(l, w, s, row, &err);
        pthread_mutex_lock(&l->lock);
        if (status != SODET_OK)
            fail(l, status, &err);
        else if (++s->rows_done == s->batch.n)
            pthread_cond_signal(&l->ready);
    }
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

sodet_status sd_loader_next(sd_loader *l, const sd_batch **out, sodet_err *err)
{
    *out = NULL;
    double start = sd_now();
    pthread_mutex_lock(&l->lock);
    while (l->status == SODET_OK && l->taken < l->total) {
        slot *s = slot_of(l, l->taken);
        if (l->filling > l->taken && s->rows_done == s->batch.n) {
            if (l->config.device_pixels)
                pack(l, s);
            *out = &s->batch;
            l->taken++;
            break;
        }
        if (l->taken - l->recycled == l->config.depth) {
            pthread_mutex_unlock(&l->lock);
            return SODET_FAIL(err, SODET_E_INTERNAL, "all %u batches of the ring are held; recycle one before asking for the next",
                              l->config.depth);
        }
        pthread_cond_wait(&l->ready, &l->lock);
    }
    l->stats.wait += sd_now() - start;
    sodet_status status = *out ? SODET_OK : l->status;
    if (status != SODET_OK && err)
        *err = l->error;
    pthread_mutex_unlock(&l->lock);
    return status;
}

void sd_loader_recycle(sd_loader *l, const sd_batch *batch)
{
    if (!batch)
        return;
    pthread_mutex_lock(&l->lock);
    if (l->recycled < l->taken)
        l->recycled++;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

void sd_loader_stats_get(sd_loader *l, sd_loader_stats *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->stats;
    pthread_mutex_unlock(&l->lock);
}

/* ---- opening ---- */

static sodet_status check(const sd_loader_config *c, sodet_err *err)
{
    if (c->batch == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "batch = 0: at least 1 is wanted");
    if (c->parts && c->part >= c->parts)
        return SODET_FAIL(err, SODET_E_INTERNAL, "part %u of %u", c->part, c->parts);
    for (uint32_t i = 0; i < sd_input_channels(&c->input); i++) {
        if (!(c->input.std[i] > 0) || !isfinite(c->input.std[i]) || !isfinite(c->input.mean[i]))
            return SODET_FAIL(err, SODET_E_INVALID, "[input] std = %g, mean = %g of channel %u: finite numbers and std above 0 are wanted",
                              (double)c->input.std[i], (double)c->input.mean[i], i);
    }
    return SODET_OK;
}

/* Canvas of every sample; where the annotation does not tell the size, the picture is opened. */
static sodet_status open_sampler(sd_loader *l, sodet_err *err)
{
    const sd_loader_config *c = &l->config;
    uint64_t n = sd_dataset_size(c->dataset);
    uint32_t *widths = sd_alloc(n, sizeof *widths), *heights = sd_alloc(n, sizeof *heights);
    sodet_sample *probe = NULL;
    sodet_status status =
        widths && heights ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu samples", (unsigned long long)n);
    /* A chain that makes one size of everything is known by its answer to two very different pictures. */
    uint32_t a[2] = {37, 1009}, b[2] = {2003, 41};
    sd_links_canvas(c->links, c->n_links, &c->input, &a[0], &a[1]);
    sd_links_canvas(c->links, c->n_links, &c->input, &b[0], &b[1]);
    bool fixed = a[0] == b[0] && a[1] == b[1];
    for (uint32_t i = 0; i < c->n_links && !fixed && status == SODET_OK; i++) {
        if (c->links[i].ops->flags & SODET_TRANSFORM_ANY_SHAPE)
            status = SODET_FAIL(
                err, SODET_E_INVALID,
                "transform %s makes pictures of any shape, and the chain does not end with a resize to a fixed one; add one with "
                "mode = stretch or fit",
                c->links[i].label);
    }
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        const sd_item *item = sd_dataset_item(c->dataset, i);
        widths[i] = fixed ? a[0] : item->width;
        heights[i] = fixed ? a[1] : item->height;
        if (fixed)
            continue;
        if (!widths[i] || !heights[i]) {
            if (!probe)
                status = sd_sample_new(c->dataset, &probe, err);
            if (status == SODET_OK)
                status = sd_dataset_load(c->dataset, i, probe, err);
            if (status != SODET_OK && probe && probe->rules->bad_file == SD_SKIP && status != SODET_E_MEMORY) {
                widths[i] = heights[i] = 1; /* it is skipped (and counted) when its turn comes */
                status = SODET_OK;
                continue;
            }
            widths[i] = status == SODET_OK ? probe->original_width : 1;
            heights[i] = status == SODET_OK ? probe->original_height : 1;
        }
        sd_links_canvas(c->links, c->n_links, &c->input, &widths[i], &heights[i]);
    }
    if (status == SODET_OK)
        status = sd_sampler_open(&l->sampler, widths, heights, n, c->max_shapes, c->seed, c->batch, c->shuffle, c->last, err);
    sd_sample_free(probe);
    sd_free(widths);
    sd_free(heights);
    return status;
}

/* Size of the picture that the data set gives for sample i, from its header alone. */
static sodet_status header_size(const sd_loader *l, uint64_t i, sodet_sample *s, uint32_t *width, uint32_t *height, sodet_err *err)
{
    uint32_t orientation;
    sodet_status status = sd_dataset_locate(l->config.dataset, i, s, err);
    if (status != SODET_OK)
        return status;
    const char *name = s->path.length ? s->path.text : s->id.length ? s->id.text : "a sample";
    if (s->has_pixels) {
        *width = s->stored.width;
        *height = s->stored.height;
        return SODET_OK;
    }
    status = s->n_encoded ? sd_decode_size(name, s->encoded, s->n_encoded, width, height, &orientation, err)
                          : sodet_picture_size(name, width, height, &orientation, err);
    /* What a damaged header claims is not made room for: it will not be decoded. */
    if (status == SODET_OK && (uint64_t)*width * *height > s->rules->max_pixels)
        status = sd_decode_too_large(name, *width, *height, s->rules->max_pixels, err);
    return status;
}

/* Room for any picture of the set, so that a device's memory is planned beforehand. */
static sodet_status find_picture_bytes(sd_loader *l, sodet_err *err)
{
    const sd_dataset *d = l->config.dataset;
    sodet_sample *probe = NULL;
    uint64_t most = 1, largest = 0;
    sodet_status status = SODET_OK;
    for (uint64_t i = 0; status == SODET_OK && i < sd_dataset_size(d); i++) {
        const sd_item *item = sd_dataset_item(d, i);
        uint32_t width = item->width, height = item->height;
        if (!width || !height) {
            status = probe ? SODET_OK : sd_sample_new(d, &probe, err);
            if (status == SODET_OK)
                status = header_size(l, i, probe, &width, &height, err);
            if (status != SODET_OK && probe && probe->rules->bad_file == SD_SKIP && status != SODET_E_MEMORY) {
                status = SODET_OK; /* it is skipped (and counted) when its turn comes */
                continue;
            }
            if (status != SODET_OK && l->config.shuffle && status != SODET_E_MEMORY)
                say_what_helps(err);
        }
        const uint64_t bytes = (uint64_t)width * height * 3;
        largest = bytes > most ? i : largest;
        most = bytes > most ? bytes : most;
    }
    sd_sample_free(probe);
    l->picture_bytes = sodet_pixels_units(most) * SODET_PIXELS_UNIT;
    if (status == SODET_OK && l->picture_bytes / SODET_PIXELS_UNIT > INT32_MAX / l->config.batch)
        status = SODET_FAIL(err, SODET_E_UNSUPPORTED,
                            "[data] pixels = device: a batch of %u pictures of up to %llu MiB (%.200s) is more than a device is given at "
                            "once; set pixels = "
                            "host, or store the pictures smaller",
                            l->config.batch, (unsigned long long)(l->picture_bytes >> 20), sd_dataset_item(d, largest)->id);
    return status;
}

static uint32_t rows_of_part(const sd_loader_config *c, uint64_t n)
{
    return (uint32_t)(n * (c->part + 1) / c->parts - n * c->part / c->parts);
}

static sodet_status open_shapes(sd_loader *l, sodet_err *err)
{
    const sd_loader_config *c = &l->config;
    const sd_sampler *s = &l->sampler;
    l->grids = sd_alloc(s->n_groups, sizeof *l->grids);
    l->anchors = sd_alloc(s->n_groups, sizeof *l->anchors);
    l->shapes = sd_alloc((uint64_t)s->n_groups * 2, sizeof *l->shapes);
    if (!l->grids || !l->anchors || !l->shapes)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u input shapes", s->n_groups);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        const sd_group *group = &s->groups[g];
        if (c->assigner.assign) {
            sodet_status status = c->assigner.grid(c->assigner.context, group->width, group->height, &l->grids[g], &l->anchors[g], err);
            if (status != SODET_OK)
                return status;
        }
        uint64_t full = c->last == SD_LAST_WRAP ? group->batches : group->n / c->batch, rest = group->batches - full;
        sd_loader_shape shape = {0, group->width, group->height, (uint32_t)l->anchors[g], full};
        if (full) {
            shape.n = rows_of_part(c, c->batch);
            l->shapes[l->n_shapes++] = shape;
        }
        if (rest) {
            shape.n = rows_of_part(c, group->n % c->batch);
            shape.per_epoch = rest;
            l->shapes[l->n_shapes++] = shape;
        }
    }
    return SODET_OK;
}

static sodet_status open_slots(sd_loader *l, sodet_err *err)
{
    const sd_loader_config *c = &l->config;
    uint64_t rows = 0, pixels = 0, anchors = 0, t = l->max_objects;
    uint32_t channels = sd_input_channels(&c->input);
    for (uint32_t i = 0; i < l->n_shapes; i++) {
        const sd_loader_shape *s = &l->shapes[i];
        uint64_t p = c->device_pixels ? 0 : (uint64_t)s->n * channels * s->width * s->height, a = (uint64_t)s->n * s->n_anchors;
        rows = s->n > rows ? s->n : rows;
        pixels = p > pixels ? p : pixels;
        anchors = a > anchors ? a : anchors;
    }
    l->slots = sd_alloc(c->depth, sizeof *l->slots);
    bool ok = l->slots != NULL;
    for (uint32_t i = 0; ok && i < c->depth; i++) {
        slot *s = &l->slots[i];
        sd_batch *b = &s->batch;
        *b = (sd_batch){.channels = channels, .max_objects = l->max_objects};
        b->image = c->device_pixels ? NULL : sd_alloc(pixels, sizeof *b->image);
        b->index = sd_alloc(anchors, sizeof *b->index);
        b->truth = sd_alloc(rows * t, 4 * sizeof *b->truth);
        b->label = sd_alloc(rows * t, sizeof *b->label);
        b->flags = sd_alloc(rows * t, sizeof *b->flags);
        b->items = sd_alloc(rows, sizeof *b->items);
        s->samples = sd_alloc(rows, sizeof *s->samples);
        s->repeats = sd_alloc(rows, sizeof *s->repeats);
        ok = (b->image || c->device_pixels) && b->index && b->truth && b->label && b->flags && b->items && s->samples && s->repeats;
    }
    for (uint32_t i = 0; ok && c->device_pixels && i < c->depth; i++) {
        slot *s = &l->slots[i];
        sd_batch *b = &s->batch;
        b->picture_bytes = l->picture_bytes;
        b->picture = s->picture = sd_alloc(rows, sizeof *s->picture);
        b->place = sd_alloc(rows, SODET_PIXELS_PLACES * sizeof *b->place);
        b->value = sd_alloc(rows, SODET_PIXELS_VALUES * sizeof *b->value);
        b->jpeg = s->jpeg = sd_alloc(rows, sizeof *s->jpeg);
        s->held = sd_alloc(rows, sizeof *s->held); /* their memory comes with the first pictures */
        s->rows = rows;
        ok = s->picture && b->place && b->value && s->jpeg && s->held;
    }
    return ok ? SODET_OK
              : SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u batches of %llu MiB; use a smaller batch or [data] queue", c->depth,
                           (unsigned long long)(pixels * sizeof(float) >> 20));
}

static sodet_status start(sd_loader *l, sodet_err *err)
{
    uint32_t n = l->config.threads;
    l->threads = sd_alloc(n, sizeof *l->threads);
    l->workers = sd_alloc(n, sizeof *l->workers);
    if (!l->threads || !l->workers)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u loader threads", n);
    for (; l->n_workers < n; l->n_workers++) {
        sodet_status status = sd_worker_open(&l->workers[l->n_workers], &l->config, err);
        if (status != SODET_OK)
            return status;
    }
    sodet_status tried = sd_worker_try(&l->workers[0], err);
    if (tried != SODET_OK)
        return tried;
    for (; l->n_threads < n; l->n_threads++) {
        sd_worker *w = &l->workers[l->n_threads];
        w->owner = l;
        if (pthread_create(&l->threads[l->n_threads], NULL, work, w) != 0)
            return SODET_FAIL(err, SODET_E_MEMORY, "loader thread %u of %u cannot be started; set [data] workers lower", l->n_threads + 1,
                              n);
    }
    return SODET_OK;
}

sodet_status sd_loader_open(const sd_loader_config *config, sd_loader **out, sodet_err *err)
{
    *out = NULL;
    sodet_status status = check(config, err);
    if (status != SODET_OK)
        return status;
    sd_loader *l = sd_alloc(1, sizeof *l);
    if (!l)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a loader");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->config = *config;
    sd_loader_config *c = &l->config;
    c->parts = c->parts ? c->parts : 1;
    c->depth = c->depth ? c->depth : 3;
    c->threads = c->threads ? c->threads : sd_processors();

    l->max_objects = c->max_objects;
    if (!l->max_objects) {
        uint32_t most = sd_dataset_census(c->dataset)->most_objects * (1 + sd_links_partners(c->links, c->n_links));
        l->max_objects = most < 1 ? 8 : (most + 7) / 8 * 8;
    }
    status = open_sampler(l, err);
    if (status == SODET_OK && c->device_pixels)
        status = find_picture_bytes(l, err);
    if (status == SODET_OK)
        status = open_shapes(l, err);
    if (status == SODET_OK)
        status = open_slots(l, err);
    l->epoch = c->shuffle ? c->epoch + c->step / (l->sampler.steps ? l->sampler.steps : 1) : 0;
    l->step = l->sampler.steps ? c->step % l->sampler.steps : 0;
    l->total = c->shuffle ? UINT64_MAX : l->sampler.steps - l->step;
    if (status == SODET_OK)
        status = start(l, err);
    if (status != SODET_OK) {
        sd_loader_close(l);
        return status;
    }
    *out = l;
    return SODET_OK;
}

void sd_loader_close(sd_loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (uint32_t i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    for (uint32_t i = 0; i < l->n_workers; i++)
        sd_worker_close(&l->workers[i]);
    for (uint32_t i = 0; l->slots && i < l->config.depth; i++) {
        slot *s = &l->slots[i];
        sd_free(s->batch.image);
        sd_free(s->batch.index);
        sd_free(s->batch.truth);
        sd_free(s->batch.label);
        sd_free(s->batch.flags);
        sd_free(s->batch.items);
        sd_free(s->samples);
        sd_free(s->repeats);
        for (uint64_t r = 0; r < s->rows && s->held; r++)
            sd_held_free(&s->held[r]);
        sd_free(s->held);
        sd_free(s->jpeg);
        sd_free(s->picture);
        sd_free(s->batch.place);
        sd_free(s->batch.value);
    }
    sd_free(l->slots);
    sd_free(l->threads);
    sd_free(l->workers);
    sd_free(l->grids);
    sd_free(l->anchors);
    sd_free(l->shapes);
    sd_plan_free(&l->plan);
    sd_sampler_close(&l->sampler);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    pthread_mutex_destroy(&l->lock);
    sd_free(l);
}

const sd_loader_shape *sd_loader_shapes(const sd_loader *l, uint32_t *n)
{
    *n = l->n_shapes;
    return l->shapes;
}

uint32_t sd_loader_max_objects(const sd_loader *l)
{
    return l->max_objects;
}

uint64_t sd_loader_steps(const sd_loader *l)
{
    return l->sampler.steps;
}

uint64_t sd_loader_picture_bytes(const sd_loader *l)
{
    return l->picture_bytes;
}

uint64_t sd_loader_samples(const sd_loader *l)
{
    return l->sampler.samples;
}
