/* cli/found.h: what `sodet detect` does with a picture's detections: lines, CSV or JSON on the standard output, a COCO result file, drawings,
 * pictures cut out. */
#ifndef SD_CLI_FOUND_H
#define SD_CLI_FOUND_H

#include "core/cli/cli.h"
#include "core/data/dataset.h"
#include "core/data/decode.h"
#include "sodet/evaluator.h"

enum { SD_FOUND_LINES, SD_FOUND_CSV, SD_FOUND_JSON };

/* One picture; its pixels are rgb, or what the file at path holds. */
typedef struct sd_found_picture {
    uint64_t number;          /* from 1: its place among all */
    const char *file, *name;  /* in results; in a COCO file */
    const char *stem;         /* in names of files made for it */
    const char *path, *drawn; /* drawn: the file of --draw */
    const uint8_t *rgb;       /* [height][width][3], or NULL */
    uint32_t width, height;   /* upright */
} sd_found_picture;

typedef struct sd_found {          /* zero-initialise, then set what stands above the line */
    uint32_t form;                 /* SD_FOUND_* */
    double threshold;              /* weaker ones are left out */
    const char *draw, *crop, *out; /* folders, file; NULL: not wanted */
    const sd_classes *classes;
    /* ---- */
    uint64_t pictures, broken, objects;
    sd_text json, images, annotations;
    sd_pixels pixels, turned, large;
    uint8_t *bytes;
    uint64_t capacity;
} sd_found;

/* Folders are made, the CSV's header is printed. */
sodet_status sd_found_begin(sd_found *f, sodet_err *err);
/* x: scores falling. Whatever can be said is said at once; JSON and the result file are kept for the end. */
sodet_status sd_found_put(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n, sodet_err *err);
/* One that could not be read. */
void sd_found_broken(sd_found *f, const char *file, const char *why);
sodet_status sd_found_end(sd_found *f, const char *weights, double seconds, sodet_err *err);
void sd_found_free(sd_found *f);

/* The file of a crop: <folder>/<picture>-<detection>-<stem>-<class>.png; numbers of six and three digits or more come first, so no two are
 * one. What file names should not hold becomes _; long parts are cut. */
char *sd_found_crop_name(sd_pool *pool, const char *folder, uint64_t picture, uint64_t detection, const char *stem, const char *class_name);

#endif
