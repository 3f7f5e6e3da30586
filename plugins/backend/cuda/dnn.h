/* backend/cuda/dnn.h: convolutions by cuDNN's graph API: from a description to a plan, and its run.
 *
 * All tensors are channels-last: x [N][H][W][C], w [K][R][S][C / groups], y [N][P][Q][K], and have one type; sums are float32. The bias
 * [K] and the residual (shape of y) have that type too: precompiled engines know no other (design: fp32 bias with 16-bit maps would be
 * compiled at run time). They also know ReLU and residual only beside a bias; where there is none, the plan keeps one of zeros in its
 * workspace. The gradient of the weights comes out in the tensors' type.
 *
 * A context plans for a device (a cuDNN handle) or, without any, for a description of one (JSON, cuDNN >= 9.8): such plans tell their
 * engine and workspace and cannot run. Threads: a context and its plans are used by one thread at a time. Engine choice: the heuristic's
 * list in mode A, then the fallback list; the first configuration that cuDNN finalises, whose workspace is within the limit, that compiles
 * nothing at run time, that neither rounds operands nor sums below what the types promise (an engine on tensor cores takes float32 as
 * TF32), and that is deterministic where that was asked for. */
#ifndef SD_BACKEND_CUDA_DNN_H
#define SD_BACKEND_CUDA_DNN_H

#include "sodet/op.h"

#ifndef SODET_CUDA_NAME
#define SODET_CUDA_NAME "cuda" /* the backend's; that over tests/hostcuda has another */
#endif
#define CUDA_SECTION "[backend." SODET_CUDA_NAME "]" /* where a user writes its options */

enum { DNN_FORWARD = 0, DNN_GRADIENT_DATA, DNN_GRADIENT_WEIGHT };
enum { DNN_ALIGNMENT = 16 }; /* bytes; of every address */

typedef struct dnn_conv {
    uint32_t part; /* DNN_* */
    uint32_t type; /* SODET_F32, SODET_BF16 or SODET_F16 */
    int64_t n, c, h, w, k, r, s, p, q, groups;
    int64_t stride[2], dilation[2], before[2], after[2]; /* height, width; before and after: padding */
    uint32_t bias, residual, relu;                       /* forward: y = relu(conv(x) + residual + bias), each if it is set */
} dnn_conv;

typedef struct dnn_options {
    uint64_t workspace_limit;     /* bytes */
    uint32_t deterministic, tf32; /* tf32: float32 products may be rounded to 10 bits */
} dnn_options;

typedef struct dnn_context dnn_context;
/* For the calling thread's current device, all work on `stream` (cudaStream_t). */
sodet_status dnn_open(void *stream, const dnn_options *o, dnn_context **out, sodet_err *err);
/* For the device that the JSON text describes. */
sodet_status dnn_open_described(const char *json, const dnn_options *o, dnn_context **out, sodet_err *err);
void dnn_close(dnn_context *c); /* accepts NULL; its plans have been freed */

typedef struct dnn_plan {
    uint64_t workspace; /* bytes, at most the limit */
    char text[64];      /* "engine 17" and, where the fallback list was needed, "fallback engine 3" */
    void *handle;       /* dnn.c's */
    uint32_t varying;   /* configurations before this one that were passed over because they are not deterministic */
} dnn_plan;
/* What cuDNN refuses is an error that names the convolution and cuDNN's reason. */
sodet_status dnn_plan_make(dnn_context *c, const dnn_conv *conv, dnn_plan *out, sodet_err *err);
/* Those that might be taken as well: the first *n <= most of the list in which the one above was found. For measuring which is the fastest. */
sodet_status dnn_plan_list(dnn_context *c, const dnn_conv *conv, uint32_t most, dnn_plan *out, uint32_t *n, sodet_err *err);
/* The plan that would be made if it had not to be deterministic. */
sodet_status dnn_plan_varying(dnn_context *c, const dnn_conv *conv, dnn_plan *out, sodet_err *err);
void dnn_plan_free(dnn_plan *p);            /* accepts one that is all zero */
unsigned dnn_version(const dnn_context *c); /* the library's: 91900 is 9.19.0 */

/* Forward reads x, w, bias and residual and writes y; the gradients read y as dy and write x as dx, or w as dw. Puts the work on the
 * context's stream and returns; nothing is allocated while the addresses are those of the call before. The workspace is written over. */
typedef struct dnn_tensors {
    void *x, *w, *y, *bias, *residual, *workspace;
} dnn_tensors;
sodet_status dnn_plan_run(const dnn_plan *p, const dnn_tensors *t, sodet_err *err);

#endif
