/* Shapes, gradient and builder of smooth_l1. */
#include <math.h>

#include "kernels/loss_infer.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    double beta = ((const sodet_smooth_l1_attr *)n->attr)->beta;
    if (!(beta >= 0) || isinf(beta))
        return SODET_FAIL(err, SODET_E_INVALID, "smooth_l1: beta = %g, a number of at least 0 expected", beta);
    return loss_infer(n, "target", 1, out, err);
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    sodet_value dx = SODET_NONE;
    OP_TRY(loss_gradient(g, n, dout, want ? 1 : 0, &dx, err));
    if (OP_WANTED(want, 0))
        din[0] = dx;
    if (OP_WANTED(want, 1) && dx.id)
        din[1] = sodet_neg(g, dx);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 5 * (uint64_t)sodet_elements(&n->in_shape[n->part]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_smooth_l1 = {.struct_size = sizeof(sodet_op),
                                     .id = SODET_OP_smooth_l1,
                                     .name = "smooth_l1",
                                     .n_parts = 2,
                                     .attr_size = sizeof(sodet_smooth_l1_attr),
                                     .infer = infer,
                                     .gradient = gradient,
                                     .cost = cost};

sodet_value sodet_smooth_l1(sodet_graph *g, sodet_value x, sodet_value target, double beta)
{
    sodet_value in[2] = {x, target};
    return sodet_apply(g, &sodet_op_smooth_l1, &(sodet_smooth_l1_attr){.beta = beta}, in, 2);
}
