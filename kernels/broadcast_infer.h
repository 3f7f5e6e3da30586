/* kernels/broadcast_infer.h: what the descriptions of operators that broadcast share. */
#ifndef SD_KERNELS_BROADCAST_INFER_H
#define SD_KERNELS_BROADCAST_INFER_H

#include "kernels/broadcast.h"
#include "kernels/describe.h"

/* The common shape of all inputs; out->dtype is left alone. */
static inline sodet_status broadcast_shape(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    out->rank = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        out->rank = n->in_shape[k].rank > out->rank ? n->in_shape[k].rank : out->rank;
    for (uint32_t i = 0; i < SODET_MAX_RANK; i++)
        out->dim[i] = i < out->rank ? 1 : 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        for (uint32_t i = 0; i < out->rank; i++) {
            int64_t d = broadcast_dim(&n->in_shape[k], out->rank, i);
            if (d == 1 || d == out->dim[i])
                continue;
            if (out->dim[i] != 1) {
                char first[64], other[64];
                return SODET_FAIL(
                    err, SODET_E_INVALID,
                    "%s: shapes %s and %s do not go together: sizes %lld and %lld, counted from the last dimension, neither equal nor 1",
                    n->op->name, sd_shape_text(&n->in_shape[0], first), sd_shape_text(&n->in_shape[k], other), (long long)out->dim[i],
                    (long long)d);
            }
            out->dim[i] = d;
        }
    return SODET_OK;
}

/* `v`, which has the broadcast shape, summed to the shape `to` of one of the inputs. */
static inline sodet_value broadcast_sum(sodet_graph *g, sodet_value v, const sodet_shape *to)
{
    sodet_shape from = sodet_shape_of(g, v);
    sodet_reduce_attr attr = {.kind = SODET_REDUCE_SUM};
    for (uint32_t i = 0; i < from.rank; i++) {
        if (i + to->rank < from.rank)
            attr.drop |= 1u << i;
        if (i + to->rank < from.rank || (broadcast_dim(to, from.rank, i) == 1 && from.dim[i] != 1))
            attr.axes |= 1u << i;
    }
    return attr.axes ? sodet_apply(g, &sodet_op_reduce, &attr, &v, 1) : v;
}

#endif
