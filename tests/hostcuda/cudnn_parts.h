/* The stand-in for cuDNN's graph API: its parts to each other. cudnn.c: handles, descriptors and what they accept; cudnn_engines.c: which
 * graphs which engine knows, and how lists of them look; cudnn_run.c: execution on a stream; cudnn_math.c: what touches tensors.
 *
 * It accepts what plugins/backend/cuda/dnn.c needs and nothing that the real library was seen to refuse (tests/cuda/rules.c runs over
 * both). Where the real one lets a mistake through (an unfinished part inside another), this one refuses. */
#ifndef HC_CUDNN_PARTS_H
#define HC_CUDNN_PARTS_H

#include <cudnn.h>

#include "internal.h"

enum { HC_ATTRIBUTES = 8, HC_STEPS = 3, HC_LIST = 8 };

typedef struct hc_tensor {
    int64_t id, size[4]; /* N C H W; what lies in memory is N H W C */
    int64_t alignment;
    cudnnDataType_t type;
    bool inner; /* virtual: no memory */
} hc_tensor;

/* A graph of operations that was recognised: a convolution or one of its gradients, and what is done with its result. */
typedef struct hc_graph {
    uint32_t part; /* 0 forward, 1 gradient of the data, 2 of the weights */
    int64_t groups, before[2], after[2], stride[2], dilation[2];
    hc_tensor x, w, y; /* of the convolution */
    uint32_t steps;
    struct {
        cudnnPointwiseMode_t mode;
        bool has_b;
        hc_tensor b, y;
    } step[HC_STEPS];
    bool ready; /* precompiled engines know it */
} hc_graph;

typedef struct hc_engine {
    int64_t index;
    uint32_t notes;    /* bit per CUDNN_NUMERICAL_NOTE_* */
    uint32_t behavior; /* bit per CUDNN_BEHAVIOR_NOTE_* */
    uint32_t bits;     /* of an operand's fraction that it uses; 0: all */
} hc_engine;

typedef struct hc_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    void *value;
} hc_attribute;

/* What a cudnnBackendDescriptor_t points at. */
typedef struct hc_part {
    cudnnBackendDescriptorType_t type;
    bool done;
    uint32_t n;
    hc_attribute of[HC_ATTRIBUTES];
    hc_graph graph;          /* of a graph, and copied into lists, configurations and plans */
    const hc_engine *engine; /* of a configuration, an engine, a plan */
    cudnnHandle_t handle;    /* of a device and of plans for it; NULL: described */
} hc_part;

struct cudnnContext {
    cudaStream_t stream;
    int device;
};

/* Keeps the text for cudnnGetLastErrorString and returns s. */
cudnnStatus_t hc_cudnn_fail(cudnnStatus_t s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const hc_attribute *hc_attribute_of(const hc_part *p, cudnnBackendAttributeName_t name); /* NULL: not set */
/* The i-th value of an attribute that is set. */
int64_t hc_int_of(const hc_part *p, cudnnBackendAttributeName_t name, int64_t i);
const hc_part *hc_part_of(const hc_part *p, cudnnBackendAttributeName_t name, int64_t i); /* NULL: not set */

cudnnStatus_t hc_graph_finish(hc_part *p);  /* recognises the operations */
cudnnStatus_t hc_device_finish(hc_part *p); /* a handle, or a description */
/* The engines of a graph in the order of a mode; their number. */
uint32_t hc_engine_list(const hc_graph *g, cudnnBackendHeurMode_t mode, const hc_engine *list[HC_LIST]);
cudnnStatus_t hc_plan_finish(hc_part *p);
int64_t hc_workspace_of(const hc_graph *g, const hc_engine *e);

/* A tensor in memory as floats, of which `bits` of the fraction's 23 are kept (0: all). NULL: no memory. */
float *hc_load(const hc_tensor *t, const void *from, uint32_t bits);
void hc_store(const hc_tensor *t, const float *from, void *to); /* rounds to nearest, ties to even */
/* Operands are dense: x [N][H][W][C], w [K][R][S][C / groups], y [N][P][Q][K]. What is written is overwritten. false: no memory. */
bool hc_convolve(const hc_graph *g, float *x, float *w, float *y);

static inline int64_t hc_elements(const hc_tensor *t)
{
    return t->size[0] * t->size[1] * t->size[2] * t->size[3];
}

static inline int64_t hc_bytes(const hc_tensor *t)
{
    return hc_elements(t) * (t->type == CUDNN_DATA_FLOAT ? 4 : 2);
}

#endif
