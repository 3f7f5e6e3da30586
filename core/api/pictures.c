#include "core/api/pictures.h"

#include <string.h>

#include "core/data/decode.h"
#include "core/data/pipeline.h"
#include "core/data/recipe.h"

struct sd_pictures {
    const sd_trained *net;
    sd_split chain;
    sodet_dataset_ops ops; /* of the slot */
    sodet_picture slot;    /* the picture in work */
    sd_data_rules rules;
    sd_dataset *dataset; /* of the slot alone */
    sd_loader_config loader;
    sd_worker worker;
    float *image;
    uint64_t image_capacity;
    sd_batch_item *items;
    uint64_t item_capacity;
    uint64_t *first, first_capacity;
    sodet_detection *detections;
    uint64_t detection_capacity;
    uint32_t width, height; /* canvas of the pictures in `image` */
};

sodet_status sd_take_struct(void *to, size_t size, const void *from, const char *what, const char *init, sodet_err *err)
{
    uint32_t theirs = 0;
    memset(to, 0, size);
    if (from)
        memcpy(&theirs, from, sizeof theirs);
    if (from && theirs < sizeof theirs)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: struct_size is %u; begin with %s", what, theirs, init);
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

static sodet_status take_picture(sd_pictures *p, const sodet_picture *from, sodet_err *err)
{
    if (!from)
        return SODET_FAIL(err, SODET_E_INVALID, "no picture was given");
    sodet_status s = sd_take_struct(&p->slot, sizeof p->slot, from, "picture", "SODET_PICTURE_INIT", err);
    const sodet_picture *x = &p->slot;
    const char *name = x->name ? x->name : x->path ? x->path : "picture";
    if (s == SODET_OK && !x->path + !x->bytes + !x->rgb != 2)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: exactly one of path, bytes and rgb is to be set", name);
    if (s == SODET_OK && x->rgb && x->stride && x->stride / 3 < x->width)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: a stride of %zu bytes is too short for %u pixels of 3", name, x->stride, x->width);
    return s;
}

/* ---- open, close ---- */
static sodet_status open_all(sd_pictures *p, sd_config *cfg, sodet_err *err)
{
    sodet_status s = sd_split_open_links(cfg, SD_SPLIT_VAL, &p->chain, err);
    if (s != SODET_OK)
        return s;
    p->ops = (sodet_dataset_ops){.struct_size = sizeof p->ops, .open = slot_open, .describe = slot_describe, .pixels = slot_pixels};
    const sd_dataset_part part = {"pictures", &p->ops, &p->slot};
    sd_data_rules_init(&p->rules);
    s = sd_dataset_open(&part, 1, p->net->classes.names, p->net->classes.n, &p->rules, &p->dataset, err);
    if (s != SODET_OK)
        return s;
    p->loader = sd_split_loader(cfg, &p->chain, SD_SPLIT_VAL);
    p->loader.dataset = p->dataset;
    return sd_worker_open(&p->worker, &p->loader, err);
}

sodet_status sd_pictures_open(sd_config *cfg, const sd_trained *net, sd_pictures **out, sodet_err *err)
{
    *out = NULL;
    sd_pictures *p = sd_alloc(1, sizeof *p);
    if (!p)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: pictures");
    p->net = net;
    sodet_status s = open_all(p, cfg, err);
    if (s != SODET_OK) {
        sd_pictures_close(p);
        return s;
    }
    *out = p;
    return SODET_OK;
}

void sd_pictures_close(sd_pictures *p)
{
    if (!p)
        return;
    sd_worker_close(&p->worker);
    sd_dataset_close(p->dataset);
    sd_split_close(&p->chain);
    sd_free(p->image);
    sd_free(p->items);
    sd_free(p->first);
    sd_free(p->detections);
    sd_free(p);
}

/* ---- the work ---- */
/* The rows that wait in `image` go through the network. put NULL: for nobody. */
static sodet_status flush(sd_pictures *p, uint32_t rows, sd_infer_put *put, void *context, sodet_err *err)
{
    if (!rows)
        return SODET_OK;
    const sd_batch batch = {.n = rows,
                            .global_n = rows,
                            .width = p->width,
                            .height = p->height,
                            .channels = sd_input_channels(&p->loader.input),
                            .image = p->image,
                            .items = p->items};
    sodet_status s = sd_grow(&p->first, &p->first_capacity, (uint64_t)rows + 1, sizeof *p->first, err);
    if (s == SODET_OK)
        s = sd_infer_batch(p->net->infer, &batch, p->first, &p->detections, &p->detection_capacity, err);
    for (uint32_t i = 0; s == SODET_OK && put && i < rows; i++)
        s = put(context, &p->items[i], p->detections + p->first[i], p->first[i + 1] - p->first[i], err);
    return s;
}

/* Room for row `row` of the canvas. */
static sodet_status grow_row(sd_pictures *p, uint32_t row, float **to, sodet_err *err)
{
    uint64_t pixels = (uint64_t)p->width * p->height * sd_input_channels(&p->loader.input);
    sodet_status s = sd_grow(&p->image, &p->image_capacity, pixels * ((uint64_t)row + 1), sizeof *p->image, err);
    if (s == SODET_OK)
        s = sd_grow(&p->items, &p->item_capacity, (uint64_t)row + 1, sizeof *p->items, err);
    if (s == SODET_OK)
        *to = p->image + pixels * row;
    return s;
}

/* The picture in the worker becomes row `row`. */
static sodet_status fill_row(sd_pictures *p, uint32_t row, uint32_t place, sodet_err *err)
{
    sodet_sample *sample = p->worker.sample;
    float *to = NULL;
    sodet_status s = grow_row(p, row, &to, err);
    if (s == SODET_OK)
        s = sd_normalise(sample, &p->loader.input, p->width, p->height, to, err);
    if (s != SODET_OK)
        return s;
    sd_batch_item *item = &p->items[row];
    *item = (sd_batch_item){.sample = place,
                            .width = sample->image.width,
                            .height = sample->image.height,
                            .original_width = sample->original_width,
                            .original_height = sample->original_height};
    sd_affine_inverse(sample->map, item->inverse);
    return SODET_OK;
}

sodet_status sd_pictures_run(sd_pictures *p, const sodet_picture *const *pictures, uint32_t n, sd_infer_put *put, void *context,
                             sodet_err *err)
{
    sodet_status broken = SODET_OK, s = SODET_OK;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n && s == SODET_OK; i++) {
        sodet_err local = SODET_ERR_INIT;
        sodet_status one = take_picture(p, pictures[i], &local);
        if (one == SODET_OK)
            one = sd_worker_prepare(&p->worker, 0, 0, 0, &local);
        uint32_t width = 0, height = 0;
        if (one == SODET_OK) {
            width = p->worker.sample->original_width;
            height = p->worker.sample->original_height;
            sd_links_canvas(p->loader.links, p->loader.n_links, &p->loader.input, &width, &height);
        }
        if (one == SODET_OK && rows && (width != p->width || height != p->height)) {
            s = flush(p, rows, put, context, err);
            rows = 0;
        }
        if (s == SODET_OK && one == SODET_OK) {
            p->width = width;
            p->height = height;
            one = fill_row(p, rows, i, &local);
        }
        if (one == SODET_OK)
            rows++;
        else if (broken == SODET_OK) {
            broken = one;
            if (err)
                *err = local;
        }
    }
    memset(&p->slot, 0, sizeof p->slot);
    if (s != SODET_OK)
        return s;
    sodet_err last = SODET_ERR_INIT;
    s = flush(p, rows, put, context, &last);
    if (s != SODET_OK && err)
        *err = last;
    return s != SODET_OK ? s : broken;
}

sodet_status sd_pictures_warm_up(sd_pictures *p, uint32_t width, uint32_t height, uint32_t n, sodet_err *err)
{
    if (!width != !height)
        return SODET_FAIL(err, SODET_E_INVALID, "warm up: a picture of %ux%u; give both sides, or 0 and 0 for the size of [input]", width,
                          height);
    if (!width) {
        width = p->loader.input.width;
        height = p->loader.input.height;
    }
    const uint32_t original[2] = {width, height};
    n = n ? n : 1;
    if ((uint64_t)width * height > p->rules.max_pixels)
        return sd_decode_too_large("warm up", width, height, p->rules.max_pixels, err);
    sd_links_canvas(p->loader.links, p->loader.n_links, &p->loader.input, &width, &height);
    p->width = width;
    p->height = height;
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < n; i++) {
        float *to = NULL;
        s = grow_row(p, i, &to, err);
        if (s != SODET_OK)
            break;
        memset(to, 0, (size_t)width * height * sd_input_channels(&p->loader.input) * sizeof *to);
        p->items[i] = (sd_batch_item){.sample = i,
                                      .width = width,
                                      .height = height,
                                      .original_width = original[0],
                                      .original_height = original[1],
                                      .inverse = {1, 0, 0, 0, 1, 0}};
    }
    return s == SODET_OK ? flush(p, n, NULL, NULL, err) : s;
}
