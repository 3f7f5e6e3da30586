/* Few anchors have a box, so nothing is gained by vectors. A unit is GROUP anchors of one image. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define GROUP 2048

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[0].shape.dim[0] * ((a->in[0].shape.dim[1] + GROUP - 1) / GROUP);
}

static void encode(float *y, const float *t, const float *a, const sodet_encode_boxes_attr *attr)
{
    float one = attr->plus_one ? 1 : 0;
    for (int k = 0; k < 2; k++) {
        float size = t[k + 2] - t[k] + one, centre = t[k] + 0.5f * size;
        y[k] = (centre - a[k]) / a[k + 2] / attr->variance[k];
        y[k + 2] = logf(size / a[k + 2] + (float)attr->epsilon) / attr->variance[k + 2];
    }
}

static void run(const sodet_kernel_args *args, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t anchors = args->in[0].shape.dim[1], boxes = args->in[1].shape.dim[1], groups = (anchors + GROUP - 1) / GROUP;
    for (int64_t u = begin; u < end; u++) {
        int64_t b = u / groups, first = u % groups * GROUP, last = first + GROUP < anchors ? first + GROUP : anchors;
        const int32_t *index = (const int32_t *)args->in[0].data + b * anchors;
        const float *truth = (const float *)args->in[1].data + 4 * b * boxes, *table = args->in[2].data;
        float *y = (float *)args->out[0].data + 4 * b * anchors;
        memset(y + 4 * first, 0, (size_t)(last - first) * 4 * sizeof *y);
        for (int64_t i = first; i < last; i++)
            if (index[i] >= 0 && index[i] < boxes)
                encode(y + 4 * i, truth + 4 * index[i], table + 4 * i, args->attr);
    }
}

const sodet_cpu_kernel sodet_cpu_encode_boxes[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
