/* data/loader.h: batches, prepared by threads, in an order that depends on (seed, epoch, position) alone.
 *
 * Each sample is decoded, goes through the transforms, is normalised into its row of the batch and gets the head's assignment. The
 * stream of batches is bit-identical for any number of threads and wherever it is begun. A batch's canvas is what the transforms' shape
 * callbacks make of its pictures' sizes (one shape for all after a resize to a fixed size). Memory is taken when the loader is opened;
 * afterwards only decoding libraries allocate.
 *
 * With device_pixels a row is the decoded picture and what the transforms say of it (sodet/data.h), drawn from the same streams: boxes and all
 * else are as without, and the operator `pixels` makes of it what the row would be. Opening looks for the largest picture, in headers
 * where annotations do not tell, and tries the chain. Each row's pictures lie in a buffer that grows to the largest it has had. With
 * device_jpegs as well, JPEGs stay as they are in the file; what is damaged behind their headers is then the device's to find.
 *
 * Threads: open, next, recycle and close belong to one thread; the loader's own threads call the dataset's, the transforms' and the
 * head's functions, several at once. */
#ifndef SD_DATA_LOADER_H
#define SD_DATA_LOADER_H

#include "core/config/sections.h"
#include "core/data/dataset.h"

struct sodet_boxes;
struct sodet_object;
struct sodet_coded;
struct sodet_transform_ops;

typedef struct sd_input {   /* [input] */
    uint32_t width, height; /* what a resize without a size of its own makes */
    uint32_t pad_to;        /* sides of a canvas are rounded up to multiples of this; 0: 1 */
    uint32_t channels;      /* SD_CHANNELS_* */
    float mean[3], std[3];  /* in the order of channels, in grey levels 0..255: (pixel - mean) / std. Padding is 0 afterwards */
} sd_input;
uint32_t sd_input_channels(const sd_input *in); /* 3 or 1 */

typedef struct sd_link { /* one transform, created by its plugin */
    const char *label;
    const struct sodet_transform_ops *ops;
    const void *self;
} sd_link;

/* The head, as the loader needs it (data/model_assigner.h makes one of a model). assign NULL: no targets are made (inference). */
typedef struct sd_assigner {
    /* What the head has for an input shape, and its number of anchors; called by sd_loader_open, once for each shape; valid until close. */
    sodet_status (*grid)(void *context, uint32_t width, uint32_t height, const void **grid, uint64_t *n_anchors, sodet_err *err);
    /* index[n_anchors] of one image; a loader thread, several at once. */
    sodet_status (*assign)(void *context, const void *grid, const struct sodet_boxes *truth, int32_t *index, sodet_err *err);
    void *context;
} sd_assigner;

/* SD_LAST_* (WRAP fills from the beginning of the epoch's order) and SD_DIFFICULT_* (IGNORE treats them as crowd): config/sections.h. */
typedef struct sd_loader_config {
    const sd_dataset *dataset;
    const sd_link *links; /* borrowed, as everything here, until close */
    uint32_t n_links;
    sd_input input;
    sd_assigner assigner;
    uint64_t seed;
    uint32_t batch;       /* images of the global batch */
    uint32_t shuffle;     /* training: order and chance by (seed, epoch); 0: the data set's order, one epoch, then the end */
    uint32_t last;        /* SD_LAST_* */
    uint32_t difficult;   /* SD_DIFFICULT_* */
    double min_side;      /* objects with a shorter side after the transforms, in network pixels, are dropped; 0: none are */
    uint32_t max_objects; /* T of the truth table; 0: what the data set needs */
    uint32_t max_shapes;  /* keep-ratio resizing: at most so many canvases; similar ones are merged; 0: 8 */
    uint32_t threads;     /* 0: one for each processor this process may use */
    uint32_t depth;       /* batches made ahead; 0: 3 */
    uint64_t epoch, step; /* where to begin: resume gives the epoch and the number of its batches that are done */
    uint32_t
        device_pixels; /* 1: pixels are not made here: batches have `picture` and the tables of kernels/pixels/pixels.h, see data/send.h */
    uint32_t device_jpegs; /* 1: nor are JPEGs decoded here that a device takes (sd_decode_by_host); with device_pixels */
    uint32_t part, parts;  /* this process makes rows [batch * part / parts, batch * (part + 1) / parts) of each batch; parts 0: 1 */
} sd_loader_config;

/* What becomes of an object behind the transforms; flags: SODET_BOX_* as training has them, by `difficult`. */
enum { SD_OBJECT_TRAINS, SD_OBJECT_SMALL, SD_OBJECT_LEFT_OUT };
uint32_t sd_loader_takes(const sd_loader_config *c, const struct sodet_object *o, uint32_t *flags);

typedef struct sd_batch_item {
    uint64_t sample;        /* index in the data set: sd_dataset_item names it */
    uint64_t planned;       /* what the epoch has here; another than `sample`: it could not be read, and that one stands in */
    uint32_t width, height; /* of the picture inside the canvas (top left) */
    uint32_t original_width, original_height; /* of the file's picture, upright */
    double inverse[6];                        /* canvas to original pixels: X = m0 x + m1 y + m2, Y = m3 x + m4 y + m5 */
    uint32_t n_objects;                       /* rows of truth that are used */
    uint32_t positives;                       /* anchors with index >= 0 */
    uint32_t missing;                         /* 1: could not be read and was skipped; its row is blank (only without shuffle) */
} sd_batch_item;

typedef struct sd_batch_picture { /* its rows of RGB bytes, as far as they are seen; or a JPEG, of which all rows will be there */
    const char *name;
    const uint8_t *rgb; /* NULL: there is no picture, or it is a JPEG */
    uint64_t bytes;     /* of RGB */
    const uint8_t *coded;
    uint64_t n_coded;
    const char *by_host;   /* device_jpegs: why it is none, a phrase (sd_decode_by_host), or NULL */
    uint32_t jpegs_before; /* of the batch */
} sd_batch_picture;

typedef struct sd_batch {
    uint64_t epoch, step, steps; /* step: of this batch in its epoch, from 0; steps: batches of this epoch */
    uint64_t consumed;           /* samples of the epoch that have been handed out, this batch included; over all parts */
    uint32_t n, global_n;        /* rows here, and in all parts together */
    uint32_t width, height, channels;
    uint32_t n_anchors, max_objects; /* A (0 without assigner), T */
    float *image;                    /* [n][channels][height][width]; NULL with device_pixels */
    uint64_t picture_bytes;          /* device_pixels: at most so many has a picture, a multiple of SODET_PIXELS_UNIT; else 0 */
    const sd_batch_picture *picture; /* [n] device_pixels */
    const struct sodet_coded *jpeg;  /* [n_jpegs] device_jpegs: in the order of rows, each at its place behind row 0's picture */
    uint32_t n_jpegs;
    int32_t *place;       /* [n][SODET_PIXELS_PLACES] */
    float *value;         /* [n][SODET_PIXELS_VALUES] */
    int32_t *index;       /* [n][A] row of truth, -1 background, -2 ignored */
    float *truth;         /* [n][T][4] x1 y1 x2 y2 in canvas pixels; 0 behind n_objects */
    int32_t *label;       /* [n][T] 0..C-1; 0 behind n_objects */
    uint32_t *flags;      /* [n][T] SODET_BOX_* */
    sd_batch_item *items; /* [n] */
} sd_batch;

typedef struct sd_loader_shape { /* every kind of batch that this loader will hand out, so that plans can be made beforehand */
    uint32_t n, width, height, n_anchors;
    uint64_t per_epoch; /* batches */
} sd_loader_shape;
typedef struct sd_loader_stats {
    double wait;                 /* seconds that sd_loader_next has waited for data, in all */
    uint64_t skipped;            /* pictures that could not be read and were skipped (rules.bad_file) */
    uint64_t small;              /* objects dropped because of min_side */
    const char *first_skipped;   /* its error, or NULL */
    uint64_t by_device, by_host; /* device_jpegs: pictures of batches handed out, left to the device, and others */
    const char *first_by_host;   /* "a.png, which is no JPEG", or NULL */
} sd_loader_stats;

typedef struct sd_loader sd_loader;
sodet_status sd_loader_open(const sd_loader_config *config, sd_loader **out, sodet_err *err);
const sd_loader_shape *sd_loader_shapes(const sd_loader *l, uint32_t *n);
uint32_t sd_loader_max_objects(const sd_loader *l);   /* T */
uint64_t sd_loader_steps(const sd_loader *l);         /* batches of an epoch */
uint64_t sd_loader_samples(const sd_loader *l);       /* samples that an epoch hands out, over all parts */
uint64_t sd_loader_picture_bytes(const sd_loader *l); /* of its batches */
/* The next batch; *out stays valid until it is recycled. NULL and SODET_OK: the end (shuffle 0). An error names the file; afterwards
 * only close may be called. Up to depth - 1 batches may be held at a time; they are recycled in the order of next. */
sodet_status sd_loader_next(sd_loader *l, const sd_batch **out, sodet_err *err);
void sd_loader_recycle(sd_loader *l, const sd_batch *batch);
void sd_loader_stats_get(sd_loader *l, sd_loader_stats *out);
void sd_loader_close(sd_loader *l); /* accepts NULL; stops the threads, whatever they do at most a sample longer */

#endif
