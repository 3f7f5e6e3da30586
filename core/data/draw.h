/* data/draw.h: boxes and labels onto a picture of RGB bytes, for people to look at. */
#ifndef SD_DATA_DRAW_H
#define SD_DATA_DRAW_H

#include "core/base/base.h"
#include "sodet/data.h"

typedef struct sd_canvas {
    uint8_t *rgb; /* [height][width][3]; the caller's */
    uint32_t width, height;
} sd_canvas;

/* Colour of class i of n: evenly spaced hues, bright, neighbours far apart. */
void sd_class_colour(uint32_t i, uint32_t n, uint8_t rgb[3]);
/* A frame of `thickness` pixels inside the box; 0: by the picture's longer side, since that is what a picture is shrunk by when it is
 * looked at. Clipped. */
void sd_draw_box(const sd_canvas *c, sodet_box box, const uint8_t rgb[3], uint32_t thickness);
/* One line of text, its upper left corner at (x, y), moved so that it stays inside, on a bar of `rgb`, in black or white, whichever is easier to
 * read. ASCII; other characters are shown as a frame. scale: pixels per dot of the 5x7 font; 0: by the picture's longer side, smaller where the text would be wider than the picture. */
void sd_draw_text(const sd_canvas *c, int32_t x, int32_t y, const char *text, const uint8_t rgb[3], uint32_t scale);
/* Box and "name 0.93" above it (inside, if there is no room). score < 0: the name alone. A name that is too long for the picture is cut,
 * the score stays. */
void sd_draw_object(const sd_canvas *c, sodet_box box, const char *name, double score, const uint8_t rgb[3]);

/* The whole factor by which a picture is to be enlarged for names to be readable on it: 1 from 120 pixels of width on. */
uint32_t sd_draw_zoom(uint32_t width, uint32_t height);
/* Every pixel zoom x zoom times; to: [height * zoom][width * zoom][3]. */
void sd_draw_enlarge(const sd_canvas *from, uint32_t zoom, uint8_t *to);

#endif
