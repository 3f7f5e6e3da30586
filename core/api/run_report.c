#include "core/api/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/eval/errors.h"
#include "core/eval/validate.h"
#include "core/report/build.h"
#include "core/report/html.h"
#include "core/report/layers.h"

enum { FACTS = 24, RESULTS = 16, SIDE = 320 };

typedef struct writer {
    const sd_run_report_request *q;
    const sd_core_cfg *core;
    sd_pool pool;
    sd_page page;
    sd_page_fact facts[FACTS];
    sd_page_result results[RESULTS];
    sd_metrics metrics;
    sd_validation *validation;
    sd_errors errors;
    sd_infer_stats stats;
    sd_page_picture *pictures;
    uint64_t n_pictures; /* room for them: one that failed may be begun */
    sd_text ini, log;
} writer;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the report");
}

/* ---- facts ---- */
static void fact(writer *w, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fact(writer *w, const char *what, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *value = sd_pool_strdup(&w->pool, text);
    if (w->page.n_facts < FACTS && value)
        w->facts[w->page.n_facts++] = (sd_page_fact){what, value};
}

static double sum_of(const sd_metrics *m, const char *name)
{
    const sd_series *s = sd_metrics_find(m, name);
    double sum = 0;
    for (uint64_t i = 0; s && i < s->n; i++)
        sum += s->point[i].value;
    return sum;
}

static void training_facts(writer *w)
{
    const sd_series *epoch = sd_metrics_find(&w->metrics, "epoch"), *best = sd_metrics_find(&w->metrics, "eval/best");
    double trained = sum_of(&w->metrics, "seconds"), evaluated = sum_of(&w->metrics, "eval/seconds");
    if (epoch && epoch->n)
        fact(w, "trained", "%.0f steps, %.4g epochs", epoch->point[epoch->n - 1].step, epoch->point[epoch->n - 1].value);
    if (trained > 0)
        fact(w, "time", "%.1f s in steps, %.1f s in evaluations", trained, evaluated);
    if (best && best->n)
        fact(w, "best while training", "%s %.4f", w->page.headline ? w->page.headline : "", best->point[best->n - 1].value);
}

static sodet_status network_facts(writer *w, sodet_err *err)
{
    const sd_trained *net = w->q->net;
    const sodet_size2d size = w->core->input.size;
    const char *part[] = {"backbone", "neck", "head", "loss"};
    sodet_cost cost;
    sodet_status s = sd_inference_cost(net->model, size.height, size.width, &cost, err);
    for (uint32_t i = 0; s == SODET_OK && i < 4; i++) {
        const char *plugin = sd_config_text(w->q->cfg, part[i], "plugin");
        part[i] = plugin ? plugin : "none";
    }
    if (s == SODET_OK)
        fact(w, "network", "backbone %s, neck %s, head %s, loss %s; %" PRIu64 " parameters, %.4g G multiply-adds at %ux%u, %u classes",
             part[0], part[1], part[2], part[3], net->segments.parameter_count, (double)cost.macs * 1e-9, size.width, size.height,
             net->classes.n);
    return s;
}

static void machine_facts(writer *w)
{
    sd_build_info b;
    sd_build_info_get(&b);
    sd_device_pool *pool = w->q->net->pool;
    uint32_t n = sd_device_pool_count(pool);
    fact(w, "evaluated on", "%s%s, %u threads each, %.1f MiB planned", sd_device_pool_replica(pool, 0)->name, n > 1 ? " and others" : "",
         sd_device_pool_threads(pool), (double)sd_device_pool_bytes(pool, 0).total / 1048576);
    if (w->stats.seconds > 0)
        fact(w, "evaluation", "%" PRIu64 " pictures in %.1f s, %.1f a second, reading and decoding included", w->stats.done,
             w->stats.seconds, (double)w->stats.done / w->stats.seconds);
    fact(w, "versions", "sodet %s (%s), %s; %s; %s", b.version, b.build, b.compiler, b.libraries, b.isa);
    time_t now = time(NULL);
    struct tm tm;
    char text[40] = "";
    if (gmtime_r(&now, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm))
        fact(w, "written", "%s", text);
}

/* ---- files of the run ---- */
/* Lines of log.txt that are no progress: what was trained on, on which machine, what went wrong. */
static sodet_status read_log(writer *w, const char *path, sodet_err *err)
{
    enum { LINES = 200 };
    char *bytes;
    uint64_t n, kept = 0;
    sodet_status s = sd_file_read(path, 0, &bytes, &n, err);
    if (s != SODET_OK)
        return s;
    for (char *line = bytes, *end; (end = memchr(line, '\n', (size_t)(bytes + n - line))) && kept < LINES; line = end + 1) {
        *end = '\0';
        if (strncmp(line, "epoch ", 6) == 0)
            continue;
        sd_text_printf(&w->log, "%s\n", line);
        kept++;
    }
    sd_free(bytes);
    w->page.log = w->log.text;
    return w->log.failed ? no_memory(err) : SODET_OK;
}

static sodet_status read_folder(writer *w, sodet_err *err)
{
    char *metrics = sd_path_join(&w->pool, w->q->folder, "metrics.jsonl"), *log = sd_path_join(&w->pool, w->q->folder, "log.txt");
    sodet_status s = metrics && log ? SODET_OK : no_memory(err);
    if (s == SODET_OK && sd_path_exists(metrics))
        s = sd_metrics_read(metrics, &w->metrics, err);
    if (s == SODET_OK && sd_path_exists(log))
        s = read_log(w, log, err);
    w->page.metrics = &w->metrics;
    return s;
}

/* ---- evaluation ---- */
static sodet_status evaluate(writer *w, sodet_err *err)
{
    const sd_run_report_request *q = w->q;
    if (!sd_recipe_validates(q->cfg)) {
        w->page.data = "[data] val names no data set, so nothing was evaluated.";
        return SODET_OK;
    }
    sodet_status s = sd_validation_open(q->cfg, q->net->classes.names, q->net->classes.n, &w->validation, err);
    if (s == SODET_OK)
        s = sd_validation_run(w->validation, q->net->infer, NULL, q->progress, q->context, &w->stats, err);
    if (s != SODET_OK)
        return s;
    const sodet_eval_input *in = sd_validation_input(w->validation);
    const sd_errors_options options = {.score = q->threshold};
    s = sd_errors_find(in, &options, &w->errors, err);
    for (uint32_t i = 0; i < sd_validation_count(w->validation) && i < RESULTS; i++)
        w->results[w->page.n_results++] = (sd_page_result){sd_validation_label(w->validation, i), sd_validation_result(w->validation, i)};
    w->page.in = in;
    w->page.errors = &w->errors;
    w->page.results = w->results;
    w->page.headline = sd_validation_best_name(w->validation);
    w->page.data = sd_pool_printf(&w->pool, "%s on [data] val: %" PRIu64 " pictures, %" PRIu64 " objects, %" PRIu64 " detections%s.",
                                  q->weights, in->n_images, in->object_first[in->n_images], in->detection_first[in->n_images],
                                  w->stats.missing ? "; pictures that could not be read were left out" : "");
    return s == SODET_OK && !w->page.data ? no_memory(err) : s;
}

static sodet_status take_picture(writer *w, sodet_sample *sample, uint64_t image, sd_page_picture *out, sodet_err *err)
{
    const sodet_eval_input *in = w->page.in;
    const sd_dataset *data = sd_validation_dataset(w->validation);
    uint64_t no = in->object_first[image + 1] - in->object_first[image], nd = 0;
    sd_shot_box *boxes = sd_alloc(no + in->detection_first[image + 1] - in->detection_first[image] + 1, sizeof *boxes);
    if (!boxes)
        return no_memory(err);
    sodet_status s = sd_dataset_load(data, sd_validation_sample(w->validation, image), sample, err);
    const sodet_image *picture = s == SODET_OK ? sodet_sample_image(sample) : NULL;
    if (s == SODET_OK && !picture)
        s = no_memory(err);
    for (uint64_t i = 0; i < no; i++) {
        const sodet_object *o = &in->objects[in->object_first[image] + i];
        boxes[i] = (sd_shot_box){.box = o->box, .name = in->class_names[o->label], .score = -1};
        sd_class_colour((uint32_t)o->label, in->n_classes, boxes[i].colour);
    }
    for (uint64_t d = in->detection_first[image]; d < in->detection_first[image + 1]; d++) {
        const sodet_detection *x = &in->detections[d];
        if ((double)x->score < w->q->threshold)
            continue;
        boxes[no + nd] = (sd_shot_box){.box = x->box, .name = in->class_names[x->label], .score = (double)x->score};
        sd_class_colour((uint32_t)x->label, in->n_classes, boxes[no + nd++].colour);
    }
    out->image = image;
    out->name = sd_gather_name(sd_validation_gathered(w->validation), image);
    if (s == SODET_OK)
        s = sd_shot_make(picture, boxes, no, SIDE, out->name, &out->truth, err);
    if (s == SODET_OK)
        s = sd_shot_make(picture, boxes + no, nd, SIDE, out->name, &out->found, err);
    sd_free(boxes);
    return s;
}

static sodet_status take_pictures(writer *w, sodet_err *err)
{
    uint64_t n = 0;
    sodet_sample *sample = NULL;
    while (w->page.in && n < w->q->pictures && n < w->page.in->n_images && w->errors.images[w->errors.worst[n]].weight > 0)
        n++;
    if (!n)
        return SODET_OK;
    w->pictures = sd_pool_alloc(&w->pool, n * sizeof *w->pictures);
    w->n_pictures = w->pictures ? n : 0;
    sodet_status s = w->pictures ? sd_sample_new(sd_validation_dataset(w->validation), &sample, err) : no_memory(err);
    for (uint64_t i = 0; s == SODET_OK && i < n; i++, w->page.n_pictures++)
        s = take_picture(w, sample, w->errors.worst[i], &w->pictures[i], err);
    w->page.pictures = w->pictures;
    sd_sample_free(sample);
    return s;
}

/* ---- the whole ---- */
static sodet_status make(writer *w, sodet_err *err)
{
    const char *name = w->core->run.name;
    sd_text html = {0};
    w->page.title = sd_pool_printf(&w->pool, "%s", name ? name : "sodet");
    w->page.facts = w->facts;
    sodet_status s = w->page.title ? read_folder(w, err) : no_memory(err);
    if (s == SODET_OK)
        s = evaluate(w, err);
    if (s == SODET_OK)
        s = take_pictures(w, err);
    fact(w, "weights", "%s", w->q->weights);
    if (s == SODET_OK)
        s = network_facts(w, err);
    if (s != SODET_OK)
        return s;
    training_facts(w);
    machine_facts(w);
    sd_config_write(w->q->cfg, false, &w->ini);
    w->page.ini = w->ini.text;
    sd_page_write(&w->page, &html);
    s = html.failed || w->ini.failed ? no_memory(err) : sd_file_write_atomic(w->q->out, html.text, html.length, err);
    sd_text_free(&html);
    return s;
}

sodet_status sd_run_report_write(const sd_run_report_request *q, sodet_err *err)
{
    writer *w = sd_alloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    w->q = q;
    w->core = sd_config_core(q->cfg);
    sodet_status s = make(w, err);
    for (uint64_t i = 0; i < w->n_pictures; i++) {
        sd_text_free(&w->pictures[i].truth.jpeg);
        sd_text_free(&w->pictures[i].found.jpeg);
    }
    sd_text_free(&w->ini);
    sd_text_free(&w->log);
    sd_errors_free(&w->errors);
    sd_validation_close(w->validation);
    sd_metrics_free(&w->metrics);
    sd_pool_clear(&w->pool);
    sd_free(w);
    return s;
}

sodet_status sd_run_report_of(sd_config *cfg, const char *folder, sodet_err *err)
{
    sd_pool pool = {0};
    sd_checkpoint *c = NULL;
    sd_trained net = {0};
    char *out = sd_path_join(&pool, folder, "report.html");
    sodet_status s = out ? sd_trained_find(folder, &c, err) : no_memory(err);
    if (s == SODET_OK)
        s = sd_trained_open(cfg, c, &net, err);
    const sd_run_report_request q = {.cfg = cfg,
                                     .net = &net,
                                     .weights = c ? sd_checkpoint_path(c) : folder,
                                     .folder = folder,
                                     .out = out,
                                     .threshold = SD_RUN_REPORT_SCORE,
                                     .pictures = SD_RUN_REPORT_PICTURES};
    if (s == SODET_OK)
        s = sd_run_report_write(&q, err);
    sd_trained_close(&net);
    sd_checkpoint_close(c);
    sd_pool_clear(&pool);
    return s == SODET_OK ? s : sd_fail_in(err, s, "the report");
}
