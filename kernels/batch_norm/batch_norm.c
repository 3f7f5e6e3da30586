/* batch_norm: shapes, gradient, cost; and the builder of all three rows. */
#include "kernels/batch_norm/batch_norm.h"

#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    static const char *const vectors[2][4] = {{"scale", "shift", "mean", "variance"}, {NULL, "scale", "mean", "variance"}};
    OP_TRY(op_check_arity(n, 5, 5, n->part ? 3 : 1, n->part ? 3 : 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank < 2)
        return SODET_FAIL(err, SODET_E_INVALID, "batch_norm: x has rank %u, at least 2 expected ([N, C, ...])", x->rank);
    if (n->part == 1)
        OP_TRY(op_check_shape(n, 1, "dy", x, err));
    for (uint32_t i = n->part; i < 4; i++)
        OP_TRY(op_check_channels(n, i + 1, vectors[n->part][i], x->dim[1], err));
    out[0] = *x;
    if (n->part == 1)
        out[1] = out[2] = sodet_shape_make(SODET_F32, 1, x->dim[1], 0, 0, 0);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "batch_norm: there is no second derivative");
    sodet_value out[3];
    (void)want;
    sodet_add_node(g, n->op, 1, n->attr, (const sodet_value[]){n->in[0], dout[0], n->in[1], n->in[3], n->in[4]}, 5, out, 3);
    memcpy(din, out, sizeof out);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    out->macs = 0;
    out->flops = (n->part ? 6u : 2u) * (uint64_t)sodet_elements(&n->in_shape[0]);
    out->bytes = op_bytes(n);
}

const sodet_op sodet_op_batch_norm = {.struct_size = sizeof(sodet_op),
                                      .id = SODET_OP_batch_norm,
                                      .name = "batch_norm",
                                      .n_parts = 2,
                                      .attr_size = sizeof(sodet_batch_norm_attr),
                                      .infer = infer,
                                      .gradient = gradient,
                                      .cost = cost};

static sodet_value vector(sodet_graph *g, const char *name, const sodet_shape *shape, sodet_param p, float start, bool absent, bool frozen)
{
    if (absent || p.init == SODET_INIT_DEFAULT) {
        p.init = SODET_INIT_CONSTANT;
        p.value = start;
    }
    if (absent || frozen)
        p.lr = SODET_FROZEN;
    p.group = SODET_GROUP_NORM;
    return sodet_parameter(g, name, shape, &p);
}

/* in: x, scale, shift, running_mean, running_var. */
static sodet_value synchronised(sodet_graph *g, const sodet_batch_norm_attr *attr, const sodet_value in[5], uint32_t world)
{
    sodet_value own, merged[5], y;
    sodet_add_node(g, &sodet_op_batch_norm_sync, 0, attr, &in[0], 1, &own, 1);
    sodet_value all = sodet_all_gather(g, own, world);
    sodet_add_node(g, &sodet_op_batch_norm_sync, 1, attr, (const sodet_value[]){all, in[3], in[4]}, 3, merged, 5);
    sodet_add_node(g, &sodet_op_batch_norm_sync, 2, attr, (const sodet_value[]){in[0], in[1], in[2], merged[0], merged[1], merged[2]}, 6,
                   &y, 1);
    return y;
}

sodet_value sodet_batch_norm(sodet_graph *g, const char *name, sodet_value x, const sodet_norm_desc *desc)
{
    sodet_norm_desc d;
    op_descriptor(&d, sizeof d, desc);
    const sd_graph_options *o = sd_graph_get_options(g);
    sodet_batch_norm_attr a = {.epsilon = d.epsilon > 0 ? d.epsilon : 1e-5f, .momentum = d.momentum > 0 ? d.momentum : 0.1f};
    if (o->norm_momentum > 0)
        a.momentum = o->norm_momentum;
    bool running = !o->training || o->norm == SD_NORM_FROZEN || (d.flags & SODET_NORM_FROZEN), frozen = d.flags & SODET_NORM_FROZEN;

    sodet_enter(g, "%s", name);
    sodet_value y = SODET_POISON;
    if (sodet_rank(g, x) < 2 && sodet_graph_status(g, NULL) == SODET_OK)
        sodet_graph_fail(g, SODET_E_INVALID, "batch_norm: x has rank %u, at least 2 expected ([N, C, ...])", sodet_rank(g, x));
    else {
        sodet_shape shape = sodet_shape_make(SODET_F32, 1, sodet_dim(g, x, 1), 0, 0, 0);
        sodet_value scale = vector(g, "weight", &shape, d.weight, 1, d.flags & SODET_NORM_NO_SCALE, frozen);
        sodet_value shift = vector(g, "bias", &shape, d.bias, 0, d.flags & SODET_NORM_NO_SHIFT, frozen);
        sodet_value mean = sodet_buffer(g, "running_mean", &shape, 0), var = sodet_buffer(g, "running_var", &shape, 1);
        sodet_value in[5] = {x, scale, shift, mean, var};
        if (running)
            y = sodet_apply(g, &sodet_op_batch_norm, &a, in, 5);
        else if (o->norm == SD_NORM_SYNC && o->world > 1)
            y = synchronised(g, &a, in, o->world);
        else {
            sodet_value out[5];
            sodet_add_node(g, &sodet_op_batch_norm_train, 0, &a, in, 5, out, 5);
            y = out[0];
        }
    }
    sodet_leave(g);
    return y;
}
