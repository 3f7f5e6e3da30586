/* upsample_add: shapes, gradient, builder. */
#include "kernels/upsample_add/upsample_add.h"

#include "kernels/describe.h"
#include "kernels/resize/resize.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    OP_TRY(op_check_arity(n, 2, 2, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "a", SODET_F32, 4, err));
    OP_TRY(op_check_rank(n, 1, "b", SODET_F32, 4, err));
    const sodet_shape *a = &n->in_shape[0], *b = &n->in_shape[1];
    for (uint32_t i = 0; i < 4; i++) {
        const int fits = i < 2 ? b->dim[i] == a->dim[i] : b->dim[i] >= 1 && b->dim[i] <= a->dim[i];
        char first[64], second[64];
        if (!fits)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "upsample_add: b is %s, a is %s: the same images and channels, and sides from 1 to a's expected",
                              sd_shape_text(b, second), sd_shape_text(a, first));
    }
    *out = *a;
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    const int64_t *large = n->in_shape[0].dim, *small = n->in_shape[1].dim;
    din[0] = dout[0];
    if (large[2] == small[2] && large[3] == small[3]) {
        din[1] = dout[0];
    } else if (OP_WANTED(want, 1)) {
        const sodet_resize_attr a = {.kind = SODET_RESIZE_NEAREST,
                                     .out_h = (int32_t)large[2],
                                     .out_w = (int32_t)large[3],
                                     .in_h = (int32_t)small[2],
                                     .in_w = (int32_t)small[3]};
        sodet_add_node(g, &sodet_op_resize, 1, &a, dout, 1, &din[1], 1);
    }
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_upsample_add = {.struct_size = sizeof(sodet_op),
                                        .id = SODET_OP_upsample_add,
                                        .name = "upsample_add",
                                        .n_parts = 1,
                                        .flags = SODET_OP_ELEMENTWISE, /* y may overwrite a; or b, where it has a's size */
                                        .infer = infer,
                                        .gradient = gradient};

sodet_value sodet_upsample_add(sodet_graph *g, sodet_value a, sodet_value b)
{
    return sodet_apply(g, &sodet_op_upsample_add, NULL, (const sodet_value[]){a, b}, 2);
}
