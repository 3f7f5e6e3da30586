#include "core/eval/validate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/pipeline.h"

struct sd_validation {
    sd_split split;
    sd_loader_config loader;
    sd_instance *evaluators;
    sodet_eval_sink *sinks;
    uint32_t n, n_threads;
    sodet_sample *sample;
    char best[256];
    uint32_t best_evaluator;
    const char *best_metric; /* in `best` */
    /* of a run */
    sd_gather *gather; /* of the last run, until the next one */
    sodet_eval_input in;
    bool done;
    sd_infer_progress *progress;
    void *context;
};

static sodet_status open_evaluators(sd_validation *v, sd_config *cfg, sodet_err *err)
{
    const sd_eval_cfg *c = &sd_config_core(cfg)->eval;
    const sodet_string_list *labels = &c->evaluators;
    v->evaluators = sd_alloc(labels->n, sizeof *v->evaluators);
    v->sinks = sd_alloc(labels->n, sizeof *v->sinks);
    if (!v->evaluators || !v->sinks)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the evaluators");
    for (uint32_t i = 0; i < labels->n; i++) {
        char *section = sd_pool_printf(&v->split.pool, "evaluator.%s", labels->v[i]);
        sodet_status s = section ? sd_instance_create(cfg, section, &v->evaluators[i], err)
                                 : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the evaluators");
        if (s != SODET_OK)
            return s;
        v->n++;
    }
    if (!v->n)
        return sd_config_fail(cfg, err, "eval", "evaluators", "names no evaluator; voc and coco come with sodet");
    const sodet_evaluator_ops *first = v->evaluators[0].ops;
    if (!c->best) {
        snprintf(v->best, sizeof v->best, "%s/%s", labels->v[0], first->headline ? first->headline : "mAP");
    } else if (!strchr(c->best, '/')) {
        uint32_t i = 0;
        while (i < v->n && strcmp(labels->v[i], c->best) != 0)
            i++;
        if (i == v->n)
            return sd_config_fail(cfg, err, "eval", "best",
                                  "no evaluator of [eval] evaluators has this label; expected <label>/<metric>, as %s/%s", labels->v[0],
                                  first->headline ? first->headline : "mAP");
        const sodet_evaluator_ops *ops = v->evaluators[i].ops;
        snprintf(v->best, sizeof v->best, "%s/%s", c->best, ops->headline ? ops->headline : "mAP");
    } else {
        snprintf(v->best, sizeof v->best, "%s", c->best);
    }
    v->best_metric = strchr(v->best, '/') + 1;
    size_t k = (size_t)(v->best_metric - v->best) - 1;
    for (v->best_evaluator = 0; v->best_evaluator < v->n; v->best_evaluator++)
        if (strlen(labels->v[v->best_evaluator]) == k && !memcmp(labels->v[v->best_evaluator], v->best, k))
            return SODET_OK;
    return sd_config_fail(cfg, err, "eval", "best", "no evaluator of [eval] evaluators has the label %.*s", (int)k, v->best);
}

sodet_status sd_validation_open(sd_config *cfg, const char *const *classes, uint32_t n_classes, sd_validation **out, sodet_err *err)
{
    *out = NULL;
    sd_validation *v = sd_alloc(1, sizeof *v);
    if (!v)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: validation");
    const sd_core_cfg *core = sd_config_core(cfg);
    sodet_status s = sd_split_open(cfg, SD_SPLIT_VAL, classes, n_classes, &v->split, err);
    if (s == SODET_OK)
        s = open_evaluators(v, cfg, err);
    if (s == SODET_OK)
        s = sd_sample_new(v->split.dataset, &v->sample, err);
    if (s != SODET_OK) {
        sd_validation_close(v);
        return s;
    }
    v->loader = sd_split_loader(cfg, &v->split, SD_SPLIT_VAL);
    v->loader.device_pixels = core->data.pixels == SD_PIXELS_DEVICE;
    v->loader.device_jpegs = core->data.decode == SD_DECODE_DEVICE;
    v->loader.batch = core->train.val_batch ? core->train.val_batch : core->train.batch;
    v->n_threads = core->run.threads ? core->run.threads : core->data.workers;
    /* A chain that the device cannot do is refused here, not after an epoch of training. */
    sd_worker worker;
    s = sd_worker_open(&worker, &v->loader, err);
    if (s == SODET_OK) {
        s = sd_worker_try(&worker, err);
        sd_worker_close(&worker);
    }
    if (s != SODET_OK) {
        sd_validation_close(v);
        return s;
    }
    *out = v;
    return SODET_OK;
}

void sd_validation_close(sd_validation *v)
{
    if (!v)
        return;
    sd_gather_free(v->gather);
    for (uint32_t i = 0; i < v->n; i++) {
        sd_eval_sink_clear(&v->sinks[i]);
        sd_instance_destroy(&v->evaluators[i]);
    }
    sd_free(v->sinks);
    sd_free(v->evaluators);
    sd_sample_free(v->sample);
    sd_split_close(&v->split);
    sd_free(v);
}

const sd_dataset *sd_validation_dataset(const sd_validation *v)
{
    return v->split.dataset;
}

uint32_t sd_validation_count(const sd_validation *v)
{
    return v->n;
}

const char *sd_validation_label(const sd_validation *v, uint32_t i)
{
    return strchr(v->evaluators[i].section, '.') + 1;
}

const sodet_eval_sink *sd_validation_result(const sd_validation *v, uint32_t i)
{
    return &v->sinks[i];
}

const char *sd_validation_best_name(const sd_validation *v)
{
    return v->best;
}

double sd_validation_best(const sd_validation *v)
{
    return sd_eval_sink_get(&v->sinks[v->best_evaluator], v->best_metric, NULL);
}

void sd_validation_json(const sd_validation *v, sd_text *out)
{
    for (uint32_t i = 0; i < v->n; i++) {
        char prefix[128];
        snprintf(prefix, sizeof prefix, "%.120s/", sd_validation_label(v, i));
        if (i)
            sd_text_printf(out, ", ");
        sd_eval_sink_json(&v->sinks[i], prefix, out);
    }
}

const sodet_eval_input *sd_validation_input(const sd_validation *v)
{
    return v->done ? &v->in : NULL;
}

const sd_gather *sd_validation_gathered(const sd_validation *v)
{
    return v->done ? v->gather : NULL;
}

const sd_instance *sd_validation_evaluator(const sd_validation *v, uint32_t i)
{
    return &v->evaluators[i];
}

/* Image ids are unique in one set; joined sets are told apart by the row. */
static int64_t key_of(const sd_validation *v, uint64_t sample)
{
    return v->split.n_parts == 1 ? sd_dataset_item(v->split.dataset, sample)->number : (int64_t)sample;
}

uint64_t sd_validation_sample(const sd_validation *v, uint64_t image)
{
    uint64_t i = 0, n = sd_dataset_size(v->split.dataset);
    while (i + 1 < n && key_of(v, i) != sd_gather_key(v->gather, image))
        i++;
    return i;
}

static sodet_status put(void *context, const sd_batch_item *item, const sodet_detection *detections, uint64_t n, sodet_err *err)
{
    sd_validation *v = context;
    const sd_item *about = sd_dataset_item(v->split.dataset, item->sample);
    sodet_status s = sd_dataset_describe(v->split.dataset, item->sample, v->sample, err);
    if (s != SODET_OK)
        return s;
    sd_gather_image image = {.key = key_of(v, item->sample),
                             .name = about->id,
                             .objects = sodet_sample_objects(v->sample),
                             .n_objects = sodet_sample_object_count(v->sample),
                             .detections = detections,
                             .n_detections = n};
    return sd_gather_add(v->gather, &image, err);
}

static bool progressed(void *context, const sd_infer_stats *so_far)
{
    sd_validation *v = context;
    return !v->progress || v->progress(v->context, so_far);
}

sodet_status sd_validation_run(sd_validation *v, sd_infer *f, const char *detections, sd_infer_progress *progress, void *context,
                               sd_infer_stats *stats, sodet_err *err)
{
    const sd_classes *c = sd_dataset_classes(v->split.dataset);
    v->progress = progress;
    v->context = context;
    v->done = false;
    sd_gather_free(v->gather);
    v->gather = NULL;
    sodet_status s = sd_gather_new(c->names, c->category_id, c->n, &v->gather, err);
    if (s == SODET_OK)
        s = sd_infer_run(f, &v->loader, put, progressed, v, stats, err);
    if (s == SODET_OK)
        s = sd_gather_finish(v->gather, v->n_threads ? v->n_threads : 1, &v->in, err);
    if (s == SODET_OK && detections)
        s = sd_write_coco_detections(detections, v->gather, &v->in, err);
    for (uint32_t i = 0; s == SODET_OK && i < v->n; i++) {
        s = sd_evaluate(&v->evaluators[i], &v->in, &v->sinks[i], err);
        if (s == SODET_OK && i == v->best_evaluator) {
            bool found;
            sd_eval_sink_get(&v->sinks[i], v->best_metric, &found);
            if (!found)
                s = SODET_FAIL(err, SODET_E_INVALID, "[eval] best = %s: the evaluator has no metric of that name; its first is %s", v->best,
                               v->sinks[i].n ? v->sinks[i].metrics[0].name : "missing");
        }
    }
    v->done = s == SODET_OK;
    return s;
}
