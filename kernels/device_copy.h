/* kernels/device_copy.h: copies of blocks of tensors, whatever their elements are. */
#ifndef SD_KERNELS_DEVICE_COPY_H
#define SD_KERNELS_DEVICE_COPY_H

#include "kernels/device_walk.h"

template <class U, class I>
static __global__ void device_copy_units(U *to, const U *from, int64_t n, device_divider<I> width, int64_t to_pitch, int64_t from_pitch)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        const int64_t row = width.quotient((I)i), at = i - row * width.by;
        to[row * to_pitch + at] = from[row * from_pitch + at];
    }
}

/* `rows` runs of `width` bytes; the pitches too are bytes. */
static inline int device_copy_rows(void *to, int64_t to_pitch, const void *from, int64_t from_pitch, int64_t width, int64_t rows,
                                   void *stream)
{
    const uint64_t all = (uint64_t)((uintptr_t)to | (uintptr_t)from) | (uint64_t)(to_pitch | from_pitch | width);
    const auto copy = [&](auto unit) {
        typedef decltype(unit) U;
        const int64_t size = sizeof(U), n = rows * width / size;
        return device_index(n, [&](auto zero) {
            typedef decltype(zero) I;
            device_divider<I> by;
            device_divide_by(&by, width / size);
            DEVICE_TRY((device_copy_units<U, I>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (U *)to, (const U *)from, n,
                       by, to_pitch / size, from_pitch / size);
            return 0;
        });
    };
    if (width == 0 || rows == 0)
        return 0;
    return all % 16 == 0 ? copy(uint4()) : all % 4 == 0 ? copy(uint32_t()) : copy(uint16_t());
}

/* A tensor as rows along one axis: how many, and the bytes of one. */
struct device_rows_along {
    int64_t rows, bytes;
};
static inline device_rows_along device_rows_of(const sodet_tensor *t, uint32_t axis)
{
    static const uint32_t last[4] = {0, 2, 3, 1};
    device_rows_along r = {1, device_size(t->shape.dtype)};
    bool inside = false;
    for (uint32_t i = 0; i < t->shape.rank; i++) {
        const uint32_t d = t->layout == SODET_CHANNELS_LAST ? last[i] : i;
        inside = inside || d == axis;
        if (inside)
            r.bytes *= t->shape.dim[d];
        else
            r.rows *= t->shape.dim[d];
    }
    return r;
}

/* y[i] = x[place]: any permutation or cut. */
template <class U, class I> static __global__ void device_take_units(U *to, const U *from, int64_t n, device_steps<I, 1> steps)
{
    for (int64_t i = device_thread(); i < n; i += device_threads()) {
        int64_t at[1];
        steps.at((I)i, at);
        to[i] = from[at[0]];
    }
}

/* From `from` on, which lies `first` elements into the source; size: of an element, 2 or 4 bytes. */
static inline int device_take(void *to, const void *from, int64_t first, const device_walk &w, int64_t size, void *stream)
{
    if (w.n == 0)
        return 0;
    const auto take = [&](auto unit) {
        typedef decltype(unit) U;
        return device_index(w.n, [&](auto zero) {
            typedef decltype(zero) I;
            DEVICE_TRY((device_take_units<U, I>), device_blocks(w.n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (U *)to,
                       (const U *)from + first, w.n, (device_steps_of<I, 1>(w)));
            return 0;
        });
    };
    return size == 4 ? take(uint32_t()) : take(uint16_t());
}

#endif
