/* train/scale.h: the factor on the loss that keeps the gradients of 16-bit maps from vanishing (Micikevicius et al. 2018, section 3.2).
 *
 * Backward starts from loss_scale instead of 1; the update divides by it and is not made where a gradient has overflowed. Such a step is
 * skipped and counted; the schedule goes on. dynamic: the factor is halved then, and doubled after `loss_scale_window` steps without
 * an overflow (Apex's and torch.cuda.amp.GradScaler's rule). */
#ifndef SD_TRAIN_SCALE_H
#define SD_TRAIN_SCALE_H

#include "core/base/base.h"
#include "core/config/sections.h"

typedef struct sd_loss_scale {
    double factor;    /* 0: not begun, or none */
    uint64_t good;    /* steps since it changed or one was skipped */
    uint64_t in_row;  /* steps that were skipped, up to now */
    uint64_t skipped; /* in all */
} sd_loss_scale;

/* Whether the loss is scaled at all: [optimizer] loss_scaling, where `auto` is `dynamic` with [run] precision = fp16 and `none` else. */
bool sd_loss_scaled(const sd_core_cfg *core);
/* The factor of the next step; 1: the loss is not scaled. */
double sd_loss_scale_begin(const sd_core_cfg *core, sd_loss_scale *s);
/* After a step. Fails when too many in a row were skipped. */
sodet_status sd_loss_scale_step(const sd_core_cfg *core, sd_loss_scale *s, bool finite, sodet_err *err);

#endif
