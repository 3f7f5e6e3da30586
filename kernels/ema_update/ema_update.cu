#include "kernels/device_flat.h"
#include "kernels/device_update.h"
#include "kernels/ema_update/ema_update.h"

static __global__ void ema_update(float *average, const float *p, const float *decay, const float *ok, int64_t n)
{
    if (!device_goes(ok))
        return;
    const float keep = *decay, take = (float)(1 - (double)*decay);
    for (int64_t i = device_thread(); i < n; i += device_threads())
        average[i] = keep == 0 ? p[i] : keep * average[i] + take * p[i];
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = a->in[0].shape.dim[0];
    if (n == 0)
        return 0;
    DEVICE_TRY(ema_update, device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (float *)a->out[0].data,
               (const float *)a->in[1].data, (const float *)a->in[2].data, device_floats(a, 3), n);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_ema_update[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
