#include "kernels/device_flat.h"
#include "kernels/encode_boxes/encode_boxes.h"

/* In double: a difference of large coordinates is divided by what may be small. */
static __global__ void encode_boxes(float *y, const int32_t *index, const float *truth, const float *anchor, int64_t n, int64_t anchors,
                                    int64_t boxes, sodet_encode_boxes_attr attr)
{
    const double one = attr.plus_one ? 1 : 0;
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const int32_t k = index[i];
        const bool none = k < 0 || k >= boxes;
        const float *t = truth + 4 * (none ? 0 : i / anchors * boxes + k), *a = anchor + i % anchors * 4;
        SODET_UNROLL
        for (int d = 0; d < 2; d++) {
            float at = 0, grow = 0;
            if (!none) {
                const double size = (double)t[d + 2] - t[d] + one, centre = t[d] + size / 2;
                at = (float)((centre - a[d]) / a[d + 2] / attr.variance[d]);
                grow = (float)(log(size / a[d + 2] + attr.epsilon) / attr.variance[d + 2]);
            }
            y[4 * i + d] = at;
            y[4 * i + d + 2] = grow;
        }
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = sodet_elements(&a->in[0].shape);
    if (n == 0)
        return 0;
    DEVICE_TRY(encode_boxes, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const int32_t *)a->in[0].data, (const float *)a->in[1].data, (const float *)a->in[2].data, n, a->in[0].shape.dim[1],
               a->in[1].shape.dim[1], *(const sodet_encode_boxes_attr *)a->attr);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_encode_boxes[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
