/* The backend's own kernels: conversions between forms and types, sums into a base, and the gradient of a convolution's bias. */
#include "kernels/device_flat.h"

/* Calls f with zeros of both storage types; 16-bit to another 16-bit type does not occur. */
template <class F> static inline int two_storages(uint32_t from, uint32_t to, F f)
{
    if (from == SODET_F32)
        return device_storage(to, [&](auto y) { return f(float(), y); });
    return device_storage(from, [&](auto x) { return f(x, float()); });
}

/* ---- plain <-> channels-last: for each image a transposition of [rows, columns], in tiles of 32 x 32 ---- */
enum { TILE = 32, TILE_ROWS = 8, MOST_GRID = 65535 };

template <class X, class Y> static __global__ void transpose(const X *x, Y *y, int64_t rows, int64_t columns, int64_t images)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t column = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int64_t image = blockIdx.z; image < images; image += gridDim.z) {
        const int64_t base = image * rows * columns;
        for (int64_t top = (int64_t)blockIdx.y * TILE; top < rows; top += (int64_t)gridDim.y * TILE) {
            for (int r = (int)threadIdx.y; r < TILE; r += TILE_ROWS)
                if (top + r < rows && column < columns)
                    tile[r][threadIdx.x] = device_wide(x[base + (top + r) * columns + column]);
            __syncthreads();
            const int64_t row = top + threadIdx.x;
            for (int c = (int)threadIdx.y; c < TILE; c += TILE_ROWS) {
                const int64_t out = (int64_t)blockIdx.x * TILE + c;
                if (row < rows && out < columns)
                    device_set(y + base + out * rows + row, tile[threadIdx.x][c]);
            }
            __syncthreads();
        }
    }
}

/* Few channels (pictures): one thread reads or writes the neighbours of one place. Rows are channels. */
template <class X, class Y, bool TO_LAST> static __global__ void transpose_few(const X *x, Y *y, int channels, int64_t area, int64_t places)
{
    for (int64_t i = device_thread(); i < places; i += device_threads()) {
        const int64_t image = i / area, at = i % area, plain = image * area * channels + at;
        for (int c = 0; c < channels; c++)
            if (TO_LAST)
                device_set(y + i * channels + c, device_wide(x[plain + c * area]));
            else
                device_set(y + plain + c * area, device_wide(x[i * channels + c]));
    }
}

static int convert(const sodet_kernel_args *a, void *stream)
{
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    const bool to_last = y->layout == SODET_CHANNELS_LAST;
    const int64_t images = x->shape.dim[0], channels = x->shape.dim[1], area = x->shape.dim[2] * x->shape.dim[3];
    const int64_t rows = to_last ? channels : area, columns = to_last ? area : channels;
    if (images * channels * area == 0)
        return 0;
    return two_storages(x->shape.dtype, y->shape.dtype, [&](auto from, auto to) {
        typedef decltype(from) X;
        typedef decltype(to) Y;
        const X *in = (const X *)x->data;
        Y *out = (Y *)y->data;
        if (channels <= 4) {
            const unsigned blocks = device_blocks(images * area, DEVICE_THREADS);
            if (to_last)
                DEVICE_TRY((transpose_few<X, Y, true>), blocks, DEVICE_THREADS, 0, stream, in, out, (int)channels, area, images * area);
            else
                DEVICE_TRY((transpose_few<X, Y, false>), blocks, DEVICE_THREADS, 0, stream, in, out, (int)channels, area, images * area);
            return 0;
        }
        const dim3 grid((unsigned)((columns + TILE - 1) / TILE), device_blocks(rows, TILE, MOST_GRID), device_blocks(images, 1, MOST_GRID));
        DEVICE_TRY((transpose<X, Y>), grid, dim3(TILE, TILE_ROWS), 0, stream, in, out, rows, columns, images);
        return 0;
    });
}

/* ---- element by element ---- */
template <class X, class Y> static __global__ void cast(const X *x, Y *y, int64_t n)
{
    for (int64_t i = device_thread(); i < n; i += device_threads())
        device_set(y + i, device_wide(x[i]));
}

static int cast_all(const sodet_kernel_args *a, void *stream)
{
    const int64_t n = sodet_elements(&a->in[0].shape);
    if (n == 0)
        return 0;
    return two_storages(a->in[0].shape.dtype, a->out[0].shape.dtype, [&](auto from, auto to) {
        typedef decltype(from) X;
        typedef decltype(to) Y;
        DEVICE_TRY((cast<X, Y>), device_blocks(n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (const X *)a->in[0].data, (Y *)a->out[0].data,
                   n);
        return 0;
    });
}

struct sum_of_two {
    __device__ float operator()(float x, float y) const
    {
        return x + y;
    }
};

static int add(const sodet_kernel_args *a, void *stream)
{
    return device_flat(&a->out[0], &a->in[1], &a->in[0], sum_of_two(), stream);
}

/* ---- gradient of a bias: sums of rows [rows, channels] over the rows. Blocks have a stretch of rows each and leave their sums in
 * scratch [blocks, channels]; a second pass adds those in their order. ---- */
enum { SUM_X = 32, SUM_Y = 8, SUM_ROWS = 512 /* of a block, at least */, SUM_BLOCKS = 256 };

static int64_t sum_blocks(int64_t rows)
{
    return device_blocks(rows, SUM_ROWS, SUM_BLOCKS);
}

template <class X> static __global__ void sum_stretch(const X *x, float *partial, int64_t rows, int64_t channels, int64_t stretch)
{
    __shared__ float part[SUM_Y][SUM_X];
    const int64_t c = (int64_t)blockIdx.x * SUM_X + threadIdx.x, begin = (int64_t)blockIdx.y * stretch;
    const int64_t end = begin + stretch < rows ? begin + stretch : rows;
    float sum = 0;
    if (c < channels)
        for (int64_t r = begin + threadIdx.y; r < end; r += SUM_Y)
            sum += device_wide(x[r * channels + c]);
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < channels) {
        for (int k = 1; k < SUM_Y; k++)
            sum += part[k][threadIdx.x];
        partial[(int64_t)blockIdx.y * channels + c] = sum;
    }
}

static __global__ void sum_partials(const float *partial, float *y, int64_t blocks, int64_t channels)
{
    for (int64_t c = device_thread(); c < channels; c += device_threads()) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; b++)
            sum += (double)partial[b * channels + c];
        y[c] = (float)sum;
    }
}

static uint64_t sum_scratch(const sodet_kernel_args *a)
{
    const sodet_shape *s = &a->in[0].shape;
    return (uint64_t)(sum_blocks(s->dim[0] * s->dim[2] * s->dim[3]) * s->dim[1]) * sizeof(float);
}

static int sum_channels(const sodet_kernel_args *a, void *stream)
{
    const sodet_shape *s = &a->in[0].shape;
    const int64_t channels = s->dim[1], rows = s->dim[0] * s->dim[2] * s->dim[3], blocks = sum_blocks(rows);
    float *partial = (float *)a->scratch;
    return device_storage(s->dtype, [&](auto zero) {
        typedef decltype(zero) X;
        const dim3 grid((unsigned)((channels + SUM_X - 1) / SUM_X), (unsigned)blocks);
        DEVICE_TRY(sum_stretch<X>, grid, dim3(SUM_X, SUM_Y), 0, stream, (const X *)a->in[0].data, partial, rows, channels,
                   (rows + blocks - 1) / blocks);
        DEVICE_TRY(sum_partials, device_blocks(channels, DEVICE_THREADS), DEVICE_THREADS, 0, stream, (const float *)partial,
                   (float *)a->out[0].data, blocks, channels);
        return 0;
    });
}

extern "C" {
extern const sodet_cuda_kernel cuda_convert, cuda_add, cuda_cast, cuda_sum_channels;
const sodet_cuda_kernel cuda_convert = {sizeof(sodet_cuda_kernel), 0, nullptr, convert};
const sodet_cuda_kernel cuda_add = {sizeof(sodet_cuda_kernel), 0, nullptr, add};
const sodet_cuda_kernel cuda_cast = {sizeof(sodet_cuda_kernel), 0, nullptr, cast_all};
const sodet_cuda_kernel cuda_sum_channels = {sizeof(sodet_cuda_kernel), 0, sum_scratch, sum_channels};
}
