/* api/trained.h: a trained network on its devices: what `sodet detect`, `sodet eval` and embedding programs open. */
#ifndef SD_API_TRAINED_H
#define SD_API_TRAINED_H

#include "core/eval/infer.h"
#include "core/store/checkpoint.h"

/* path: a checkpoint, or a run's folder: its best.safetensors, else the one with the most steps. */
sodet_status sd_trained_find(const char *path, sd_checkpoint **out, sodet_err *err);

/* The inference graph's parameters for the size of [input], and their arenas on every device, zero. */
sodet_status sd_inference_arenas(const sd_model *model, const sd_config *cfg, sd_device_pool *pool, sd_segments *out, sodet_err *err);

typedef struct sd_trained {
    sd_pool strings;
    sd_classes classes; /* the checkpoint's */
    sd_model *model;
    sd_device_pool *pool;
    sd_segments segments;
    sd_infer *infer;
} sd_trained;

/* cfg: the checkpoint's own (sd_state_config) or one that describes the same network; it must outlive `out`. The pixel rules of [input]
 * travel with weights: a configuration that says something else is an error. The checkpoint is used during the call alone. */
sodet_status sd_trained_open(sd_config *cfg, sd_checkpoint *checkpoint, sd_trained *out, sodet_err *err);
void sd_trained_close(sd_trained *t); /* accepts a zeroed one */

#endif
