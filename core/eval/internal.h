/* eval/internal.h: what the files of this folder share. */
#ifndef SD_EVAL_INTERNAL_H
#define SD_EVAL_INTERNAL_H

#include "core/eval/eval.h"

typedef struct sd_rows { /* objects or detections as they came */
    void *items;
    double *xywh; /* [n][4] if has_xywh */
    uint64_t n, capacity, xywh_capacity;
    bool has_xywh;
} sd_rows;

typedef struct sd_gather_row { /* one image */
    int64_t key;
    const char *name;
    uint64_t object, n_objects, detection, n_detections; /* rows */
    uint64_t turn;                                       /* order of arrival */
} sd_gather_row;

typedef struct sd_flat { /* the arrays of sodet_eval_input */
    uint64_t *object_first, *detection_first;
    sodet_object *objects;
    double *object_xywh;
    sodet_detection *detections;
    double *detection_xywh, *scores;
} sd_flat;

struct sd_gather {
    sd_pool strings;
    uint32_t n_classes;
    const char **class_names;
    int64_t *category_ids; /* ascending if from_files */
    sd_gather_row *images;
    uint64_t n_images, image_capacity, duplicates;
    sd_rows objects, detections;
    double *scores;
    uint64_t scores_capacity;
    bool has_scores;
    bool from_files; /* flat was filled by the readers; there are no rows */
    sd_flat flat;
};

/* Box i as x y w h: given[i], or where there is none the corners. */
void sd_eval_xywh(const double *given, uint64_t i, sodet_box b, double out[4]);
/* Sorts by key and keeps the first of each. */
void sd_gather_sort(sd_gather *g);
void sd_flat_free(sd_flat *f);
/* The first image of the sorted gather whose key is at least `key`. */
uint64_t sd_gather_lower_bound(const sd_gather *g, int64_t key);

#endif
