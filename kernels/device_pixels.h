/* kernels/device_pixels.h: maps pixel by pixel, plain or channels-last, for pools and resizing: a thread makes one output pixel of V
 * channels, which are neighbours in memory if V > 1. Grids: x the elements of an image in the order of memory, y the images. */
#ifndef SD_KERNELS_DEVICE_PIXELS_H
#define SD_KERNELS_DEVICE_PIXELS_H

#include "kernels/device_flat.h"

struct device_pixels {
    int64_t images, image;        /* elements from image to image */
    int64_t channel, row, column; /* and from neighbour to neighbour */
    int32_t channels, height, width;
};

static inline device_pixels device_pixels_of(const sodet_shape *s, uint32_t layout)
{
    device_pixels p = {};
    const bool last = layout == SODET_CHANNELS_LAST;
    p.images = s->dim[0];
    p.image = s->dim[1] * s->dim[2] * s->dim[3];
    p.channel = last ? 1 : s->dim[2] * s->dim[3];
    p.row = last ? s->dim[1] * s->dim[3] : s->dim[3];
    p.column = last ? s->dim[1] : 1;
    p.channels = (int32_t)s->dim[1];
    p.height = (int32_t)s->dim[2];
    p.width = (int32_t)s->dim[3];
    return p;
}

/* Numbers of an image's pixels, and of their channels by the pack. */
struct device_pixel_steps {
    device_divider<uint32_t> first, second;
    uint32_t n, pack, last;
};

struct device_pixel {
    int32_t channel, i, j;
};

static inline device_pixel_steps device_pixel_steps_of(const device_pixels &p, int v)
{
    device_pixel_steps s = {};
    s.last = p.channel == 1;
    s.pack = (uint32_t)v;
    s.n = (uint32_t)(p.image / v);
    device_divide_by(&s.first, s.last ? p.channels / v : p.width);
    device_divide_by(&s.second, s.last ? p.width : p.height);
    return s;
}

static __device__ __forceinline__ device_pixel device_pixel_at(const device_pixel_steps &s, uint32_t e)
{
    const uint32_t q = s.first.quotient(e), a = e - q * s.first.by, c = s.second.quotient(q), b = q - c * s.second.by;
    device_pixel p;
    p.channel = (int32_t)(s.last ? a * s.pack : c);
    p.i = (int32_t)(s.last ? c : b);
    p.j = (int32_t)(s.last ? b : a);
    return p;
}

/* From the beginning of an image. */
static __device__ __forceinline__ int64_t device_pixel_place(const device_pixels &p, int32_t channel, int32_t i, int32_t j)
{
    return channel * p.channel + i * p.row + j * p.column;
}

static inline dim3 device_pixel_grid(const device_pixels &p, const device_pixel_steps &s)
{
    const int64_t images = p.images < 32768 ? p.images : 32768;
    return dim3(device_blocks(s.n, DEVICE_THREADS, 1 + 8 * DEVICE_BLOCKS / images), (unsigned)images);
}

/* Calls f(zero of the storage type, number of channels of a pack as a type) if there is anything to do. third: the address of another
 * tensor, perhaps of int32, that is read or written by the pack, or NULL. An image has less than 2^31 elements
 * (uint32_t numbers them), and its sides less than 2^15. */
template <int N> struct device_pack_of {
    enum { value = N };
};
template <class F> static inline int device_pixel_kind(const sodet_tensor *y, const sodet_tensor *x, const void *third, F f)
{
    const sodet_shape *s = &y->shape, *of = &x->shape;
    if (sodet_elements(s) == 0)
        return 0;
    if (sodet_elements(s) / s->dim[0] > INT32_MAX || s->dim[2] > INT16_MAX || s->dim[3] > INT16_MAX || of->dim[2] > INT16_MAX ||
        of->dim[3] > INT16_MAX)
        return (int)cudaErrorInvalidValue;
    return device_storage(s->dtype, [&](auto zero) {
        enum { V = 16 / sizeof(zero) };
        const bool packs = y->layout == SODET_CHANNELS_LAST && x->layout == SODET_CHANNELS_LAST && s->dim[1] % V == 0;
        const bool aligned = device_aligned(y->data, 16) && device_aligned(x->data, 16) && device_aligned(third, 32);
        return packs && aligned ? f(zero, device_pack_of<V>()) : f(zero, device_pack_of<1>());
    });
}

/* ---- the windows of a pool along one axis ---- */
struct device_window {
    int32_t kernel, stride, before, after, in, out;
    device_divider<uint32_t> by; /* stride */
};

static inline device_window device_window_of(int32_t kernel, int32_t stride, int32_t before, int32_t after, int64_t in, int64_t out)
{
    device_window w = {kernel, stride, before, after, (int32_t)in, (int32_t)out, {}};
    device_divide_by(&w.by, stride);
    return w;
}

/* Places on the map that window i covers: [*first, *end). */
static __device__ __forceinline__ void device_window_covers(const device_window &w, int32_t i, int32_t *first, int32_t *end)
{
    const int32_t from = i * w.stride - w.before;
    *first = from < 0 ? 0 : from;
    *end = from + w.kernel < w.in ? from + w.kernel : w.in;
}

/* Windows that cover place r: [*first, *end). */
static __device__ __forceinline__ void device_windows_over(const device_window &w, int32_t r, int32_t *first, int32_t *end)
{
    const int32_t behind = r + w.before, least = behind - w.kernel + 1;
    *first = least <= 0 ? 0 : (int32_t)w.by.quotient((uint32_t)(least + w.stride - 1));
    *end = (int32_t)w.by.quotient((uint32_t)behind) + 1;
    *end = *end < w.out ? *end : w.out;
}

#endif
