/* pixels: shapes, cost, builder. */
#include "kernels/describe.h"

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_pixels_attr *a = n->attr;
    const uint32_t channels = a->channels == SODET_PIXELS_GREY ? 1 : 3;
    char place[64], value[64];
    OP_TRY(op_check_arity(n, 3, 3, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "bytes", SODET_I32, 1, err));
    OP_TRY(op_check_rank(n, 1, "place", SODET_I32, 2, err));
    OP_TRY(op_check_rank(n, 2, "value", SODET_F32, 2, err));
    const sodet_shape *p = &n->in_shape[1], *v = &n->in_shape[2];
    if (p->dim[0] != v->dim[0] || p->dim[1] != SODET_PIXELS_PLACES || v->dim[1] != SODET_PIXELS_VALUES)
        return SODET_FAIL(err, SODET_E_INVALID, "pixels: place is %s and value %s; [N, %d] and [N, %d] expected", sd_shape_text(p, place),
                          sd_shape_text(v, value), SODET_PIXELS_PLACES, SODET_PIXELS_VALUES);
    if (a->channels > SODET_PIXELS_GREY || a->height < 1 || a->width < 1)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "pixels: channels %u of %dx%d (height x width): channels of pixels.h and sizes of at least 1 expected",
                          a->channels, a->height, a->width);
    for (uint32_t c = 0; c < channels; c++)
        if (!(a->std[c] > 0))
            return SODET_FAIL(err, SODET_E_INVALID, "pixels: std of channel %u is %g; above 0 expected", c, (double)a->std[c]);
    *out = sodet_shape_make(SODET_F32, 4, p->dim[0], channels, a->height, a->width);
    return SODET_OK;
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    *out = (sodet_cost){.flops = 11 * (uint64_t)sodet_elements(&n->out_shape[0]), .bytes = op_bytes(n)};
}

const sodet_op sodet_op_pixels = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_pixels,
                                  .name = "pixels",
                                  .n_parts = 1,
                                  .attr_size = sizeof(sodet_pixels_attr),
                                  .infer = infer,
                                  .cost = cost};

sodet_value sodet_pixels(sodet_graph *g, sodet_value bytes, sodet_value place, sodet_value value, const sodet_pixels_attr *attr)
{
    const sodet_value in[3] = {bytes, place, value};
    return sodet_apply(g, &sodet_op_pixels, attr, in, 3);
}
