#include "kernels/device_sort.h"
#include "kernels/hard_negatives/hard_negatives.h"

/* A block for each image. NaN is harder than everything, which top_k's keys have the other way round. */
static __global__ void hard_negatives(float *keep, const float *loss, const int32_t *index, int64_t images, int64_t n,
                                      sodet_hard_negatives_attr attr)
{
    __shared__ int positives, background;
    for (int64_t image = blockIdx.x; image < images; image += gridDim.x) {
        const float *own = loss + image * n;
        const int32_t *of = index + image * n;
        const auto key = [&](int64_t i) {
            const float v = own[i];
            return of[i] != -1 ? DEVICE_NO_KEY : v != v ? (uint64_t)i : select_key(v, i);
        };
        int above = 0, none = 0;
        __syncthreads();
        if (threadIdx.x == 0)
            positives = background = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            above += of[i] >= 0;
            none += of[i] == -1;
        }
        atomicAdd(&positives, above);
        atomicAdd(&background, none);
        __syncthreads();
        double wanted = floor(attr.ratio * positives);
        wanted = wanted < attr.least ? attr.least : wanted;
        wanted = attr.most > 0 && wanted > attr.most ? attr.most : wanted;
        const int64_t take = wanted < background ? (int64_t)wanted : background;
        device_selected s = {0, 0};
        if (take > 0)
            s = device_select(key, n, take);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            keep[image * n + i] = of[i] >= 0 || (take > 0 && s.holds(key(i))) ? 1.0f : 0.0f;
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t images = a->in[0].shape.dim[0], n = a->in[0].shape.dim[1];
    if (images * n == 0)
        return 0;
    DEVICE_TRY(hard_negatives, device_blocks(images, 1), DEVICE_SELECT, 0, stream, (float *)a->out[0].data, (const float *)a->in[0].data,
               (const int32_t *)a->in[1].data, images, n, *(const sodet_hard_negatives_attr *)a->attr);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_hard_negatives[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
