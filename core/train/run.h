/* train/run.h: the parts of a run, opened in order; what train.c steps through. */
#ifndef SD_TRAIN_RUN_H
#define SD_TRAIN_RUN_H

#include "core/data/recipe.h"
#include "core/eval/validate.h"
#include "core/report/report.h"
#include "core/train/advice.h"
#include "core/train/folder.h"
#include "core/train/state.h"
#include "core/train/stepper.h"
#include "core/train/train.h"
#include "core/train/usage.h"

typedef struct sd_unread {             /* pictures of an epoch that could not be read */
    uint64_t *samples;                 /* as they came */
    uint64_t n, capacity, epoch, from; /* from: the epoch's first batch that this process saw */
    bool begun;
} sd_unread;

typedef struct sd_flight { /* a step on the devices, whose result is not known yet */
    sd_step step;
    const sd_batch **batches;     /* of it */
    sd_train_state before, after; /* without it, and if it is good */
} sd_flight;

typedef struct sd_run {
    sd_config *cfg;
    const sd_core_cfg *core;
    sd_pool strings;
    char *folder;
    int lock;              /* of the folder; 0 or less: none (descriptor 0 is open in every process of ours) */
    sd_checkpoint *resume; /* until the state has been read */
    sd_split split;
    sd_model *model;
    sd_device_pool *pool;
    sd_loader_config loader_config;
    sd_loader *loader;
    double wait_before;          /* of loaders that were closed, */
    uint64_t by_device, by_host; /* and so are these */
    sd_usage usage;
    sd_stepper *stepper;
    sd_validation *validation; /* NULL: no [data] val */
    sd_infer *infer;
    sd_run_facts facts;
    sd_schedule schedule;
    sd_train_state state;
    sd_report *report;
    sd_advice *advice; /* NULL: a resumed run */
    const char *terms[SD_TERMS_MOST];
    sd_flight flights[2];
    sd_flight *flight; /* NULL: every step that was begun is finished */
    bool ahead;        /* a step is begun before the one before it is finished */
    bool agreed;       /* the devices' weights have been compared since the last step */
    sd_unread unread;
    sd_text changed; /* values that a resumed run goes on with and did not begin with */
    double began, last_save;
    const volatile sig_atomic_t *stop; /* NULL: nobody asks the run to end */
    bool broken_off;                   /* an evaluation, by stop */
} sd_run;

/* Everything that can be found wrong before the first batch is found here. */
sodet_status sd_run_open(sd_run *r, sd_config *cfg, bool quiet, sodet_err *err);
void sd_run_close(sd_run *r);

/* The batches of the next step; NULL-terminated order of the epochs is the loader's. They are given back by sd_run_recycle, in that order.
 * batches[0] is NULL where `stop` came before there were all of them. */
sodet_status sd_run_next(sd_run *r, const sd_batch **batches, sodet_err *err);
void sd_run_recycle(sd_run *r, const sd_batch *const *batches);
double sd_run_wait(const sd_run *r);
/* The position behind the batches of a step. */
void sd_run_advance(sd_run *r, const sd_batch *const *batches);
/* Takes down what of a batch could not be read, and says so at the end of its epoch; tell: now (the run ends inside an epoch). */
sodet_status sd_run_note_unread(sd_run *r, const sd_batch *b, sodet_err *err);
void sd_run_tell_unread(sd_run *r);
double sd_run_epoch(const sd_run *r);   /* epochs consumed, with fraction */
double sd_run_rate(const sd_run *r);    /* learning rate of the next step */
uint64_t sd_run_steps(const sd_run *r); /* of the whole run, about (epochs end between steps) */

#endif
