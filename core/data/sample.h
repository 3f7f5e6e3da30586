/* data/sample.h: what a sodet_sample is inside core/data/. Zero-initialised memory is an empty sample. */
#ifndef SD_DATA_SAMPLE_H
#define SD_DATA_SAMPLE_H

#include "core/data/dataset.h"
#include "core/data/decode.h"
#include "core/data/resize.h"
#include "kernels/pixels/pixels.h"
#include "sodet/data.h"

/* What add_object met. The dataset's first look passes a listener; afterwards the same things are skipped without a word. */
enum { SD_NOTE_UNKNOWN_CLASS = 1, SD_NOTE_BAD_BOX, SD_NOTE_OUTSIDE };
typedef struct sd_listener {
    void (*note)(void *context, uint32_t kind, const char *class_name, const sodet_box *box, const char *sentence);
    void *context;
} sd_listener;

/* Names of classes are compared without blanks and line ends at both ends. The name from there, and its length. */
const char *sd_class_name(const char *name, size_t *n);
/* by_name: labels in the order of names. -1: there is no such class. */
int32_t sd_class_find(const sd_classes *classes, const uint32_t *by_name, const char *name);

/* A float picture buffer: [height][width][channels]. */
typedef struct sd_plane {
    float *pixels;
    uint64_t capacity; /* floats */
} sd_plane;

#define SD_RECOLOURS 4

/* What a device is to make of a picture: a row of the tables of kernels/pixels/pixels.h, and the pixels. */
typedef struct sd_pixel_row {
    const uint8_t *rgb; /* [place's ROWS][place's ROW][3]; NULL: to be made of the JPEG */
    uint64_t bytes;     /* of that */
    const uint8_t *coded;
    uint64_t n_coded;
    int32_t place[SODET_PIXELS_PLACES]; /* FIRST is the batch's to set */
    float value[SODET_PIXELS_VALUES];
} sd_pixel_row;

struct sodet_sample {
    const sd_classes *classes;
    const uint32_t *by_name; /* [classes->n] labels in the order of names, for lookup */
    const sd_data_rules *rules;
    float mean[3]; /* RGB */
    uint32_t input_width, input_height;
    const sd_listener *listener;

    sd_text id, source, path; /* length 0: not set */
    int64_t number;
    uint32_t width, height; /* as the annotation says; 0: it does not */
    sodet_object *objects;
    uint64_t n_objects, capacity;
    uint32_t added; /* add_object calls, for messages */

    uint8_t *encoded; /* of set_bytes, or a file's */
    uint64_t n_encoded, encoded_capacity;
    sd_pixels stored, turned;
    bool has_pixels; /* `stored` is filled */
    bool grey;       /* one channel of it is, at the buffer's end */
    bool as_float;   /* the pixels are in planes[plane]; else they are still `stored` */
    sd_view view;    /* what of them is the picture, see resize.h */
    bool records;    /* pixels are the device's: what is done to them is written down, as sd_sample_pixel_row reads it */
    bool leaves; /* records: JPEGs that the device takes (sd_decode_by_host) are not decoded: of `stored` the size alone is then valid */
    uint64_t n_coded;    /* of such a one, in `encoded`; 0: the picture was decoded */
    const char *by_host; /* leaves: why it was decoded, or NULL */
    bool resized;        /* records: `window` was resized to `view`, behind the first `before` colours */
    sd_view window;
    uint32_t before;
    const char *refused; /* records: what a transform wanted that cannot be written down ("looks at the pixels"), or NULL */
    bool plain;          /* as_float, and the view is the whole plane: `image` is valid */
    sodet_image image;
    sd_plane planes[2];                /* the current picture and the one before it */
    uint32_t plane;                    /* which of them is the current one */
    sd_recolour colours[SD_RECOLOURS]; /* what the pixels are still to go through, before the view's fill */
    uint32_t n_colours;
    uint32_t original_width, original_height;
    double map[6];       /* original to current pixels */
    sodet_status broken; /* of a call that cannot return a status */
    float *rows;         /* resampling scratch */
    uint64_t rows_capacity;
    int32_t *taps;
    uint64_t taps_capacity;

    struct sodet_sample **partners;
    uint32_t n_partners;
};

void sd_sample_reset(sodet_sample *s); /* keeps the buffers */
void sd_sample_clear(sodet_sample *s); /* frees them */
/* The picture that pixels() gave, decoded; sizes and map are set, objects clipped. */
sodet_status sd_sample_decode(sodet_sample *s, sodet_err *err);
/* Of a sample that records, decoded and through its transforms. rgb and coded stay the sample's. */
void sd_sample_pixel_row(const sodet_sample *s, sd_pixel_row *out);
/* How far a box reaches over the edge of a picture of this size, in pixels; 0: not at all. HUGE_VAL: it lies wholly outside. */
double sd_box_over(const sodet_box *b, double width, double height);
/* The rules' `outside` for a picture of this size (0x0: not known, nothing is done). Boxes over the edge by SD_EDGE pixels or less, which is
 * how labels are rounded, are left to clipping. */
#define SD_EDGE 0.5
sodet_status sd_sample_apply_edges(sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err);
/* The box around the four corners of b under m. */
void sd_affine_box(sodet_box *b, const double m[6]);
/* 6-element affine: inverse of m; the identity if m has none. */
void sd_affine_inverse(const double m[6], double inverse[6]);

#endif
