#include "core/api/trained.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/train/folder.h"
#include "core/train/state.h"

/* "123.675 116.28 103.53": the numbers of a table entry are those of the list. */
static bool same_numbers(const char *text, const sodet_double_list *list)
{
    uint32_t n = 0;
    while (*text) {
        char word[40];
        size_t k = strcspn(text, " ");
        double v;
        if (k >= sizeof word)
            return false;
        memcpy(word, text, k);
        word[k] = '\0';
        if (n >= list->n || !sd_parse_double(word, &v) || v != list->v[n++])
            return false;
        text += k + (text[k] == ' ');
    }
    return n == list->n;
}

static sodet_status check_pixels(const sd_config *cfg, const sd_checkpoint *c, sodet_err *err)
{
    static const char *const channels[] = {"rgb", "bgr", "grey"};
    const sd_input_cfg *in = &sd_config_core(cfg)->input;
    const struct {
        const char *key, *stored;
        bool same;
    } rules[] = {
        {"channels", sd_checkpoint_meta(c, "input/channels"), false},
        {"mean", sd_checkpoint_meta(c, "input/mean"), false},
        {"std", sd_checkpoint_meta(c, "input/std"), false},
    };
    for (uint32_t i = 0; i < 3; i++) {
        if (!rules[i].stored)
            continue;
        if (i == 0 ? !strcmp(rules[i].stored, channels[in->channels]) : same_numbers(rules[i].stored, i == 1 ? &in->mean : &in->std))
            continue;
        return sd_config_fail(cfg, err, "input", rules[i].key, "%s was trained with %s; write [input] %s = %s", sd_checkpoint_path(c),
                              rules[i].stored, rules[i].key, rules[i].stored);
    }
    return SODET_OK;
}

static sodet_status read_classes(const sd_checkpoint *c, sd_trained *t, sodet_err *err)
{
    const char *const *names;
    const int64_t *categories;
    uint32_t n;
    sodet_status s = sd_state_classes(c, &t->strings, &names, &categories, &n, err);
    if (s == SODET_OK)
        t->classes = (sd_classes){.n = n, .names = names, .category_id = categories};
    return s;
}

sodet_status sd_trained_find(const char *path, sd_checkpoint **out, sodet_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return sd_checkpoint_open(path, SD_CHECKPOINT_OWN, out, err);
    *out = NULL;
    sd_pool pool = {0};
    char *best = sd_path_join(&pool, path, "best.safetensors");
    sodet_status s = !best                  ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory")
                     : sd_path_exists(best) ? sd_checkpoint_open(best, SD_CHECKPOINT_OWN, out, err)
                                            : sd_run_find_checkpoint(path, out, err);
    sd_pool_clear(&pool);
    return s;
}

sodet_status sd_inference_arenas(const sd_model *model, const sd_config *cfg, sd_device_pool *pool, sd_segments *out, sodet_err *err)
{
    const sodet_size2d size = sd_config_core(cfg)->input.size;
    const sd_graph_options options = {.training = false, .world = 1};
    const sd_model_shape shape = {.batch = 1, .height = size.height, .width = size.width, .boxes = 1};
    sodet_graph *g = NULL;
    sodet_status s = sd_model_build(model, &options, &shape, &g, err);
    if (s == SODET_OK)
        s = sd_segments_make(g, out, err);
    sd_graph_free(g);
    return s == SODET_OK ? sd_device_pool_arenas(pool, out, false, 0, err) : s;
}

sodet_status sd_trained_open(sd_config *cfg, sd_checkpoint *checkpoint, sd_trained *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status s = check_pixels(cfg, checkpoint, err);
    if (s == SODET_OK)
        s = read_classes(checkpoint, out, err);
    if (s == SODET_OK)
        s = sd_model_open(cfg, out->classes.n, &out->model, err);
    if (s == SODET_OK)
        s = sd_device_pool_open(cfg, &out->pool, err);
    if (s == SODET_OK)
        s = sd_inference_arenas(out->model, cfg, out->pool, &out->segments, err);
    if (s == SODET_OK)
        s = sd_state_load_weights(out->pool, &out->segments, checkpoint, err);
    const sd_infer_config infer = {.pool = out->pool, .model = out->model, .segments = &out->segments, .param_arena = SD_ARENA_PARAM};
    if (s == SODET_OK)
        s = sd_infer_open(&infer, &out->infer, err);
    if (s != SODET_OK)
        sd_trained_close(out);
    return s;
}

void sd_trained_close(sd_trained *t)
{
    sd_infer_close(t->infer);
    sd_device_pool_close(t->pool);
    sd_segments_free(&t->segments);
    sd_model_close(t->model);
    sd_pool_clear(&t->strings);
    memset(t, 0, sizeof *t);
}
