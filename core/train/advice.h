/* train/advice.h: what a training that goes wrong is told in words, by what can be seen of its batches and losses. It costs a look at each
 * anchor's index of the first epoch, and nothing afterwards. */
#ifndef SD_TRAIN_ADVICE_H
#define SD_TRAIN_ADVICE_H

#include "core/config/config.h"
#include "core/data/loader.h"
#include "core/detect/model.h"

typedef struct sd_advice sd_advice;
/* steps: of an epoch. A run that is resumed needs none. */
sodet_status sd_advice_new(const sd_config *cfg, const sd_model *model, uint64_t steps, sd_advice **out, sodet_err *err);
void sd_advice_free(sd_advice *a); /* accepts NULL */

/* After a step: its batches and loss. */
sodet_status sd_advice_step(sd_advice *a, const sd_batch *const *batches, uint32_t n, double loss, sodet_err *err);
/* What there is to say now, each a line with its newline; nothing is said twice. Said early (after fifty steps, or the epoch):
 *   no objects at all; all of them ignored; none that an anchor matches
 * and at the end of the first epoch:
 *   a loss that has not fallen; anchors of sizes that match nothing */
void sd_advice_say(sd_advice *a, sd_text *out);

/* After a step that was not finite: how to go on, as the end of a sentence. step: from 0. */
void sd_advice_not_finite(const sd_config *cfg, uint64_t step, sd_text *out);

#endif
