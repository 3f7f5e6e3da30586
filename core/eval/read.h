/* eval/read.h: what the readers of ground truth and of detections share. */
#ifndef SD_EVAL_READ_H
#define SD_EVAL_READ_H

#include "core/base/json.h"
#include "core/eval/internal.h"

/* An image (name: its file) or a category. */
typedef struct sd_named {
    int64_t id;
    const char *name;
} sd_named;

/* Each reads one value of the parser and raises the parser's error. */
int64_t sd_read_id(sd_json *j); /* an integer, or a string that holds one */
void sd_read_bbox(sd_json *j, double xywh[4]);
void sd_read_named(sd_json *j, sd_pool *pool, const char *name_key, sd_named *out);

/* -1: there is no such one. */
int64_t sd_gather_label(const sd_gather *g, int64_t category);
int64_t sd_gather_image_of(const sd_gather *g, int64_t key);

#endif
