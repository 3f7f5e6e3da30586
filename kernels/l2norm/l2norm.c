/* l2norm: shapes, gradient, cost, builder. */
#include "kernels/l2norm/l2norm.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_l2norm_attr *a = n->attr;
    OP_TRY(op_check_arity(n, n->part ? 3 : 2, n->part ? 3 : 2, n->part ? 2 : 1, n->part ? 2 : 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, 4, err));
    OP_TRY(op_check_channels(n, 1, "scale", n->in_shape[0].dim[1], err));
    if (a->guard > SODET_L2NORM_INSIDE || !(a->epsilon >= 0))
        return SODET_FAIL(err, SODET_E_INVALID, "l2norm: guard %u with epsilon %g: a guard of l2norm.h and 0 or more expected", a->guard,
                          (double)a->epsilon);
    out[0] = n->in_shape[0];
    if (n->part == 1) {
        OP_TRY(op_check_shape(n, 2, "dy", &n->in_shape[0], err));
        out[1] = n->in_shape[1];
    }
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "l2norm: there is no second derivative");
    (void)want;
    sodet_add_node(g, n->op, 1, n->attr, (const sodet_value[]){n->in[0], n->in[1], dout[0]}, 3, din, 2);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (n->part ? 10u : 4u) * (uint64_t)sodet_elements(&n->in_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_l2norm = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_l2norm,
                                  .name = "l2norm",
                                  .n_parts = 2,
                                  .attr_size = sizeof(sodet_l2norm_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

sodet_value sodet_l2norm(sodet_graph *g, const char *name, sodet_value x, const sodet_l2norm_desc *desc)
{
    sodet_l2norm_desc d;
    op_descriptor(&d, sizeof d, desc);
    sodet_l2norm_attr a = {.guard = d.guard, .epsilon = d.epsilon > 0 ? d.epsilon : d.guard == SODET_L2NORM_MAX ? 1e-12f : 1e-10f};
    if (d.weight.init == SODET_INIT_DEFAULT) {
        d.weight.init = SODET_INIT_CONSTANT;
        d.weight.value = d.scale > 0 ? d.scale : 20;
    }
    d.weight.group = SODET_GROUP_NORM;
    sodet_enter(g, "%s", name);
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, sodet_dim(g, x, 1), 0, 0, 0);
    sodet_value y = sodet_apply(g, &sodet_op_l2norm, &a, (const sodet_value[]){x, sodet_parameter(g, "weight", &shape, &d.weight)}, 2);
    sodet_leave(g);
    return y;
}
