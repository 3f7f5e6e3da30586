/* tests/eval/run.h: one evaluator with options over gathered images or files. */
#ifndef SODET_TESTS_EVAL_RUN_H
#define SODET_TESTS_EVAL_RUN_H

#include "check.h"
#include "core/eval/eval.h"

/* options: the lines of the section, or "". The sink is the caller's to clear. */
static inline sodet_status run_evaluator(const char *name, const char *options, const sodet_eval_input *in, sodet_eval_sink *sink,
                                         sodet_err *err)
{
    char ini[1000], section[100];
    sd_config *cfg = NULL;
    sd_instance evaluator;
    snprintf(section, sizeof section, "evaluator.%s", name);
    int n = snprintf(ini, sizeof ini, "[%s]\n%s\n", section, options);
    sodet_status s = sd_config_open_text(ini, (uint64_t)n, "test.ini", NULL, NULL, 0, &cfg, err);
    if (s == SODET_OK)
        s = sd_instance_create(cfg, section, &evaluator, err);
    if (s == SODET_OK) {
        s = sd_evaluate(&evaluator, in, sink, err);
        sd_instance_destroy(&evaluator);
    }
    sd_config_close(cfg);
    return s;
}

/* A few images of one or two classes, written down in place: class of an object or detection, corners, score. */
typedef struct toy {
    int image, label;
    float x1, y1, x2, y2;
    double score;   /* of a detection */
    uint32_t flags; /* of an object */
} toy;

/* One metric of one evaluator over toy data, or NaN with a failed check. */
static inline double run_toy(const char *name, const char *options, const char *metric, const toy *objects, int n_objects,
                             const toy *detections, int n_detections, int n_images, uint32_t n_threads, sodet_eval_sink *keep)
{
    static const char *const classes[] = {"a", "b"};
    sodet_err err = SODET_ERR_INIT;
    sd_gather *g = NULL;
    sodet_eval_sink sink = {.n = 0};
    sodet_eval_input in;
    double value = (double)NAN;
    CHECK_OK(sd_gather_new(classes, NULL, 2, &g, &err));
    for (int i = 0; g && i < n_images; i++) {
        sodet_object o[64];
        sodet_detection d[64];
        double scores[64];
        sd_gather_image image = {.key = i, .name = "", .objects = o, .detections = d, .scores = scores};
        for (int k = 0; k < n_objects; k++)
            if (objects[k].image == i)
                o[image.n_objects++] =
                    (sodet_object){.box = {objects[k].x1, objects[k].y1, objects[k].x2, objects[k].y2},
                                   .label = objects[k].label,
                                   .flags = objects[k].flags,
                                   .area = (double)(objects[k].x2 - objects[k].x1) * (double)(objects[k].y2 - objects[k].y1),
                                   .id = k + 1};
        for (int k = 0; k < n_detections; k++)
            if (detections[k].image == i) {
                scores[image.n_detections] = detections[k].score;
                d[image.n_detections++] = (sodet_detection){.box = {detections[k].x1, detections[k].y1, detections[k].x2, detections[k].y2},
                                                            .label = detections[k].label,
                                                            .score = (float)detections[k].score};
            }
        CHECK_OK(sd_gather_add(g, &image, &err));
    }
    if (g)
        CHECK_OK(sd_gather_finish(g, n_threads, &in, &err));
    if (g)
        CHECK_OK(run_evaluator(name, options, &in, &sink, &err));
    bool found = false;
    if (metric) {
        value = sd_eval_sink_get(&sink, metric, &found);
        CHECK(found);
    }
    if (keep)
        *keep = sink;
    else
        sd_eval_sink_clear(&sink);
    sd_gather_free(g);
    return value;
}

#endif
