/* kernels/device_sort.h: sorting and selecting by 64-bit keys (select.h), row by row. A key of DEVICE_NO_KEY is none: it stands behind all
 * others, and selecting passes it by. */
#ifndef SD_KERNELS_DEVICE_SORT_H
#define SD_KERNELS_DEVICE_SORT_H

#include "kernels/device_flat.h"
#include "kernels/select.h"

#define DEVICE_NO_KEY UINT64_MAX

/* ---- rising order: chunks in shared memory (bitonic; Batcher 1968), then merges of neighbouring runs, where an element's place is its
 * own in its run and its rank in the other ---- */
enum { DEVICE_CHUNK = 1024 };

static __global__ void device_sort_chunks(uint64_t *key, int64_t rows, int64_t n)
{
    __shared__ uint64_t part[DEVICE_CHUNK];
    const int64_t chunks = (n + DEVICE_CHUNK - 1) / DEVICE_CHUNK;
    for (int64_t c = blockIdx.x; c < rows * chunks; c += gridDim.x) {
        uint64_t *own = key + c / chunks * n + c % chunks * DEVICE_CHUNK;
        const int64_t left = n - c % chunks * DEVICE_CHUNK;
        const int m = left < DEVICE_CHUNK ? (int)left : DEVICE_CHUNK, t = (int)threadIdx.x;
        int size = 2;
        while (size < m)
            size *= 2;
        for (int i = t; i < size; i += (int)blockDim.x)
            part[i] = i < m ? own[i] : DEVICE_NO_KEY;
        __syncthreads();
        for (int run = 2; run <= size; run *= 2)
            for (int apart = run / 2; apart > 0; apart /= 2) {
                const int i = 2 * t - (t & (apart - 1)), k = i + apart;
                if (k < size) {
                    const uint64_t a = part[i], b = part[k];
                    if ((a > b) == ((i & run) == 0)) {
                        part[i] = b;
                        part[k] = a;
                    }
                }
                __syncthreads();
            }
        for (int i = t; i < m; i += (int)blockDim.x)
            own[i] = part[i];
        __syncthreads();
    }
}

static __global__ void device_sort_merge(uint64_t *to, const uint64_t *from, int64_t rows, int64_t n, int64_t run)
{
    for (int64_t i = device_thread(); i < rows * n; i += device_threads()) {
        const int64_t row = i / n, at = i % n, own = at / run, other = own ^ 1;
        const uint64_t *part = from + row * n, key = part[at];
        int64_t low = other * run < n ? other * run : n, high = low + run < n ? low + run : n;
        const int64_t begin = low;
        while (low < high) { /* of equal keys, those of the first run are before */
            const int64_t middle = (low + high) / 2;
            if (part[middle] < key || (own > other && part[middle] == key))
                low = middle + 1;
            else
                high = middle;
        }
        const int64_t first = (own < other ? own : other) * run, in_run = at - own * run;
        to[row * n + first + in_run + (low - begin)] = key;
    }
}

/* Sorts rows [rows, n] of key; `other` is as large. *sorted: where they stand then, one of the two. */
static inline int device_sort(uint64_t *key, uint64_t *other, int64_t rows, int64_t n, uint64_t **sorted, void *stream)
{
    *sorted = key;
    if (rows * n == 0)
        return 0;
    DEVICE_TRY(device_sort_chunks, device_blocks(rows * ((n + DEVICE_CHUNK - 1) / DEVICE_CHUNK), 1, 4 * DEVICE_BLOCKS), DEVICE_CHUNK / 2, 0,
               stream, key, rows, n);
    for (int64_t run = DEVICE_CHUNK; run < n; run *= 2) {
        DEVICE_TRY(device_sort_merge, device_blocks(rows * n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, other, (const uint64_t *)*sorted,
                   rows, n, run);
        uint64_t *swap = *sorted;
        *sorted = other;
        other = swap;
    }
    return 0;
}

/* ---- the lowest keys of a row, by one block of DEVICE_SELECT threads: digit by digit from the highest ---- */
enum { DEVICE_SELECT = 1024, DEVICE_DIGITS = 2048 };

/* key >> shift <= prefix */
struct device_selected {
    uint64_t prefix;
    int shift;
    __device__ __forceinline__ bool holds(uint64_t key) const
    {
        return key != DEVICE_NO_KEY && key >> shift <= prefix;
    }
};

/* key(i): of element i of the row, which has n; no two are equal. take: 1 .. number of keys. All threads get the result. */
template <class F> static __device__ __forceinline__ device_selected device_select(F key, int64_t n, int64_t take)
{
    __shared__ int count[DEVICE_DIGITS];
    __shared__ int warp_sum[DEVICE_SELECT / 32];
    __shared__ int found[3];
    const int t = (int)threadIdx.x, lane = t % 32, warp = t / 32;
    device_selected s = {0, 64};
    for (int digit = 0; digit < 6; digit++) {
        const int width = digit == 2 || digit == 5 ? 10 : 11, shift = s.shift - width;
        if (shift > 0 && shift < 32 && (n - 1) >> shift == 0) { /* a digit of the index that is 0 everywhere */
            s.prefix <<= width;
            s.shift = shift;
            continue;
        }
        for (int i = t; i < DEVICE_DIGITS; i += DEVICE_SELECT)
            count[i] = 0;
        __syncthreads();
        for (int64_t i = t; i < n; i += DEVICE_SELECT) {
            const uint64_t k = key(i);
            if (k != DEVICE_NO_KEY && (s.shift == 64 || k >> s.shift == s.prefix))
                atomicAdd(&count[(int)(k >> shift) & ((1 << width) - 1)], 1);
        }
        __syncthreads();
        const int first = count[2 * t], own = first + count[2 * t + 1];
        int sum = own;
        for (int d = 1; d < 32; d *= 2) {
            const int before = __shfl_up_sync(0xffffffffu, sum, d);
            sum += lane >= d ? before : 0;
        }
        if (lane == 31)
            warp_sum[warp] = sum;
        __syncthreads();
        int64_t before = sum - own;
        for (int w = 0; w < warp; w++)
            before += warp_sum[w];
        if (before < take && take <= before + own) {
            const bool in_first = take <= before + first;
            found[0] = 2 * t + (in_first ? 0 : 1);
            found[1] = (int)before + (in_first ? 0 : first);
            found[2] = in_first ? first : own - first;
        }
        __syncthreads();
        s.prefix = s.prefix << width | (uint64_t)found[0];
        s.shift = shift;
        take -= found[1];
        const bool whole = take == found[2];
        __syncthreads();
        if (whole)
            break;
    }
    return s;
}

#endif
