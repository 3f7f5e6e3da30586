/* sodet/data.h: samples, and the tables of the kinds that make and change them: dataset and transform.
 *
 * Boxes are pixels of the picture as it is stored in the file: x1 y1 x2 y2, 0-based, end-exclusive, float. A VOC file's 1-based
 * inclusive corners become (xmin - 1, ymin - 1, xmax, ymax).
 *
 * A sample is the core's; a dataset fills it through sodet_sample_* calls, a transform changes it. Strings and arrays that are
 * passed in are copied.
 *
 * With [data] pixels = device what the calls below say of the picture is written down, and the operator `pixels` does it: crop, mirror,
 * flip, colour, and one resize with no crop behind it. A transform that wants the pixels themselves (sodet_sample_image, _replace_image,
 * _recolour, _partner) is refused when the loader opens, by its name. With decode = device as well a JPEG that a dataset gives by its path or
 * as bytes may stay undecoded until it is on the device. */
#ifndef SODET_DATA_H
#define SODET_DATA_H

#include "sodet/colour.h"
#include "sodet/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_sample sodet_sample;
typedef struct sodet_stream sodet_stream; /* counter-based random numbers of one (seed, epoch, sample, link) */

enum { SODET_BOX_DIFFICULT = 1, SODET_BOX_CROWD = 2, SODET_BOX_TRUNCATED = 4 };
typedef struct sodet_box {
    float x1, y1, x2, y2;
} sodet_box;
typedef struct sodet_object {
    sodet_box box;
    int32_t label;  /* index in the run's class list */
    uint32_t flags; /* SODET_BOX_* */
    double area;    /* COCO's "area" (of the segmentation); the box's own where the file has none */
    int64_t id;     /* the annotation's id, 0 if it has none */
} sodet_object;

/* ---- what a dataset calls ---- */
SODET_EXPORT void sodet_sample_set_id(sodet_sample *s, const char *id,
                                      int64_t number); /* id: what a person calls it; number: COCO's image id or the row */
SODET_EXPORT void sodet_sample_set_size(sodet_sample *s, uint32_t width, uint32_t height); /* pixels, as stored */
/* The annotation file, for messages: every error and report about this sample's objects names it. */
SODET_EXPORT void sodet_sample_set_source(sodet_sample *s, const char *path);
/* Class by name: looked up in the run's class list. A name that is not there, a box that is not finite or has no area, is SODET_E_INVALID
 * with source, object and remedy in the message; where the run's rules say "skip", it is counted and reported instead, and SODET_OK
 * comes back. area < 0: the box's own. A box that reaches over the picture's edge is kept; the core clips it when it loads the picture. */
SODET_EXPORT sodet_status sodet_sample_add_object(sodet_sample *s, const char *class_name, sodet_box box, uint32_t flags, double area,
                                                  int64_t id, sodet_err *err);
SODET_EXPORT void sodet_sample_set_path(sodet_sample *s, const char *path); /* a picture file that the core decodes */
SODET_EXPORT sodet_status sodet_sample_set_bytes(sodet_sample *s, const void *bytes, size_t n,
                                                 sodet_err *err); /* an encoded picture in memory */
/* A decoded picture to fill: uint8 rows of width * channels (3: RGB, 1: grey). Valid until the sample is reset. */
SODET_EXPORT sodet_status sodet_sample_new_pixels(sodet_sample *s, uint32_t width, uint32_t height, uint32_t channels, uint8_t **out,
                                                  sodet_err *err);

typedef struct sodet_dataset_ops {
    uint32_t struct_size, flags;
    /* Finds out what there is: lists, counts, class names. Called once, before anything else; heavy work belongs here. */
    sodet_status (*open)(void *self, uint64_t *n_samples, sodet_err *err);
    /* id, size where known, objects. Any thread, several at once. Never opens the picture. */
    sodet_status (*describe)(const void *self, uint64_t index, sodet_sample *out, sodet_err *err);
    /* path, bytes or decoded picture. Any thread, several at once. */
    sodet_status (*pixels)(const void *self, uint64_t index, sodet_sample *out, sodet_err *err);
    /* NULL at the end; the pointer, or the result, may be NULL: the names then come from [data] classes. */
    const char *const *(*classes)(const void *self);
    /* COCO's category id of class i of classes(); may be NULL: i + 1. */
    int64_t (*category_id)(const void *self, uint32_t i);
} sodet_dataset_ops;

/* ---- what a transform sees ---- */
/* The picture as the transforms hand it on: interleaved rows, RGB, float 0..255 (not yet normalised). */
typedef struct sodet_image {
    uint32_t struct_size;
    uint32_t width, height, channels;
    float *pixels; /* [height][width][channels]; owned by the sample */
} sodet_image;

/* NULL if memory ran out; the core then raises the error itself, whatever the transform returns. */
SODET_EXPORT sodet_image *sodet_sample_image(sodet_sample *s);                                 /* pixels may be written */
SODET_EXPORT void sodet_sample_size(const sodet_sample *s, uint32_t *width, uint32_t *height); /* of the picture as it is now */
/* Bilinear (half-pixel centres, edges repeated) to this size, and moves map and boxes. Cheapest as the first link of a chain. */
SODET_EXPORT sodet_status sodet_sample_resize(sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err);
/* The picture becomes the window [x, x + width) x [y, y + height) of itself, which may reach over its edges: there it gets the colour `fill`
 * (RGB, 0..255; NULL: the run's mean). Moves map and boxes, clips nothing. Like mirroring, it costs nothing until the picture is looked at
 * or resized. */
SODET_EXPORT sodet_status sodet_sample_crop(sodet_sample *s, int32_t x, int32_t y, uint32_t width, uint32_t height, const float fill[3],
                                            sodet_err *err);
SODET_EXPORT void sodet_sample_mirror(sodet_sample *s); /* left and right: x1' = W - x2, x2' = W - x1 */
SODET_EXPORT void sodet_sample_flip(sodet_sample *s);   /* top and bottom: y1' = H - y2, y2' = H - y1; costs as little */
/* The picture's colours go through these steps, at most SODET_COLOUR_STEPS; copied. Costs nothing until the picture is looked at or resized,
 * and then for the pixels alone that are needed. */
SODET_EXPORT sodet_status sodet_sample_colour(sodet_sample *s, const sodet_colour_step *steps, uint32_t n, uint32_t clamp, sodet_err *err);
/* A change of colours, pixel by pixel: what becomes of one depends on it and on *how alone. The channels come apart; n is a multiple of 16,
 * and what is computed behind the picture's pixels is thrown away. Any thread, several at once. */
typedef void sodet_recolour(const void *how, float *red, float *green, float *blue, uint32_t n);
enum { SODET_RECOLOUR_BYTES = 128 };
/* The same by a function of the transform's own. how: of `size` bytes, at most SODET_RECOLOUR_BYTES; copied. */
SODET_EXPORT sodet_status sodet_sample_recolour(sodet_sample *s, sodet_recolour *change, const void *how, size_t size, sodet_err *err);
/* The run's [input] size: what a resize without a size of its own makes. */
SODET_EXPORT void sodet_sample_input_size(const sodet_sample *s, uint32_t *width, uint32_t *height);
/* The run's [input] mean as RGB grey levels 0..255: what a transform fills empty places with. */
SODET_EXPORT void sodet_sample_mean(const sodet_sample *s, float rgb[3]);
/* Partner k of those that the transform asked for (sodet_transform_ops.partners): loaded, and through the links before this one. */
SODET_EXPORT sodet_sample *sodet_sample_partner(sodet_sample *s, uint32_t k);
SODET_EXPORT const sodet_object *sodet_sample_object(const sodet_sample *s, uint32_t i);
/* Appends a copy (of a partner's object, moved). SODET_E_MEMORY. */
SODET_EXPORT sodet_status sodet_sample_append_object(sodet_sample *s, const sodet_object *object, sodet_err *err);
/* A new, uninitialised picture becomes the sample's; the old one stays readable at *old until the transform returns. */
SODET_EXPORT sodet_status sodet_sample_replace_image(sodet_sample *s, uint32_t width, uint32_t height, sodet_image *old, sodet_image *fresh,
                                                     sodet_err *err);
SODET_EXPORT uint32_t sodet_sample_object_count(const sodet_sample *s);
SODET_EXPORT sodet_object *sodet_sample_objects(sodet_sample *s);                  /* may be written */
SODET_EXPORT void sodet_sample_keep_objects(sodet_sample *s, const uint8_t *keep); /* [count]: 0 drops; order stays */
/* Composes a geometric change into the sample's map and moves its boxes: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5].
 * The core inverts the composed map for detections. Boxes that leave the picture are the transform's to clip or drop. */
SODET_EXPORT void sodet_sample_apply_affine(sodet_sample *s, const double m[6]);
SODET_EXPORT void sodet_sample_clip_objects(sodet_sample *s); /* to the picture; objects left without area are dropped */

SODET_EXPORT double sodet_stream_uniform(sodet_stream *r, double lo, double hi); /* [lo, hi) */
SODET_EXPORT uint32_t sodet_stream_below(sodet_stream *r, uint32_t n);           /* 0..n-1, unbiased */
SODET_EXPORT uint32_t sodet_stream_chance(sodet_stream *r, double probability);  /* 1 or 0 */

/* What comes out has a shape that cannot be known beforehand (crops by chance): a resize to a fixed canvas must follow. */
enum { SODET_TRANSFORM_ANY_SHAPE = 1 };
typedef struct sodet_transform_ops {
    uint32_t struct_size, flags; /* SODET_TRANSFORM_* */
    /* One sample, on a loader thread; several threads at once. All chance comes from r. */
    sodet_status (*apply)(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err);
    /* The shape of canvas that a picture of this size will need, where it is known beforehand (resize; a multiple included); may be NULL:
     * unchanged. 0 x 0 stands for the run's [input] size. The sampler uses it to put pictures of one shape into a batch. */
    void (*shape)(const void *self, uint32_t *width, uint32_t *height);
    uint32_t partners; /* other samples that apply wants to see (mosaic, mix-up); the sampler draws them. 0 or absent: none */
} sodet_transform_ops;

#ifdef __cplusplus
}
#endif
#endif
