/* kernels/device_channels.h: sums over the rows (pixels) of maps for each channel, and passes over maps with numbers of each channel; for
 * the normalisations. Plain and channels-last alike: a block has threads along the channels, as many as their packs of neighbours in
 * memory are, and along the rows.
 *
 * A block's sums stand in the scratch as one struct of doubles per channel; a second kernel merges the blocks in their order. How rows are
 * cut into blocks depends on the shape alone. */
#ifndef SD_KERNELS_DEVICE_CHANNELS_H
#define SD_KERNELS_DEVICE_CHANNELS_H

#include "kernels/device_flat.h"

/* ---- a map, or each image of it, as rows of channels ---- */
struct device_map {
    int64_t images, rows, channels; /* rows of one image; images: 1 if all of a batch are summed together */
    int64_t image;                  /* elements from image to image */
    int64_t channel;                /* from channel to channel; 1: channels last */
    int64_t area, jump;             /* plain: after `area` rows the next one lies `jump` elements further than a neighbour */
};

static inline device_map device_map_of(const sodet_tensor *t, bool each_image)
{
    const sodet_shape *s = &t->shape;
    int64_t area = 1;
    for (uint32_t i = 2; i < s->rank; i++)
        area *= s->dim[i];
    const bool last = t->layout == SODET_CHANNELS_LAST || area == 1;
    device_map m = {};
    m.images = each_image ? s->dim[0] : 1;
    m.rows = each_image ? area : area * s->dim[0];
    m.channels = s->dim[1];
    m.image = each_image ? area * s->dim[1] : 0;
    m.channel = last ? 1 : area;
    m.area = last ? 1 : area;
    m.jump = last ? 0 : area * (s->dim[1] - 1);
    return m;
}

/* How blocks lie over it: threads x along packs of V channels, y along the rows; grid x along the rows, y the channels, z the images. */
struct device_channel_grid {
    dim3 grid, block;
    int64_t rows; /* of one block */
};

enum { DEVICE_RUN = 8 /* rows that a thread sums up in float */ };

static inline device_channel_grid device_channel_grid_of(const device_map &m, int v, int64_t runs)
{
    const int64_t packs = (m.channels + v - 1) / v, x = m.channel == 1 ? device_power_of_2(packs, 32) : 1, y = DEVICE_THREADS / x;
    const int64_t groups = (packs + x - 1) / x, images = m.images < 32768 ? m.images : 32768;
    int64_t most = DEVICE_BLOCKS / (groups * images);
    device_channel_grid g;
    most = most < 1 ? 1 : most;
    const int64_t blocks = device_blocks(m.rows, y * runs * DEVICE_RUN, most);
    g.rows = (m.rows + blocks - 1) / blocks;
    g.block = dim3((unsigned)x, (unsigned)y);
    g.grid = dim3((unsigned)blocks, (unsigned)groups, (unsigned)(images < 1 ? 1 : images));
    return g;
}

/* A thread's way through its rows. */
struct device_row_walk {
    int64_t at, row, in_plane, step, plane_step, row_step, area, jump;
    __device__ __forceinline__ device_row_walk(const device_map &m, int64_t first, int64_t image, int64_t channel)
    {
        const int64_t stride = m.channel == 1 ? m.channels : 1;
        row = first;
        row_step = blockDim.y;
        area = m.area;
        jump = m.jump;
        in_plane = area == 1 ? 0 : first % area;
        plane_step = area == 1 ? 0 : row_step % area;
        at = image * m.image + channel * m.channel + first * stride + (area == 1 ? 0 : first / area * jump);
        step = row_step * stride + (area == 1 ? 0 : row_step / area * jump);
    }
    __device__ __forceinline__ void next()
    {
        row += row_step;
        at += step;
        in_plane += plane_step;
        if (in_plane >= area && area > 1) {
            in_plane -= area;
            at += jump;
        }
    }
};

/* ---- what is summed ---- */
struct device_moments { /* Chan, Golub and LeVeque 1979 */
    double count, mean, squares;
    __device__ __forceinline__ void clear()
    {
        count = mean = squares = 0;
    }
    __device__ __forceinline__ void merge(const device_moments &b)
    {
        const double n = count + b.count, d = b.mean - mean, share = b.count / n;
        if (b.count == 0)
            return;
        squares += b.squares + d * d * (count * share);
        mean += d * share;
        count = n;
    }
};

struct device_slopes { /* sum dy, sum dy * (x - mean) * r */
    double plain, along;
    __device__ __forceinline__ void clear()
    {
        plain = along = 0;
    }
    __device__ __forceinline__ void merge(const device_slopes &b)
    {
        plain += b.plain;
        along += b.along;
    }
};

/* Merges over the block's y; own[k]: channel k of the thread's pack. The sums go to part[image][block][channel]. */
template <class P, int V>
static __device__ __forceinline__ void device_channel_put(P *part, const P (&own)[V], const device_map &m, int64_t image)
{
    enum { RUN = 16 };
    SODET_DYN_SHARED(P, all);
    const unsigned x = threadIdx.x, y = threadIdx.y, row = blockDim.x * V;
    __syncthreads();
    SODET_UNROLL
    for (int k = 0; k < V; k++)
        all[y * row + x * V + k] = own[k];
    __syncthreads();
    if (y % RUN == 0)
        SODET_UNROLL
    for (int k = 0; k < V; k++)
        for (unsigned i = 1; i < RUN && y + i < blockDim.y; i++)
            all[y * row + x * V + k].merge(all[(y + i) * row + x * V + k]);
    __syncthreads();
    if (y == 0)
        SODET_UNROLL
    for (int k = 0; k < V; k++) {
        const int64_t channel = ((int64_t)blockIdx.y * blockDim.x + x) * V + k;
        for (unsigned i = RUN; i < blockDim.y; i += RUN)
            all[x * V + k].merge(all[i * row + x * V + k]);
        if (channel < m.channels)
            part[(image * gridDim.x + blockIdx.x) * m.channels + channel] = all[x * V + k];
    }
}

/* ---- moments of each channel ---- */
template <class T, int V> static __global__ void device_moments_of(device_moments *part, const T *x, device_map m, int64_t rows)
{
    const int64_t channel = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V, begin = blockIdx.x * rows;
    const int64_t end = begin + rows < m.rows ? begin + rows : m.rows;
    for (int64_t image = blockIdx.z; image < m.images; image += gridDim.z) {
        device_moments own[V];
        SODET_UNROLL
        for (int k = 0; k < V; k++)
            own[k].clear();
        device_row_walk w(m, begin + threadIdx.y, image, channel);
        while (channel < m.channels && w.row < end) {
            float v[DEVICE_RUN][V], mean[V] = {}, squares[V] = {};
            int n = 0;
            SODET_UNROLL
            for (int i = 0; i < DEVICE_RUN; i++, w.next())
                if (w.row < end) {
                    device_load<T, V>(v[i], x + w.at);
                    n++;
                }
            /* about the first row, so that a large mean costs no digits */
            SODET_UNROLL
            for (int i = 1; i < DEVICE_RUN; i++)
                if (i < n)
                    SODET_UNROLL
            for (int k = 0; k < V; k++)
                mean[k] += v[i][k] - v[0][k];
            SODET_UNROLL
            for (int k = 0; k < V; k++)
                mean[k] /= (float)n;
            SODET_UNROLL
            for (int i = 0; i < DEVICE_RUN; i++)
                if (i < n)
                    SODET_UNROLL
            for (int k = 0; k < V; k++) {
                const float d = v[i][k] - v[0][k] - mean[k];
                squares[k] += d * d;
            }
            SODET_UNROLL
            for (int k = 0; k < V; k++) {
                const device_moments run = {(double)n, (double)v[0][k] + mean[k], squares[k]};
                own[k].merge(run);
            }
        }
        device_channel_put<device_moments, V>(part, own, m, image);
    }
}

/* ---- sums of slopes. mean, r: of each channel, or (of > 0) of each image and group of `of` channels; NULL: 0, 1. by: a factor of each
 * row, NULL: 1. ---- */
template <class T, int V>
static __global__ void device_slopes_of(device_slopes *part, const T *x, const T *dy, const float *mean, const float *r, const float *by,
                                        device_map m, int64_t rows, int64_t of)
{
    const int64_t channel = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V, begin = blockIdx.x * rows;
    const int64_t end = begin + rows < m.rows ? begin + rows : m.rows, groups = of > 0 ? m.channels / of : 0;
    for (int64_t image = blockIdx.z; image < m.images; image += gridDim.z) {
        device_slopes own[V];
        float centre[V];
        SODET_UNROLL
        for (int k = 0; k < V; k++) {
            own[k].clear();
            centre[k] = mean && channel + k < m.channels ? mean[of > 0 ? image * groups + (channel + k) / of : channel + k] : 0;
        }
        device_row_walk w(m, begin + threadIdx.y, image, channel);
        while (channel < m.channels && w.row < end) {
            float plain[V] = {}, along[V] = {};
            SODET_UNROLL
            for (int i = 0; i < DEVICE_RUN; i++, w.next())
                if (w.row < end) {
                    float v[V], slope[V];
                    device_load<T, V>(v, x + w.at);
                    device_load<T, V>(slope, dy + w.at);
                    const float factor = by ? by[w.row] : 1;
                    SODET_UNROLL
                    for (int k = 0; k < V; k++) {
                        slope[k] *= factor;
                        plain[k] += slope[k];
                        along[k] += slope[k] * (v[k] - centre[k]);
                    }
                }
            SODET_UNROLL
            for (int k = 0; k < V; k++) {
                own[k].plain += plain[k];
                own[k].along += along[k];
            }
        }
        SODET_UNROLL
        for (int k = 0; k < V; k++)
            own[k].along *= r && channel + k < m.channels ? r[of > 0 ? image * groups + (channel + k) / of : channel + k] : 1;
        device_channel_put<device_slopes, V>(part, own, m, image);
    }
}

/* ---- merging: block (32, 16), one x per channel; true, and the sum, in the threads of y = 0 whose channel there is ---- */
enum { DEVICE_MERGE_X = 32, DEVICE_MERGE_Y = 16 };

template <class P>
static __device__ __forceinline__ bool device_channel_total(P *total, const P *part, int64_t blocks, int64_t channels, int64_t channel)
{
    __shared__ P all[DEVICE_MERGE_Y][DEVICE_MERGE_X];
    P own;
    own.clear();
    for (int64_t b = threadIdx.y; channel < channels && b < blocks; b += DEVICE_MERGE_Y)
        own.merge(part[b * channels + channel]);
    __syncthreads();
    all[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
    for (int y = 1; threadIdx.y == 0 && y < DEVICE_MERGE_Y; y++)
        own.merge(all[y][threadIdx.x]);
    *total = own;
    return threadIdx.y == 0 && channel < channels;
}

/* ---- passes with coefficients of each (image and) channel; in place is allowed ---- */
struct alignas(8) device_coefficients {
    float mean, a, b, c, by;
};
enum { DEVICE_PASS = 4 /* rows that a thread has in flight */ };

/* y = a (x - mean) + b; with dy: by (a dy - c - b (x - mean)). */
template <class T, int V>
static __global__ void device_channel_pass(T *y, const T *x, const T *dy, const device_coefficients *table, device_map m, int64_t rows)
{
    const int64_t channel = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V, begin = blockIdx.x * rows;
    const int64_t end = begin + rows < m.rows ? begin + rows : m.rows;
    for (int64_t image = blockIdx.z; channel < m.channels && image < m.images; image += gridDim.z) {
        device_coefficients k[V];
        SODET_UNROLL
        for (int c = 0; c < V; c++)
            k[c] = table[image * m.channels + channel + c];
        device_row_walk w(m, begin + threadIdx.y, image, channel);
        while (w.row < end) {
            float v[DEVICE_PASS][V], slope[DEVICE_PASS][V];
            int64_t at[DEVICE_PASS];
            SODET_UNROLL
            for (int i = 0; i < DEVICE_PASS; i++, w.next()) {
                at[i] = w.row < end ? w.at : -1;
                if (at[i] >= 0) {
                    device_load<T, V>(v[i], x + at[i]);
                    if (dy)
                        device_load<T, V>(slope[i], dy + at[i]);
                }
            }
            SODET_UNROLL
            for (int i = 0; i < DEVICE_PASS; i++)
                if (at[i] >= 0) {
                    SODET_UNROLL
                    for (int c = 0; c < V; c++) {
                        const float d = v[i][c] - k[c].mean;
                        v[i][c] = dy ? k[c].by * (k[c].a * slope[i][c] - k[c].c - k[c].b * d) : k[c].a * d + k[c].b;
                    }
                    device_store<T, V>(y + at[i], v[i]);
                }
        }
    }
}

/* ---- launches ---- */
/* Channels that are read at once: a pack of V where they are neighbours and whole packs. */
static inline bool device_packs(const sodet_tensor *t, const device_map &m, int v)
{
    return m.channel == 1 && m.channels % v == 0 && device_aligned(t->data, (size_t)v * (size_t)device_size(t->shape.dtype));
}

enum { DEVICE_PACK = 4 };

/* Calls f(zero of the storage type, number of channels at once as a type). */
template <int N> struct device_number {
    enum { value = N };
};
template <class F> static inline int device_channel_kind(const sodet_tensor *t, const device_map &m, F f)
{
    return device_storage(t->shape.dtype, [&](auto zero) {
        return device_packs(t, m, DEVICE_PACK) ? f(zero, device_number<DEVICE_PACK>()) : f(zero, device_number<1>());
    });
}

/* dy: NULL for the first form. */
static inline int device_pass_launch(const sodet_tensor *y, const sodet_tensor *x, const sodet_tensor *dy, const device_map &m,
                                     const device_coefficients *table, void *stream)
{
    if (sodet_elements(&y->shape) == 0)
        return 0;
    return device_channel_kind(y, m, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_channel_grid g = device_channel_grid_of(m, V, 1);
        DEVICE_TRY((device_channel_pass<T, V>), g.grid, g.block, 0, stream, (T *)y->data, (const T *)x->data,
                   dy ? (const T *)dy->data : (const T *)NULL, table, m, g.rows);
        return 0;
    });
}

static inline dim3 device_merge_grid(int64_t channels)
{
    return dim3(device_blocks(channels, DEVICE_MERGE_X, INT32_MAX));
}

/* Structs that the sums of a map take, enough for either pack: addresses are not yet known when the scratch is asked for. */
static inline int64_t device_channel_parts(const device_map &m)
{
    const int64_t whole = m.channel == 1 ? device_channel_grid_of(m, DEVICE_PACK, 2).grid.x : 0,
                  one = device_channel_grid_of(m, 1, 2).grid.x;
    return m.images * m.channels * (whole > one ? whole : one);
}

static inline int device_moments_launch(const sodet_tensor *x, const device_map &m, device_moments *part, int64_t *blocks, void *stream)
{
    return device_channel_kind(x, m, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_channel_grid g = device_channel_grid_of(m, V, 2);
        *blocks = g.grid.x;
        DEVICE_TRY((device_moments_of<T, V>), g.grid, g.block, DEVICE_THREADS * V * sizeof(device_moments), stream, part,
                   (const T *)x->data, m, g.rows);
        return 0;
    });
}

static inline int device_slopes_launch(const sodet_tensor *x, const sodet_tensor *dy, const float *mean, const float *r, const float *by,
                                       const device_map &m, int64_t of, device_slopes *part, int64_t *blocks, void *stream)
{
    return device_channel_kind(x, m, [&](auto zero, auto v) {
        typedef decltype(zero) T;
        enum { V = decltype(v)::value };
        const device_channel_grid g = device_channel_grid_of(m, V, 2);
        *blocks = g.grid.x;
        DEVICE_TRY((device_slopes_of<T, V>), g.grid, g.block, DEVICE_THREADS * V * sizeof(device_slopes), stream, part, (const T *)x->data,
                   (const T *)dy->data, mean, r, by, m, g.rows, of);
        return 0;
    });
}

#endif
