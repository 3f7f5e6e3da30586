/* train/train.h: a run from its configuration to its last checkpoint.
 *
 * A step consumes [optimizer] accumulate batches. Schedules with unit = iterations count steps, with unit = epochs the fraction of epochs
 * whose batches have been consumed. The run ends at [schedule] total, at [train] max_steps, or by patience or target.
 *
 * Resume continues bit for bit: the order of the samples and all chance come from (seed, epoch, position), and everything else is in the
 * checkpoint. A loss or gradient that is not finite changes nothing; the run writes last.safetensors as it was before that step and ends
 * with an error that names the pictures and the layer. */
#ifndef SD_TRAIN_TRAIN_H
#define SD_TRAIN_TRAIN_H

#include <signal.h>

#include "core/config/config.h"
#include "core/train/usage.h"

typedef struct sd_train_options {
    bool quiet;
    /* Set by a signal handler; looked at before and within every step. The run then gives up the step that is begun, writes last.safetensors
     * as it is behind the last whole one, and ends. NULL: not looked at. */
    const volatile sig_atomic_t *stop;
    /* Called once when the request has proved good and the first batch is about to be asked for. */
    void (*started)(void *context);
    void *context;
} sd_train_options;

typedef struct sd_train_result {
    uint64_t steps, epochs, images;
    double loss;              /* of the last step */
    double best, last_metric; /* NaN: never evaluated */
    char metric[128];         /* its name, "" if there is no validation */
    uint64_t best_epoch;
    double seconds, wait;                                       /* of it: waiting for data */
    sd_usage_shares usage;                                      /* of the steps */
    uint64_t planned_bytes;                                     /* of device 0 */
    bool stopped;                                               /* by `stop` */
    const char *why;                                            /* "total", "max_steps", "patience", "target", "signal" */
    char folder[4096], checkpoint[4160], best_checkpoint[4160]; /* "" if it was not written */
} sd_train_result;
sodet_status sd_train(sd_config *cfg, const sd_train_options *options, sd_train_result *out, sodet_err *err);

#endif
