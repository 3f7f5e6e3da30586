/* train/schedule.h: learning rates. A rate is a pure function of the step; only `plateau` has state, which the checkpoint keeps.
 *
 * Sequences equal those of torch.optim.lr_scheduler of PyTorch 2.x (closed forms; its recurrences differ by rounding). A step is
 * whatever the caller counts: an optimizer step with unit = iterations, an epoch with unit = epochs; milestones and total are in
 * the same unit, and a fraction of an epoch is allowed. Warm-up is always counted on its own scale (see warm). */
#ifndef SD_TRAIN_SCHEDULE_H
#define SD_TRAIN_SCHEDULE_H

#include "core/base/base.h"

enum {
    SD_SCHEDULE_CONSTANT = 1,
    SD_SCHEDULE_STEP,      /* lr * factor^floor(t / every)                    StepLR */
    SD_SCHEDULE_MULTISTEP, /* lr * factor^(number of milestones <= t)         MultiStepLR */
    SD_SCHEDULE_COSINE,    /* floor + (lr - floor) (1 + cos(pi t / total)) / 2  CosineAnnealingLR; stays at floor behind total */
    SD_SCHEDULE_POLY,      /* lr * (1 - min(t, total) / total)^power          PolynomialLR; not below floor */
    SD_SCHEDULE_PLATEAU    /* lr * factor^k, k counted by sd_plateau_update   ReduceLROnPlateau */
};
enum { SD_WARMUP_NONE = 0, SD_WARMUP_LINEAR, SD_WARMUP_CONSTANT };
extern const char
    *const sd_schedule_names[]; /* "constant", "step", "multistep", "cosine", "poly", "plateau", NULL; index + 1 = the number above */
extern const char *const sd_warmup_names[]; /* "none", "linear", "constant", NULL */

typedef struct sd_schedule {
    uint32_t kind;            /* SD_SCHEDULE_* */
    double lr;                /* base */
    double factor;            /* step, multistep, plateau: 0.1 */
    double every;             /* step */
    const double *milestones; /* multistep, ascending; borrowed */
    uint64_t n_milestones;
    double total; /* cosine, poly */
    double floor; /* least rate of cosine, poly and plateau */
    double power; /* poly */
    /* Warm-up: for warm < warmup the rate is multiplied by warmup_factor (constant), or by warmup_factor + (1 - warmup_factor) warm / warmup
     * (linear). `apart`: the schedule begins when the warm-up ends (SequentialLR; both are then
     * counted in one unit); else both run from 0 and are multiplied
     * (ChainedScheduler; what Detectron2, torchvision and MLPerf do). */
    uint32_t warmup_kind; /* SD_WARMUP_* */
    double warmup, warmup_factor;
    bool apart;
    /* plateau */
    double patience;  /* evaluations without improvement that are borne: 10 */
    double threshold; /* relative improvement that counts: 1e-4 */
    bool threshold_absolute;
    bool lower_is_better;
    double cooldown; /* evaluations after a reduction in which none is counted */
} sd_schedule;

/* Values of an untouched schedule: constant, factor 0.1, power 1, threshold 1e-4, patience 10. */
void sd_schedule_init(sd_schedule *s);
/* Rules across fields, as a sentence. */
sodet_status sd_schedule_check(const sd_schedule *s, sodet_err *err);

typedef struct sd_plateau { /* all zero: nothing seen yet */
    uint64_t seen;
    double best;
    uint64_t bad, cooling, reductions; /* the rate is lr * factor^reductions, not below floor */
} sd_plateau;
/* After each evaluation. NaN counts as no improvement. */
void sd_plateau_update(const sd_schedule *s, sd_plateau *p, double metric);

/* The rate at `step`, with `warm` on the warm-up's scale (the same number, if both count in one unit). p: NULL unless plateau. */
double sd_schedule_at(const sd_schedule *s, double step, double warm, const sd_plateau *p);

#endif
