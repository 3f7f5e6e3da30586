/* cpu.h: the CPU backend's inside: a device, a plan and the calls with which operators add their work to a plan.
 *
 * A value of rank 4 in F32 has up to four forms: plain (NCHW), blocked (nChw16c, nChw8c without AVX-512; padding channels are zero), channels
 * last (NHWC), and, where [run] precision allows it, narrow: channels last in bf16. Its producer decides its home form; a consumer that
 * wants another gets it by a conversion, made once and kept for later consumers.
 * prepare() goes over the nodes twice: `choose` settles implementations and forms, `emit` adds steps and buffers.
 * A step is one primitive of oneDNN, one own kernel, or one of a few fills and copies; everything it needs is made before the first run.
 *
 * An operator's <op>_cpu.c defines one or both of
 *     const sodet_cpu_kernel sodet_cpu_<op>[parts]     own code, cut into ranges (sodet/op.h)
 *     const cpu_planner      sodet_cpu_plan_<op>       oneDNN does the work, or layouts need thought; asked first
 * Threads: all of this runs on the thread that drives the device. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include <stdbool.h>

#include "core/device/forms.h"
#include "plugins/backend/cpu/dnnl_compat.h"
#include "sodet/backend.h"

typedef struct cpu_config {
    uint32_t winograd;   /* CPU_WINOGRAD_* */
    uint32_t huge_pages; /* 1: madvise(MADV_HUGEPAGE) */
    uint32_t self_test;  /* CPU_SELF_TEST_* */
    uint32_t bf16;       /* CPU_BF16_* */
    const char *times;   /* file of measured times; "": the user's folder of caches */
} cpu_config;
enum { CPU_WINOGRAD_AUTO = 0, CPU_WINOGRAD_OWN, CPU_WINOGRAD_ONEDNN, CPU_WINOGRAD_NEVER };
enum { CPU_BF16_NATIVE = 0, CPU_BF16_EMULATE /* float32 convolutions of rounded numbers: the same results, slowly, on any processor */ };
enum { CPU_SELF_TEST_ON = 0, CPU_SELF_TEST_OFF, CPU_SELF_TEST_FAULT /* adds an error to a result: shows that the test would see one */ };

typedef struct cpu_device {
    const cpu_config *config;
    uint32_t threads, rank, world, verbose;
    uint32_t block;     /* channels in a block of the blocked form */
    uint32_t precision; /* SODET_PRECISION_* */
    bool emulate;       /* bf16 by float32 convolutions */
    bool measures;      /* a node alone: its results are as narrow as they can be */
    void *group;        /* of open_group, or NULL */
    double in_runs;     /* seconds */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} cpu_device;

/* ---- steps ---- */
enum {
    CPU_PRIMITIVE = 1,
    CPU_KERNEL,
    CPU_FLAT_NARROW /* a flat kernel on narrow maps */,
    CPU_FILL_ZERO,
    CPU_ADD,
    CPU_COPY,
    CPU_PAD,
    CPU_CALL
};
enum { CPU_MOVES_NOTHING = 0, CPU_MOVES_A_MAP, CPU_MOVES_WEIGHTS };
typedef struct cpu_program cpu_program;
typedef struct cpu_plan cpu_plan;
typedef struct cpu_step cpu_step;
struct cpu_step {
    uint32_t kind, node;
    /* CPU_PRIMITIVE */
    dnnl_primitive_t primitive;
    uint32_t n_args;
    dnnl_exec_arg_t *arg;
    sd_place *arg_place;
    uint32_t moves; /* CPU_MOVES_*: for measurements */
    /* CPU_KERNEL, CPU_FLAT_NARROW */
    const sodet_cpu_kernel *kernel;
    sodet_kernel_args call;
    sodet_tensor *tensor; /* inputs, then outputs */
    sd_place *tensor_place;
    int64_t *units; /* of each phase */
    sd_place scratch;
    /* CPU_FILL_ZERO: to, bytes. CPU_COPY, CPU_ADD: to, from, bytes (of float). CPU_PAD: zeroes the padding channels of `to` (shape) */
    sd_place to, from;
    uint64_t bytes;
    sodet_shape shape;
    /* CPU_CALL: anything else, on the driving thread; with places and a state of its own */
    void *state;
    sd_place *place;
    uint32_t n_places;
    sodet_status (*run)(const cpu_step *s, cpu_device *d, const cpu_plan *p, const sodet_run *r, sodet_err *err);
};
typedef struct cpu_steps {
    cpu_step *step;
    uint64_t n, capacity;
} cpu_steps;

/* ---- the plan ---- */
typedef struct cpu_planner cpu_planner;
enum { CPU_MOST_FLAT = 6 /* tensors of a flat kernel on narrow maps */ };
enum { CPU_FORM_PLAIN = SD_FORM_PLAIN, CPU_FORM_BLOCKED, CPU_FORM_LAST, CPU_FORM_NARROW, CPU_FORMS };
typedef struct cpu_node { /* a node while it is planned */
    const sodet_node *node;
    uint32_t index;
    const cpu_planner *planner; /* or */
    const sodet_cpu_kernel *kernel;
    uint8_t *form_in, *form_out; /* chosen; plain before */
    void *state;                 /* the planner's, from the plan's pool */
    struct cpu_node *partner;    /* a fused neighbour, if a planner set one */
    bool skip;                   /* another node does its work and places its outputs */
    sodet_value extra[2];        /* values that a fusion reads beside the node's inputs, in form_extra */
    uint8_t form_extra[2];
    double seconds[2]; /* precision = mixed: in float32 and in bf16, without conversions of maps */
    char text[64];     /* what describe() says */
} cpu_node;

typedef struct cpu_copy { /* a copy of a value in a layout of oneDNN's choice (kind 0), or of an own kernel's making */
    uint32_t value, kind;
    dn_cmd md;
    sd_place place;
} cpu_copy;

struct cpu_plan {
    cpu_device *device;
    const sodet_graph *graph;
    sd_pool pool;
    sd_forms forms;
    cpu_node *node;
    cpu_steps steps[2]; /* 0: each run; 1: prologue, when weights changed */
    cpu_copy *copy;
    uint64_t n_copies, copy_capacity;
    dnnl_primitive_desc_t *pd;
    uint64_t n_pds, pd_capacity;
    dn_md *md;
    uint64_t n_mds, md_capacity;
    dnnl_memory_t *memory;
    uint64_t n_memories, memory_capacity;
    double conversion[2];       /* precision = mixed: seconds for an element of a map, to bf16 and back */
    dnnl_primitive_attr_t attr; /* user scratchpad */
    uint32_t references;        /* plan and program */
};

struct cpu_planner {
    /* Bit i: input i is a map that this operator computes faster on blocked. */
    uint64_t (*maps)(const sodet_node *n);
    /* Whether it would rather compute on narrow maps, where the plan allows that. NULL: never. */
    bool (*narrow)(const cpu_plan *p, const cpu_node *n);
    bool measured; /* precision = mixed goes by measured times */
    /* Sets n->form_in, n->form_out, n->text, n->state. The homes of all inputs are known. */
    sodet_status (*choose)(cpu_plan *p, cpu_node *n, sodet_err *err);
    sodet_status (*emit)(cpu_plan *p, cpu_node *n, sodet_err *err);
};

/* ---- for planners (choose) ---- */
/* The memory descriptor of a shape in a form; owned by the plan; NULL when memory ran out. Plain tensors of any rank up to 5. */
dn_cmd cpu_md(cpu_plan *p, const sodet_shape *shape, uint32_t form);
dn_cmd cpu_md_any(cpu_plan *p, const sodet_shape *shape,
                  dnnl_data_type_t type); /* the layout is oneDNN's choice; grouped weights: rank 5 */
dn_cmd cpu_own_md(cpu_plan *p, dn_md md); /* hands md to the plan */
void cpu_own_pd(cpu_plan *p, dnnl_primitive_desc_t pd);
bool cpu_can_block(const sodet_shape *s); /* rank 4, F32, no dimension is 0 */
bool cpu_is_narrow(const cpu_plan *p);    /* whether maps may be narrow at all */
/* Whether output `o` may be narrow: a map in work memory that is not added to another. */
bool cpu_may_narrow(const cpu_plan *p, const cpu_node *n, uint32_t o);
uint32_t cpu_home(const cpu_plan *p, sodet_value v);
/* The node of part 0 of the same operator whose input 0 is `x` and output 0 is `y` (either may be absent), or NULL. */
cpu_node *cpu_forward_of(cpu_plan *p, const sodet_op *op, sodet_value x, sodet_value y);
/* The one node that uses `v`, if there is just one use and v is no output; NULL otherwise. */
cpu_node *cpu_only_user(cpu_plan *p, sodet_value v);
/* The form for an own kernel that takes both: blocked if the map comes so or is wanted so. */
uint32_t cpu_easy_form(const cpu_plan *p, sodet_value in, sodet_value out, const sodet_shape *shape);
bool cpu_is_reference(const_dnnl_primitive_desc_t pd); /* oneDNN's unoptimised implementation */

/* ---- for planners (emit); 0 and a set err on failure. The first ones are those of core/device/forms.h ---- */
extern const sd_form_ops cpu_form_ops;
sd_form_node cpu_at(const cpu_node *n);
sd_place cpu_read(cpu_plan *p, cpu_node *n, uint32_t input, sodet_err *err); /* in form_in[input] */
/* Where output `o` is to be written in form_out[o]. Over the buffer of input `over` if that one dies here (UINT32_MAX: not).
 * If the node accumulates into o, this is a temporary; cpu_written then adds it. */
sd_place cpu_write(cpu_plan *p, cpu_node *n, uint32_t o, uint32_t over, sodet_err *err);
sodet_status cpu_written(cpu_plan *p, cpu_node *n, uint32_t o, sd_place where, sodet_err *err);
/* Output `o`, plain, out of what oneDNN left in `from` in its layout `md`: reordered, or reordered and added to the base. `as`: see below. */
sodet_status cpu_deliver(cpu_plan *p, cpu_node *n, uint32_t o, sd_place from, dn_cmd md, dn_cmd as, sodet_err *err);
/* Where a value that another node of a fusion would have made is to be written. over: a value whose buffer may be taken if it dies here. */
sd_place cpu_write_value(cpu_plan *p, cpu_node *n, sodet_value v, uint32_t form, sodet_value over, uint32_t over_form, sodet_err *err);
bool cpu_dies(const cpu_plan *p, const cpu_node *n, uint32_t input); /* its buffer may be overwritten by this node */
/* Input `i` in oneDNN's layout `md`; made once for all nodes, in the prologue if the value allows it. `as`: how the plain data are seen
 * (grouped weights), or NULL. */
sd_place cpu_reordered(cpu_plan *p, cpu_node *n, uint32_t i, dn_cmd as, dn_cmd md, sodet_err *err);
/* Input `i` as `kernel` makes it over (one input, one output); made once for all nodes that ask for the same kind (not 0). */
sd_place cpu_derived(cpu_plan *p, cpu_node *n, uint32_t i, uint32_t kind, const sodet_cpu_kernel *kernel, const void *attr, uint64_t bytes,
                     sodet_err *err);
sd_place cpu_temporary(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err); /* for this node */

typedef struct cpu_arg {
    int arg; /* DNNL_ARG_* */
    sd_place place;
    dn_cmd md;
} cpu_arg;
/* Adds the primitive with its scratchpad. Arguments whose place is 0 are left out. */
sodet_status cpu_emit(cpu_plan *p, cpu_node *n, const_dnnl_primitive_desc_t pd, const cpu_arg *arg, uint32_t n_args, sodet_err *err);
/* A map from one form into another. */
sodet_status cpu_emit_convert(cpu_plan *p, cpu_node *n, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to,
                              uint32_t to_form, bool prologue, sodet_err *err);
sodet_status cpu_emit_reorder(cpu_plan *p, cpu_node *n, sd_place from, dn_cmd from_md, sd_place to, dn_cmd to_md, bool add, bool prologue,
                              sodet_err *err);
sodet_status cpu_emit_zero(cpu_plan *p, cpu_node *n, sd_place to, uint64_t bytes, sodet_err *err);
sodet_status cpu_emit_copy(cpu_plan *p, cpu_node *n, sd_place to, sd_place from, uint64_t bytes, sodet_err *err);
sd_place cpu_value_in(cpu_plan *p, cpu_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err);
cpu_step *cpu_add_step(cpu_plan *p, uint32_t kind, uint32_t node, bool prologue, sodet_err *err);
/* An own kernel on places (in then out); tensors that are blocked say so. attr: as the kernel expects it; must live as long as the plan. */
sodet_status cpu_emit_kernel(cpu_plan *p, cpu_node *n, const sodet_cpu_kernel *k, const sodet_tensor *tensor, const sd_place *place,
                             uint32_t n_in, uint32_t n_out, const void *attr, sodet_err *err);
/* Scratch for the kernel that was emitted last, where its own scratch() cannot know how much. */
sodet_status cpu_give_scratch(cpu_plan *p, cpu_node *n, uint64_t bytes, sodet_err *err);
sodet_status cpu_out_of_memory(sodet_err *err);

const char *cpu_form_name(const cpu_plan *p, uint32_t form);
uint64_t cpu_form_bytes(const void *plan, const sodet_shape *s, uint32_t form);

/* precision = mixed: the costs of what its nodes may choose between. */
sodet_status cpu_measure(cpu_plan *p, sodet_err *err);
void cpu_processor_name(char *out, size_t size); /* "AMD EPYC 9654 96-Core Processor" */
sodet_status cpu_alloc(void *device, uint64_t bytes, void **out, sodet_err *err);
void cpu_release(void *device, void *memory, uint64_t bytes);

void cpu_choose_own(cpu_plan *p, cpu_node *n); /* what is done where there is no planner */
sodet_status cpu_emit_own(cpu_plan *p, cpu_node *n, sodet_err *err);
sodet_status cpu_emit_view(cpu_plan *p, cpu_node *n, sodet_err *err); /* output 0 is input 0's bytes */
sodet_tensor cpu_tensor(const cpu_plan *p, const sodet_shape *shape, uint32_t form);

/* ---- parts of the backend ---- */
const cpu_planner *cpu_planner_of(const sodet_op *op);
const sodet_cpu_kernel *cpu_kernel_of(const sodet_op *op, uint32_t part);
sodet_status cpu_prepare(void *device, const sodet_graph *g, sodet_plan *out, sodet_err *err);
void cpu_discard(void *device, sodet_plan *plan);
void cpu_release_plan(cpu_plan *p);
sodet_status cpu_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err);
void cpu_unbind(void *program);
void *cpu_address(void *program, sodet_value v);
sodet_status cpu_run(void *program, const sodet_run *r, sodet_err *err);
/* One run; *seconds: its steps without those that move maps and, if `kept`, weights that a real plan would have ready. */
sodet_status cpu_time_steps(void *program, bool kept, double *seconds, sodet_err *err);
extern const cpu_planner cpu_plan_collective; /* all_reduce, all_gather */
/* narrow.c: one input, one output; between any two forms of a map, and float32 rounded to what bf16 holds. */
extern const sodet_cpu_kernel cpu_convert, cpu_round;
sodet_status cpu_self_test(cpu_device *d, sodet_err *err);

/* parallel.c: the only file that speaks to the OpenMP runtime. Every entry point of the backend says how many threads the calling
 * thread's teams have (and oneDNN's with them). */
void cpu_use_threads(uint32_t threads);
/* Splits [0, n) into ranges of at least `grain`. */
void cpu_parallel(uint32_t threads, int64_t n, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end), void *context);
void cpu_run_kernel(const sodet_cpu_kernel *k, const sodet_kernel_args *a, const int64_t *units);
/* A flat kernel, piece by piece: what is narrow is widened into float32, computed and narrowed again. */
void cpu_run_flat_narrow(const sodet_cpu_kernel *k, const sodet_kernel_args *a);
/* Elementary passes on all threads. */
void cpu_zero(uint32_t threads, void *to, uint64_t bytes);
void cpu_copy_bytes(uint32_t threads, void *to, const void *from, uint64_t bytes);
void cpu_add_floats(uint32_t threads, float *to, const float *from, uint64_t n);
void cpu_zero_padding(uint32_t threads, float *map, const sodet_shape *shape, uint32_t block);
#endif
