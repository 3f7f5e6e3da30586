/* train/optimizer.h: the rules of the update, a table each (sgd.c, adam.c, adamw.c), and the graph that applies one to the arenas.
 *
 * The update is a program of its own: gradients may be made several times (accumulation) before it runs once. Its inputs are
 *   "hyper" [n]    what the rule's hyper() gives for this step
 *   "ok"    [1]    1, or 0 if a loss was not finite: then nothing changes
 * and its outputs "norm" [1], the 2-norm of the gradients before clipping, and "finite": 1 if every gradient was and "ok" was 1. Where
 * it is 0, no parameter and no state has changed. */
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

/* scaled: gradients are a factor too large; input "unscale" [1] is one over it. */
sodet_status sd_update_build(const sd_optimizer_cfg *c, const sd_slots *slots, const sd_segments *segments, bool scaled, sodet_graph **out,
                             sodet_err *err);
/* Micro-batch j = 1.. of a step: accumulator = mean of the first j gradients; input "keep" [1] is 1 - 1/j. */
sodet_status sd_accumulate_build(const sd_slots *slots, const sd_segments *segments, sodet_graph **out, sodet_err *err);

#endif
