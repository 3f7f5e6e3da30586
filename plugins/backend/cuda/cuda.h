/* backend/cuda/cuda.h: the inside of the CUDA backend.
 *
 * A value lies in one or both of two forms: PLAIN, float32 (or int32) in the logical order; and MAP, rank 4, channels-last, in the type
 * that the run's precision gives to maps (float32, bf16, fp16). Its home is the form that its producer writes; whoever wants the other
 * one gets it by a conversion, made once and kept for later consumers.
 *
 * prepare() goes over the nodes twice: `choose` settles forms, `emit` adds steps and buffers. A step is one launch (or one plan of cuDNN,
 * or one collective); everything it needs is made before the first run. A run puts all steps on the device's stream and returns; upload
 * and download are in order with it. Collectives go over a stream of their own, so that they overlap with what comes behind them; a node
 * that needs their results waits for them on the device.
 *
 * Threads: all of this runs on the thread that drives the device. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "core/device/forms.h"
#include "plugins/backend/cuda/dnn.h"
#include "sodet/backend.h"
#include "sodet/cuda.h"

typedef struct cuda_config {
    uint32_t deterministic, tf32, autotune;
    uint64_t workspace; /* bytes */
    const char *times;  /* file; "": the user's */
} cuda_config;

/* ---- devices ---- */
typedef struct cuda_group cuda_group; /* collective.c */
typedef struct cuda_jpegs cuda_jpegs; /* jpeg.c */
/* What is uploaded goes through pinned memory on a stream of its own to the device, and from there into its place on the stream: so the next
 * batch is brought while a step computes, as far as the stages hold it. Small things go straight into their place. */
enum { CUDA_STAGES = 16, CUDA_STAGE_LEAST = 64 << 10, CUDA_STAGE_MOST = 4 << 20, CUDA_SMALLS = 64, CUDA_SMALL_BYTES = 4096 };
typedef struct cuda_stage {
    char *memory, *mirror;      /* pinned, and on the device */
    cudaEvent_t copied, placed; /* the pinned memory may be filled again; the mirror may */
    bool busy, used;            /* `copied`, `placed` were recorded */
} cuda_stage;
typedef struct cuda_small {
    char *memory; /* pinned */
    cudaEvent_t placed;
    bool busy;
} cuda_small;

typedef struct cuda_fetched { /* a result on its way to the host */
    char *memory;             /* pinned */
    cudaEvent_t done;
} cuda_fetched;

typedef struct cuda_conv { /* a convolution and its plan */
    dnn_conv conv;
    dnn_plan plan;
} cuda_conv;

typedef struct cuda_device {
    const cuda_config *config;
    int index;
    uint32_t rank, world;
    uint32_t threads;  /* of the host, for this device */
    uint32_t map_type; /* SODET_F32, SODET_BF16, SODET_F16 */
    cuda_group *group;
    cudaStream_t stream, comm, copies;
    dnn_context *dnn;
    cuda_jpegs *jpegs;     /* NULL: none was decoded yet */
    cudaEvent_t *expected; /* of collectives that are put on the stream, in their order; [first_expected, n_expected) */
    uint64_t first_expected, n_expected, expected_capacity;
    cuda_conv *conv;
    uint64_t n_convs, conv_capacity, convs_told; /* convs_told: those that say_determinism has counted */
    uint64_t measured;                           /* convolutions, since that was told last */
    cuda_stage stage[CUDA_STAGES];
    cuda_small small[CUDA_SMALLS];
    uint32_t next_stage, next_small;
    uint64_t stage_bytes;
    void *mirrors;
    cuda_fetched fetched[SODET_FETCHES];
    struct cuda_program *programs; /* whose runs may be under way */
    uint64_t n_collectives;        /* put on the stream so far */
    sodet_device_times times;      /* `awaited` is the group's */
} cuda_device;

/* Names what was tried, CUDA's word for what went wrong, and a remedy. */
sodet_status cuda_failed(cudaError_t e, const char *what, sodet_err *err);
/* The answer of a query. The CUDA Programming Guide says that "not ready" is not kept for cudaGetLastError; PyTorch clears it nevertheless.
 * Were it kept, the next launch would find it as its own, so it is cleared here too. */
cudaError_t cuda_answer(cudaError_t e);
/* The calling thread's device; every entry of the backend begins with it. */
sodet_status cuda_use(const cuda_device *d, sodet_err *err);
/* Waits until all that was put on the stream is done, or until the group is aborted or NCCL reports an error. */
sodet_status cuda_wait(cuda_device *d, sodet_err *err);
/* The same of one event, whatever was put behind it. */
sodet_status cuda_wait_for(cuda_device *d, cudaEvent_t event, sodet_err *err);

sodet_status cuda_upload(void *device, void *to, uint64_t offset, const void *from, uint64_t bytes, sodet_err *err);

/* ---- JPEGs (jpeg.c) ---- */
sodet_status cuda_decode(void *device, uint32_t n, const sodet_coded *pictures, void *to, uint64_t from, uint32_t *failed, sodet_err *err);
void cuda_jpegs_close(cuda_jpegs *j); /* accepts NULL; nothing of it is on the stream any more */

/* ---- collectives (collective.c) ---- */
sodet_status cuda_group_id(uint8_t id[SODET_GROUP_ID_BYTES], sodet_err *err);
sodet_status cuda_group_open(const sodet_group_options *o, cuda_group **out, sodet_err *err);
void cuda_group_close(cuda_group *g);
void cuda_group_abort(cuda_group *g);
uint32_t cuda_group_awaited(cuda_group *g, double *seconds);
/* On the device's thread; all ranks at once. */
sodet_status cuda_group_join(cuda_device *d, sodet_err *err);
void cuda_group_leave(cuda_device *d);
/* OK, or why the group can go no further. */
sodet_status cuda_group_check(cuda_device *d, sodet_err *err);
/* Around every wait on the host; in between it tells the group how far the device has come. */
void cuda_group_waits(cuda_device *d, bool waits);
/* The next collective of this device has its inputs when `ready` is done. */
sodet_status cuda_group_expect(cuda_device *d, cudaEvent_t ready, sodet_err *err);
/* Of a device that failed: what it is expected to come to is not looked at any more, so that its events may go. */
void cuda_group_forget(cuda_device *d);
/* Sum over ranks of n parts; on d->comm. in == out is allowed. */
typedef struct cuda_part {
    const void *in;
    void *out;
    uint64_t elements; /* float32 */
} cuda_part;
sodet_status cuda_group_sum(cuda_device *d, const cuda_part *part, uint32_t n, sodet_err *err);
sodet_status cuda_group_gather(cuda_device *d, const void *in, void *out, uint64_t bytes, sodet_err *err);

/* The result of collective `number` (from 1) took this long, of which the device waited `exposed`. What the group makes of it: a rank that
 * comes last takes least, all others take longer by what they have waited for it. */
void cuda_group_account(cuda_device *d, uint64_t number, double took, double exposed);
/* Programs of `collectives` each will be accounted for. */
sodet_status cuda_group_keep_book(cuda_group *g, uint32_t collectives, sodet_err *err);
double cuda_group_has_waited(cuda_device *d); /* of what was exposed: until the last rank of this process came */

/* ---- times (times.c) ---- */
enum {
    CUDA_READY = 0, /* on the stream: a collective's inputs are there */
    CUDA_BEGUN,     /* on comm */
    CUDA_DONE,      /* on comm */
    CUDA_ARRIVED,   /* on the stream: the first node that needs it comes next */
    CUDA_PASSED,    /* on the stream: it could go on */
    CUDA_MARKS
};
enum { CUDA_RUNS = 3 };     /* of one program under way at once; the host waits for the oldest before it begins another */
typedef struct cuda_marks { /* of one run */
    cudaEvent_t *of;        /* [n][CUDA_MARKS], then the run's begin and end */
    uint64_t *number;       /* [n] of each collective among the device's */
    uint32_t n;
    bool under_way;
} cuda_marks;
sodet_status cuda_marks_make(cuda_marks *m, uint32_t n, sodet_err *err);
void cuda_marks_free(cuda_marks *m); /* also after a make that failed */
cudaEvent_t cuda_mark_of(const cuda_marks *m, uint32_t collective, uint32_t mark);
cudaEvent_t cuda_end_of(const cuda_marks *m); /* of the run */
/* Adds what the run took to the device's times, if it is over. */
sodet_status cuda_marks_read(cuda_device *d, cuda_marks *m, sodet_err *err);

/* ---- the plan ---- */
enum { CUDA_PLAIN = SD_FORM_PLAIN, CUDA_MAP, CUDA_FORMS };
enum { CUDA_KERNEL = 1, CUDA_CONV, CUDA_ZERO, CUDA_COPY, CUDA_COLLECTIVE, CUDA_JOIN };
typedef struct cuda_step {
    uint32_t kind, node;
    /* CUDA_KERNEL */
    const sodet_cuda_kernel *kernel;
    sodet_kernel_args call;
    sodet_tensor *tensor; /* inputs, then outputs; also of collectives */
    sd_place *tensor_place;
    sd_place scratch;
    /* CUDA_CONV */
    uint32_t conv; /* the device's; its workspace is the scratch */
    sd_place x, w, y, bias, residual;
    /* CUDA_ZERO: to; CUDA_COPY: to, from */
    sd_place to, from;
    uint64_t bytes;
    /* CUDA_COLLECTIVE: records `event` when it is done; CUDA_JOIN waits for it */
    uint32_t event;
} cuda_step;
typedef struct cuda_steps {
    cuda_step *step;
    uint64_t n, capacity;
} cuda_steps;

typedef struct cuda_plan cuda_plan;
typedef struct cuda_node {
    const sodet_node *node;
    uint32_t index;
    const sodet_cuda_kernel *kernel; /* NULL: conv2d, a view or a collective */
    uint32_t conv;                   /* of a convolution: the device's; UINT32_MAX: it has no elements */
    uint8_t *form_in, *form_out;
    char text[128];
} cuda_node;

typedef struct cuda_copy { /* a parameter in the maps' layout and type */
    uint32_t value;
    sd_place place;
} cuda_copy;

struct cuda_plan {
    uint32_t references; /* plan, program */
    cuda_device *device;
    const sodet_graph *graph;
    sd_forms forms;
    uint32_t n_events;
    cuda_node *node;
    uint32_t *pending; /* [values + 1] 1 + event of the collective that makes the value, until somebody waited */
    cuda_copy *copy;
    uint64_t n_copies, copy_capacity;
    cuda_steps steps[2]; /* of every run; of the prologue */
    sd_pool pool;
};

/* plan.c */
sodet_status cuda_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err);
void cuda_discard(void *device, sodet_plan *plan);
void cuda_release_plan(cuda_plan *p);
const sodet_cuda_kernel *cuda_kernel_of(uint32_t op, uint32_t part); /* op: SODET_OP_*; NULL: there is none */

/* own.c: the same of a plugin's own operator; never NULL without an error. Copied into the plan's pool. */
sodet_status cuda_own_kernel(cuda_plan *p, const sodet_node *n, const sodet_cuda_kernel **out, sodet_err *err);

/* run.c */
sodet_status cuda_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err);
void cuda_unbind(void *program);
void *cuda_address(void *program, sodet_value v);
sodet_status cuda_run(void *program, const sodet_run *r, sodet_err *err);
sodet_status cuda_times(void *device, sodet_device_times *out, sodet_err *err);

/* tune.c: like dnn_plan_make, but the fastest of the plans; and, when a graph has all of its plans: keeps what was measured. */
sodet_status cuda_tune(cuda_device *d, const dnn_conv *c, dnn_plan *out, sodet_err *err);
sodet_status cuda_tuned(cuda_device *d, sodet_err *err);
/* Milliseconds of its plan, and of the one that would be the first where plans need not be deterministic. *done = false: no room to measure. */
sodet_status cuda_tune_against_first(cuda_device *d, const cuda_conv *c, float ms[2], bool *done, sodet_err *err);

/* emit.c: what steps are made of. Functions that return a place return 0 after an error. */
extern const sd_form_ops cuda_form_ops;
sodet_status cuda_out_of_memory(sodet_err *err);
bool cuda_can_map(const sodet_shape *s); /* rank 4, float32, not empty */
uint64_t cuda_form_bytes(const void *plan, const sodet_shape *s, uint32_t form);
sodet_tensor cuda_tensor(const cuda_plan *p, const sodet_shape *s, uint32_t form);
sd_form_node cuda_at(const cuda_node *n);
/* sd_forms_temporary, _read, _write, _written and _dies of core/device/forms.h. */
sd_place cuda_temporary(cuda_plan *p, const cuda_node *n, uint64_t bytes, sodet_err *err);
sd_place cuda_read(cuda_plan *p, cuda_node *n, uint32_t input, sodet_err *err);
sd_place cuda_write(cuda_plan *p, cuda_node *n, uint32_t o, uint32_t over, sodet_err *err);
sodet_status cuda_written(cuda_plan *p, cuda_node *n, uint32_t o, sd_place where, sodet_err *err);
bool cuda_dies(const cuda_plan *p, const cuda_node *n, uint32_t input);
/* Every collective that nobody waited for yet, at the end of the program. */
sodet_status cuda_join_all(cuda_plan *p, sodet_err *err);
cuda_step *cuda_add_step(cuda_plan *p, uint32_t kind, uint32_t node, bool prologue, sodet_err *err);
sodet_status cuda_emit_kernel(cuda_plan *p, const cuda_node *n, const sodet_cuda_kernel *k, const sodet_tensor *tensor,
                              const sd_place *place, uint32_t n_in, uint32_t n_out, const void *attr, uint32_t part, bool prologue,
                              sodet_err *err);
sodet_status cuda_emit_zero(cuda_plan *p, const cuda_node *n, sd_place to, uint64_t bytes, sodet_err *err);
sodet_status cuda_emit_copy(cuda_plan *p, const cuda_node *n, sd_place to, sd_place from, uint64_t bytes, sodet_err *err);
/* Input `i`, a parameter, in the maps' type; of rank 4: channels-last. Made once for all nodes. */
sd_place cuda_derived(cuda_plan *p, cuda_node *n, uint32_t i, sodet_err *err);

/* conv.c */
sodet_status cuda_choose_conv(cuda_plan *p, cuda_node *n, sodet_err *err);
sodet_status cuda_emit_conv(cuda_plan *p, cuda_node *n, sodet_err *err);

/* convert.cu: kernels of the backend itself. Tensors say their type and layout. */
extern const sodet_cuda_kernel cuda_convert;      /* rank 4: plain <-> channels-last, float32 <-> 16 bit */
extern const sodet_cuda_kernel cuda_add;          /* x, y -> y + x, element by element, both in one layout; float32 or y's type. In place */
extern const sodet_cuda_kernel cuda_cast;         /* float32 -> y's type, element by element (biases) */
extern const sodet_cuda_kernel cuda_sum_channels; /* dy [N, K, P, Q] channels-last -> [K] float32: gradient of a bias */

#endif
