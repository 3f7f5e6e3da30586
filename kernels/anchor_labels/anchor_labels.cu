#include "kernels/anchor_labels/anchor_labels.h"
#include "kernels/device_flat.h"

static __global__ void anchor_labels(int32_t *y, const int32_t *index, const int32_t *label, int64_t n, int64_t anchors, int64_t boxes,
                                     sodet_anchor_labels_attr attr)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const int32_t k = index[i];
        y[i] = k >= 0 && k < boxes ? label[i / anchors * boxes + k] + attr.shift : k == -1 ? attr.background : attr.ignore;
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = sodet_elements(&a->out[0].shape);
    if (n == 0)
        return 0;
    DEVICE_TRY(anchor_labels, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (int32_t *)a->out[0].data,
               (const int32_t *)a->in[0].data, (const int32_t *)a->in[1].data, n, a->in[0].shape.dim[1], a->in[1].shape.dim[1],
               *(const sodet_anchor_labels_attr *)a->attr);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_anchor_labels[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
