/* kernels/pool.h: what the descriptions of max_pool and avg_pool share. */
#ifndef SD_KERNELS_POOL_H
#define SD_KERNELS_POOL_H

#include "kernels/describe.h"
#include "kernels/max_pool/max_pool.h"

static inline sodet_status pool_side(const sodet_node *n, const char *axis, int64_t in, int64_t before, int64_t after, int64_t kernel,
                                     int64_t stride, uint32_t flags, int64_t *out, sodet_err *err)
{
    if (kernel < 1 || stride < 1 || before < 0 || after < 0 || before >= kernel || after >= kernel)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: kernel %lld, stride %lld, padding %lld and %lld along %s: kernel and stride of at least 1 and paddings less "
                          "than the kernel expected",
                          n->op->name, (long long)kernel, (long long)stride, (long long)before, (long long)after, axis);
    int64_t room = in + before + after - kernel;
    if (room < 0)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: the map's %s %lld with padding %lld is less than the kernel %lld: use a larger input or fewer levels",
                          n->op->name, axis, (long long)in, (long long)(before + after), (long long)kernel);
    *out = (flags & SODET_POOL_CEIL ? (room + stride - 1) / stride : room / stride) + 1;
    if (flags & SODET_POOL_CEIL && (*out - 1) * stride >= in + before)
        --*out;
    return SODET_OK;
}

static inline sodet_status pool_infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const sodet_pool_attr *a = n->attr;
    const sodet_shape *x = &n->in_shape[0];
    int64_t oh = 0, ow = 0;
    OP_TRY(op_check_rank(n, 0, "x", SODET_F32, 4, err));
    OP_TRY(pool_side(n, "height", x->dim[2], a->pad_top, a->pad_bottom, a->kernel_h, a->stride_h, a->flags, &oh, err));
    OP_TRY(pool_side(n, "width", x->dim[3], a->pad_left, a->pad_right, a->kernel_w, a->stride_w, a->flags, &ow, err));
    *out = sodet_shape_make(SODET_F32, 4, x->dim[0], x->dim[1], oh, ow);
    return SODET_OK;
}

static inline void pool_cost(const sodet_node *n, sodet_cost *out)
{
    const sodet_pool_attr *a = n->attr;
    const sodet_shape *y = n->part == 0 ? &n->out_shape[0] : &n->in_shape[n->n_in - 1];
    out->macs = 0;
    out->flops = (uint64_t)sodet_elements(y) * (uint64_t)a->kernel_h * (uint64_t)a->kernel_w;
    out->bytes = op_bytes(n);
}

static inline sodet_pool_attr pool_attr(const sodet_pool_desc *desc)
{
    sodet_pool_desc d;
    op_descriptor(&d, sizeof d, desc);
    uint32_t kh = d.kernel_h ? d.kernel_h : d.kernel, kw = d.kernel_w ? d.kernel_w : d.kernel;
    uint32_t pads[4] = {d.pad, d.pad, d.pad, d.pad};
    if (d.pads[0] || d.pads[1] || d.pads[2] || d.pads[3])
        memcpy(pads, d.pads, sizeof pads);
    return (sodet_pool_attr){.kernel_h = (int32_t)kh,
                             .kernel_w = (int32_t)kw,
                             .stride_h = (int32_t)(d.stride_h ? d.stride_h
                                                   : d.stride ? d.stride
                                                              : kh),
                             .stride_w = (int32_t)(d.stride_w ? d.stride_w
                                                   : d.stride ? d.stride
                                                              : kw),
                             .pad_top = (int32_t)pads[0],
                             .pad_left = (int32_t)pads[1],
                             .pad_bottom = (int32_t)pads[2],
                             .pad_right = (int32_t)pads[3],
                             .flags = d.flags};
}

/* One window over the whole map. */
static inline sodet_pool_attr pool_global(const sodet_graph *g, sodet_value x)
{
    int32_t h = (int32_t)sodet_dim(g, x, 2), w = (int32_t)sodet_dim(g, x, 3);
    return (sodet_pool_attr){.kernel_h = h, .kernel_w = w, .stride_h = h, .stride_w = w};
}

#endif
