/* reshape: shapes, gradient, builder. */
#include "kernels/reshape/reshape.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_reshape_attr *a = n->attr;
    char given[64], wanted[64];
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    if (a->rank > SODET_MAX_RANK)
        return SODET_FAIL(err, SODET_E_INVALID, "reshape: rank %u: at most %d expected", a->rank, SODET_MAX_RANK);
    *out = (sodet_shape){.dtype = n->in_shape[0].dtype, .rank = a->rank};
    for (uint32_t i = 0; i < a->rank; i++)
        out->dim[i] = a->dim[i];
    if (sodet_elements(out) != sodet_elements(&n->in_shape[0]))
        return SODET_FAIL(err, SODET_E_INVALID, "reshape: %s cannot become %s: the numbers of elements differ",
                          sd_shape_text(&n->in_shape[0], given), sd_shape_text(out, wanted));
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (OP_WANTED(want, 0))
        din[0] = sodet_reshape(g, dout[0], n->in_shape[0].rank, n->in_shape[0].dim);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    (void)n;
    *out = (sodet_cost){0};
}

const sodet_op sodet_op_reshape = {.struct_size = sizeof(sodet_op),
                                   .id = SODET_OP_reshape,
                                   .name = "reshape",
                                   .n_parts = 1,
                                   .flags = SODET_OP_VIEW,
                                   .attr_size = sizeof(sodet_reshape_attr),
                                   .infer = infer,
                                   .gradient = gradient,
                                   .cost = cost};

sodet_value sodet_reshape(sodet_graph *g, sodet_value x, uint32_t rank, const int64_t *dim)
{
    sodet_reshape_attr a = {.rank = rank};
    sodet_shape s = sodet_shape_of(g, x);
    int64_t known = 1, left = -1, all = 1, zeros = 0;
    for (uint32_t i = 0; i < rank && i < SODET_MAX_RANK; i++) {
        a.dim[i] = dim[i];
        if (dim[i] > 0)
            known *= dim[i];
        else if (dim[i] == 0)
            zeros++;
        else if (dim[i] == -1 && left < 0)
            left = i;
        else
            return sodet_graph_fail(g, SODET_E_INVALID, "reshape: dim %u is %lld: one -1 and else sizes expected", i, (long long)dim[i]);
    }
    /* A batch of no images stays one: dims of 0 on both sides are left out of the account. */
    for (uint32_t i = 0; i < s.rank; i++) {
        if (s.dim[i] == 0 && zeros > 0)
            zeros--;
        else
            all *= s.dim[i];
    }
    if (left >= 0)
        a.dim[left] = all / known;
    return sodet_apply(g, &sodet_op_reshape, &a, &x, 1);
}
