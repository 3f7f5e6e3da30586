/* The calls of sodet/detector.h. A picture takes the way of a validation sample: a data set of one slot, the worker with its chain of
 * transforms, normalisation into a row of a batch, inference. */
#include "sodet/detector.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/api/trained.h"
#include "core/data/pipeline.h"
#include "core/data/recipe.h"
#include "core/train/state.h"

struct sodet_detector {
    pthread_mutex_t lock;
    sd_config *cfg;
    sd_trained net;
    sd_split chain;
    sodet_dataset_ops ops; /* of the slot */
    sodet_picture slot;    /* the picture in work */
    sd_dataset *dataset;   /* of the slot alone */
    sd_loader_config loader;
    sd_worker worker;
    float threshold;
    float *image;
    uint64_t image_capacity;
    sd_batch_item *items;
    uint64_t item_capacity;
    uint64_t *first, first_capacity;
    sodet_detection *detections;
    uint64_t detection_capacity;
    uint32_t width, height; /* canvas of the pictures in `image` */
};

/* The caller's struct may be of an older or newer header. */
static sodet_status take_struct(void *to, size_t size, const void *from, const char *what, sodet_err *err)
{
    uint32_t theirs = 0;
    memset(to, 0, size);
    if (from)
        memcpy(&theirs, from, sizeof theirs);
    if (from && theirs < sizeof theirs)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: struct_size is %u; begin with %s", what, theirs,
                          strcmp(what, "picture") ? "SODET_DETECTOR_OPTIONS_INIT" : "SODET_PICTURE_INIT");
    const char *tail = (const char *)from + size;
    for (size_t i = size; i < theirs; i++)
        if (*tail++)
            return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: a field that this libsodet does not know is set; it is older than the header",
                              what);
    if (from)
        memcpy(to, from, theirs < size ? theirs : size);
    return SODET_OK;
}

/* ---- the slot ---- */
static sodet_status slot_open(void *self, uint64_t *n, sodet_err *err)
{
    (void)self;
    (void)err;
    *n = 1;
    return SODET_OK;
}

static sodet_status slot_describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const sodet_picture *p = self;
    (void)index;
    (void)err;
    sodet_sample_set_id(out, p->name ? p->name : p->path ? p->path : "picture", 0);
    return SODET_OK;
}

static sodet_status slot_pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const sodet_picture *p = self;
    (void)index;
    if (p->path)
        sodet_sample_set_path(out, p->path);
    if (p->bytes)
        return sodet_sample_set_bytes(out, p->bytes, p->n_bytes, err);
    if (!p->rgb)
        return SODET_OK;
    uint8_t *to;
    size_t row = (size_t)p->width * 3, stride = p->stride ? p->stride : row;
    sodet_status s = sodet_sample_new_pixels(out, p->width, p->height, 3, &to, err);
    for (uint32_t y = 0; s == SODET_OK && y < p->height; y++)
        memcpy(to + y * row, p->rgb + y * stride, row);
    return s;
}

static sodet_status take_picture(sodet_detector *d, const sodet_picture *from, sodet_err *err)
{
    if (!from)
        return SODET_FAIL(err, SODET_E_INVALID, "no picture was given");
    sodet_status s = take_struct(&d->slot, sizeof d->slot, from, "picture", err);
    const sodet_picture *p = &d->slot;
    const char *name = p->name ? p->name : p->path ? p->path : "picture";
    if (s == SODET_OK && !p->path + !p->bytes + !p->rgb != 2)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: exactly one of path, bytes and rgb is to be set", name);
    if (s == SODET_OK && p->rgb && p->stride && p->stride / 3 < p->width)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: a stride of %zu bytes is too short for %u pixels of 3", name, p->stride, p->width);
    return s;
}

/* ---- open, close ---- */
static sodet_status open_config(sodet_detector *d, const sodet_detector_options *o, const sd_checkpoint *c, sodet_err *err)
{
    sd_pool pool = {0};
    uint64_t n = 0;
    sd_override *list = sd_pool_alloc(&pool, ((size_t)o->n_overrides + 2) * sizeof *list);
    bool good = list != NULL;
    for (uint32_t i = 0; good && i < o->n_overrides; i++)
        list[n++] = (sd_override){o->overrides[i], NULL};
    if (good && o->devices) {
        list[n].text = sd_pool_printf(&pool, "run.devices=%s", o->devices);
        good = list[n++].text != NULL;
    }
    if (good && o->threads) {
        list[n].text = sd_pool_printf(&pool, "run.threads=%u", o->threads);
        good = list[n++].text != NULL;
    }
    sodet_status s =
        good ? sd_state_config(c, list, n, &d->cfg, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the detector's configuration");
    sd_pool_clear(&pool);
    return s;
}

static sodet_status open_pictures(sodet_detector *d, sodet_err *err)
{
    sodet_status s = sd_split_open_links(d->cfg, SD_SPLIT_VAL, &d->chain, err);
    if (s != SODET_OK)
        return s;
    d->ops = (sodet_dataset_ops){.struct_size = sizeof d->ops, .open = slot_open, .describe = slot_describe, .pixels = slot_pixels};
    const sd_dataset_part part = {"pictures", &d->ops, &d->slot};
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    s = sd_dataset_open(&part, 1, d->net.classes.names, d->net.classes.n, &rules, &d->dataset, err);
    if (s != SODET_OK)
        return s;
    d->loader = sd_split_loader(d->cfg, &d->chain, SD_SPLIT_VAL);
    d->loader.dataset = d->dataset;
    return sd_worker_open(&d->worker, &d->loader, err);
}

static sodet_status open_all(sodet_detector *d, const char *path, const sodet_detector_options *o, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    sodet_status s = o->plugin_folder ? sd_plugin_add_folder(o->plugin_folder, err) : SODET_OK;
    if (s == SODET_OK)
        s = sd_trained_find(path, &c, err);
    if (s == SODET_OK)
        s = open_config(d, o, c, err);
    if (s == SODET_OK)
        s = sd_trained_open(d->cfg, c, &d->net, err);
    sd_checkpoint_close(c);
    return s == SODET_OK ? open_pictures(d, err) : s;
}

sodet_status sodet_detector_open(const char *checkpoint, const sodet_detector_options *options, sodet_detector **out, sodet_err *err)
{
    *out = NULL;
    sodet_detector_options o;
    sodet_status s = take_struct(&o, sizeof o, options, "detector options", err);
    if (s == SODET_OK && !checkpoint)
        s = SODET_FAIL(err, SODET_E_INVALID, "no checkpoint was named");
    if (s == SODET_OK && !(o.threshold >= 0 && o.threshold <= 1))
        s = SODET_FAIL(err, SODET_E_INVALID, "threshold = %g: 0 to 1 is wanted", (double)o.threshold);
    if (s != SODET_OK)
        return s;
    sodet_detector *d = sd_alloc(1, sizeof *d);
    if (!d)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a detector");
    pthread_mutex_init(&d->lock, NULL);
    d->threshold = o.threshold;
    s = open_all(d, checkpoint, &o, err);
    if (s != SODET_OK) {
        sodet_detector_close(d);
        return s;
    }
    *out = d;
    return SODET_OK;
}

void sodet_detector_close(sodet_detector *d)
{
    if (!d)
        return;
    sd_worker_close(&d->worker);
    sd_dataset_close(d->dataset);
    sd_split_close(&d->chain);
    sd_trained_close(&d->net);
    sd_config_close(d->cfg);
    sd_free(d->image);
    sd_free(d->items);
    sd_free(d->first);
    sd_free(d->detections);
    pthread_mutex_destroy(&d->lock);
    sd_free(d);
}

uint32_t sodet_detector_class_count(const sodet_detector *d)
{
    return d->net.classes.n;
}

const char *sodet_detector_class(const sodet_detector *d, uint32_t label)
{
    return label < d->net.classes.n ? d->net.classes.names[label] : NULL;
}

/* ---- detect ---- */
void sodet_result_free(sodet_result *r)
{
    sd_free(r);
}

static sodet_status make_result(const sodet_detector *d, uint32_t row, sodet_result **out, sodet_err *err)
{
    const sd_batch_item *item = &d->items[row];
    const sodet_detection *from = d->detections + d->first[row];
    uint32_t n = 0, most = (uint32_t)(d->first[row + 1] - d->first[row]);
    sodet_result *r = sd_alloc(1, sizeof *r + most * sizeof(sodet_found));
    if (!r)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %u detections", most);
    sodet_found *found = (sodet_found *)(void *)(r + 1);
    for (uint32_t i = 0; i < most; i++)
        if (from[i].score >= d->threshold)
            found[n++] = (sodet_found){.box = from[i].box,
                                       .score = from[i].score,
                                       .label = from[i].label,
                                       .name = sodet_detector_class(d, (uint32_t)from[i].label)};
    *r = (sodet_result){.struct_size = sizeof *r, .width = item->original_width, .height = item->original_height, .n = n, .found = found};
    *out = r;
    return SODET_OK;
}

/* The rows that wait in `image` go through the network; which[row] is a picture's place in out. */
static sodet_status flush(sodet_detector *d, uint32_t rows, const uint32_t *which, sodet_result **out, sodet_err *err)
{
    if (!rows)
        return SODET_OK;
    const sd_batch batch = {.n = rows,
                            .global_n = rows,
                            .width = d->width,
                            .height = d->height,
                            .channels = sd_input_channels(&d->loader.input),
                            .image = d->image,
                            .items = d->items};
    sodet_status s = sd_grow(&d->first, &d->first_capacity, (uint64_t)rows + 1, sizeof *d->first, err);
    if (s == SODET_OK)
        s = sd_infer_batch(d->net.infer, &batch, d->first, &d->detections, &d->detection_capacity, err);
    for (uint32_t i = 0; s == SODET_OK && i < rows; i++)
        s = make_result(d, i, &out[which[i]], err);
    return s;
}

/* The picture in the worker becomes row `row`. */
static sodet_status fill_row(sodet_detector *d, uint32_t row, sodet_err *err)
{
    sodet_sample *sample = d->worker.sample;
    uint64_t pixels = (uint64_t)d->width * d->height * sd_input_channels(&d->loader.input);
    sodet_status s = sd_grow(&d->image, &d->image_capacity, pixels * (row + 1), sizeof *d->image, err);
    if (s == SODET_OK)
        s = sd_grow(&d->items, &d->item_capacity, (uint64_t)row + 1, sizeof *d->items, err);
    if (s == SODET_OK)
        s = sd_normalise(sample, &d->loader.input, d->width, d->height, d->image + pixels * row, err);
    if (s != SODET_OK)
        return s;
    sd_batch_item *item = &d->items[row];
    *item = (sd_batch_item){.width = sample->image.width,
                            .height = sample->image.height,
                            .original_width = sample->original_width,
                            .original_height = sample->original_height};
    sd_affine_inverse(sample->map, item->inverse);
    return SODET_OK;
}

static sodet_status detect_all(sodet_detector *d, const sodet_picture *const *pictures, uint32_t n, uint32_t *which, sodet_result **out,
                               sodet_err *err)
{
    sodet_status broken = SODET_OK, s = SODET_OK;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        sodet_err local = SODET_ERR_INIT;
        sodet_status p = take_picture(d, pictures[i], &local);
        if (p == SODET_OK)
            p = sd_worker_prepare(&d->worker, 0, 0, 0, &local);
        uint32_t width = 0, height = 0;
        if (p == SODET_OK) {
            width = d->worker.sample->original_width;
            height = d->worker.sample->original_height;
            sd_links_canvas(d->loader.links, d->loader.n_links, &d->loader.input, &width, &height);
        }
        if (p == SODET_OK && rows && (width != d->width || height != d->height)) {
            if ((s = flush(d, rows, which, out, err)) != SODET_OK)
                return s;
            rows = 0;
        }
        if (p == SODET_OK) {
            d->width = width;
            d->height = height;
            p = fill_row(d, rows, &local);
        }
        if (p == SODET_OK)
            which[rows++] = i;
        else if (broken == SODET_OK) {
            broken = p;
            if (err)
                *err = local;
        }
    }
    s = flush(d, rows, which, out, broken == SODET_OK ? err : NULL);
    return broken == SODET_OK ? s : broken;
}

sodet_status sodet_detect_many(sodet_detector *d, const sodet_picture *const *pictures, uint32_t n, sodet_result **out, sodet_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = NULL;
    uint32_t *which = sd_alloc((size_t)n + 1, sizeof *which);
    if (!which)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %u pictures", n);
    pthread_mutex_lock(&d->lock);
    sodet_status s = detect_all(d, pictures, n, which, out, err);
    memset(&d->slot, 0, sizeof d->slot);
    pthread_mutex_unlock(&d->lock);
    sd_free(which);
    return s;
}

sodet_status sodet_detect(sodet_detector *d, const sodet_picture *picture, sodet_result **out, sodet_err *err)
{
    return sodet_detect_many(d, &picture, 1, out, err);
}

sodet_status sodet_detect_file(sodet_detector *d, const char *path, sodet_result **out, sodet_err *err)
{
    const sodet_picture p = {.struct_size = sizeof p, .path = path};
    return sodet_detect(d, &p, out, err);
}
