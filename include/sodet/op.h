/* sodet/op.h: what an operator is. The rows of kernels/ops.def and a plugin's own operators have this one form.
 *
 * An operator is described once (shapes, gradient, cost: part of the core) and computed by backends. Its work is split into parts:
 * part 0 is the forward computation, parts 1.. are what its gradient needs (conv2d: 1 = gradient of the data, 2 = of the weights).
 * Each part is one kernel with an entry in each backend. A missing entry means "unsupported", said when a program is made. */
#ifndef SODET_OP_H
#define SODET_OP_H

#include "sodet/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SODET_MAX_RANK 5
enum { SODET_F32 = 1, SODET_I32 = 2, SODET_BF16 = 3, SODET_F16 = 4 }; /* F32 is the reference backend's double where it runs in double */

/* Logical: NCHW for maps. Rank 0 with a dtype is a scalar; dtype 0 is "absent". */
typedef struct sodet_shape {
    uint32_t dtype, rank;
    int64_t dim[SODET_MAX_RANK];
} sodet_shape;

static inline int64_t sodet_elements(const sodet_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

typedef struct sodet_graph sodet_graph; /* owned by the core */
typedef struct sodet_value {
    uint32_t id;
} sodet_value;

typedef struct sodet_op sodet_op;

/* One use of an operator. Arrays belong to the graph and live as long as it. */
typedef struct sodet_node {
    uint32_t struct_size;
    const sodet_op *op;
    uint32_t part;
    uint32_t n_in, n_out;
    const sodet_value *in, *out;             /* in[i].id == 0: absent */
    const sodet_shape *in_shape, *out_shape; /* an absent input has dtype 0 */
    const void *attr;                        /* the operator's attribute struct (its header); NULL if attr_size is 0 */
    const char *layer;                       /* path of the layer that made it, for errors, reports and profiles */
    const sodet_value *base; /* [n_out] or NULL. base[o].id != 0: output o = base[o] + what the kernel computes, in base[o]'s
                                               storage (gradients of shared parameters); the backend adds where a kernel cannot */
    uint32_t prologue;       /* 1: depends on parameters and constants alone; runs again only when these changed */
} sodet_node;

typedef struct sodet_cost {
    uint64_t macs;  /* multiply-adds of convolutions and matrix products, padding counted as the field does: out * k * k * in / groups */
    uint64_t flops; /* everything, a multiply-add being two */
    uint64_t bytes; /* inputs read once and outputs written once */
} sodet_cost;

enum {
    SODET_OP_ELEMENTWISE = 1, /* output 0 may overwrite any input of its size that dies here */
    SODET_OP_VIEW = 2,        /* output 0 is input 0 seen with another shape (plain layout): no work */
    SODET_OP_COLLECTIVE = 4,  /* every rank runs it in the same order; never dropped, never moved over another collective */
    SODET_OP_STATE = 8        /* has an effect beyond its outputs' uses (running statistics, update): never dropped */
};

struct sodet_op {
    uint32_t struct_size;
    uint32_t id; /* row in kernels/ops.def, from 1; 0: a plugin's own */
    const char *name;
    uint32_t n_parts, flags;
    size_t attr_size;
    /* Checks inputs and attributes of `n` (part, in_shape, attr are set), fills out[n->n_out]. Messages name given and wanted. */
    sodet_status (*infer)(const sodet_node *n, sodet_shape *out, sodet_err *err);
    /* Adds the nodes that turn the outputs' gradients (dout[i].id == 0: none arrives) into the inputs'. din[i] starts as "none"; an
     * input whose bit in `want` is 0 needs no gradient. NULL: the operator has no derivative. */
    sodet_status (*gradient)(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err);
    void (*cost)(const sodet_node *n, sodet_cost *out); /* NULL: no multiply-adds, flops = output elements */
    /* 1 + index of the input whose storage output `o` must share (a state's new value); 0: none. NULL: none. */
    uint32_t (*shares)(const sodet_node *n, uint32_t o);
    const struct sodet_custom_kernels *kernels; /* of a plugin's own operator; NULL for rows of ops.def */
};

/* ---- kernels ---- */
enum {
    SODET_PLAIN = 0,
    SODET_BLOCKED = 1,      /* rank 4, [N][ceil(C / block)][H][W][block], padding channels are zero */
    SODET_CHANNELS_LAST = 2 /* rank 4, [N][H][W][C] */
};

typedef struct sodet_tensor {
    void *data; /* NULL: absent */
    sodet_shape shape;
    uint32_t layout, block;
} sodet_tensor;

typedef struct sodet_kernel_args {
    uint32_t struct_size;
    uint32_t n_in, n_out;
    const sodet_tensor *in, *out;
    const void *attr;
    uint32_t part, n_threads;
    void *scratch;       /* as many bytes as the entry asked for, aligned to 64; not zeroed */
    uint64_t seed, step; /* of the run, for operators that draw random numbers (dropout): keyed by (seed, step, attr's own key, element) */
} sodet_kernel_args;

/* Reference: one thread, plain loops in the order of the formula, sums in double. Compiled for float and for double: SODET_REAL is the
 * type of F32 tensors. Layout is always plain. A kernel never has to mind `base`. */
typedef void (*sodet_ref_kernel)(const sodet_kernel_args *a);

/* Own CPU code. The backend cuts [0, units) of each phase into ranges for its threads; a barrier stands between phases. */
enum {
    SODET_CPU_BLOCKED = 1, /* every rank-4 F32 tensor of the call may be blocked (then all of them are, with one block) */
    SODET_CPU_FLAT = 2,    /* element by element over tensors of one shape: any layout, as long as it is the same */
    SODET_CPU_PLACED = 4   /* with FLAT: an element's place counts too, in the plain or the blocked layout */
};
typedef struct sodet_cpu_kernel {
    uint32_t struct_size, flags;
    uint32_t phases;                                              /* 0 means 1 */
    int64_t (*units)(const sodet_kernel_args *a, uint32_t phase); /* independent pieces; data pointers may be NULL when this is asked */
    uint64_t (*scratch)(const sodet_node *n, uint32_t n_threads); /* bytes; NULL: none */
    void (*run)(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread); /* thread: 0..n_threads-1 */
} sodet_cpu_kernel;

/* A plugin's own operator: arrays of n_parts entries; NULL: that backend cannot. For GPUs: sodet/cuda.h. */
typedef struct sodet_custom_kernels {
    uint32_t struct_size, entry_size; /* entry_size: stride of cpu[] */
    const sodet_ref_kernel *ref_float, *ref_double;
    const sodet_cpu_kernel *cpu;
} sodet_custom_kernels;

#ifdef __cplusplus
}
#endif
#endif
