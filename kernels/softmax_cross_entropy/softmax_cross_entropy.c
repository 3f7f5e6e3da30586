/* Shapes, gradient and builder of softmax_cross_entropy. */
#include "kernels/loss_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    return loss_infer(n, "label", 0, out, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 4 * (uint64_t)sodet_elements(&n->in_shape[n->part]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_softmax_cross_entropy = {.struct_size = sizeof(sodet_op),
                                                 .id = SODET_OP_softmax_cross_entropy,
                                                 .name = "softmax_cross_entropy",
                                                 .n_parts = 2,
                                                 .infer = infer,
                                                 .gradient = loss_gradient,
                                                 .cost = cost};

sodet_value sodet_softmax_cross_entropy(sodet_graph *g, sodet_value x, sodet_value label)
{
    sodet_value in[2] = {x, label};
    return sodet_apply(g, &sodet_op_softmax_cross_entropy, NULL, in, 2);
}
