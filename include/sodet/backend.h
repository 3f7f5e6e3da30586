/* sodet/backend.h: devices, and how a graph becomes a program on one.
 *
 * prepare() decides for every node the implementation, layouts and extra buffers, and says how many bytes each buffer needs and from
 * which to which node it lives; the core plans memory; bind() gets the addresses and makes the program; run() runs it.
 *
 * Persistent state lies in flat arenas that all programs of a device share: a segment per parameter, in the plain logical layout, in
 * elements of `real_size` bytes. Derived copies (reordered weights, Winograd transforms) are the backend's own buffers and are made
 * again in a run that says SODET_RUN_WEIGHTS_CHANGED.
 *
 * Threads: a device is driven by one thread at a time; different devices by different threads at once. */
#ifndef SODET_BACKEND_H
#define SODET_BACKEND_H

#include "sodet/graph.h"
#include "sodet/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {                       /* where a value lives */
       SODET_STORE_WORK = 0, /* between its producer and its last use */
       SODET_STORE_PARAM,    /* trainable: the parameter arena */
       SODET_STORE_FROZEN,   /* frozen parameters and buffers: the frozen arena */
       SODET_STORE_GRAD,     /* gradient of a trainable parameter: the gradient arena, same offsets as PARAM */
       SODET_STORE_STATE,    /* optimizer state and averages: state arena `slot`, same offsets as PARAM */
       SODET_STORE_INPUT,    /* written by the host before a run */
       SODET_STORE_CONST     /* data known when the graph was made */
};
#define SODET_MAX_STATE 4

typedef struct sodet_value_info {
    sodet_shape shape;
    uint32_t store, slot;
    uint64_t offset;    /* elements from the start of its arena (PARAM, FROZEN, GRAD, STATE) */
    const void *data;   /* CONST: float or int32_t */
    const char *name;   /* path of a parameter or buffer, name of an input; "" otherwise */
    uint32_t is_output; /* must be readable after the run */
} sodet_value_info;

SODET_EXPORT uint32_t sodet_graph_node_count(const sodet_graph *g);
SODET_EXPORT const sodet_node *sodet_graph_node(const sodet_graph *g, uint32_t i); /* in order of execution */
SODET_EXPORT uint32_t sodet_graph_value_count(const sodet_graph *g);               /* ids are 1..count */
SODET_EXPORT const sodet_value_info *sodet_graph_value(const sodet_graph *g, sodet_value v);
/* Nodes that use the value, and the index of the last of them (UINT32_MAX: none; an output lives to the end). */
SODET_EXPORT uint32_t sodet_graph_uses(const sodet_graph *g, sodet_value v, uint32_t *last);

typedef struct sodet_device_info {
    uint32_t struct_size;
    char name[96];
    uint64_t memory; /* bytes; 0: unknown */
} sodet_device_info;

/* What the layers compute in. Whatever it is, arenas, inputs and outputs hold float32: masters, gradients of parameters, losses. */
enum {
    SODET_PRECISION_FP32 = 0,
    SODET_PRECISION_BF16, /* maps, their gradients and copies of weights have 8 bits of mantissa; sums are float32 */
    SODET_PRECISION_FP16,
    SODET_PRECISION_MIXED /* per layer what is faster, as measured */
};

typedef struct sodet_device_options {
    uint32_t struct_size;
    uint32_t threads;     /* compute threads of this device */
    uint32_t rank, world; /* among the devices that reduce with each other */
    void *group;          /* of open_group or join_group; NULL: world is 1 */
    uint32_t verbose;
    uint32_t precision; /* SODET_PRECISION_*; open refuses what the device cannot do, with a sentence */
} sodet_device_options;

typedef struct sodet_plan_buffer {
    uint32_t value;    /* the value's id, or 0: scratch or a derived copy */
    uint32_t lifetime; /* SODET_LIFE_* */
    uint64_t bytes;
    uint32_t first, last; /* nodes, inclusive, between which it holds data (SODET_LIFE_RUN) */
    uint64_t offset;      /* set by the core before bind: bytes from the base of its lifetime's memory; a multiple of 64 */
} sodet_plan_buffer;
enum {
    SODET_LIFE_RUN = 0, /* shares the work arena with all others */
    SODET_LIFE_PROGRAM  /* its own: inputs, outputs, constants, derived copies */
};

typedef struct sodet_plan {
    uint32_t struct_size;
    uint32_t n_buffers;
    sodet_plan_buffer *buffers; /* the backend's; offsets are written by the core */
    void *handle;               /* the backend's */
    /* What is printed: implementation of node i ("winograd+relu"); NULL: nothing to say. */
    const char *(*describe)(const void *handle, uint32_t node);
} sodet_plan;

typedef struct sodet_binding {
    uint32_t struct_size;
    void *param, *frozen, *grad, *state[SODET_MAX_STATE]; /* arenas; grad and state may be NULL where the graph names none */
    void *work, *own;                                     /* bases of the two lifetimes */
} sodet_binding;

enum { SODET_RUN_WEIGHTS_CHANGED = 1 };
typedef struct sodet_run {
    uint32_t struct_size, flags;
    uint64_t seed, step;
    double *node_seconds; /* [nodes] added to; NULL: not timed */
} sodet_run;

/* Results that are read later (fetch): so many at a time, of so many bytes at most. */
enum { SODET_FETCHES = 2, SODET_FETCH_BYTES = 65536 };

/* A group whose devices are driven by several processes. Ranks are numbered over all devices, those of a process in a row. */
enum { SODET_GROUP_ID_BYTES = 256 };
typedef struct sodet_group_options {
    uint32_t struct_size;
    uint32_t n, first, world;         /* devices of this process, the rank of the first of them, and devices of all processes */
    uint8_t id[SODET_GROUP_ID_BYTES]; /* of group_id, the same for all */
} sodet_group_options;

/* What a device did in runs that are over, in seconds since it was opened. */
typedef struct sodet_device_times {
    uint32_t struct_size, flags;
    double run;        /* programs were under way, from their first node to their last */
    double collective; /* collectives were: from when the device had brought its part until it had the result */
    double exposed; /* of `run`: the device had nothing to do but wait for a collective's result; what else collectives took was hidden */
    double awaited; /* of `exposed`: another device had not brought its part yet; known when that one has been asked, too */
} sodet_device_times;

/* A JPEG, baseline or progressive, and where its pixels are to be: rows of RGB bytes, one behind the other. */
typedef struct sodet_coded {
    uint32_t struct_size;
    uint32_t width, height; /* as its header says */
    const void *coded;
    uint64_t n_coded;
    uint64_t offset; /* a multiple of 16 */
} sodet_coded;

typedef struct sodet_backend_ops {
    uint32_t struct_size, flags;
    sodet_status (*devices)(const void *self, uint32_t capacity, sodet_device_info *out, uint32_t *n, sodet_err *err);
    /* A group of `n` devices of one process that reduce among themselves. */
    sodet_status (*open_group)(const void *self, uint32_t n, void **group, sodet_err *err);
    void (*close_group)(void *group);
    /* Wakes every device of the group that waits in a collective; their runs then fail. For when one of them failed. */
    void (*abort_group)(void *group);
    sodet_status (*open)(const void *self, uint32_t index, const sodet_device_options *o, void **device, sodet_err *err);
    void (*close)(void *device);
    uint32_t (*real_size)(
        const void *device); /* bytes of an F32 element in arenas, inputs and outputs: 4, or 8 where the reference runs in double */
    sodet_status (*alloc)(void *device, uint64_t bytes, void **out, sodet_err *err); /* aligned to 64, zeroed and touched */
    void (*release)(void *device, void *memory, uint64_t bytes);
    sodet_status (*upload)(void *device, void *to, uint64_t offset, const void *from, uint64_t bytes, sodet_err *err);
    sodet_status (*download)(void *device, const void *from, uint64_t offset, void *to, uint64_t bytes, sodet_err *err);
    sodet_status (*prepare)(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err);
    void (*discard)(void *device, sodet_plan *plan); /* also after a successful bind: the program keeps what it needs */
    sodet_status (*bind)(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err);
    void (*unbind)(void *program);
    /* Where input or output `v` is to be written or read (device memory, plain layout). */
    void *(*address)(void *program, sodet_value v);
    sodet_status (*run)(void *program, const sodet_run *r,
                        sodet_err *err); /* returns when it is done or, on a stream, in order with upload and download */
    /* The first device of the group that others wait for in a collective, by its rank, and since how many seconds; UINT32_MAX: nobody
     * waits; `world`: some device of other processes, of which there are several. Any thread, at any time. NULL: not known. */
    uint32_t (*awaited)(void *group, double *seconds);
    /* On the device's thread, between runs; waits for nothing, so what is still on a stream is not in it. NULL: not known. */
    sodet_status (*times)(void *device, sodet_device_times *out, sodet_err *err);
    /* Groups over several processes: one of them makes an id, all are handed it (sodet/transport.h), and each opens its part of the group;
     * open() then waits for the devices of all of them. NULL, both: groups are of one process. */
    sodet_status (*group_id)(const void *self, uint8_t id[SODET_GROUP_ID_BYTES], sodet_err *err);
    sodet_status (*join_group)(const void *self, const sodet_group_options *o, void **group, sodet_err *err);
    /* Device memory to other memory of the same device, in order with runs. NULL: the core goes over the host. */
    sodet_status (*copy)(void *device, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes,
                         sodet_err *err);
    /* For a device whose run() comes back before it is done. fetch() has a small result brought to the host when everything before it is
     * done, and comes back at once; fetched() waits for that, and not for what was put behind it. NULL, both: run() is done when it
     * comes back. */
    sodet_status (*fetch)(void *device, uint32_t slot, const void *from, uint64_t offset, uint64_t bytes, sodet_err *err);
    sodet_status (*fetched)(void *device, uint32_t slot, void *to, uint64_t bytes, sodet_err *err);
    /* n JPEGs into device memory, in order with uploads and runs: picture i to byte `offset - from` of `to`. The coded bytes may go when it comes
     * back. *failed: the picture that err is about, or UINT32_MAX if it is about none. n 0: nothing is done but what the first pictures
     * would need (a library is opened), so that what is missing is said before a run. NULL: there is no decoder. */
    sodet_status (*decode)(void *device, uint32_t n, const sodet_coded *pictures, void *to, uint64_t from, uint32_t *failed,
                           sodet_err *err);
} sodet_backend_ops;

#ifdef __cplusplus
}
#endif
#endif
