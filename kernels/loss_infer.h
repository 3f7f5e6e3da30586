/* kernels/loss_infer.h: shapes of losses that make one number of each row (last dimension) of their operand. */
#ifndef SD_KERNELS_LOSS_INFER_H
#define SD_KERNELS_LOSS_INFER_H

#include "kernels/describe.h"

/* Inputs first, first + 1 are x [..., K] and `second` [...] (I32, or F32 [..., K] if second_full); part 1 has the rows' gradient in front. */
static inline sodet_status loss_infer(const sodet_node *n, const char *second, int second_full, sodet_shape *out, sodet_err *err)
{
    uint32_t first = n->part == 0 ? 0 : 1;
    char given[64];
    OP_TRY(op_check_arity(n, first + 2, first + 2, 1, 1, err));
    OP_TRY(op_check_rank(n, first, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[first];
    if (x->rank == 0 || x->dim[x->rank - 1] < 1)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: x is %s; a last dimension of at least 1 expected", n->op->name,
                          sd_shape_text(x, given));
    sodet_shape rows = *x;
    rows.dim[--rows.rank] = 0;
    sodet_shape labels = rows;
    labels.dtype = SODET_I32;
    OP_TRY(op_check_shape(n, first + 1, second, second_full ? x : &labels, err));
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 0, "gradient", &rows, err));
    *out = n->part == 0 ? rows : *x;
    return SODET_OK;
}

/* The gradient of x: part 1 with the same attributes. */
static inline sodet_status loss_gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din,
                                         sodet_err *err)
{
    if (!dout[0].id || !OP_WANTED(want, 0) || n->part != 0)
        return SODET_OK;
    sodet_value in[3] = {dout[0], n->in[0], n->in[1]};
    sodet_add_node(g, n->op, 1, n->attr, in, 3, din, 1);
    return sodet_graph_status(g, err);
}

#endif
