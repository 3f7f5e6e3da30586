/* kernels/device_update.h: what the updates of arenas share on the device. */
#ifndef SD_KERNELS_DEVICE_UPDATE_H
#define SD_KERNELS_DEVICE_UPDATE_H

#include "kernels/device_flat.h"
#include "kernels/update.h"

/* Input i as floats; NULL if it is absent. */
static inline const float *device_floats(const sodet_kernel_args *a, uint32_t i)
{
    return i < a->n_in ? (const float *)a->in[i].data : NULL;
}

/* Whether an update is to be made: its flag is absent or neither 0 nor NaN. */
static __device__ __forceinline__ bool device_goes(const float *ok)
{
    return !ok || (*ok != 0 && *ok == *ok);
}

/* Segment that element i lies in, if the thread's last one was `s`: arenas are walked in rising order, and segments are long. */
static __device__ __forceinline__ int64_t device_segment(const int32_t *start, int64_t segments, int64_t s, int64_t i)
{
    if (s >= 0 && (s + 1 == segments || i < start[s + 1]))
        return s;
    return update_segment(start, segments, i);
}

#endif
