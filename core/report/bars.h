/* report/bars.h: tables as pictures: rows with a bar for each series. */
#ifndef SD_REPORT_BARS_H
#define SD_REPORT_BARS_H

#include "core/data/draw.h"

enum { SD_BARS_SERIES = 4 };
typedef struct sd_bars {
    const char *title;
    uint32_t n_rows, n_series;
    const char *const *label;         /* [n_rows] */
    const char *name[SD_BARS_SERIES]; /* [n_series] said in the title's line */
    const double
        *value[SD_BARS_SERIES]; /* [n_series][n_rows] 0 or more; each series is drawn as shares of its sum, so that a large and a small
                                          * set can be compared; the values themselves are written beside the bars */
} sd_bars;
/* Pixels that it takes, at a width of SD_BARS_WIDTH. */
enum { SD_BARS_WIDTH = 640 };
uint32_t sd_bars_height(const sd_bars *b);
/* Its upper left corner at (x, y); the canvas is white there. */
void sd_bars_draw(const sd_canvas *c, uint32_t x, uint32_t y, const sd_bars *b);

#endif
