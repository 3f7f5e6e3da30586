/* data/boxes.h: the boxes of a whole data set, as they are labelled and as the network's input has them. No picture is decoded; where an
 * annotation does not tell its picture's size, the file's header does. */
#ifndef SD_DATA_BOXES_H
#define SD_DATA_BOXES_H

#include "core/data/loader.h"

typedef struct sd_canvas_size {
    uint32_t width, height;
    uint64_t pictures;
} sd_canvas_size;
typedef struct sd_boxes {
    uint64_t n, n_items;
    sodet_box *labelled, *box; /* [n] in the picture's pixels, clipped to it; in the input's */
    int32_t *label;            /* [n] */
    uint32_t *flags;           /* [n] SODET_BOX_* */
    uint64_t *first;           /* [n_items + 1] boxes of each picture */
    uint32_t *canvas;          /* [n_items] index of its size */
    sd_canvas_size *canvases;
    uint32_t n_canvases;
    uint64_t outside, unread; /* boxes with nothing in their picture; pictures whose size cannot be read ([data] bad_files = skip) */
} sd_boxes;

/* config: data set, links without chance and input, as for data/frame.h. */
sodet_status sd_boxes_gather(const sd_loader_config *config, sd_boxes *out, sodet_err *err);
/* The size that most pictures have in the input. */
const sd_canvas_size *sd_boxes_canvas(const sd_boxes *b);
void sd_boxes_free(sd_boxes *b); /* accepts a zeroed one */

#endif
