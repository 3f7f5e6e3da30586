/* A thread makes one pixel of the output with all its channels: its four neighbours' bytes, through the steps. All threads of a block are
 * at one picture and take the same steps. */
#include "kernels/device_pixels.h"
#include "kernels/pixels/pixels_math.h"

template <class T>
static __global__ void pixels(T *y, const void *bytes, const int32_t *places, const float *values, device_pixels out,
                              device_divider<uint32_t> width, sodet_pixels_attr attr)
{
    for (int64_t n = blockIdx.y; n < out.images; n += gridDim.y) {
        const int32_t *place = places + n * SODET_PIXELS_PLACES;
        const float *value = values + n * SODET_PIXELS_VALUES;
        const uint8_t *picture = pixels_picture(bytes, places, n);
        for (int64_t e = device_thread(); e < (int64_t)out.height * out.width; e += device_threads()) {
            const int32_t i = (int32_t)width.quotient((uint32_t)e), j = (int32_t)e - i * out.width;
            const bool inside = i < place[SODET_PIXELS_OUT_HEIGHT] && j < place[SODET_PIXELS_OUT_WIDTH];
            pixels_rgb v = {0, 0, 0};
            if (inside)
                v = pixels_at(picture, place, value, i, j);
            T *to = y + n * out.image + device_pixel_place(out, 0, i, j);
            SODET_UNROLL
            for (int c = 0; c < 3; c++) /* a number of channels that is known leaves `attr` where it is */
                if (c < out.channels)
                    device_set(to + c * out.channel, inside ? pixels_normal(&attr, v, c) : 0.0f);
        }
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *y = &a->out[0];
    if (sodet_elements(&y->shape) == 0)
        return 0;
    const device_pixels out = device_pixels_of(&y->shape, y->layout);
    const int64_t each = (int64_t)out.height * out.width, images = out.images < 32768 ? out.images : 32768;
    if (each > INT32_MAX)
        return (int)cudaErrorInvalidValue;
    device_divider<uint32_t> width;
    device_divide_by(&width, out.width);
    return device_storage(y->shape.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        DEVICE_TRY((pixels<T>), dim3(device_blocks(each, DEVICE_THREADS, 1 + 8 * DEVICE_BLOCKS / images), (unsigned)images), DEVICE_THREADS,
                   0, stream, (T *)y->data, a->in[0].data, (const int32_t *)a->in[1].data, (const float *)a->in[2].data, out, width,
                   *(const sodet_pixels_attr *)a->attr);
        return 0;
    });
}

extern "C" const sodet_cuda_kernel sodet_cuda_pixels[] = {{sizeof(sodet_cuda_kernel), SODET_CUDA_LAST | SODET_CUDA_NARROW, NULL, forward}};
