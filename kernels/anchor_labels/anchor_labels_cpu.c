/* A unit is an image. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[0].shape.dim[0];
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_anchor_labels_attr *attr = a->attr;
    int64_t anchors = a->in[0].shape.dim[1], boxes = a->in[1].shape.dim[1];
    for (int64_t b = begin; b < end; b++) {
        const int32_t *index = (const int32_t *)a->in[0].data + b * anchors, *label = (const int32_t *)a->in[1].data + b * boxes;
        int32_t *y = (int32_t *)a->out[0].data + b * anchors;
        for (int64_t i = 0; i < anchors; i++)
            y[i] = index[i] == -1 ? attr->background : index[i] < 0 || index[i] >= boxes ? attr->ignore : label[index[i]] + attr->shift;
    }
}

const sodet_cpu_kernel sodet_cpu_anchor_labels[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
