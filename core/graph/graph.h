/* graph/graph.h: the graph as the core sees it: built by plugins, differentiated, simplified, laid out, printed.
 *
 * The way of a graph:
 *   create -> plugins add nodes -> [training: sd_graph_backward] -> sd_graph_optimize -> sd_graph_bind (parameters get their places in
 *   the arenas) -> backend.prepare -> sd_plan_memory -> backend.bind.
 * A graph is used by one thread at a time, and is freed after the programs made from it. */
#ifndef SD_GRAPH_H
#define SD_GRAPH_H

#include "core/base/base.h"
#include "sodet/backend.h"
#include "sodet/graph.h"

/* ---- making ---- */
enum {
    SD_NORM_TRAIN = 0,
    SD_NORM_SYNC,
    SD_NORM_FROZEN
}; /* batch norm in a training graph: statistics of this device's batch, of all devices', the running ones */
typedef struct sd_graph_options {
    bool training;
    uint32_t norm;                                         /* SD_NORM_*; ignored unless training */
    uint32_t world;                                        /* replicas over all processes; > 1 adds the collectives */
    uint32_t default_init;                                 /* SODET_INIT_* of weights that ask for the default; 0: XAVIER */
    uint64_t bucket_bytes;                                 /* of gradients reduced together; 0: 25 MiB */
    float norm_momentum;                                   /* overrides the layers' own if > 0 */
    bool scaled;                                           /* gradients are those of the loss times the scalar input "loss_scale" */
    bool (*freeze)(const void *context, const char *path); /* parameters that are not trained, beside those that say so; NULL: none */
    const void *freeze_context;
} sd_graph_options;
sodet_status sd_graph_create(const sd_graph_options *options, sodet_graph **out, sodet_err *err);
void sd_graph_free(sodet_graph *g); /* accepts NULL */
const sd_graph_options *sd_graph_get_options(const sodet_graph *g);

/* Checks sticky status and that every scope was left; `who` ("head/ssd") is named if not. */
sodet_status sd_graph_check(const sodet_graph *g, const char *who, sodet_err *err);

/* ---- loss terms (sodet_emit_loss collects them) ---- */
typedef struct sd_loss_term {
    const char *name;
    sodet_value value; /* scalar, this device's share */
} sd_loss_term;
uint32_t sd_graph_loss_count(const sodet_graph *g);
const sd_loss_term *sd_graph_loss(const sodet_graph *g, uint32_t i);
void sd_graph_add_loss(sodet_graph *g, const char *name, sodet_value scalar);

/* Adds the nodes that compute the gradient of the sum of all loss terms with respect to every trainable parameter, and, with
 * world > 1, the reductions of gradient buckets. Terms become outputs "loss/<name>", their sum "loss". */
sodet_status sd_graph_backward(sodet_graph *g, sodet_err *err);

/* Passes: batch norms that use running statistics are folded into the convolution before them (as nodes on parameters, so their
 * gradients stay right), conv + bias + residual + activation become one node, dead code goes. Call before sd_graph_backward. */
sodet_status sd_graph_optimize(sodet_graph *g, sodet_err *err);
/* Order, prologue marks, uses and dead code; called by bind; nothing may be added afterwards. */
sodet_status sd_graph_seal(sodet_graph *g, sodet_err *err);

/* ---- parameters: the segment table ---- */
typedef struct sd_segment {
    const char *name; /* path */
    sodet_shape shape;
    sodet_param param; /* initialiser and factors */
    bool frozen;       /* lies in the frozen arena (frozen parameters and buffers) */
    bool buffer;       /* state without gradient: running statistics; `initial` is its first value */
    float initial;
    uint64_t offset, n; /* elements; offsets are multiples of 16 */
} sd_segment;
typedef struct sd_segments {
    sd_pool pool;
    uint32_t n;
    sd_segment *segment; /* trainable ones first, in the order in which backward finishes their gradients; then the frozen */
    uint32_t n_trainable;
    uint64_t param_elements, frozen_elements; /* arena sizes, padding included */
    uint64_t parameter_count;                 /* without padding and buffers: what papers count; frozen parameters included */
} sd_segments;
/* From a training graph after sd_graph_backward (an inference graph's are in the order of use). */
sodet_status sd_segments_make(const sodet_graph *g, sd_segments *out, sodet_err *err);
void sd_segments_free(sd_segments *s);
const sd_segment *sd_segments_find(const sd_segments *s, const char *name); /* or NULL */
/* Writes the initial value of one segment: depends on (seed, name) alone. */
void sd_segment_init(const sd_segment *s, uint64_t seed, uint32_t default_init, float *out);
/* Seals the graph and gives each parameter, gradient and buffer its place; another set of paths or shapes is an error that names the first difference. */
sodet_status sd_graph_bind(sodet_graph *g, const sd_segments *segments, sodet_err *err);

/* A whole arena as a value, for the optimizer's graph: [elements] F32. store: PARAM, FROZEN, GRAD or STATE with slot. */
sodet_value sd_graph_arena(sodet_graph *g, uint32_t store, uint32_t slot, uint64_t elements);
/* It begins at that element of the arena. */
void sd_graph_arena_at(sodet_graph *g, sodet_value arena, uint64_t offset);

/* ---- memory ---- */
/* Gives every buffer of the plan its offset: by liveness, first fit by size for SODET_LIFE_RUN. */
sodet_status sd_plan_memory(sodet_plan *plan, uint64_t *work_bytes, uint64_t *own_bytes, sodet_err *err);

/* ---- facts ---- */
sodet_value sd_graph_find_input(const sodet_graph *g, const char *name); /* SODET_NONE if there is none */
sodet_value sd_graph_find_output(const sodet_graph *g, const char *name);
uint32_t sd_graph_output_count(const sodet_graph *g);
const char *sd_graph_output_name(const sodet_graph *g, uint32_t i, sodet_value *v);
sodet_cost sd_node_cost(const sodet_node *n);
const char *sd_graph_path(const sodet_graph *g); /* of the scopes entered, "" outside all; valid until one is entered or left */
const char *sd_shape_text(const sodet_shape *s, char out[64]); /* "1x3x300x300 f32" */

#endif
