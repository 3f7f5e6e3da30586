#include "kernels/reference.h"

static void forward(const sodet_kernel_args *a)
{
    const sodet_anchor_labels_attr *attr = a->attr;
    const int32_t *index = a->in[0].data, *label = a->in[1].data;
    int64_t anchors = a->in[0].shape.dim[1], boxes = a->in[1].shape.dim[1];
    for (int64_t i = 0; i < sodet_elements(&a->out[0].shape); i++) {
        int32_t k = index[i];
        int32_t y = k == -1 ? attr->background : attr->ignore;
        if (k >= 0 && k < boxes)
            y = label[i / anchors * boxes + k] + attr->shift;
        ((int32_t *)a->out[0].data)[i] = y;
    }
}

const sodet_ref_kernel SODET_REF(anchor_labels)[] = {forward};
