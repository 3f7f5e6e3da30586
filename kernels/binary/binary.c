/* Shapes, gradient and builders of binary. */
#include "kernels/broadcast_infer.h"

static const char *const kind_names[] = {"", "add", "sub", "mul", "div", "min", "max", "pow", "mod"};

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_binary_attr *attr = n->attr;
    sodet_status status = op_check_arity(n, 2, 2, 1, 1, err);
    if (status != SODET_OK)
        return status;
    if (attr->kind < SODET_BINARY_ADD || attr->kind > SODET_BINARY_MOD)
        return SODET_FAIL(err, SODET_E_INVALID, "binary: there is no kind %u", attr->kind);
    const char *name = kind_names[attr->kind];
    const sodet_shape *a = &n->in_shape[0], *b = &n->in_shape[1];
    char first[64], second[64];
    if (a->dtype != b->dtype || (a->dtype != SODET_F32 && a->dtype != SODET_I32))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: operands are %s and %s; both must be float32 or both int32 (sodet_cast)", name,
                          sd_shape_text(a, first), sd_shape_text(b, second));
    if ((attr->kind == SODET_BINARY_POW && a->dtype != SODET_F32) || (attr->kind == SODET_BINARY_MOD && a->dtype != SODET_I32))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: operands are %s, %s expected", name, sd_shape_text(a, first),
                          attr->kind == SODET_BINARY_POW ? "float32" : "int32");
    out->dtype = a->dtype;
    return broadcast_shape(n, out, err);
}

/* 1 where f chose a, 1/2 where both are equal, 0 where it chose b. */
static sodet_value chosen(sodet_graph *g, sodet_value a, sodet_value b, int greater)
{
    sodet_value loose = greater ? sodet_ge(g, a, b) : sodet_le(g, a, b), strict = greater ? sodet_gt(g, a, b) : sodet_lt(g, a, b);
    return sodet_mul(g, sodet_add(g, loose, strict), sodet_scalar(g, 0.5));
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    uint32_t kind = ((const sodet_binary_attr *)n->attr)->kind;
    sodet_value a = n->in[0], b = n->in[1], y = n->out[0], dy = dout[0], da = SODET_NONE, db = SODET_NONE;
    if (n->in_shape[0].dtype != SODET_F32 || !dy.id)
        return SODET_OK;
    int for_a = OP_WANTED(want, 0), for_b = OP_WANTED(want, 1);
    switch (kind) {
    case SODET_BINARY_ADD:
        da = db = dy;
        break;
    case SODET_BINARY_SUB:
        da = dy;
        if (for_b)
            db = sodet_neg(g, dy);
        break;
    case SODET_BINARY_MUL:
        if (for_a)
            da = sodet_mul(g, dy, b);
        if (for_b)
            db = sodet_mul(g, dy, a);
        break;
    case SODET_BINARY_DIV:
        da = sodet_div(g, dy, b);
        if (for_b)
            db = sodet_neg(g, sodet_mul(g, da, y));
        break;
    case SODET_BINARY_MIN:
    case SODET_BINARY_MAX:
        da = sodet_mul(g, dy, chosen(g, a, b, kind == SODET_BINARY_MAX));
        if (for_b)
            db = sodet_sub(g, dy, da);
        break;
    default: { /* pow */
        sodet_value zero = sodet_scalar(g, 0);
        if (for_a) {
            sodet_value slope = sodet_mul(g, b, sodet_pow(g, a, sodet_sub(g, b, sodet_scalar(g, 1))));
            da = sodet_where(g, sodet_eq(g, b, zero), zero, sodet_mul(g, dy, slope));
        }
        if (for_b)
            db = sodet_where(g, sodet_eq(g, a, zero), zero, sodet_mul(g, dy, sodet_mul(g, y, sodet_log(g, a))));
    }
    }
    if (for_a)
        din[0] = broadcast_sum(g, da, &n->in_shape[0]);
    if (for_b)
        din[1] = broadcast_sum(g, db, &n->in_shape[1]);
    return sodet_graph_status(g, err);
}

const sodet_op sodet_op_binary = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_binary,
                                  .name = "binary",
                                  .n_parts = 1,
                                  .flags = SODET_OP_ELEMENTWISE,
                                  .attr_size = sizeof(sodet_binary_attr),
                                  .infer = infer,
                                  .gradient = gradient};

static sodet_value build(sodet_graph *g, uint32_t kind, sodet_value a, sodet_value b)
{
    sodet_value in[2] = {a, b};
    return sodet_apply(g, &sodet_op_binary, &(sodet_binary_attr){.kind = kind}, in, 2);
}

sodet_value sodet_add(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_ADD, a, b);
}

sodet_value sodet_sub(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_SUB, a, b);
}

sodet_value sodet_mul(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_MUL, a, b);
}

sodet_value sodet_div(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_DIV, a, b);
}

sodet_value sodet_min(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_MIN, a, b);
}

sodet_value sodet_max(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_MAX, a, b);
}

sodet_value sodet_pow(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_POW, a, b);
}

sodet_value sodet_mod(sodet_graph *g, sodet_value a, sodet_value b)
{
    return build(g, SODET_BINARY_MOD, a, b);
}
