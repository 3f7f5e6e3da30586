/* Shapes, gradient and builders of top_k. */
#include "core/base/base.h"
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_top_k_attr *attr = n->attr;
    char given[64];
    OP_TRY(op_check_arity(n, 1, 1, 2, 2, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, UINT32_MAX, err));
    const sodet_shape *x = &n->in_shape[0];
    if (x->rank == 0 || attr->k > x->dim[x->rank - 1] || x->dim[x->rank - 1] > INT32_MAX)
        return SODET_FAIL(err, SODET_E_INVALID, "top_k: %u of each row of %s are not there", attr->k, sd_shape_text(x, given));
    out[0] = *x;
    out[0].dim[x->rank - 1] = attr->k;
    out[1] = out[0];
    out[1].dtype = SODET_I32;
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (!dout[0].id || !OP_WANTED(want, 0))
        return SODET_OK;
    sodet_gather_attr attr = {.axis = n->in_shape[0].rank - 1, .batch = n->in_shape[0].rank - 1, .x = n->in_shape[0]};
    sodet_value in[2] = {dout[0], n->out[1]};
    sodet_add_node(g, &sodet_op_gather, 1, &attr, in, 2, din, 1);
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = (uint64_t)sodet_elements(&n->in_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_top_k = {.struct_size = sizeof(sodet_op),
                                 .id = SODET_OP_top_k,
                                 .name = "top_k",
                                 .n_parts = 1,
                                 .attr_size = sizeof(sodet_top_k_attr),
                                 .infer = infer,
                                 .gradient = gradient,
                                 .cost = cost};

void sodet_top_k(sodet_graph *g, sodet_value x, uint32_t k, sodet_value *value, sodet_value *index)
{
    uint32_t rank = sodet_rank(g, x);
    int64_t n = sodet_dim(g, x, rank ? rank - 1 : 0);
    sodet_value out[2];
    sodet_add_node(g, &sodet_op_top_k, 0, &(sodet_top_k_attr){.k = (int64_t)k < n ? k : (uint32_t)n}, &x, 1, out, 2);
    *value = out[0];
    *index = out[1];
}

static sodet_value int_scalar(sodet_graph *g, int32_t v)
{
    return sodet_constant(g, &(sodet_shape){.dtype = SODET_I32}, &v);
}

void sodet_top_pairs(sodet_graph *g, sodet_value score, uint32_t k, sodet_value *value, sodet_value *anchor, sodet_value *label)
{
    int64_t images = sodet_dim(g, score, 0), classes = sodet_dim(g, score, 2);
    sodet_value pair, flat = sodet_reshape(g, score, 2, (const int64_t[]){images, sodet_dim(g, score, 1) * classes});
    sodet_top_k(g, flat, k, value, &pair);
    sodet_value width = int_scalar(g, (int32_t)classes);
    *anchor = sodet_div(g, pair, width);
    *label = sodet_mod(g, pair, width);
}

void sodet_top_per_class(sodet_graph *g, sodet_value score, uint32_t k, sodet_value *value, sodet_value *anchor, sodet_value *label)
{
    int64_t images = sodet_dim(g, score, 0), anchors = sodet_dim(g, score, 1), classes = sodet_dim(g, score, 2);
    int64_t taken = (int64_t)k < anchors ? (int64_t)k : anchors, dims[2] = {images, classes * taken};
    sodet_value by_class = sodet_permute(g, score, (const uint32_t[]){0, 2, 1}), best, where;
    sodet_top_k(g, by_class, k, &best, &where);
    *value = sodet_reshape(g, best, 2, dims);
    *anchor = sodet_reshape(g, where, 2, dims);
    int32_t *classes_of = sd_alloc((size_t)(classes * taken + 1), sizeof *classes_of);
    if (!classes_of) {
        *label = sodet_graph_fail(g, SODET_E_MEMORY, "top_k: no memory for %lld labels", (long long)(classes * taken));
        return;
    }
    for (int64_t i = 0; i < classes * taken; i++)
        classes_of[i] = (int32_t)(i / taken);
    sodet_shape shape = sodet_shape_make(SODET_I32, 1, classes * taken, 0, 0, 0);
    *label = sodet_constant(g, &shape, classes_of);
    sd_free(classes_of);
}
