/* report/shots.h: small pictures with boxes drawn on, as JPEGs for a page. */
#ifndef SD_REPORT_SHOTS_H
#define SD_REPORT_SHOTS_H

#include "core/base/base.h"
#include "core/data/draw.h"

typedef struct sd_shot_box {
    sodet_box box;    /* pixels of the picture */
    const char *name; /* NULL: a thin frame without a name */
    double score;     /* < 0: none is written */
    uint8_t colour[3];
} sd_shot_box;
typedef struct sd_shot { /* zero-initialise; freed by sd_text_free(&jpeg) */
    sd_text jpeg;
    uint32_t width, height;
} sd_shot;

/* The same on a canvas of RGB bytes, which is made: its rgb is for sd_free. */
sodet_status sd_shot_paint(const sodet_image *picture, const sd_shot_box *boxes, uint64_t n, uint32_t side, const char *name,
                           sd_canvas *out, sodet_err *err);
/* The picture with its longer side `side` or, of a small one, as often as fits: shrunk by the mean of what a pixel covers, enlarged whole.
 * Boxes are drawn afterwards, the first on top. name: for messages. */
sodet_status sd_shot_make(const sodet_image *picture, const sd_shot_box *boxes, uint64_t n, uint32_t side, const char *name, sd_shot *out,
                          sodet_err *err);

#endif
