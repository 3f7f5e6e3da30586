/* pixels: pictures of bytes into the network's input: colours, window, mirroring, bilinear resizing, normalisation. One row of tables says for
 * a picture what [transform] made of it; loader threads compute the same where pixels are theirs (core/data/sample.h).
 *
 * Inputs: 0 bytes [B] I32: pictures one behind the other, each rows of RGB bytes, beginning at a multiple of 16 bytes;
 *         1 place [N, SODET_PIXELS_PLACES] I32, 2 value [N, SODET_PIXELS_VALUES] F32, by the names below.
 * Output: y [N, 3 or 1, height, width] F32. No derivative.
 *
 * For pixel (i, j) with i < OUT_HEIGHT and j < OUT_WIDTH: as bilinear in resize.h has it, the window, WIDTH x HEIGHT at (X, Y) of the picture, is
 * resampled to OUT_WIDTH x OUT_HEIGHT; MIRROR: its columns from right to left, FLIP: its rows from bottom to top. A place of the
 * window outside the picture has the colour `fill`; a pixel of the picture first goes through steps [0, BEFORE), the result through
 * steps [BEFORE, BEFORE + AFTER) (formulas: sodet/colour.h). Then y[c] = (v - mean[c]) / std[c], v being red, green and blue in the order of
 * `channels`, or grey = 0.299 r + 0.587 g + 0.114 b. All else is 0.
 * Who makes the tables keeps to the pictures' bounds; no kernel looks.
 *
 * Tolerance: floats of 0..255, nothing is rounded to bytes on the way. Hues are counted up to 20 sextants, five roundings there are 5e-6 of
 * one, and a sextant is as far as 255 grey levels: 1.3e-3 grey levels, times the factors of the steps behind it. Kernels are within
 * 0.005 grey levels (2e-5 of 255) for products of factors up to 4. */
#ifndef SODET_KERNELS_PIXELS_H
#define SODET_KERNELS_PIXELS_H

#include "sodet/colour.h"
#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_PIXELS_RGB = 0, SODET_PIXELS_BGR, SODET_PIXELS_GREY };
enum {
    SODET_PIXELS_STEPS = 16, /* of a picture at most */
    SODET_PIXELS_UNIT = 16   /* bytes */
};
static inline uint64_t sodet_pixels_units(uint64_t bytes) /* that they take */
{
    return (bytes + SODET_PIXELS_UNIT - 1) / SODET_PIXELS_UNIT;
}
enum {                         /* columns of `place` */
       SODET_PIXELS_FIRST = 0, /* where the picture's bytes begin, behind those of row 0's picture, in units of 16 bytes */
       SODET_PIXELS_ROW,       /* width and height of the picture of bytes */
       SODET_PIXELS_ROWS,
       SODET_PIXELS_X, /* of the window, in the picture */
       SODET_PIXELS_Y,
       SODET_PIXELS_WIDTH,
       SODET_PIXELS_HEIGHT,
       SODET_PIXELS_MIRROR,
       SODET_PIXELS_FLIP,
       SODET_PIXELS_OUT_WIDTH, /* 0: there is no picture */
       SODET_PIXELS_OUT_HEIGHT,
       SODET_PIXELS_BEFORE,
       SODET_PIXELS_AFTER,
       SODET_PIXELS_STEP, /* of each step SODET_COLOUR_*, + SODET_PIXELS_CLAMP */
       SODET_PIXELS_PLACES = SODET_PIXELS_STEP + SODET_PIXELS_STEPS
};
enum { SODET_PIXELS_CLAMP = 256 };
enum {                          /* columns of `value` */
       SODET_PIXELS_FILL = 0,   /* red, green, blue */
       SODET_PIXELS_STEP_A = 3, /* of each step a, and b behind it */
       SODET_PIXELS_VALUES = SODET_PIXELS_STEP_A + 2 * SODET_PIXELS_STEPS
};

typedef struct sodet_pixels_attr {
    uint32_t channels; /* SODET_PIXELS_RGB .. */
    int32_t height, width;
    float mean[3], std[3]; /* in the order of channels; std above 0 */
} sodet_pixels_attr;

SODET_EXPORT sodet_value sodet_pixels(sodet_graph *g, sodet_value bytes, sodet_value place, sodet_value value,
                                      const sodet_pixels_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
