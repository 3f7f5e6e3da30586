/* train/state.h: everything that a run is at one moment: the values in the devices' arenas and a few numbers; written to and read from
 * checkpoints (store/checkpoint.h). It holds no time, host or path, so equal runs write equal bytes.
 *
 * Tensors: parameters and buffers by their path; "optimizer/<slot>/<path>" and "ema/<path>". The table of strings holds
 *   config             the resolved INI (sd_config_write without places)
 *   classes, categories   names, and the category ids of the data's files, one a line
 *   input/channels, input/mean, input/std   pixel rules
 *   plugins            "<kind> <name> <abi>", one a line
 *   dataset            fingerprint of the training set
 *   kind               "run": can be resumed; "weights": best or averaged weights alone
 *   state/<name>       the numbers below */
#ifndef SD_TRAIN_STATE_H
#define SD_TRAIN_STATE_H

#include "core/data/dataset.h"
#include "core/detect/model.h"
#include "core/device/pool.h"
#include "core/store/checkpoint.h"
#include "core/train/scale.h"
#include "core/train/schedule.h"

typedef struct sd_train_state {
    uint64_t step;               /* optimizer steps made */
    uint64_t epoch, batch;       /* of the next batch: its epoch, and its number in that epoch */
    uint64_t samples;            /* consumed in all */
    uint64_t boundary;           /* the end of this many epochs has been looked at (evaluations are due at some) */
    uint64_t evaluations, stale; /* made; of these, since the best got better */
    double best;                 /* best metric so far; NaN: none yet */
    uint64_t best_epoch;
    double loss_sum, loss_count; /* of the steps since the last evaluation: what plateau on loss looks at */
    double normaliser;           /* running mean of positives; 0: not begun */
    sd_plateau plateau;
    sd_loss_scale scale;
} sd_train_state;
void sd_train_state_init(sd_train_state *s);

/* What a checkpoint is about besides numbers. Borrowed. */
typedef struct sd_run_facts {
    sd_config *cfg;
    sd_device_pool *pool;
    const sd_segments *segments;
    const sd_model *model;
    const sd_classes *classes;
    uint64_t fingerprint;
    uint32_t n_slots;              /* state arenas that the optimizer uses */
    const char *const *slot_names; /* [n_slots] "momentum" */
    uint32_t ema_slot;             /* slot of averaged weights, or UINT32_MAX */
} sd_run_facts;

/* Everything, to be resumed. Of both, device 0 is written for all devices: that they agree (sd_device_pool_agree) is looked at before. */
sodet_status sd_state_save(const sd_run_facts *f, const sd_train_state *s, const char *path, sodet_err *err);
/* What inference needs: the averaged weights if there are such, else the parameters; and buffers. */
sodet_status sd_state_save_weights(const sd_run_facts *f, const sd_train_state *s, const char *path, sodet_err *err);
/* The same of values in host memory: imported weights. Of f: cfg, model, classes, fingerprint. */
sodet_status sd_state_write_weights(const sd_run_facts *f, const sd_tensor *tensors, uint64_t n, const char *path, sodet_err *err);
uint64_t sd_state_bytes(const sd_run_facts *f); /* of a checkpoint, about */

/* The numbers alone: where a loader has to begin. */
sodet_status sd_state_position(const sd_checkpoint *c, sd_train_state *s, sodet_err *err);
/* Fills arenas and numbers. Refuses a file of weights alone, other classes, shapes or optimizers, and a changed data set. */
sodet_status sd_state_load(const sd_run_facts *f, sd_checkpoint *c, sd_train_state *s, sodet_err *err);
/* Parameters and buffers that must all be there (inference). */
sodet_status sd_state_load_weights(sd_device_pool *pool, const sd_segments *segments, sd_checkpoint *c, sodet_err *err);
/* run.init: takes what fits of any checkpoint, nothing else; the report says what was taken and skipped. */
sodet_status sd_state_init_from(sd_device_pool *pool, const sd_segments *segments, sd_checkpoint *c, sd_load_report *report,
                                sodet_err *err);

/* Class names of a checkpoint. */
sodet_status sd_state_classes(const sd_checkpoint *c, sd_pool *pool, const char *const **names, const int64_t **categories, uint32_t *n,
                              sodet_err *err);
/* The configuration that a checkpoint holds, with overrides. */
sodet_status sd_state_config(const sd_checkpoint *c, const sd_override *overrides, uint64_t n, sd_config **out, sodet_err *err);

#endif
