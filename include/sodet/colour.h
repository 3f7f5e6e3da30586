/* sodet/colour.h: changes of colour that the core and the devices know: a transform says them to a sample (sodet_sample_colour), and loader
 * threads, or the operator `pixels` on a device, do them. Pixel by pixel, on red, green and blue of 0..255 in float:
 *
 *   LINEAR         v a + b for each channel
 *   SATURATE       V - f (V - v), V the largest channel: the saturation of HSV times f = a; with clamp f stops where the least channel is 0
 *   SATURATE_LUMA  Y + a (v - Y), Y = 0.299 r + 0.587 g + 0.114 b
 *   TURN           the hue of HSV turned by a sextants (60 degrees), -6..6; value and saturation stay
 *   REORDER        channels in order number a of: rgb, rbg, grb, gbr, brg, bgr
 *
 * clamp: after every step but REORDER and TURN, which stay within, channels are kept within 0..255. */
#ifndef SODET_COLOUR_H
#define SODET_COLOUR_H

#include "sodet/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SODET_COLOUR_LINEAR = 0, SODET_COLOUR_SATURATE, SODET_COLOUR_SATURATE_LUMA, SODET_COLOUR_TURN, SODET_COLOUR_REORDER };
typedef struct sodet_colour_step {
    uint32_t what; /* SODET_COLOUR_* */
    float a, b;
} sodet_colour_step;
#define SODET_COLOUR_STEPS 8 /* of one call at most */

#ifdef __cplusplus
}
#endif
#endif
