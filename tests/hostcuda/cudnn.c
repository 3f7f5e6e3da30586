/* cuDNN's graph API over hostcuda: handles, descriptors, and what they accept. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_parts.h"

static _Thread_local char last_error[256];

cudnnStatus_t hc_cudnn_fail(cudnnStatus_t s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return s;
}

/* HC_FAIL's answer to a call of `function`. */
static cudnnStatus_t planned(const char *function, cudnnStatus_t with)
{
    return hc_planned_failure(function) == cudaSuccess ? CUDNN_STATUS_SUCCESS : hc_cudnn_fail(with, "%s was asked to fail", function);
}

/* ---- the library ---- */
/* HC_CUDNN_VERSION: what the library claims to be, as 8907 for 8.9.7 and 91900 for 9.19.0. */
size_t cudnnGetVersion(void)
{
    const char *text = getenv("HC_CUDNN_VERSION");
    return text && *text ? strtoul(text, NULL, 10) : CUDNN_VERSION;
}

cudnnStatus_t cudnnGraphVersionCheck(void)
{
    return planned(__func__, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH);
}

cudnnStatus_t cudnnCnnVersionCheck(void)
{
    return planned(__func__, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH);
}

#define STATUSES(ROW)                                                                                                                      \
    ROW(CUDNN_STATUS_SUCCESS)                                                                                                              \
    ROW(CUDNN_STATUS_NOT_INITIALIZED)                                                                                                      \
    ROW(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH)                                                                                          \
    ROW(CUDNN_STATUS_BAD_PARAM)                                                                                                            \
    ROW(CUDNN_STATUS_BAD_PARAM_NULL_POINTER)                                                                                               \
    ROW(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER)                                                                                         \
    ROW(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)                                                                                              \
    ROW(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH)                                                                                            \
    ROW(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE)                                                                                             \
    ROW(CUDNN_STATUS_NOT_SUPPORTED)                                                                                                        \
    ROW(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN)                                                                                          \
    ROW(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT)                                                                                                 \
    ROW(CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING)                                                                           \
    ROW(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)                                                                                \
    ROW(CUDNN_STATUS_EXECUTION_FAILED)                                                                                                     \
    ROW(CUDNN_STATUS_EXECUTION_FAILED_CUDART)

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
#define ROW(name)                                                                                                                          \
    case name:                                                                                                                             \
        return #name;
        STATUSES(ROW)
#undef ROW
    default:
        return "CUDNN_UNKNOWN_STATUS";
    }
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "%s", last_error);
}

/* ---- handles ---- */
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    int devices = 0;
    cudnnStatus_t s = planned(__func__, CUDNN_STATUS_NOT_INITIALIZED);
    if (s != CUDNN_STATUS_SUCCESS)
        return s;
    if (cudaGetDeviceCount(&devices) != cudaSuccess)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_INITIALIZED, "cudaGetDeviceCount failed");
    *handle = calloc(1, sizeof **handle);
    if (!*handle)
        return hc_cudnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a handle");
    (*handle)->device = hc_device();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (hc_stream_device(stream) != handle->device) {
        hc_report("cudnnSetStream: a stream of device %d for a handle of device %d", hc_stream_device(stream), handle->device);
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "stream and handle are on different devices");
    }
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- what descriptors accept ---- */
enum { OPTIONAL = 1, ANY_OPERATION = 10000 };
typedef struct rule {
    cudnnBackendDescriptorType_t owner;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    uint32_t flags;
    int part; /* type of the descriptors in it */
} rule;

#define CONVOLUTION_RULES(OWNER, PREFIX, X, W, Y)                                                                                          \
    {OWNER, PREFIX##_##X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0, CUDNN_BACKEND_TENSOR_DESCRIPTOR},                                        \
        {OWNER, PREFIX##_##W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0, CUDNN_BACKEND_TENSOR_DESCRIPTOR},                                    \
        {OWNER, PREFIX##_##Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0, CUDNN_BACKEND_TENSOR_DESCRIPTOR},                                    \
        {OWNER, PREFIX##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR},                         \
        {OWNER, PREFIX##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, 0, 0},                                                                             \
    {                                                                                                                                      \
        OWNER, PREFIX##_BETA, CUDNN_TYPE_FLOAT, 1, 1, 0, 0                                                                                 \
    }

static const rule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, 0, 0},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 0, 0},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4, 0, 0},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4, 0, 0},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1, 0, 0},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, OPTIONAL, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 2, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 2, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 2, 0, 0},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 2, 0, 0},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, 0, 0},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, 0, 0},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, OPTIONAL,
     CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    CONVOLUTION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, W, Y),
    CONVOLUTION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY),
    CONVOLUTION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DW,
                      DY),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 + HC_STEPS, 0,
     ANY_OPERATION},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, 0, 0},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, 0,
     CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 3 + HC_STEPS, 0, 0},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 3 + HC_STEPS, 0, 0},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, 0, 0},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, OPTIONAL, 0},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1, 1 << 20, OPTIONAL, 0},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static bool is_operation(cudnnBackendDescriptorType_t t)
{
    return t == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || t == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
           t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
           t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

static size_t size_of(cudnnBackendAttributeType_t t)
{
    switch (t) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

/* ---- descriptors ---- */
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor)
{
    cudnnStatus_t s = planned(__func__, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    if (s != CUDNN_STATUS_SUCCESS)
        return s;
    bool known = type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || type == CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    for (uint32_t i = 0; i < RULES; i++)
        known |= rules[i].owner == type;
    if (!known)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "descriptors of type %d are not part of the stand-in", (int)type);
    hc_part *p = calloc(1, sizeof *p);
    if (!p)
        return hc_cudnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a descriptor");
    p->type = type;
    *descriptor = p;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    hc_part *p = descriptor;
    if (!p)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
    for (uint32_t i = 0; i < p->n; i++)
        free(p->of[i].value);
    free(p);
    return CUDNN_STATUS_SUCCESS;
}

const hc_attribute *hc_attribute_of(const hc_part *p, cudnnBackendAttributeName_t name)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->of[i].name == name)
            return &p->of[i];
    return NULL;
}

int64_t hc_int_of(const hc_part *p, cudnnBackendAttributeName_t name, int64_t i)
{
    const hc_attribute *a = hc_attribute_of(p, name);
    if (a->type == CUDNN_TYPE_INT64)
        return ((const int64_t *)a->value)[i];
    return a->type == CUDNN_TYPE_BOOLEAN ? ((const bool *)a->value)[i] : ((const int *)a->value)[i];
}

const hc_part *hc_part_of(const hc_part *p, cudnnBackendAttributeName_t name, int64_t i)
{
    const hc_attribute *a = hc_attribute_of(p, name);
    return a ? ((hc_part *const *)a->value)[i] : NULL;
}

static cudnnStatus_t check_parts(const rule *r, int64_t count, const void *values)
{
    for (int64_t i = 0; i < count; i++) {
        const hc_part *v = ((hc_part *const *)values)[i];
        if (!v)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: its part %d is NULL", (int)r->name, (int)i);
        if (!v->done)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d: its part is not finalized", (int)r->name);
        if (r->part == ANY_OPERATION ? !is_operation(v->type) : (int)v->type != r->part)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d: a descriptor of type %d is not its part", (int)r->name,
                                 (int)v->type);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    hc_part *p = descriptor;
    const rule *r = rules;
    while (r < rules + RULES && (r->owner != p->type || r->name != name))
        r++;
    if (p->done)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d: the descriptor is finalized", (int)name);
    if (r == rules + RULES)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor of type %d has no attribute %d", (int)p->type, (int)name);
    if (r->type != type)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d: type %d, expected %d", (int)name, (int)type,
                             (int)r->type);
    if (count < r->least || count > r->most)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d: %d values", (int)name, (int)count);
    if (!values)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "attribute %d: values are NULL", (int)name);
    cudnnStatus_t s = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? check_parts(r, count, values) : CUDNN_STATUS_SUCCESS;
    if (s != CUDNN_STATUS_SUCCESS)
        return s;
    const size_t bytes = (size_t)count * size_of(type);
    void *copy = malloc(bytes);
    if (!copy)
        return hc_cudnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for an attribute");
    memcpy(copy, values, bytes);
    uint32_t i = 0;
    while (i < p->n && p->of[i].name != name)
        i++;
    if (i < p->n)
        free(p->of[i].value);
    p->n += i == p->n; /* no descriptor has more than HC_ATTRIBUTES rules */
    p->of[i] = (hc_attribute){name, type, count, copy};
    return CUDNN_STATUS_SUCCESS;
}

/* ---- finishing ---- */
static cudnnStatus_t finish_tensor(const hc_part *p)
{
    const int64_t type = hc_int_of(p, CUDNN_ATTR_TENSOR_DATA_TYPE, 0), alignment = hc_int_of(p, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
    if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "tensors of type %d are not part of the stand-in", (int)type);
    if (alignment <= 0 || alignment % (type == CUDNN_DATA_FLOAT ? 4 : 2))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a tensor's alignment is %d", (int)alignment);
    for (int64_t i = 0; i < 4; i++)
        if (hc_int_of(p, CUDNN_ATTR_TENSOR_DIMENSIONS, i) <= 0)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a tensor's dimension %d is not positive", (int)i);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_convolution(const hc_part *p)
{
    if (hc_int_of(p, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0) != 2)
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "convolutions over 2 dimensions alone are part of the stand-in");
    for (int64_t i = 0; i < 2; i++)
        if (hc_int_of(p, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) < 0 || hc_int_of(p, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) < 0 ||
            hc_int_of(p, CUDNN_ATTR_CONVOLUTION_DILATIONS, i) < 1 || hc_int_of(p, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) < 1)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a convolution's padding, dilation or stride is out of range");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_pack(const hc_part *p)
{
    const hc_attribute *ids = hc_attribute_of(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (ids->count != hc_attribute_of(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "ptrs_count != uids_count");
    for (int64_t i = 0; i < ids->count; i++)
        for (int64_t j = 0; j < i; j++)
            if (((const int64_t *)ids->value)[i] == ((const int64_t *)ids->value)[j])
                return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "an id stands twice in the variant pack");
    return CUDNN_STATUS_SUCCESS;
}

/* y = floor((x + padding - dilation * (w - 1) - 1) / stride) + 1, and channels that fit. */
static cudnnStatus_t finish_operation(const hc_part *x, const hc_part *w, const hc_part *y, const hc_part *c)
{
    const cudnnBackendAttributeName_t size = CUDNN_ATTR_TENSOR_DIMENSIONS;
    for (int64_t i = 0; i < 2; i++) {
        const int64_t padding =
            hc_int_of(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) + hc_int_of(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        const int64_t reach = hc_int_of(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i) * (hc_int_of(w, size, 2 + i) - 1) + 1;
        const int64_t room = hc_int_of(x, size, 2 + i) + padding - reach;
        if (room < 0 || room / hc_int_of(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) + 1 != hc_int_of(y, size, 2 + i))
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "is_valid_spatial_dim: dimension %d of y does not follow from x, w and padding",
                                 (int)i + 2);
    }
    if (hc_int_of(x, size, 0) != hc_int_of(y, size, 0))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "yDimA[N_DIM] != xDimA[N_DIM]");
    if (hc_int_of(w, size, 0) != hc_int_of(y, size, 1))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "yDimA[CK_DIM] != wDimA[WK_DIM]");
    if (hc_int_of(x, size, 1) % hc_int_of(w, size, 1))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "0 != xDimA[1] %% wDimA[1]");
    if (hc_int_of(w, size, 0) % (hc_int_of(x, size, 1) / hc_int_of(w, size, 1)))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "0 != wDimA[0] %% g");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish(hc_part *p)
{
    switch (p->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return finish_tensor(p);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return finish_convolution(p);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return finish_operation(hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 0));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return finish_operation(hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 0));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return finish_operation(hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 0),
                                hc_part_of(p, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 0));
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return hc_graph_finish(p);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        p->graph = hc_part_of(p, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0)->graph;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return hc_plan_finish(p);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return finish_pack(p);
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
        return hc_device_finish(p);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "engines come from the heuristics alone in the stand-in");
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    hc_part *p = descriptor;
    cudnnStatus_t s = planned(__func__, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    if (s == CUDNN_STATUS_SUCCESS && p->done)
        s = hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized already");
    for (uint32_t i = 0; s == CUDNN_STATUS_SUCCESS && i < RULES; i++)
        if (rules[i].owner == p->type && !(rules[i].flags & OPTIONAL) && !hc_attribute_of(p, rules[i].name))
            s = hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor of type %d lacks attribute %d", (int)p->type, (int)rules[i].name);
    if (s == CUDNN_STATUS_SUCCESS)
        s = finish(p);
    p->done |= s == CUDNN_STATUS_SUCCESS;
    return s;
}

/* ---- reading ---- */
static cudnnStatus_t give_list(const hc_part *p, int64_t most, int64_t *count, void *out)
{
    const hc_engine *list[HC_LIST];
    const int64_t n = hc_engine_list(&p->graph, (cudnnBackendHeurMode_t)hc_int_of(p, CUDNN_ATTR_ENGINEHEUR_MODE, 0), list);
    if (most == 0) { /* the real one says more than it then fills, too */
        *count = n + 1;
        return CUDNN_STATUS_SUCCESS;
    }
    *count = n < most ? n : most;
    for (int64_t i = 0; i < *count; i++) {
        hc_part *c = ((hc_part **)out)[i];
        if (!c || c->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || c->done)
            return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "a list is read into fresh configurations");
        c->graph = p->graph;
        c->engine = list[i];
        c->done = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_engine(const hc_part *p, int64_t most, int64_t *count, void *out)
{
    hc_part *e = most ? *(hc_part **)out : NULL;
    if (!e || e->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM, "an engine is read into a descriptor of an engine");
    e->engine = p->engine;
    e->done = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_notes(uint32_t notes, int64_t most, int64_t *count, int *out)
{
    *count = 0;
    for (int i = 0; i < 32; i++)
        if (notes >> i & 1 && (*count)++ < most)
            out[*count - 1] = i;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_int(int64_t value, int64_t most, int64_t *count, void *out)
{
    *count = 1;
    if (most > 0)
        memcpy(out, &value, sizeof value);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t *count, void *out)
{
    static const struct {
        cudnnBackendDescriptorType_t owner;
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
    } readable[] = {
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64},
    };
    const hc_part *p = descriptor;
    uint32_t i = 0;
    while (i < sizeof readable / sizeof readable[0] && (readable[i].owner != p->type || readable[i].name != name))
        i++;
    if (i == sizeof readable / sizeof readable[0])
        return hc_cudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "attribute %d of a descriptor of type %d cannot be read in the stand-in",
                             (int)name, (int)p->type);
    if (!p->done)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d: the descriptor is not finalized", (int)name);
    if (readable[i].type != type)
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d: type %d, expected %d", (int)name, (int)type,
                             (int)readable[i].type);
    if (!count || (most > 0 && !out))
        return hc_cudnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: nowhere to write it", (int)name);
    switch (i) {
    case 0:
        return give_list(p, most, count, out);
    case 1:
        return give_engine(p, most, count, out);
    case 2:
        return give_int(p->engine->index, most, count, out);
    case 3:
        return give_notes(p->engine->notes, most, count, out);
    case 4:
        return give_notes(p->engine->behavior, most, count, out);
    default:
        return give_int(hc_workspace_of(&p->graph, p->engine), most, count, out);
    }
}
