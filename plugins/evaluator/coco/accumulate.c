/* From marks to precision and recall: step h.5 of the COCO measure.
 *
 * Only hits matter for the curve: the precision at the k-th hit, made monotone from the right, is what every recall point between the
 * (k-1)-th and the k-th hit reads; a recall beyond the last hit reads 0. So no array over detections is built. */
#include "coco.h"

#include <stdlib.h>
#include <string.h>

void coco_params(coco_run *r)
{
    /* numpy.linspace: begin + i * step, the last one as given; 0.9 is 0.8999999999999999 in it. */
    for (int t = 0; t < THRESHOLDS; t++)
        r->threshold[t] = t * ((0.95 - 0.5) / (THRESHOLDS - 1)) + 0.5;
    r->threshold[THRESHOLDS - 1] = 0.95;
    for (int i = 0; i < RECALLS; i++)
        r->recall[i] = i * (1.0 / (RECALLS - 1));
    r->recall[RECALLS - 1] = 1;
    static const double lo[AREAS] = {0, 0, 32 * 32, 96 * 96}, hi[AREAS] = {1e10, 32 * 32, 96 * 96, 1e10};
    memcpy(r->lo, lo, sizeof lo);
    memcpy(r->hi, hi, sizeof hi);
}

/* Mean over the recall points of a curve with `hits` hits, precision[k] at the k-th, of n objects. */
static double mean_precision(const coco_run *r, double *precision, uint64_t hits, uint64_t n)
{
    for (uint64_t k = hits; k-- > 1;)
        if (precision[k] > precision[k - 1])
            precision[k - 1] = precision[k];
    double sum = 0;
    uint64_t k = 0;
    for (int i = 0; i < RECALLS; i++) {
        while (k < hits && (double)(k + 1) / (double)n < r->recall[i])
            k++;
        if (k == hits)
            break;
        sum += precision[k];
    }
    return sum / RECALLS;
}

int64_t coco_accumulate(const coco_run *r, uint32_t c, int area, const uint64_t *order, double precision[THRESHOLDS],
                        double recall[3][THRESHOLDS])
{
    const sodet_eval_groups *g = &r->groups;
    uint64_t n = 0, first = g->detection_first[c], count = g->detection_first[c + 1] - first;
    for (uint64_t o = g->object_first[c]; o < g->object_first[c + 1]; o++)
        n += !coco_ignored(r, o, area);
    if (n == 0)
        return 0;
    double *curve = malloc((size_t)n * THRESHOLDS * sizeof *curve);
    if (!curve)
        return -1;
    uint64_t hits[THRESHOLDS] = {0}, misses[THRESHOLDS] = {0}, all_missed = 0, few[2][THRESHOLDS] = {{0}};
    for (uint64_t i = 0; i < count; i++) {
        const coco_mark *m = &r->marks[first + order[i]];
        if (m->rank == MOST)
            continue;
        unsigned hit = m->hit[area] & ~(unsigned)m->ignored[area], miss = ALL_HITS & ~(unsigned)(m->hit[area] | m->ignored[area]);
        if (miss == ALL_HITS) { /* by far the most */
            all_missed++;
            continue;
        }
        for (int t = 0; t < THRESHOLDS; t++) {
            if (miss >> t & 1)
                misses[t]++;
            if (!(hit >> t & 1))
                continue;
            uint64_t k = hits[t]++;
            few[0][t] += m->rank < 1;
            few[1][t] += m->rank < 10;
            /* 2^-52 is numpy.spacing(1), as in pycocotools. */
            curve[(uint64_t)t * n + k] = (double)(k + 1) / ((double)(misses[t] + all_missed) + (double)(k + 1) + 0x1p-52);
        }
    }
    for (int t = 0; t < THRESHOLDS; t++) {
        precision[t] = mean_precision(r, curve + (uint64_t)t * n, hits[t], n);
        recall[0][t] = (double)few[0][t] / (double)n;
        recall[1][t] = (double)few[1][t] / (double)n;
        recall[2][t] = (double)hits[t] / (double)n;
    }
    free(curve);
    return (int64_t)n;
}
