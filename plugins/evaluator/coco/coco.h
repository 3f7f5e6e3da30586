/* The COCO measure's numbers, shared by the two halves of this evaluator. */
#ifndef COCO_H
#define COCO_H

#include "sodet/evaluator.h"

enum { THRESHOLDS = 10, RECALLS = 101, AREAS = 4, MOST = 100, ALL_HITS = (1 << THRESHOLDS) - 1 };
enum { AREA_ALL, AREA_SMALL, AREA_MEDIUM, AREA_LARGE };
enum { COMPAT_NONE, COMPAT_PYCOCOTOOLS };

typedef struct coco_cfg {
    uint32_t compat, per_class;
} coco_cfg;

/* What matching says about one detection: bit t of hit: matched at threshold t; of ignored: counts for nothing there. rank: its place
 * among the detections of its image and class, MOST: behind the last that counts. */
typedef struct coco_mark {
    uint16_t hit[AREAS], ignored[AREAS];
    uint32_t rank;
} coco_mark;

typedef struct coco_run {
    const coco_cfg *cfg;
    const sodet_eval_input *in;
    sodet_eval_groups groups;
    double threshold[THRESHOLDS], recall[RECALLS], lo[AREAS], hi[AREAS];
    coco_mark *marks; /* of each detection entry of groups */
} coco_run;

/* Thresholds, recall points and area ranges, as pycocotools' Params have them. */
void coco_params(coco_run *r);

/* ---- match.c ---- */
/* 1 if object entry o counts for nothing in area range a. */
int coco_ignored(const coco_run *r, uint64_t o, int a);
/* Matches detection entries [begin, end) of class c, which hold whole images, and writes their marks. 0: out of memory. */
int coco_match(coco_run *r, uint32_t c, uint64_t begin, uint64_t end);

/* ---- accumulate.c ---- */
/* order: the class's detection entries by falling score, relative to the first. precision[t]: mean over the recall points; recall[m][t]:
 * with at most 1, 10, 100 detections of an image. Returns the number of objects that count; 0: nothing is written. -1: out of memory. */
int64_t coco_accumulate(const coco_run *r, uint32_t c, int area, const uint64_t *order, double precision[THRESHOLDS],
                        double recall[3][THRESHOLDS]);

#endif
