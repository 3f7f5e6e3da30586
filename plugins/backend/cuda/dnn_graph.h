/* backend/cuda/dnn_graph.h: what dnn.c is made of: descriptors of cuDNN, kept together, and the operation graph of a convolution. */
#ifndef SD_BACKEND_CUDA_DNN_GRAPH_H
#define SD_BACKEND_CUDA_DNN_GRAPH_H

#include <cudnn.h>

#include "plugins/backend/cuda/dnn.h"

/* Descriptors that live and die together. The first call that fails is remembered, and all later ones do nothing: the status is looked at
 * once, at the end. */
enum { DNN_PARTS = 24 };
typedef struct dnn_parts {
    cudnnBackendDescriptor_t of[DNN_PARTS];
    uint32_t n;
    cudnnStatus_t status;
    char reason[200]; /* cuDNN's, on one line */
} dnn_parts;

/* The unique ids of a graph's tensors. */
enum { DNN_X = 1, DNN_W, DNN_Y, DNN_BIAS, DNN_RESIDUAL, DNN_INNER };

void dnn_parts_failed(dnn_parts *p, cudnnStatus_t s); /* remembers it, with cuDNN's reason; SUCCESS is nothing */
cudnnBackendDescriptor_t dnn_part(dnn_parts *p, cudnnBackendDescriptorType_t type);
void dnn_set(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
             const void *value);
void dnn_set_part(dnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void dnn_finish(dnn_parts *p, cudnnBackendDescriptor_t d);
void dnn_parts_free(dnn_parts *p);

/* The finished operation graph of `conv`; its parts are p's. Unusable if p->status is not SUCCESS. */
cudnnBackendDescriptor_t dnn_graph_make(dnn_parts *p, const dnn_conv *conv);

#endif
