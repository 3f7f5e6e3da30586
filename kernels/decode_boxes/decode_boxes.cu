#include "kernels/decode_boxes/decode_boxes.h"
#include "kernels/device_flat.h"

static __device__ __forceinline__ double clip(double x, double most)
{
    return most == 0 ? x : x < 0 ? 0 : x > most ? most : x;
}

/* In double, so that what overflows does so at the end alone. */
static __global__ void decode_boxes(float *y, const float *code, const float *anchor, int64_t n, int64_t table,
                                    sodet_decode_boxes_attr attr)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const float *c = code + 4 * i, *a = anchor + i % table * 4;
        SODET_UNROLL
        for (int d = 0; d < 2; d++) {
            const double most = d == 0 ? attr.clip_width : attr.clip_height;
            double grow = (double)c[d + 2] * attr.variance[d + 2];
            if (attr.clamp > 0 && grow > attr.clamp)
                grow = attr.clamp;
            const double centre = a[d] + (double)c[d] * attr.variance[d] * a[d + 2], size = a[d + 2] * exp(grow);
            y[4 * i + d] = (float)clip(centre - size / 2, most);
            y[4 * i + d + 2] = (float)clip(centre + size / 2 - (attr.plus_one ? 1 : 0), most);
        }
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = a->in[0].shape.dim[0] * a->in[0].shape.dim[1];
    if (n == 0)
        return 0;
    DEVICE_TRY(decode_boxes, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[0].data, (const float *)a->in[1].data, n, a->in[1].shape.rank == 3 ? n : a->in[1].shape.dim[0],
               *(const sodet_decode_boxes_attr *)a->attr);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_decode_boxes[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
