/* train/stepper.h: one optimizer step on all devices: gradients of one or several batches, then the update.
 *
 * A batch is dealt out to the devices as evenly as can be; each distinct share is a plan of its own. A device without a sample runs the
 * same program for no images: it joins every collective with sums of nothing. Per-image loss weights are computed here from the loader's positives, over everything that one step consumes:
 *   global  1 / max(1, positives of the step)
 *   image   1 / (max(1, positives of the image) * images of the step)
 *   device  1 / (max(1, positives of the device's share of the batch) * shares that have images)
 *   ema     1 / running mean of max(1, positives of the step) (Detectron2's RetinaNet)
 */
#ifndef SD_TRAIN_STEPPER_H
#define SD_TRAIN_STEPPER_H

#include <signal.h>

#include "core/data/loader.h"
#include "core/detect/model.h"
#include "core/device/program.h"
#include "core/train/optimizer.h"

enum { SD_TERMS_MOST = 16 };
typedef struct sd_stepper sd_stepper;
typedef struct sd_stepper_config {
    const sd_core_cfg *core; /* [run] seed, [optimizer], [loss], [train] */
    sd_device_pool *pool;
    const sd_model *model;
    uint32_t batch, height, width; /* of the first batches: the segments' order comes from this graph */
    uint32_t boxes;                /* T of the loader */
    uint64_t picture_bytes;        /* of the loader */
} sd_stepper_config;
/* Builds the training graph once and makes the arenas, zero. Values are written by the caller (sd_device_pool_init, sd_state_load). */
sodet_status sd_stepper_open(const sd_stepper_config *config, sd_stepper **out, sodet_err *err);
void sd_stepper_close(sd_stepper *s); /* before the pool; accepts NULL */
const sd_segments *sd_stepper_segments(const sd_stepper *s);
const sd_slots *sd_stepper_slots(const sd_stepper *s);
uint32_t sd_stepper_terms(const sd_stepper *s);
const char *sd_stepper_term(const sd_stepper *s, uint32_t i); /* "cls" */
/* After the parameters were set: averaged weights begin as a copy. */
sodet_status sd_stepper_begin(sd_stepper *s, sodet_err *err);
/* Makes the programs for batches of this shape now, so that the first step is as fast as the others. */
sodet_status sd_stepper_prepare(sd_stepper *s, uint32_t batch, uint32_t height, uint32_t width, sodet_err *err);

typedef struct sd_step {
    uint64_t step; /* number of this step, from 0: for seeds and Adam's correction */
    double lr;
    double normaliser; /* in and out: running mean of positives (ema); 0: begins with normaliser_start */
    double loss_scale; /* factor on the loss (scale.h); 0: 1 */
    /* the stepper's */
    double normaliser_before;
    uint32_t slot;
    /* out */
    double term[SD_TERMS_MOST], loss; /* summed over devices and batches */
    double norm;                      /* of the gradients before clipping */
    uint64_t images, positives;
    bool finite;   /* false: nothing has changed, neither parameters, state nor running statistics */
    bool given_up; /* at sd_stepper_stop_by: nothing has changed either, the rest means nothing, and there is nothing to finish */
} sd_step;
/* Looked at between the batches of a step that is begun: where it is not 0 the step is given up. NULL: not looked at. */
void sd_stepper_stop_by(sd_stepper *s, const volatile sig_atomic_t *stop);
/* batches: [optimizer] accumulate of them. */
sodet_status sd_stepper_step(sd_stepper *s, const sd_batch *const *batches, sd_step *step, sodet_err *err);
/* The same in two calls, for devices that need not be waited for: begin puts the step on the devices, finish waits until it is done and
 * fills `out`. One more step may be begun before that: unless it is begun `alone`, it is not made on the devices if the one before it was
 * not finite; it is then finished like any other, and may be begun anew. The devices keep what is needed for that: no host looks at a
 * loss before the update. `batches` are needed until begin is back. */
sodet_status sd_stepper_begin_step(sd_stepper *s, const sd_batch *const *batches, sd_step *step, bool alone, sodet_err *err);
sodet_status sd_stepper_finish(sd_stepper *s, sd_step *step, sodet_err *err);
/* Whether there is something to be won by it: runs come back before they are done. */
bool sd_stepper_runs_ahead(const sd_stepper *s);
/* The halves of a step that is waited for: losses and gradients (which stay in the gradient arena, or its accumulator), and the update. */
sodet_status sd_stepper_gradients(sd_stepper *s, const sd_batch *const *batches, sd_step *step, sodet_err *err);
sodet_status sd_stepper_update(sd_stepper *s, sd_step *step, sodet_err *err);
/* After a step that was not finite: which layer's output is the first that is not, and in which pictures' batch. Runs the forward
 * pass of device 0's share again with every layer kept, so it may need much memory; says so if it cannot. */
void sd_stepper_blame(sd_stepper *s, const sd_batch *const *batches, uint32_t n, const sd_dataset *dataset, sd_text *out);
/* With statistics of its own each device has running statistics of its own: all get those of device 0, which are what a checkpoint holds. To
 * be called before anything is evaluated, so that what is found is what the checkpoint finds. */
sodet_status sd_stepper_share_statistics(sd_stepper *s, sodet_err *err);
/* Seconds per node of device 0's last gradient program, added up over steps (bench); NULL switches off. */
void sd_stepper_time_nodes(sd_stepper *s, double *seconds, uint64_t capacity);
/* Pictures of the last step that device i had. */
uint64_t sd_stepper_dealt(const sd_stepper *s, uint32_t i);
const sd_program *sd_stepper_program(const sd_stepper *s); /* device 0's gradient program of the last step */
const sd_program *sd_stepper_update_program(const sd_stepper *s);

#endif
