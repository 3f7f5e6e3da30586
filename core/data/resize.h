/* data/resize.h: bilinear resampling of interleaved RGB. Half-pixel centres, edges repeated, no smoothing when shrinking: what OpenCV's
 * INTER_LINEAR and torch's interpolate(bilinear, align_corners=False) compute, in float.
 *
 * The source is a view: a window of a picture, which may reach over its edges, perhaps mirrored. So an expanded canvas or a crop is never
 * made in memory, and of a picture that changes colour only what is seen does. */
#ifndef SD_DATA_RESIZE_H
#define SD_DATA_RESIZE_H

#include <stdbool.h>

#include "core/data/rgb.h"

typedef struct sd_view {
    int32_t x, y;           /* of the window in the picture */
    uint32_t width, height; /* of the window */
    bool mirror, flip;      /* its columns from right to left; its rows from bottom to top */
    float fill[3];          /* colour of what lies outside the picture */
} sd_view;

typedef struct sd_source { /* one of the two */
    const uint8_t *bytes;
    const float *floats;
    uint32_t width, height;
    const sd_recolour *colours; /* what each of its pixels goes through first; the view's fill does not */
    uint32_t n_colours;
} sd_source;

/* Scratch, in floats and in int32: the caller's. */
uint64_t sd_resize_rows(const sd_source *from, uint32_t to_width);
uint64_t sd_resize_taps(uint32_t to_width);
void sd_resize(const sd_source *from, const sd_view *view, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps);
/* The window itself, as float. */
void sd_view_copy(const sd_source *from, const sd_view *view, float *to);

#endif
