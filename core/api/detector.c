/* Embedding: a picture goes through the same loader, transforms and network as one of a data set; the set is of one picture. */
#include "sodet/detector.h"

#include <string.h>

#include "core/api/opened.h"
#include "core/data/decode.h"
#include "core/data/recipe.h"
#include "core/eval/infer.h"

struct sodet_detector {
    sd_opened opened;
    sd_split split; /* the transforms alone */
    sd_infer *infer;
    /* the picture at hand */
    const uint8_t *rgb;
    uint64_t stride;
    uint32_t width, height;
    sodet_detection *found;
    uint64_t n, capacity;
    uint8_t *bytes; /* of a file */
    uint64_t bytes_capacity;
    sd_pixels pixels, turned;
};

/* ---- the set of one picture ---- */
static sodet_status open_one(void *self, uint64_t *n, sodet_err *err)
{
    (void)self, (void)err;
    *n = 1;
    return SODET_OK;
}

static sodet_status describe_one(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    (void)index, (void)err;
    const sodet_detector *d = self;
    sodet_sample_set_id(out, "picture", 1);
    sodet_sample_set_size(out, d->width, d->height);
    return SODET_OK;
}

static sodet_status pixels_of_one(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    (void)index;
    const sodet_detector *d = self;
    uint8_t *to;
    sodet_status s = sodet_sample_new_pixels(out, d->width, d->height, 3, &to, err);
    for (uint32_t y = 0; s == SODET_OK && y < d->height; y++)
        memcpy(to + (size_t)y * d->width * 3, d->rgb + y * d->stride, (size_t)d->width * 3);
    return s;
}

static const sodet_dataset_ops one = {
    .struct_size = sizeof(sodet_dataset_ops), .open = open_one, .describe = describe_one, .pixels = pixels_of_one};

/* ---- the detector ---- */
sodet_status sodet_detector_open(const char *checkpoint, const sodet_detector_options *options, sodet_detector **out, sodet_err *err)
{
    *out = NULL;
    sodet_detector_options o = {0};
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    sodet_detector *d = sd_alloc(1, sizeof *d);
    sd_override *overrides = sd_alloc(o.n_settings, sizeof *overrides);
    sodet_status s = d && overrides ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a detector");
    for (uint32_t i = 0; s == SODET_OK && i < o.n_settings; i++)
        overrides[i] = (sd_override){o.settings[i], NULL};
    if (s == SODET_OK)
        s = sd_opened_open(&d->opened, checkpoint, overrides, o.n_settings, err);
    sd_free(overrides);
    if (s == SODET_OK)
        s = sd_split_open_links(d->opened.cfg, SD_SPLIT_VAL, &d->split, err);
    if (s == SODET_OK) {
        sd_infer_config c = {.pool = d->opened.pool, .model = d->opened.model, .segments = &d->opened.segments};
        s = sd_infer_open(&c, &d->infer, err);
    }
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
    sd_infer_close(d->infer);
    sd_split_close(&d->split);
    sd_opened_close(&d->opened);
    sd_free(d->found);
    sd_free(d->bytes);
    sd_pixels_free(&d->pixels);
    sd_pixels_free(&d->turned);
    sd_free(d);
}

uint32_t sodet_detector_class_count(const sodet_detector *d)
{
    return d->opened.n_classes;
}

const char *sodet_detector_class(const sodet_detector *d, uint32_t label)
{
    return label < d->opened.n_classes ? d->opened.classes[label] : NULL;
}

static sodet_status put(void *context, const sd_batch_item *item, const sodet_detection *detections, uint64_t n, sodet_err *err)
{
    (void)item;
    sodet_detector *d = context;
    sodet_status s = sd_grow(&d->found, &d->capacity, n, sizeof *d->found, err);
    if (s == SODET_OK && n)
        memcpy(d->found, detections, (size_t)n * sizeof *d->found);
    d->n = s == SODET_OK ? n : 0;
    return s;
}

sodet_status sodet_detector_run(sodet_detector *d, const uint8_t *rgb, uint32_t width, uint32_t height, uint64_t stride,
                                const sodet_detection **found, uint64_t *n, sodet_err *err)
{
    *found = NULL;
    *n = 0;
    if (!rgb || !width || !height || (stride && stride < (uint64_t)width * 3))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "a picture of %ux%u with rows %llu bytes apart; at least one pixel and width * 3 bytes are expected", width,
                          height, (unsigned long long)stride);
    d->rgb = rgb;
    d->width = width;
    d->height = height;
    d->stride = stride ? stride : (uint64_t)width * 3;
    d->n = 0;
    sd_dataset_part part = {"picture", &one, d};
    sd_dataset *set = NULL;
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    sodet_status s = sd_dataset_open(&part, 1, d->opened.classes, d->opened.n_classes, &rules, &set, err);
    if (s == SODET_OK) {
        d->split.dataset = set;
        sd_loader_config c = sd_split_loader(d->opened.cfg, &d->split, SD_SPLIT_VAL);
        sd_infer_stats stats;
        c.batch = c.threads = c.depth = 1;
        s = sd_infer_run(d->infer, &c, put, NULL, d, &stats, err);
        d->split.dataset = NULL;
    }
    sd_dataset_close(set);
    if (s == SODET_OK) {
        *found = d->found;
        *n = d->n;
    }
    return s;
}

sodet_status sodet_detector_run_file(sodet_detector *d, const char *path, const sodet_detection **found, uint64_t *n, const uint8_t **rgb,
                                     uint32_t *width, uint32_t *height, sodet_err *err)
{
    *found = NULL;
    *n = 0;
    if (rgb)
        *rgb = NULL;
    sd_decode_options options = {0};
    sodet_status s = sd_decode_file(path, &options, &d->bytes, &d->bytes_capacity, &d->pixels, &d->turned, err);
    if (s == SODET_OK)
        s = sodet_detector_run(d, d->pixels.rgb, d->pixels.width, d->pixels.height, 0, found, n, err);
    if (s != SODET_OK)
        return s;
    if (rgb)
        *rgb = d->pixels.rgb;
    if (width)
        *width = d->pixels.width;
    if (height)
        *height = d->pixels.height;
    return SODET_OK;
}
