/* data/pipeline.h: what happens to one sample between the data set and its row of a batch: loading, the chain of transforms, and
 * normalisation into the row. Used by loader threads; every worker has its own state. */
#ifndef SD_DATA_PIPELINE_H
#define SD_DATA_PIPELINE_H

#include "core/data/loader.h"
#include "core/data/sample.h"

typedef struct sd_worker {
    const sd_dataset *dataset;
    const sd_link *links;
    uint32_t n_links;
    const sd_input *input;
    uint64_t seed;
    bool records; /* pixels are the device's */
    bool leaves;  /* so is the decoding of JPEGs */
    void *owner;  /* the loader's own */
    sodet_sample *sample;
    sodet_sample **partners; /* [n_partners] */
    uint32_t n_partners;
} sd_worker;

/* Fails where two links want partners, or pixels are the device's and a link wants them. */
sodet_status sd_worker_open(sd_worker *w, const sd_loader_config *config, sodet_err *err);
void sd_worker_close(sd_worker *w);
/* Where pixels are the device's: runs the links on blank pictures, so that one that cannot be written down is found now and not, by chance,
 * in the middle of a run. The streams of the run stay as they are. */
sodet_status sd_worker_try(sd_worker *w, sodet_err *err);
/* Partners that some link wants. */
uint32_t sd_links_partners(const sd_link *links, uint32_t n);
/* The canvas that a picture of this size will need. */
void sd_links_canvas(const sd_link *links, uint32_t n, const sd_input *input, uint32_t *width, uint32_t *height);
/* w->sample becomes the sample, through all links. repeat: 0, or how often the epoch has had it before. Errors name the file. */
sodet_status sd_worker_prepare(sd_worker *w, uint64_t epoch, uint64_t index, uint64_t repeat, sodet_err *err);
/* Where a picture of this size comes to lie: the links run on a blank one. map: its pixels to the network's (6, as sodet_sample_apply_affine
 * has it). For chains without chance, as validation's are. */
sodet_status sd_worker_frame(sd_worker *w, uint32_t width, uint32_t height, double map[6], sodet_err *err);
typedef struct sd_held { /* a picture until it is sent, decoded or not; zero-initialise */
    sd_pixels pixels;
    uint8_t *encoded;
    uint64_t encoded_capacity;
} sd_held;
void sd_held_free(sd_held *h);
/* Of a worker whose pixels are the device's: what the picture of s is to become in a canvas of this size. The picture goes over into *held, whose
 * memory the sample gets for its next one. */
sodet_status sd_worker_pixel_row(sd_worker *w, uint32_t width, uint32_t height, sd_held *held, sd_pixel_row *out, sodet_err *err);
/* The picture of s, normalised, into [channels][height][width], 0 where the canvas is larger. It must fit. */
sodet_status sd_normalise(sodet_sample *s, const sd_input *input, uint32_t width, uint32_t height, float *to, sodet_err *err);

#endif
