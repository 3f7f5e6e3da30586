#include "core/api/opened.h"

#include <string.h>
#include <sys/stat.h>

#include "core/train/folder.h"
#include "core/train/state.h"

static sodet_status find(const char *path, sd_checkpoint **out, sodet_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return sd_checkpoint_open(path, SD_CHECKPOINT_OWN, out, err);
    sd_pool pool = {0};
    char *best = sd_path_join(&pool, path, "best.safetensors");
    sodet_status s =
        best && sd_path_exists(best) ? sd_checkpoint_open(best, SD_CHECKPOINT_OWN, out, err) : sd_run_find_checkpoint(path, out, err);
    sd_pool_clear(&pool);
    return s;
}

sodet_status sd_inference_arenas(const sd_model *model, const sd_config *cfg, sd_device_pool *pool, sd_segments *out, sodet_err *err)
{
    const sd_input_cfg *input = &sd_config_core(cfg)->input;
    sd_graph_options options = {.world = 1};
    sd_model_shape shape = {.batch = 1, .height = input->size.height, .width = input->size.width, .boxes = 1};
    sodet_graph *g = NULL;
    sodet_status s = sd_model_build(model, &options, &shape, &g, err);
    if (s == SODET_OK)
        s = sd_segments_make(g, out, err);
    sd_graph_free(g);
    return s == SODET_OK ? sd_device_pool_arenas(pool, out, false, 0, err) : s;
}

sodet_status sd_opened_open(sd_opened *o, const char *path, const sd_override *overrides, uint64_t n, sodet_err *err)
{
    memset(o, 0, sizeof *o);
    sodet_status s = find(path, &o->checkpoint, err);
    if (s == SODET_OK)
        s = sd_state_config(o->checkpoint, overrides, n, &o->cfg, err);
    if (s == SODET_OK)
        s = sd_state_classes(o->checkpoint, &o->strings, &o->classes, &o->categories, &o->n_classes, err);
    if (s == SODET_OK)
        s = sd_model_open(o->cfg, o->n_classes, &o->model, err);
    if (s == SODET_OK)
        s = sd_device_pool_open(o->cfg, &o->pool, err);
    if (s == SODET_OK)
        s = sd_inference_arenas(o->model, o->cfg, o->pool, &o->segments, err);
    if (s == SODET_OK)
        s = sd_state_load_weights(o->pool, &o->segments, o->checkpoint, err);
    if (s != SODET_OK)
        sd_opened_close(o);
    return s;
}

void sd_opened_close(sd_opened *o)
{
    sd_device_pool_close(o->pool);
    sd_segments_free(&o->segments);
    sd_model_close(o->model);
    sd_config_close(o->cfg);
    sd_checkpoint_close(o->checkpoint);
    sd_pool_clear(&o->strings);
    memset(o, 0, sizeof *o);
}
