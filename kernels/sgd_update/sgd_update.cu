#include "kernels/device_update.h"
#include "sodet/graph.h" /* with all contracts; sgd_update.h alone cannot be first */

static __global__ void sgd_update(float *p, float *v, const float *grad, const int32_t *start, const float *factor, const float *hyper,
                                  const float *scale, const float *ok, int64_t n, int64_t segments, uint32_t nesterov)
{
    if (!device_goes(ok))
        return;
    const float lr = hyper[0], momentum = hyper[1], decay = hyper[2], by = scale ? *scale : 1.0f;
    int64_t s = -1;
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        s = device_segment(start, segments, s, i);
        const float at = p[i];
        float g = by * grad[i] + decay * factor[2 * s + 1] * at;
        if (v) {
            const float now = momentum * v[i] + g;
            v[i] = now;
            g = nesterov ? g + momentum * now : now;
        }
        p[i] = at - lr * factor[2 * s] * g;
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = a->in[0].shape.dim[0];
    if (n == 0)
        return 0;
    DEVICE_TRY(sgd_update, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               a->n_out > 1 ? (float *)a->out[1].data : (float *)NULL, (const float *)a->in[1].data, (const int32_t *)a->in[3].data,
               (const float *)a->in[4].data, (const float *)a->in[5].data, device_floats(a, 6), device_floats(a, 7), n,
               a->in[3].shape.dim[0], ((const sodet_sgd_update_attr *)a->attr)->nesterov);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_sgd_update[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
