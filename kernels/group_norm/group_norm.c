/* group_norm: shapes, gradient, cost, builder. */
#include "kernels/group_norm/group_norm.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_group_norm_attr *a = n->attr;
    OP_TRY(op_check_arity(n, n->part ? 5 : 3, n->part ? 5 : 3, 3, 3, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank < 2 || a->groups < 1 || x->dim[1] % a->groups != 0)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "group_norm: %lld channels in %u groups: a map [N, C, ...] whose channels can be dealt to the groups expected",
                          x->rank < 2 ? 0 : (long long)x->dim[1], a->groups);
    const sodet_shape each = sodet_shape_make(SODET_F32, 2, x->dim[0], a->groups, 0, 0);
    out[0] = *x;
    if (n->part == 0) {
        OP_TRY(op_check_channels(n, 1, "scale", x->dim[1], err));
        OP_TRY(op_check_channels(n, 2, "shift", x->dim[1], err));
        out[1] = out[2] = each;
        return SODET_OK;
    }
    OP_TRY(op_check_shape(n, 1, "dy", x, err));
    OP_TRY(op_check_channels(n, 2, "scale", x->dim[1], err));
    OP_TRY(op_check_shape(n, 3, "mean", &each, err));
    OP_TRY(op_check_shape(n, 4, "inverse deviation", &each, err));
    out[1] = out[2] = sodet_shape_make(SODET_F32, 1, x->dim[1], 0, 0, 0);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "group_norm: there is no second derivative");
    (void)want;
    if (!dout[0].id)
        return SODET_OK;
    sodet_add_node(g, n->op, 1, n->attr, (const sodet_value[]){n->in[0], dout[0], n->in[1], n->out[1], n->out[2]}, 5, din, 3);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (n->part ? 11u : 7u) * (uint64_t)sodet_elements(&n->in_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_group_norm = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_group_norm,
                                      .name = "group_norm",
                                      .n_parts = 2,
                                      .attr_size = sizeof(sodet_group_norm_attr),
                                      .infer = infer,
                                      .gradient = gradient,
                                      .cost = cost};

static sodet_value vector(sodet_graph *g, const char *name, const sodet_shape *shape, sodet_param p, float start)
{
    if (p.init == SODET_INIT_DEFAULT) {
        p.init = SODET_INIT_CONSTANT;
        p.value = start;
    }
    p.group = SODET_GROUP_NORM;
    return sodet_parameter(g, name, shape, &p);
}

sodet_value sodet_group_norm(sodet_graph *g, const char *name, sodet_value x, const sodet_group_norm_desc *desc)
{
    sodet_group_norm_desc d;
    op_descriptor(&d, sizeof d, desc);
    sodet_group_norm_attr a = {.groups = d.groups ? d.groups : 32, .epsilon = d.epsilon > 0 ? d.epsilon : 1e-5f};
    sodet_value out[3];
    sodet_enter(g, "%s", name);
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, sodet_dim(g, x, 1), 0, 0, 0);
    sodet_value in[3] = {x, vector(g, "weight", &shape, d.weight, 1), vector(g, "bias", &shape, d.bias, 0)};
    sodet_add_node(g, &sodet_op_group_norm, 0, &a, in, 3, out, 3);
    sodet_leave(g);
    return out[0];
}
