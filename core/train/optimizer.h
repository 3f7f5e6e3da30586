/* train/optimizer.h: the rules of the update, a table each (sgd.c, adam.c, adamw.c), and the graph that applies one to the arenas.
 *
 * The update is a program of its own: gradients may be made several times (accumulation) before it runs once. Its inputs are
 *   "hyper" [n]    what the rule's hyper() gives for this step
 *   "loss"  [n]    every term of every micro-batch, as this device has it
 *   "alive" [1]    1; 0 where a step before this one was not made, so that this one is not either
 *   "kept"  [n]    buffers (running statistics) before the step; there if the network has any
 *   "unscale" [1]  1 over the factor of the loss; there if it is scaled
 * and its outputs "finite" [1]: 1 if it was alive and every gradient and, on all devices, every loss was finite; and "told" [2 + n]: the
 * 2-norm of the gradients before clipping, `finite`, `loss`. Where `finite` is 0, no parameter and no state has changed, and buffers are
 * again what they were: nobody has to look before the next step begins. */
#ifndef SD_TRAIN_OPTIMIZER_H
#define SD_TRAIN_OPTIMIZER_H

#include "core/config/sections.h"
#include "core/graph/graph.h"

enum { SD_HYPER_MOST = 8 };
typedef struct sd_optimizer {
    const char *name;
    const char *const *state_names; /* arenas of state, NULL at the end */
    uint32_t n_hyper;
    uint32_t (*n_state)(const sd_optimizer_cfg *c);                              /* how many of them this configuration uses */
    void (*hyper)(const sd_optimizer_cfg *c, double lr, uint64_t t, float *out); /* t: of this step, from 1 */
    sodet_value (*build)(sodet_graph *g, const sd_optimizer_cfg *c, const sodet_update *u, const sodet_value *state);
} sd_optimizer;
extern const sd_optimizer sd_sgd, sd_adam, sd_adamw;
const sd_optimizer *sd_optimizer_of(const sd_optimizer_cfg *c);

/* State arenas of a run: the rule's, then the accumulator (accumulate > 1), then the averaged weights (ema > 0). */
typedef struct sd_slots {
    uint32_t n;                        /* in use */
    const char *name[SODET_MAX_STATE]; /* of each, for checkpoints */
    uint32_t accumulator, ema;         /* slot, or UINT32_MAX */
} sd_slots;
sodet_status sd_slots_of(const sd_optimizer_cfg *c, sd_slots *out, sodet_err *err);

/* The factors of [optimizer] bias_lr, bias_decay, norm_decay and lr_factors, and those of the layers, for segment i: lr and decay. */
void sd_optimizer_factors(const sd_optimizer_cfg *c, const sd_segment *s, float *lr, float *decay);

/* The stretch of the frozen arena that holds buffers; n 0: there are none. */
void sd_buffer_range(const sd_segments *segments, uint64_t *first, uint64_t *n);
typedef struct sd_update_options {
    bool scaled;     /* gradients are a factor too large */
    uint32_t world;  /* devices that reduce with each other */
    uint32_t losses; /* terms times micro-batches, at least 1 */
} sd_update_options;
sodet_status sd_update_build(const sd_optimizer_cfg *c, const sd_slots *slots, const sd_segments *segments, const sd_update_options *o,
                             sodet_graph **out, sodet_err *err);
/* Micro-batch j = 1.. of a step: accumulator = mean of the first j gradients; input "keep" [1] is 1 - 1/j. */
sodet_status sd_accumulate_build(const sd_slots *slots, const sd_segments *segments, sodet_graph **out, sodet_err *err);

#endif
