/* data/rgb.h: rows of interleaved RGB: from bytes, apart into channels and together again, changed in colour. Nothing outside the n pixels
 * is read or written. */
#ifndef SD_DATA_RGB_H
#define SD_DATA_RGB_H

#include "sodet/data.h"

typedef struct sd_recolour { /* of sodet_sample_recolour */
    sodet_recolour *change;
    _Alignas(16) unsigned char how[SODET_RECOLOUR_BYTES];
} sd_recolour;

void sd_rgb_floats(const uint8_t *from, float *to, size_t n_values);
void sd_rgb_apart(const float *rgb, float *red, float *green, float *blue, size_t n);
void sd_rgb_together(const float *red, const float *green, const float *blue, float *rgb, size_t n);
void sd_rgb_grey(const float *rgb, float *grey, size_t n); /* ITU-R BT.601 luma */
/* Takes n pixels through the changes, one after the other. */
void sd_rgb_recolour(const sd_recolour *changes, uint32_t n_changes, float *rgb, size_t n);

#endif
