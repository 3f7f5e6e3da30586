/* train/resumed.h: what a run may be resumed with. A checkpoint holds the configuration that it was made with; the run that goes on
 * from it is compared key by key:
 *   bound   what the numbers in it mean or were counted in: [input]; [backbone] [neck] [head] [loss] and the training transforms (but
 *           options whose row says SODET_OPT_LATER, and paths); [run] seed; [data] shuffle, overfit, last, difficult, min_side,
 *           ignore_orientation; [optimizer] type, accumulate, ema, freeze; [train] batch, norm. Another value is refused.
 *   judged elsewhere   classes and the training data, by name and fingerprint (train/state.h).
 *   later   everything else, such as rates and the schedule's end: it counts from here on, is told, and config.ini says it. */
#ifndef SD_TRAIN_RESUMED_H
#define SD_TRAIN_RESUMED_H

#include "core/config/config.h"
#include "core/store/checkpoint.h"

/* changed: "schedule.total = 12 (was 4), ..." of what is new from here on. Sections of plugins must have been filled
 * (sd_plugin_check_all); those that are not are not compared. */
sodet_status sd_resumed_check(const sd_config *cfg, const sd_checkpoint *c, sd_text *changed, sodet_err *err);

#endif
