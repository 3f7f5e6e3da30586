/* data/coco_write.h: COCO's instances files, written: for `data export` and `data convert`. Zero-initialise; out of memory is told by
 * sd_coco_write. Marks that COCO's own format lacks are the keys "difficult" and "truncated", which sodet/coco.h reads; "ignore" says to other
 * readers what "difficult" says to ours. */
#ifndef SD_DATA_COCO_WRITE_H
#define SD_DATA_COCO_WRITE_H

#include "core/data/dataset.h"

typedef struct sd_coco_text {
    sd_text images, annotations;
    uint64_t n_images, n_objects;
} sd_coco_text;

/* Gets the next image id, from 1. source: where it comes from, or NULL. */
void sd_coco_add_image(sd_coco_text *t, const char *file_name, uint32_t width, uint32_t height, const char *source);
/* Of the image added last. bbox: x, y, width and height as text. */
void sd_coco_add_object(sd_coco_text *t, const sodet_object *o, const char *const bbox[4], const sd_classes *classes);
/* Categories have the classes' own ids, or 1, 2, ... where those do not rise, so that reading it gives the classes in this order. */
void sd_coco_whole(const sd_coco_text *t, const sd_classes *classes, sd_text *out); /* appends the file's text */
sodet_status sd_coco_write(sd_coco_text *t, const char *path, const sd_classes *classes, sodet_err *err);
void sd_coco_text_free(sd_coco_text *t);

#endif
