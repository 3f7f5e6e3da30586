/* Shapes, gradient and builder of sigmoid_focal. */
#include <math.h>

#include "kernels/loss_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_sigmoid_focal_attr *attr = n->attr;
    if (!(attr->alpha <= 1) || !(attr->gamma >= 0) || isinf(attr->alpha) || isinf(attr->gamma))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "sigmoid_focal: alpha = %g, gamma = %g; alpha in [0, 1] (below 0: no weighting) and gamma of at least 0 expected",
                          attr->alpha, attr->gamma);
    return loss_infer(n, "label", 0, out, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (n->part == 0 ? 9 : 14) * (uint64_t)sodet_elements(&n->in_shape[n->part]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_sigmoid_focal = {.struct_size = sizeof(sodet_op),
                                         .id = SODET_OP_sigmoid_focal,
                                         .name = "sigmoid_focal",
                                         .n_parts = 2,
                                         .attr_size = sizeof(sodet_sigmoid_focal_attr),
                                         .infer = infer,
                                         .gradient = loss_gradient,
                                         .cost = cost};

sodet_value sodet_sigmoid_focal(sodet_graph *g, sodet_value x, sodet_value label, double alpha, double gamma)
{
    sodet_value in[2] = {x, label};
    return sodet_apply(g, &sodet_op_sigmoid_focal, &(sodet_sigmoid_focal_attr){.alpha = alpha, .gamma = gamma}, in, 2);
}
