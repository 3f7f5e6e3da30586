/* data/colour.h: the steps of sodet/colour.h on the CPU, sixteen pixels at a time. */
#ifndef SD_DATA_COLOUR_H
#define SD_DATA_COLOUR_H

#include "sodet/data.h"

typedef struct sd_colours { /* what sodet_sample_colour keeps of a call */
    uint32_t n, clamp;
    sodet_colour_step steps[SODET_COLOUR_STEPS];
} sd_colours;
_Static_assert(sizeof(sd_colours) <= SODET_RECOLOUR_BYTES, "they are kept by the sample");

/* A sodet_recolour; how: sd_colours. */
void sd_colour_follow(const void *how, float *red, float *green, float *blue, uint32_t n);

#endif
