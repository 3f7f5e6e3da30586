/* api/opened.h: a checkpoint made into a network on its devices, ready for inference. */
#ifndef SD_API_OPENED_H
#define SD_API_OPENED_H

#include "core/detect/model.h"
#include "core/device/pool.h"
#include "core/store/checkpoint.h"

typedef struct sd_opened {
    sd_checkpoint *checkpoint;
    sd_config *cfg;
    sd_pool strings;
    const char *const *classes;
    const int64_t *categories;
    uint32_t n_classes;
    sd_model *model;
    sd_device_pool *pool;
    sd_segments segments;
} sd_opened;

/* path: a checkpoint, or a run's folder: its best.safetensors, else the one with the most steps. */
sodet_status sd_opened_open(sd_opened *o, const char *path, const sd_override *overrides, uint64_t n, sodet_err *err);
void sd_opened_close(sd_opened *o);

/* The inference graph's parameters for the size of [input], their arenas on every device, zero. */
sodet_status sd_inference_arenas(const sd_model *model, const sd_config *cfg, sd_device_pool *pool, sd_segments *out, sodet_err *err);

#endif
