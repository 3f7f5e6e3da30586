/* resize: shapes, gradient, cost, builder. */
#include "kernels/resize/resize.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_resize_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 1, 1, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, n->part ? "dy" : "x", SODET_F32, 4, err));
    const sodet_shape *x = &n->in_shape[0];
    int32_t h = n->part ? a->in_h : a->out_h, w = n->part ? a->in_w : a->out_w;
    if (a->kind > SODET_RESIZE_BILINEAR || h < 1 || w < 1 || x->dim[2] < 1 || x->dim[3] < 1)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "resize: kind %u from %lldx%lld to %dx%d (height x width): a kind of resize.h and sizes of at least 1 expected",
                          a->kind, (long long)x->dim[2], (long long)x->dim[3], h, w);
    *out = sodet_shape_make(SODET_F32, 4, x->dim[0], x->dim[1], h, w);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "resize: there is no second derivative");
    if (!OP_WANTED(want, 0))
        return SODET_OK;
    sodet_resize_attr a = *(const sodet_resize_attr *)n->attr;
    a.in_h = (int32_t)n->in_shape[0].dim[2];
    a.in_w = (int32_t)n->in_shape[0].dim[3];
    sodet_add_node(g, n->op, 1, &a, dout, 1, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    const sodet_resize_attr *a = n->attr;
    const sodet_shape *large = n->part ? &n->in_shape[0] : &n->out_shape[0];
    *out = (sodet_cost){.flops = (a->kind == SODET_RESIZE_BILINEAR ? 7u : n->part) * (uint64_t)sodet_elements(large), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_resize = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_resize,
                                  .name = "resize",
                                  .n_parts = 2,
                                  .attr_size = sizeof(sodet_resize_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

sodet_value sodet_resize(sodet_graph *g, sodet_value x, uint32_t kind, int64_t out_h, int64_t out_w)
{
    if (out_h < 1 || out_w < 1 || out_h > INT32_MAX || out_w > INT32_MAX)
        return sodet_graph_fail(g, SODET_E_INVALID, "resize: to %lldx%lld (height x width): sizes of at least 1 expected", (long long)out_h,
                                (long long)out_w);
    if (out_h == sodet_dim(g, x, 2) && out_w == sodet_dim(g, x, 3) && sodet_graph_status(g, NULL) == SODET_OK && sodet_rank(g, x) == 4)
        return x;
    sodet_resize_attr a = {.kind = kind, .out_h = (int32_t)out_h, .out_w = (int32_t)out_w};
    return sodet_apply(g, &sodet_op_resize, &a, &x, 1);
}
