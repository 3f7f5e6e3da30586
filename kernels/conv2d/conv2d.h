/* conv2d: y[n,o,i,j] = act(b[o] + r[n,o,i,j] + sum_{c,k,l} w[o,c,k,l] * x[n, c0 + c, i*stride_h - top + k*dilation_h, j*stride_w - left + l*dilation_w])
 * with x outside the map = 0 and c0 = the first channel of o's group (cross-correlation, as in every deep learning system).
 *
 * Part 0  in  x [N, I, H, W], w [O, I / groups, KH, KW], b [O] (may be absent), r [N, O, OH, OW] (residual; may be absent)
 *         out y [N, O, OH, OW];  OH = (H + top + bottom - dilation_h * (KH - 1) - 1) / stride_h + 1, rounded down
 * Part 1  in  dy, w          out dx [N, I, in_h, in_w]
 * Part 2  in  x, dy          out dw [O, I / groups, kernel_h, kernel_w] and, if there are two outputs, db [O]
 * Parts 1 and 2 know nothing of activation and residual: the gradient puts dy through activation's derivative first, which it takes
 * from y. So a fused activation must be one whose derivative can be had from its output (sodet_activation_from_output) where the node
 * is to be differentiated.
 *
 * Sums: the reference's in double. Tolerance of a float implementation: 2e-6 * sqrt(terms / 100) of the largest |y|, Winograd 5e-6. */
#ifndef SODET_KERNELS_CONV2D_H
#define SODET_KERNELS_CONV2D_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_conv2d_attr {
    int32_t stride_h, stride_w, dilation_h, dilation_w, groups;
    int32_t pad_top, pad_left, pad_bottom, pad_right;
    uint32_t activation;                    /* SODET_ACT_*, part 0; 0: none */
    float slope;                            /* of leaky_relu */
    int32_t kernel_h, kernel_w, in_h, in_w; /* parts 1 and 2; 0 in part 0 */
} sodet_conv2d_attr;

enum {
    SODET_CONV_NO_BIAS = 1,
    SODET_CONV_SAME = 2 /* pads so that out = ceil(in / stride), extra on the right and below (TensorFlow); `pad` is not read */
};
/* Zero means the default that stands behind the field. The macro fills in the size. */
typedef struct sodet_conv2d_desc {
    uint32_t struct_size;
    uint32_t out;                /* output channels; required */
    uint32_t kernel;             /* square side */
    uint32_t kernel_h, kernel_w; /* kernel; one of the two ways is required */
    uint32_t stride;             /* 1 */
    uint32_t stride_h, stride_w; /* stride */
    uint32_t dilation;           /* 1 */
    uint32_t groups;             /* 1; depthwise: the number of input channels */
    uint32_t pad[4];             /* top, left, bottom, right */
    uint32_t flags;              /* SODET_CONV_* */
    sodet_param weight, bias;    /* initialiser, lr and decay factors; zero: the recipe's */
} sodet_conv2d_desc;
#define SODET_CONV2D(...) (&(const sodet_conv2d_desc){.struct_size = sizeof(sodet_conv2d_desc), __VA_ARGS__})

/* Parameters "<name>/weight" [out, in / groups, kernel_h, kernel_w] and "<name>/bias" [out]. */
SODET_EXPORT sodet_value sodet_conv2d(sodet_graph *g, const char *name, sodet_value x, const sodet_conv2d_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
