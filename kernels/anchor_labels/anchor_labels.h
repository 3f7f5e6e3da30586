/* anchor_labels: the label of each anchor, from the index that head.assign gave it:
 *     y = label[index] + shift where index >= 0;   `background` where it is -1;   `ignore` where it is less, or behind the table.
 * index [N, A] I32, label [N, T] I32; y [N, A] I32. No derivative. Exact.
 * Builders: sodet_softmax_labels (shift 1, background 0, ignore -1) and sodet_sigmoid_labels (0, -1, -2), declared in sodet/detection.h. */
#ifndef SODET_KERNELS_ANCHOR_LABELS_H
#define SODET_KERNELS_ANCHOR_LABELS_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_anchor_labels_attr {
    int32_t shift, background, ignore;
} sodet_anchor_labels_attr;

SODET_EXPORT sodet_value sodet_anchor_labels(sodet_graph *g, sodet_value index, sodet_value label, const sodet_anchor_labels_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
