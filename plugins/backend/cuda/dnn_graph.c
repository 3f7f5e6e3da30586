/* The operation graph of a convolution, in the order that cuDNN's precompiled engines know: convolution, residual, bias, ReLU. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plugins/backend/cuda/dnn_graph.h"

/* ---- descriptors ---- */
void dnn_parts_failed(dnn_parts *p, cudnnStatus_t s)
{
    if (s == CUDNN_STATUS_SUCCESS || p->status != CUDNN_STATUS_SUCCESS)
        return;
    char text[4096] = "";
    cudnnGetLastErrorString(text, sizeof text);
    p->status = s;
    snprintf(p->reason, sizeof p->reason, "%s%s%.150s", cudnnGetErrorString(s), text[0] ? ", " : "", text);
    for (char *c = p->reason; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
}

cudnnBackendDescriptor_t dnn_part(dnn_parts *p, cudnnBackendDescriptorType_t type)
{
    if (p->n == DNN_PARTS)
        dnn_parts_failed(p, CUDNN_STATUS_INTERNAL_ERROR);
    if (p->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    dnn_parts_failed(p, cudnnBackendCreateDescriptor(type, &p->of[p->n]));
    return p->status == CUDNN_STATUS_SUCCESS ? p->of[p->n++] : NULL;
}

void dnn_set(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
             const void *value)
{
    if (p->status == CUDNN_STATUS_SUCCESS)
        dnn_parts_failed(p, cudnnBackendSetAttribute(d, name, type, count, value));
}

void dnn_set_part(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    dnn_set(p, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void dnn_finish(dnn_parts *p, cudnnBackendDescriptor_t d)
{
    if (p->status == CUDNN_STATUS_SUCCESS)
        dnn_parts_failed(p, cudnnBackendFinalize(d));
}

void dnn_parts_free(dnn_parts *p)
{
    while (p->n)
        cudnnBackendDestroyDescriptor(p->of[--p->n]);
}

static void set_ints(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t count, const int64_t *value)
{
    dnn_set(p, d, name, CUDNN_TYPE_INT64, count, value);
}

static void set_type(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnDataType_t type)
{
    dnn_set(p, d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

/* ---- tensors ---- */
/* Sizes in cuDNN's order, N C H W; what lies in memory is [N][H][W][C]. An inner tensor has no memory: it is what one operation hands to
 * the next. */
static cudnnBackendDescriptor_t tensor(dnn_parts *p, int64_t id, cudnnDataType_t type, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t size[] = {n, c, h, w}, stride[] = {h * w * c, 1, w * c, c}, alignment = DNN_ALIGNMENT;
    const bool inner = id >= DNN_INNER;
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_ints(p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &id);
    set_type(p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set_ints(p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, 4, size);
    set_ints(p, d, CUDNN_ATTR_TENSOR_STRIDES, 4, stride);
    set_ints(p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &alignment);
    dnn_set(p, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner);
    dnn_finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t map_y(dnn_parts *p, const dnn_conv *v, int64_t id, cudnnDataType_t type)
{
    return tensor(p, id, type, v->n, v->k, v->p, v->q);
}

/* ---- operations ---- */
static cudnnBackendDescriptor_t convolution(dnn_parts *p, const dnn_conv *v)
{
    const int64_t dims = 2;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_ints(p, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &dims);
    set_type(p, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    dnn_set(p, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set_ints(p, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, v->before);
    set_ints(p, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, v->after);
    set_ints(p, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, v->dilation);
    set_ints(p, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, v->stride);
    dnn_finish(p, d);
    return d;
}

/* The three parts of a convolution differ in names alone. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
} operation[] = {
    [DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [DNN_GRADIENT_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [DNN_GRADIENT_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnBackendDescriptor_t convolve(dnn_parts *p, const dnn_conv *v, cudnnDataType_t type, cudnnBackendDescriptor_t y)
{
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t x = tensor(p, DNN_X, type, v->n, v->c, v->h, v->w);
    cudnnBackendDescriptor_t w = tensor(p, DNN_W, type, v->k, v->c / v->groups, v->r, v->s); /* the number of groups shows in this */
    cudnnBackendDescriptor_t c = convolution(p, v), d = dnn_part(p, operation[v->part].type);
    dnn_set_part(p, d, operation[v->part].x, x);
    dnn_set_part(p, d, operation[v->part].w, w);
    dnn_set_part(p, d, operation[v->part].y, y);
    dnn_set_part(p, d, operation[v->part].convolution, c);
    dnn_set(p, d, operation[v->part].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    dnn_set(p, d, operation[v->part].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    dnn_finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t pointwise(dnn_parts *p, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                          cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t what = dnn_part(p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    dnn_set(p, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(p, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    dnn_finish(p, what);
    cudnnBackendDescriptor_t d = dnn_part(p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    dnn_set_part(p, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    dnn_set_part(p, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        dnn_set_part(p, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    dnn_set_part(p, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    dnn_finish(p, d);
    return d;
}

cudnnBackendDescriptor_t dnn_graph_make(dnn_parts *p, const dnn_conv *v)
{
    const cudnnDataType_t type = v->type == SODET_F32 ? CUDNN_DATA_FLOAT : v->type == SODET_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    cudnnBackendDescriptor_t op[4], y;
    int64_t n = 0, inner = DNN_INNER;
    uint32_t left = v->bias + v->residual + v->relu; /* what comes behind the operation that is made next */
    y = left ? map_y(p, v, inner++, CUDNN_DATA_FLOAT) : map_y(p, v, DNN_Y, type);
    op[n++] = convolve(p, v, type, y);
    for (uint32_t step = 0; step < 3; step++) {
        cudnnBackendDescriptor_t x = y, b = NULL;
        if (!(step == 0 ? v->residual : step == 1 ? v->bias : v->relu))
            continue;
        if (step == 0)
            b = map_y(p, v, DNN_RESIDUAL, type);
        if (step == 1)
            b = tensor(p, DNN_BIAS, type, 1, v->k, 1, 1);
        y = --left ? map_y(p, v, inner++, CUDNN_DATA_FLOAT) : map_y(p, v, DNN_Y, type);
        op[n++] = pointwise(p, step == 2 ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_ADD, x, b, y);
    }
    cudnnBackendDescriptor_t g = dnn_part(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    dnn_set(p, g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, op);
    dnn_finish(p, g);
    return g;
}
