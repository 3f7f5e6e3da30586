/* data/model_assigner.h: a model's head as what the loader calls for targets. */
#ifndef SD_DATA_MODEL_ASSIGNER_H
#define SD_DATA_MODEL_ASSIGNER_H

#include "core/data/loader.h"
#include "core/detect/model.h"

static inline sodet_status sd_model_assigner_grid(void *context, uint32_t width, uint32_t height, const void **grid, uint64_t *n_anchors,
                                                  sodet_err *err)
{
    const sd_model_grid *g = NULL;
    sodet_status status = sd_model_grid_of((const sd_model *)context, height, width, &g, err);
    *grid = g;
    *n_anchors = status == SODET_OK ? g->anchors->n : 0;
    return status;
}

static inline sodet_status sd_model_assigner_assign(void *context, const void *grid, const struct sodet_boxes *truth, int32_t *index,
                                                    sodet_err *err)
{
    return sd_model_assign((const sd_model *)context, (const sd_model_grid *)grid, truth, index, NULL, err);
}

/* The model must outlive the loader. */
static inline sd_assigner sd_model_assigner(sd_model *m)
{
    return (sd_assigner){sd_model_assigner_grid, sd_model_assigner_assign, m};
}

#endif
