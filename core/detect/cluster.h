/* detect/cluster.h: typical shapes of boxes by k-means. The distance of a box from a centre is 1 - IoU of the two laid on one point
 * (Redmon and Farhadi 2016, section 2), a centre is the mean width and height of its boxes. */
#ifndef SD_DETECT_CLUSTER_H
#define SD_DETECT_CLUSTER_H

#include "core/base/base.h"

typedef struct sd_cluster {
    double width, height; /* of the centre */
    uint64_t n;           /* boxes whose nearest centre it is */
    double iou;           /* mean of those with it */
} sd_cluster;

/* IoU of two sizes laid on one point. */
double sd_size_iou(double w1, double h1, double w2, double h2);
/* size[n][2]: widths and heights above 0. out[k], by rising area; fewer than k different sizes leave clusters with n = 0 at the end, whose
 * number *used tells. Begins with k-means++'s draws from `seed`; of all rounds the one with the largest mean IoU counts. The same input
 * gives the same result. */
sodet_status sd_cluster_sizes(const double (*size)[2], uint64_t n, uint32_t k, uint64_t seed, sd_cluster *out, uint32_t *used, double *iou,
                              sodet_err *err);

#endif
