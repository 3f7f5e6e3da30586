/* detect/match.h: what the core asks of matching beside sodet/anchors.h. */
#ifndef SD_DETECT_MATCH_H
#define SD_DETECT_MATCH_H

#include "sodet/anchors.h"

/* For each of n boxes (with an area) the largest IoU with an anchor, computed as sodet_match does, and the lowest anchor that has it; 0 and
 * -1 where none overlaps. Any thread. */
void sd_best_anchors(const sodet_anchors *a, const sodet_box *boxes, uint64_t n, float *iou, int32_t *anchor);

#endif
