/* hard_negatives: which anchors of each image count in the class loss: all positives (index >= 0), and of the background (index -1) the `take` with the
 * highest loss; ignored ones (-2) never.
 *     take = min(background anchors, max(least, floor(ratio positives)), most)
 * Equal losses: lower anchor first. A NaN counts as the highest loss, so that it is seen and not hidden.
 *
 * loss [N, A] F32, index [N, A] I32; keep [N, A] F32, 1 or 0. The choice is a constant to the gradient. Exact.
 * Liu et al. 2016, section 2.2: ratio 3, least 0. Dialects: ratio 3, least 0 is Caffe's (its key, the loss of the background class, is the loss of a background
 * anchor), torchvision's, NVIDIA's and GluonCV's (min_hard_negatives is `least`); ssd.pytorch takes at most A - 1 (`most`). Systems that rank positives as loss 0
 * may take a positive twice; here a positive is never a negative. */
#ifndef SODET_KERNELS_HARD_NEGATIVES_H
#define SODET_KERNELS_HARD_NEGATIVES_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_hard_negatives_attr {
    double ratio;
    uint32_t least, most; /* most 0: no limit */
} sodet_hard_negatives_attr;

SODET_EXPORT sodet_value sodet_hard_negatives(sodet_graph *g, sodet_value loss, sodet_value index, double ratio, uint32_t least,
                                              uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
