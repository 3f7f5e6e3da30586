/* data/resize.h: bilinear resampling of interleaved RGB. Half-pixel centres, edges repeated, no smoothing when shrinking: what OpenCV's
 * INTER_LINEAR and torch's interpolate(bilinear, align_corners=False) compute, in float. */
#ifndef SD_DATA_RESIZE_H
#define SD_DATA_RESIZE_H

#include <stdint.h>

/* Scratch, in floats and in int32: the caller's. */
uint64_t sd_resize_rows(uint32_t to_width);
uint64_t sd_resize_taps(uint32_t to_width);
void sd_resize_bytes(const uint8_t *from, uint32_t w, uint32_t h, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps);
void sd_resize_float(const float *from, uint32_t w, uint32_t h, float *to, uint32_t to_w, uint32_t to_h, float *rows, int32_t *taps);

#endif
