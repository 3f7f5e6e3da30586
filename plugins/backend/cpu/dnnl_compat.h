/* dnnl_compat.h: the part of oneDNN's C API that this backend uses, alike for 2.6 (Debian 12) and 3.x.
 *
 * What differs: 2.x describes an operation in a struct and makes a primitive descriptor of it, 3.x makes it in one call; a memory
 * descriptor is a struct in 2.x and a handle in 3.x (here always a handle that dn_md_free gives back); 3.x wants source and
 * destination of batch norm apart; post-ops lost their scale. Winograd for x86 is gone since 3.2: dnnl_unimplemented is a normal answer. */
#ifndef CPU_DNNL_COMPAT_H
#define CPU_DNNL_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6)
#error "oneDNN 2.6 or newer is needed"
#endif

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t dn_md;
typedef const_dnnl_memory_desc_t dn_cmd;
#else
typedef dnnl_memory_desc_t *dn_md;
typedef const dnnl_memory_desc_t *dn_cmd;
#endif

/* ---- memory descriptors ---- */
static inline dn_md dn_md_tag(int ndims, const int64_t *dim, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {0};
    memcpy(dims, dim, (size_t)ndims * sizeof *dim);
#if DNNL_VERSION_MAJOR >= 3
    dn_md md = NULL;
    return dnnl_memory_desc_create_with_tag(&md, ndims, dims, type, tag) == dnnl_success ? md : NULL;
#else
    dn_md md = calloc(1, sizeof *md);
    if (md && dnnl_memory_desc_init_by_tag(md, ndims, dims, type, tag) != dnnl_success) {
        free(md);
        md = NULL;
    }
    return md;
#endif
}

static inline dn_md dn_md_strides(int ndims, const int64_t *dim, dnnl_data_type_t type, const int64_t *stride)
{
    dnnl_dims_t dims = {0}, strides = {0};
    memcpy(dims, dim, (size_t)ndims * sizeof *dim);
    memcpy(strides, stride, (size_t)ndims * sizeof *stride);
#if DNNL_VERSION_MAJOR >= 3
    dn_md md = NULL;
    return dnnl_memory_desc_create_with_strides(&md, ndims, dims, type, strides) == dnnl_success ? md : NULL;
#else
    dn_md md = calloc(1, sizeof *md);
    if (md && dnnl_memory_desc_init_by_strides(md, ndims, dims, type, strides) != dnnl_success) {
        free(md);
        md = NULL;
    }
    return md;
#endif
}

static inline dn_md dn_md_clone(dn_cmd from)
{
#if DNNL_VERSION_MAJOR >= 3
    dn_md md = NULL;
    return from && dnnl_memory_desc_clone(&md, from) == dnnl_success ? md : NULL;
#else
    dn_md md = from ? malloc(sizeof *md) : NULL;
    if (md)
        *md = *from;
    return md;
#endif
}

static inline void dn_md_free(dn_md md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (md)
        dnnl_memory_desc_destroy(md);
#else
    free(md);
#endif
}

static inline size_t dn_md_size(dn_cmd md)
{
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

static inline int dn_md_equal(dn_cmd a, dn_cmd b)
{
    return a && b && dnnl_memory_desc_equal(a, b);
}

/* ---- operations; every one leaves *pd NULL on failure ---- */
#if DNNL_VERSION_MAJOR < 3
static inline dnnl_status_t dn_pd(dnnl_status_t s, dnnl_primitive_desc_t *pd, const_dnnl_op_desc_t desc, dnnl_engine_t engine,
                                  const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    return s == dnnl_success ? dnnl_primitive_desc_create(pd, desc, attr, engine, hint) : s;
}
#endif

typedef struct dn_window { /* two spatial dimensions; a dilation of 0 is none. Twelve entries, as the headers of 2.6 declare them. */
    dnnl_dims_t kernel, stride, dilation, pad_begin, pad_end;
} dn_window;

static inline dnnl_status_t dn_conv_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
                                            dn_cmd x, dn_cmd w, dn_cmd b, dn_cmd y, const dn_window *k, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_forward_primitive_desc_create(pd, e, prop, alg, x, w, b, y, k->stride, k->dilation, k->pad_begin, k->pad_end,
                                                          attr);
#else
    dnnl_convolution_desc_t d;
    return dn_pd(dnnl_dilated_convolution_forward_desc_init(&d, prop, alg, x, w, b, y, k->stride, k->dilation, k->pad_begin, k->pad_end),
                 pd, &d, e, NULL, attr);
#endif
}

static inline dnnl_status_t dn_conv_backward_data(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_alg_kind_t alg, dn_cmd dx, dn_cmd w,
                                                  dn_cmd dy, const dn_window *k, const_dnnl_primitive_desc_t hint,
                                                  const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_backward_data_primitive_desc_create(pd, e, alg, dx, w, dy, k->stride, k->dilation, k->pad_begin, k->pad_end,
                                                                hint, attr);
#else
    dnnl_convolution_desc_t d;
    return dn_pd(dnnl_dilated_convolution_backward_data_desc_init(&d, alg, dx, w, dy, k->stride, k->dilation, k->pad_begin, k->pad_end), pd,
                 &d, e, hint, attr);
#endif
}

static inline dnnl_status_t dn_conv_backward_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_alg_kind_t alg, dn_cmd x, dn_cmd dw,
                                                     dn_cmd db, dn_cmd dy, const dn_window *k, const_dnnl_primitive_desc_t hint,
                                                     const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, e, alg, x, dw, db, dy, k->stride, k->dilation, k->pad_begin,
                                                                   k->pad_end, hint, attr);
#else
    dnnl_convolution_desc_t d;
    return dn_pd(
        dnnl_dilated_convolution_backward_weights_desc_init(&d, alg, x, dw, db, dy, k->stride, k->dilation, k->pad_begin, k->pad_end), pd,
        &d, e, hint, attr);
#endif
}

static inline dnnl_status_t dn_pool_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
                                            dn_cmd x, dn_cmd y, const dn_window *k, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_pooling_forward_primitive_desc_create(pd, e, prop, alg, x, y, k->stride, k->kernel, k->dilation, k->pad_begin, k->pad_end,
                                                      attr);
#else
    dnnl_pooling_desc_t d;
    return dn_pd(dnnl_pooling_forward_desc_init(&d, prop, alg, x, y, k->stride, k->kernel, k->pad_begin, k->pad_end), pd, &d, e, NULL,
                 attr);
#endif
}

static inline dnnl_status_t dn_pool_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_alg_kind_t alg, dn_cmd dx, dn_cmd dy,
                                             const dn_window *k, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_pooling_backward_primitive_desc_create(pd, e, alg, dx, dy, k->stride, k->kernel, k->dilation, k->pad_begin, k->pad_end,
                                                       hint, attr);
#else
    dnnl_pooling_desc_t d;
    return dn_pd(dnnl_pooling_backward_desc_init(&d, alg, dx, dy, k->stride, k->kernel, k->pad_begin, k->pad_end), pd, &d, e, hint, attr);
#endif
}

static inline dnnl_status_t dn_norm_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dnnl_prop_kind_t prop, dn_cmd x, float epsilon,
                                            unsigned flags, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_batch_normalization_forward_primitive_desc_create(pd, e, prop, x, x, epsilon, flags, attr);
#else
    dnnl_batch_normalization_desc_t d;
    return dn_pd(dnnl_batch_normalization_forward_desc_init(&d, prop, x, epsilon, flags), pd, &d, e, NULL, attr);
#endif
}

static inline dnnl_status_t dn_norm_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dn_cmd x, float epsilon, unsigned flags,
                                             const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_batch_normalization_backward_primitive_desc_create(pd, e, dnnl_backward, x, x, x, epsilon, flags, hint, attr);
#else
    dnnl_batch_normalization_desc_t d;
    return dn_pd(dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, x, x, epsilon, flags), pd, &d, e, hint, attr);
#endif
}

static inline dnnl_status_t dn_reorder(dnnl_primitive_desc_t *pd, dnnl_engine_t e, dn_cmd from, dn_cmd to, const_dnnl_primitive_attr_t attr)
{
    *pd = NULL;
    return dnnl_reorder_primitive_desc_create(pd, from, e, to, e, attr);
}

static inline dnnl_status_t dn_post_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, alg, alpha, beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta);
#endif
}

static inline dnnl_status_t dn_post_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

static inline dn_cmd dn_query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

static inline const char *dn_impl(const_dnnl_primitive_desc_t pd)
{
    const char *text = NULL;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text) == dnnl_success && text ? text : "";
}

#endif
