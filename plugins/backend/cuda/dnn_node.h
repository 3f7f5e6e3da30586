/* backend/cuda/dnn_node.h: the convolution that a node of conv2d asks for, as the backend plans it: with bias and residual if it has them, and
 * with ReLU; another activation is a step behind it. */
#ifndef SD_BACKEND_CUDA_DNN_NODE_H
#define SD_BACKEND_CUDA_DNN_NODE_H

#include <string.h>

#include "kernels/activation/activation.h"
#include "kernels/conv2d/conv2d.h"
#include "plugins/backend/cuda/dnn.h"

static inline dnn_conv dnn_conv_of(const sodet_node *n, uint32_t type)
{
    const sodet_conv2d_attr *a = n->attr;
    const sodet_shape *x = n->part == 1 ? &n->out_shape[0] : &n->in_shape[0], *w = n->part == 2 ? &n->out_shape[0] : &n->in_shape[1];
    const sodet_shape *y = n->part == 0 ? &n->out_shape[0] : n->part == 1 ? &n->in_shape[0] : &n->in_shape[1];
    dnn_conv c;
    memset(&c, 0, sizeof c); /* compared as bytes */
    c.part = n->part;
    c.type = type;
    c.n = x->dim[0], c.c = x->dim[1], c.h = x->dim[2], c.w = x->dim[3];
    c.k = w->dim[0], c.r = w->dim[2], c.s = w->dim[3];
    c.p = y->dim[2], c.q = y->dim[3];
    c.groups = a->groups;
    c.stride[0] = a->stride_h, c.stride[1] = a->stride_w;
    c.dilation[0] = a->dilation_h, c.dilation[1] = a->dilation_w;
    c.before[0] = a->pad_top, c.before[1] = a->pad_left;
    c.after[0] = a->pad_bottom, c.after[1] = a->pad_right;
    if (n->part == 0) {
        c.bias = n->n_in > 2 && n->in[2].id;
        c.residual = n->n_in > 3 && n->in[3].id;
        c.relu = a->activation == SODET_ACT_RELU;
    }
    return c;
}

#endif
