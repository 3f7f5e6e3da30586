#include "kernels/adam_update/adam_update.h"
#include "kernels/device_update.h"

static __global__ void adam_update(float *p, float *m, float *v, const float *grad, const int32_t *start, const float *factor,
                                   const float *hyper, const float *scale, const float *ok, int64_t n, int64_t segments, uint32_t decoupled)
{
    if (!device_goes(ok))
        return;
    const float beta2 = hyper[2], take1 = (float)(1 - (double)hyper[1]), take2 = (float)(1 - (double)beta2), epsilon = hyper[3];
    const float root2 = sqrtf(hyper[6]), by = scale ? *scale : 1.0f;
    int64_t s = -1;
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        s = device_segment(start, segments, s, i);
        const float lr = hyper[0] * factor[2 * s], decay = hyper[4] * factor[2 * s + 1];
        float g = by * grad[i], at = p[i];
        if (decoupled)
            at -= at * (lr * decay);
        else
            g += decay * at;
        const float mean = m[i] + take1 * (g - m[i]), square = beta2 * v[i] + take2 * g * g;
        m[i] = mean;
        v[i] = square;
        p[i] = at - lr / hyper[5] * mean / (sqrtf(square) / root2 + epsilon);
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = a->in[0].shape.dim[0];
    if (n == 0)
        return 0;
    DEVICE_TRY(adam_update, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data, (float *)a->out[1].data,
               (float *)a->out[2].data, (const float *)a->in[1].data, (const int32_t *)a->in[4].data, (const float *)a->in[5].data,
               (const float *)a->in[6].data, device_floats(a, 7), device_floats(a, 8), n, a->in[4].shape.dim[0],
               ((const sodet_adam_update_attr *)a->attr)->decoupled);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_adam_update[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
