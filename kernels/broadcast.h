/* kernels/broadcast.h: numpy's rule for elementwise operators: shapes are aligned at their last dimension; a dimension that is missing or 1 is
 * repeated. */
#ifndef SD_KERNELS_BROADCAST_H
#define SD_KERNELS_BROADCAST_H

#include "sodet/op.h"

#define OP_BROADCAST_MOST 3

/* Size of dimension `i` of `out` (counted in out's rank) as `in` has it: 1 where it is missing. */
static inline int64_t broadcast_dim(const sodet_shape *in, uint32_t out_rank, uint32_t i)
{
    return i + in->rank < out_rank ? 1 : in->dim[i + in->rank - out_rank];
}

/* The loops over an output, with the strides (in elements; 0: repeated) of its inputs. Dimensions that can be walked as one are merged, so the
 * last one is as long as it can be and has strides 0 or 1 alone. rank >= 1. */
typedef struct broadcast_walk {
    uint32_t rank, n;
    int64_t dim[SODET_MAX_RANK], rows; /* rows: product of all but the last */
    int64_t stride[OP_BROADCAST_MOST][SODET_MAX_RANK];
} broadcast_walk;

static inline broadcast_walk broadcast_begin(const sodet_shape *out, const sodet_tensor *in, uint32_t n)
{
    broadcast_walk w = {.n = n, .rows = 1};
    int64_t full[OP_BROADCAST_MOST][SODET_MAX_RANK] = {{0}};
    for (uint32_t k = 0; k < n; k++) {
        int64_t step = 1;
        for (uint32_t i = out->rank; i-- > 0;) {
            int64_t d = broadcast_dim(&in[k].shape, out->rank, i);
            full[k][i] = d == 1 ? 0 : step;
            step *= d;
        }
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] == 1)
            continue;
        int merge = w.rank > 0;
        for (uint32_t k = 0; k < n && merge; k++)
            merge = w.stride[k][w.rank - 1] == full[k][i] * out->dim[i];
        if (!merge)
            w.rank++;
        w.dim[w.rank - 1] = merge ? w.dim[w.rank - 1] * out->dim[i] : out->dim[i];
        for (uint32_t k = 0; k < n; k++)
            w.stride[k][w.rank - 1] = full[k][i];
    }
    if (w.rank == 0) {
        w.rank = 1;
        w.dim[0] = 1;
        for (uint32_t k = 0; k < n; k++)
            w.stride[k][0] = 1; /* a blocked tensor of one element has padding behind it */
    }
    for (uint32_t i = 0; i + 1 < w.rank; i++)
        w.rows *= w.dim[i];
    return w;
}

/* Where row `row` of the walk begins in each input; the output's row begins at row * dim[rank - 1]. */
static inline void broadcast_row(const broadcast_walk *w, int64_t row, int64_t at[OP_BROADCAST_MOST])
{
    for (uint32_t k = 0; k < OP_BROADCAST_MOST; k++)
        at[k] = 0;
    for (uint32_t i = w->rank - 1; i-- > 0;) {
        int64_t c = row % w->dim[i];
        row /= w->dim[i];
        for (uint32_t k = 0; k < w->n; k++)
            at[k] += c * w->stride[k][i];
    }
}

/* The plain way, for the reference: element of `in` that element `i` of `out` is made from. */
static inline int64_t broadcast_element(const sodet_shape *in, const sodet_shape *out, int64_t i)
{
    int64_t at = 0, step = 1;
    for (uint32_t k = out->rank; k-- > 0;) {
        int64_t c = i % out->dim[k], d = broadcast_dim(in, out->rank, k);
        i /= out->dim[k];
        if (d != 1)
            at += c * step;
        step *= d;
    }
    return at;
}

#endif
