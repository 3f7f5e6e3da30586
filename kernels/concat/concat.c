/* concat: shapes, gradient, builder. */
#include "kernels/concat/concat.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_concat_attr *a = n->attr;
    char given[64], first[64];
    if (n->n_in < 1 || n->n_out != 1)
        return SODET_FAIL(err, SODET_E_INVALID, "concat: %u inputs and %u outputs: at least one input and one output expected", n->n_in,
                          n->n_out);
    *out = n->in_shape[0];
    if (a->axis >= out->rank)
        return SODET_FAIL(err, SODET_E_INVALID, "concat: axis %u of %s: there is none", a->axis, sd_shape_text(out, given));
    if (n->part == 1) {
        if (n->n_in != 1 || a->begin < 0 || a->length < 0 || a->begin + a->length > out->dim[a->axis])
            return SODET_FAIL(err, SODET_E_INVALID, "concat: part [%lld, +%lld) of axis %u of %s does not exist", (long long)a->begin,
                              (long long)a->length, a->axis, sd_shape_text(out, given));
        out->dim[a->axis] = a->length;
        return SODET_OK;
    }
    for (uint32_t i = 1; i < n->n_in; i++) {
        const sodet_shape *x = &n->in_shape[i];
        int fits = x->dtype == out->dtype && x->rank == out->rank;
        for (uint32_t d = 0; fits && d < x->rank; d++)
            fits = d == a->axis || x->dim[d] == out->dim[d];
        if (!fits)
            return SODET_FAIL(err, SODET_E_INVALID, "concat: input %u is %s, but input 0 is %s: they may differ along axis %u alone", i,
                              sd_shape_text(x, given), sd_shape_text(&n->in_shape[0], first), a->axis);
        out->dim[a->axis] += x->dim[a->axis];
    }
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "concat: there is no second derivative");
    sodet_concat_attr a = *(const sodet_concat_attr *)n->attr;
    a.begin = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        a.length = n->in_shape[i].dim[a.axis];
        if (OP_WANTED(want, i))
            sodet_add_node(g, n->op, 1, &a, dout, 1, &din[i], 1);
        a.begin += a.length;
    }
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.bytes = 8 * (uint64_t)sodet_elements(&n->out_shape[0])};
}

const sodet_op sodet_op_concat = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_concat,
                                  .name = "concat",
                                  .n_parts = 2,
                                  .attr_size = sizeof(sodet_concat_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

sodet_value sodet_concat(sodet_graph *g, const sodet_value *x, uint32_t n, int32_t axis)
{
    if (n == 0)
        return sodet_graph_fail(g, SODET_E_INVALID, "concat: no inputs");
    if (n == 1)
        return x[0];
    int32_t rank = (int32_t)sodet_rank(g, x[0]);
    sodet_concat_attr a = {.axis = (uint32_t)(axis < 0 ? axis + rank : axis)};
    return sodet_apply(g, &sodet_op_concat, &a, x, n);
}
