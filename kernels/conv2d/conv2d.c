/* conv2d: shapes, gradient, cost, builder. */
#include "kernels/conv2d/conv2d.h"

#include "kernels/activation/activation.h"
#include "kernels/describe.h"

static sodet_status output_side(const sodet_node *n, const char *axis, int64_t in, int64_t before, int64_t after, int64_t kernel,
                                int64_t dilation, int64_t stride, int64_t *out, sodet_err *err)
{
    int64_t room = in + before + after - dilation * (kernel - 1) - 1;
    if (kernel < 1 || dilation < 1 || stride < 1 || before < 0 || after < 0)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: kernel %lld, stride %lld, dilation %lld, padding %lld and %lld along %s: none may be less than 1, paddings than 0",
            n->op->name, (long long)kernel, (long long)stride, (long long)dilation, (long long)before, (long long)after, axis);
    if (room < 0)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: the map's %s %lld with padding %lld is less than the kernel's reach %lld: use a larger input or fewer levels", n->op->name,
            axis, (long long)in, (long long)(before + after), (long long)(dilation * (kernel - 1) + 1));
    *out = room / stride + 1;
    return SODET_OK;
}

static sodet_status infer_forward(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_conv2d_attr *a = n->attr;
    OP_TRY(op_check_arity(n, 2, 4, 1, 1, err));
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, 4, err));
    OP_TRY(op_check_rank(n, 1, "weight", SODET_F32, 4, err));
    const sodet_shape *x = &n->in_shape[0], *w = &n->in_shape[1];
    if (a->groups < 1 || x->dim[1] != w->dim[1] * a->groups || w->dim[0] % a->groups != 0 || w->dim[0] < 1)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "conv2d: %lld input channels and %lld output channels in %d groups do not fit a weight for %lld channels of each group",
            (long long)x->dim[1], (long long)w->dim[0], a->groups, (long long)w->dim[1]);
    if (a->activation >= SODET_ACT_COUNT)
        return SODET_FAIL(err, SODET_E_INVALID, "conv2d: activation %u: there is none of this number", a->activation);
    int64_t oh = 0, ow = 0;
    OP_TRY(output_side(n, "height", x->dim[2], a->pad_top, a->pad_bottom, w->dim[2], a->dilation_h, a->stride_h, &oh, err));
    OP_TRY(output_side(n, "width", x->dim[3], a->pad_left, a->pad_right, w->dim[3], a->dilation_w, a->stride_w, &ow, err));
    out[0] = sodet_shape_make(SODET_F32, 4, x->dim[0], w->dim[0], oh, ow);
    if (op_has(n, 2))
        OP_TRY(op_check_channels(n, 2, "bias", w->dim[0], err));
    if (op_has(n, 3))
        OP_TRY(op_check_shape(n, 3, "residual", &out[0], err));
    return SODET_OK;
}

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_conv2d_attr *a = n->attr;
    if (n->part == 0)
        return infer_forward(n, out, err);
    OP_TRY(op_check_arity(n, 2, 2, 1, n->part == 2 ? 2 : 1, err));
    if (n->part == 1) {
        OP_TRY(op_check_rank(n, 0, "dy", SODET_F32, 4, err));
        OP_TRY(op_check_rank(n, 1, "weight", SODET_F32, 4, err));
        out[0] = sodet_shape_make(SODET_F32, 4, n->in_shape[0].dim[0], n->in_shape[1].dim[1] * a->groups, a->in_h, a->in_w);
        return SODET_OK;
    }
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, 4, err));
    OP_TRY(op_check_rank(n, 1, "dy", SODET_F32, 4, err));
    int64_t channels = n->in_shape[1].dim[1];
    out[0] = sodet_shape_make(SODET_F32, 4, channels, n->in_shape[0].dim[1] / a->groups, a->kernel_h, a->kernel_w);
    if (n->n_out == 2)
        out[1] = sodet_shape_make(SODET_F32, 1, channels, 0, 0, 0);
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    if (n->part != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "conv2d: there is no second derivative");
    sodet_conv2d_attr a = *(const sodet_conv2d_attr *)n->attr;
    sodet_value dy = dout[0];
    if (a.activation) {
        if (!sodet_activation_from_output(a.activation))
            return SODET_FAIL(err, SODET_E_INTERNAL, "conv2d: activation %u was fused into a convolution that is to be differentiated",
                              a.activation);
        dy = sodet_activation_gradient(g, a.activation, a.slope, n->out[0], dy);
    }
    a.activation = 0;
    a.kernel_h = (int32_t)n->in_shape[1].dim[2];
    a.kernel_w = (int32_t)n->in_shape[1].dim[3];
    a.in_h = (int32_t)n->in_shape[0].dim[2];
    a.in_w = (int32_t)n->in_shape[0].dim[3];
    int bias = op_has(n, 2) && OP_WANTED(want, 2);
    if (OP_WANTED(want, 0))
        sodet_add_node(g, n->op, 1, &a, (const sodet_value[]){dy, n->in[1]}, 2, &din[0], 1);
    if (OP_WANTED(want, 1) || bias) {
        sodet_value out[2];
        sodet_add_node(g, n->op, 2, &a, (const sodet_value[]){n->in[0], dy}, 2, out, bias ? 2 : 1);
        din[1] = out[0];
        if (bias)
            din[2] = out[1];
    }
    if (op_has(n, 3))
        din[3] = dy;
    return sodet_graph_status(g, err);
}

static void cost(const sodet_node *n, sodet_cost *out)
{
    const sodet_conv2d_attr *a = n->attr;
    const sodet_shape *y = n->part == 0 ? &n->out_shape[0] : &n->in_shape[n->part - 1];
    const sodet_shape *w = n->part == 2 ? &n->out_shape[0] : &n->in_shape[1];
    uint64_t taps = (uint64_t)(w->dim[1] * w->dim[2] * w->dim[3]);
    out->macs = (uint64_t)sodet_elements(y) * taps;
    out->flops = 2 * out->macs;
    if (n->part == 0)
        out->flops += (uint64_t)sodet_elements(y) * (uint64_t)(op_has(n, 2) + op_has(n, 3) + (a->activation != 0));
    if (n->part == 2 && n->n_out == 2)
        out->flops += (uint64_t)sodet_elements(y);
    out->bytes = op_bytes(n);
}

const sodet_op sodet_op_conv2d = {.struct_size = sizeof(sodet_op),
                                  .id = SODET_OP_conv2d,
                                  .name = "conv2d",
                                  .n_parts = 3,
                                  .attr_size = sizeof(sodet_conv2d_attr),
                                  .infer = infer,
                                  .gradient = gradient,
                                  .cost = cost};

/* TensorFlow's SAME: what is missing for out = ceil(in / stride), the odd pixel behind. */
static void pad_same(int64_t in, int64_t kernel, int64_t dilation, int64_t stride, int32_t *before, int32_t *after)
{
    int64_t out = (in + stride - 1) / stride, missing = (out - 1) * stride + dilation * (kernel - 1) + 1 - in;
    if (missing < 0)
        missing = 0;
    *before = (int32_t)(missing / 2);
    *after = (int32_t)(missing - missing / 2);
}

sodet_value sodet_conv2d(sodet_graph *g, const char *name, sodet_value x, const sodet_conv2d_desc *desc)
{
    sodet_conv2d_desc d;
    op_descriptor(&d, sizeof d, desc);
    uint32_t kernel_h = d.kernel_h ? d.kernel_h : d.kernel, kernel_w = d.kernel_w ? d.kernel_w : d.kernel;
    uint32_t groups = d.groups ? d.groups : 1, stride = d.stride ? d.stride : 1, dilation = d.dilation ? d.dilation : 1;
    sodet_conv2d_attr a = {.stride_h = (int32_t)(d.stride_h ? d.stride_h : stride),
                           .stride_w = (int32_t)(d.stride_w ? d.stride_w : stride),
                           .dilation_h = (int32_t)dilation,
                           .dilation_w = (int32_t)dilation,
                           .groups = (int32_t)groups,
                           .pad_top = (int32_t)d.pad[0],
                           .pad_left = (int32_t)d.pad[1],
                           .pad_bottom = (int32_t)d.pad[2],
                           .pad_right = (int32_t)d.pad[3]};
    sodet_enter(g, "%s", name);
    sodet_value y = SODET_POISON;
    int64_t in = sodet_dim(g, x, 1);
    if (!d.out || !kernel_h || !kernel_w)
        sodet_graph_fail(g, SODET_E_INVALID, "conv2d: out = %u, kernel = %ux%u: output channels and kernel are required", d.out, kernel_h,
                         kernel_w);
    else if (sodet_graph_status(g, NULL) == SODET_OK && (in % groups != 0 || d.out % groups != 0))
        sodet_graph_fail(g, SODET_E_INVALID, "conv2d: %lld input and %u output channels cannot be dealt to %u groups", (long long)in, d.out,
                         groups);
    else {
        if (d.flags & SODET_CONV_SAME) {
            pad_same(sodet_dim(g, x, 2), kernel_h, a.dilation_h, a.stride_h, &a.pad_top, &a.pad_bottom);
            pad_same(sodet_dim(g, x, 3), kernel_w, a.dilation_w, a.stride_w, &a.pad_left, &a.pad_right);
        }
        sodet_shape shape = sodet_shape_make(SODET_F32, 4, d.out, in / groups, kernel_h, kernel_w);
        sodet_value inputs[4] = {x, sodet_parameter(g, "weight", &shape, &d.weight), SODET_NONE, SODET_NONE};
        if (!(d.flags & SODET_CONV_NO_BIAS)) {
            sodet_shape vector = sodet_shape_make(SODET_F32, 1, d.out, 0, 0, 0);
            if (d.bias.group == SODET_GROUP_WEIGHT)
                d.bias.group = SODET_GROUP_BIAS;
            if (d.bias.fan_in == 0)
                d.bias.fan_in = shape.dim[1] * shape.dim[2] * shape.dim[3];
            inputs[2] = sodet_parameter(g, "bias", &vector, &d.bias);
        }
        y = sodet_apply(g, &sodet_op_conv2d, &a, inputs, 4);
    }
    sodet_leave(g);
    return y;
}
