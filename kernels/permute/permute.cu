/* Dimensions that stay neighbours are walked as one. Where the innermost one stays innermost, runs are copied; else it and the one that
 * becomes innermost are exchanged in tiles, so that memory is read and written along its lines. */
#include "kernels/device_copy.h"
#include "kernels/permute/permute.h"

enum { TILE = 32, TILE_ROWS = 8 };

/* Along `long` y is dense, along `across` x is; the other dimensions number the planes. */
struct planes {
    int64_t across, along;              /* sizes */
    int64_t x_along, y_across;          /* strides of the other tensor */
    int64_t n, tiles_across, tiles_all; /* planes; tiles of one */
    int64_t dim[3], x[3], y[3];         /* of the planes, innermost first; 1 where there is none */
};

template <class U> static __global__ void exchange(U *y, const U *x, planes p)
{
    __shared__ U tile[TILE][TILE + 1];
    for (int64_t t = blockIdx.x; t < p.n * p.tiles_all; t += gridDim.x) {
        int64_t plane = t / p.tiles_all, in_plane = t % p.tiles_all, from = 0, to = 0;
        SODET_UNROLL
        for (int d = 0; d < 3; d++) {
            const int64_t c = plane % p.dim[d];
            plane /= p.dim[d];
            from += c * p.x[d];
            to += c * p.y[d];
        }
        const int64_t across = in_plane % p.tiles_across * TILE, along = in_plane / p.tiles_across * TILE;
        for (int r = (int)threadIdx.y; r < TILE; r += TILE_ROWS)
            if (across + threadIdx.x < p.across && along + r < p.along)
                tile[r][threadIdx.x] = x[from + (along + r) * p.x_along + across + threadIdx.x];
        __syncthreads();
        for (int r = (int)threadIdx.y; r < TILE; r += TILE_ROWS)
            if (along + threadIdx.x < p.along && across + r < p.across)
                y[to + (across + r) * p.y_across + along + threadIdx.x] = tile[threadIdx.x][r];
        __syncthreads();
    }
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_permute_attr *t = (const sodet_permute_attr *)a->attr;
    const sodet_tensor *x = &a->in[0], *y = &a->out[0];
    int64_t own[SODET_MAX_RANK] = {}, strides[1][SODET_MAX_RANK] = {}, step = 1;
    device_strides(x, own);
    for (uint32_t i = 0; i < y->shape.rank; i++)
        strides[0][i] = own[t->order[i]];
    const device_walk w = device_walk_over(y, strides, 1);
    const int64_t size = device_size(y->shape.dtype);
    if (w.n == 0)
        return 0;
    uint32_t dense = w.rank - 1;
    for (uint32_t i = 0; i < w.rank; i++)
        if (w.stride[0][i] == 1)
            dense = i;
    if (dense == w.rank - 1)
        return device_take(y->data, x->data, 0, w, size, stream);
    planes p = {};
    uint32_t others = 0;
    for (int d = 0; d < 3; d++)
        p.dim[d] = 1;
    p.n = 1;
    for (uint32_t i = w.rank; i-- > 0; step *= w.dim[i]) {
        if (i == w.rank - 1) {
            p.along = w.dim[i];
            p.x_along = w.stride[0][i];
        } else if (i == dense) {
            p.across = w.dim[i];
            p.y_across = step;
        } else {
            p.dim[others] = w.dim[i];
            p.x[others] = w.stride[0][i];
            p.y[others++] = step;
            p.n *= w.dim[i];
        }
    }
    p.tiles_across = (p.across + TILE - 1) / TILE;
    p.tiles_all = p.tiles_across * ((p.along + TILE - 1) / TILE);
    const unsigned blocks = device_blocks(p.n * p.tiles_all, 1, 4 * DEVICE_BLOCKS);
    if (size == 4)
        DEVICE_TRY((exchange<uint32_t>), blocks, dim3(TILE, TILE_ROWS), 0, stream, (uint32_t *)y->data, (const uint32_t *)x->data, p);
    else
        DEVICE_TRY((exchange<uint16_t>), blocks, dim3(TILE, TILE_ROWS), 0, stream, (uint16_t *)y->data, (const uint16_t *)x->data, p);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_permute[] = {{sizeof(sodet_cuda_kernel), 0, NULL, forward}};
