/* sodet compare: runs and checkpoints side by side on the same pictures; with --train, configurations are trained first. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli/signals.h"
#include "core/cli/trained.h"
#include "core/eval/validate.h"
#include "core/plugin/plugin.h"
#include "core/report/compare.h"
#include "core/report/layers.h"
#include "core/report/metrics.h"
#include "core/train/folder.h"
#include "core/train/state.h"
#include "core/train/train.h"

enum { MOST = 64, DRAWS = 1000 };

typedef struct entry {
    const char *name, *ini; /* ini: trained first; NULL: a run or checkpoint */
    const char *folder;     /* of the run */
    sd_config *cfg;
    sd_classes classes;
    sd_validation *validation; /* what it found stays in it */
    uint64_t fingerprint;
    sd_compared row;
    double *value;
    sd_interval *interval;
} entry;

typedef struct compare {
    sd_cli *cli;
    uint32_t n;
    entry *entry;
    uint64_t n_metrics;
    const char **metric;
    uint64_t draws;
    const char *device;
} compare;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the comparison");
}

/* ---- what is compared ---- */
static bool is_ini(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".ini") == 0;
}

static sodet_status find_entries(compare *c, sodet_err *err)
{
    sd_cli *cli = c->cli;
    bool train = sd_cli_flag(cli, "--train") != NULL;
    c->entry = sd_pool_alloc(&cli->pool, (size_t)(cli->n_files + 1) * sizeof *c->entry);
    if (!c->entry)
        return no_memory(err);
    if (cli->n_files >= MOST)
        return SODET_FAIL(err, SODET_E_INVALID, "%" PRIu64 " runs: at most %d go into one table", cli->n_files, MOST);
    if (cli->ini)
        c->entry[c->n++].name = cli->ini;
    for (uint64_t i = 0; i < cli->n_files; i++)
        c->entry[c->n++].name = cli->files[i];
    cli->ini = NULL;
    if (!c->n)
        return SODET_FAIL(err, SODET_E_INVALID, "which runs? usage: sodet compare %s", cli->command->synopsis);
    for (uint32_t i = 0; i < c->n; i++) {
        entry *e = &c->entry[i];
        if (is_ini(e->name) && !train)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: is a configuration; with --train it is trained first", e->name);
        if (!sd_path_exists(e->name))
            return SODET_FAIL(err, SODET_E_IO, "%s: there is no such %s", e->name, is_ini(e->name) ? "file" : "run or checkpoint");
        e->ini = is_ini(e->name) ? e->name : NULL;
        e->folder = e->ini ? NULL : sd_run_folder_of(e->name, &cli->pool);
    }
    return SODET_OK;
}

/* A run's own configuration and classes. */
static sodet_status describe_run(compare *c, entry *e, sodet_err *err)
{
    sd_checkpoint *checkpoint = NULL;
    const char *const *names;
    const int64_t *categories;
    uint32_t n;
    sodet_status s = sd_trained_find(e->name, &checkpoint, err);
    c->cli->checkpoint = checkpoint;
    if (s == SODET_OK)
        s = sd_cli_config(c->cli, &e->cfg, err);
    if (s == SODET_OK)
        s = sd_state_classes(checkpoint, &c->cli->pool, &names, &categories, &n, err);
    if (s == SODET_OK)
        e->classes = (sd_classes){n, names, categories};
    c->cli->checkpoint = NULL;
    sd_checkpoint_close(checkpoint);
    return s;
}

/* A configuration that will be trained: the classes of its training data, and a folder that is free. */
static sodet_status describe_ini(compare *c, entry *e, sodet_err *err)
{
    sd_split split = {0};
    c->cli->ini = e->ini;
    sodet_status s = sd_cli_config(c->cli, &e->cfg, err);
    c->cli->ini = NULL;
    if (s == SODET_OK)
        s = sd_plugin_check_all(e->cfg, err);
    e->folder = s == SODET_OK ? sd_run_folder(e->cfg, &c->cli->pool) : NULL;
    if (s == SODET_OK)
        s = e->folder ? sd_run_folder_check(e->cfg, e->folder, false, err) : no_memory(err);
    for (entry *x = c->entry; s == SODET_OK && x < e; x++)
        if (strcmp(x->folder, e->folder) == 0)
            s = SODET_FAIL(err, SODET_E_INVALID, "%s and %s would both be trained in %s; give them a [run] name or output of their own",
                           x->name, e->name, e->folder);
    if (s == SODET_OK)
        s = sd_split_open(e->cfg, SD_SPLIT_TRAIN, NULL, 0, &split, err);
    if (s == SODET_OK) {
        const sd_classes *own = sd_dataset_classes(split.dataset);
        const char **names = sd_pool_alloc(&c->cli->pool, (own->n + 1) * sizeof *names);
        s = names ? SODET_OK : no_memory(err);
        for (uint32_t k = 0; names && k < own->n; k++)
            names[k] = sd_pool_strdup(&c->cli->pool, own->names[k]);
        e->classes = (sd_classes){.n = own->n, .names = names};
    }
    sd_split_close(&split);
    return s;
}

static sodet_status open_data(entry *e, sodet_err *err)
{
    if (!sd_recipe_validates(e->cfg))
        return SODET_FAIL(err, SODET_E_INVALID, "[data] val names no data set to compare on; data.val=LABEL does for all runs");
    sodet_status s = sd_validation_open(e->cfg, e->classes.names, e->classes.n, &e->validation, err);
    if (s == SODET_OK)
        e->fingerprint = sd_dataset_fingerprint(sd_validation_dataset(e->validation));
    return s;
}

/* Class lists and validation data have to be those of the first. */
static sodet_status check_same(const entry *first, const entry *e, sodet_err *err)
{
    uint32_t k = 0;
    while (k < first->classes.n && k < e->classes.n && strcmp(first->classes.names[k], e->classes.names[k]) == 0)
        k++;
    if (k < first->classes.n || k < e->classes.n)
        return SODET_FAIL(err, SODET_E_INVALID, "%s and %s cannot be compared: class %u is %s in the first and %s in the second",
                          first->name, e->name, k + 1, k < first->classes.n ? first->classes.names[k] : "missing",
                          k < e->classes.n ? e->classes.names[k] : "missing");
    const sd_dataset *a = sd_validation_dataset(first->validation), *b = sd_validation_dataset(e->validation);
    uint64_t na = sd_dataset_size(a), nb = sd_dataset_size(b);
    if (first->fingerprint == e->fingerprint)
        return SODET_OK;
    if (na != nb)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s and %s cannot be compared: their [data] val hold %" PRIu64 " and %" PRIu64
                          " pictures; overrides (data.val_limit=..) count for all runs",
                          first->name, e->name, na, nb);
    for (uint64_t i = 0; i < na; i++)
        if (strcmp(sd_dataset_item(a, i)->id, sd_dataset_item(b, i)->id) != 0)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s and %s cannot be compared: picture %" PRIu64 " of [data] val is %s in the first and %s in the second",
                              first->name, e->name, i + 1, sd_dataset_item(a, i)->id, sd_dataset_item(b, i)->id);
    return SODET_FAIL(
        err, SODET_E_INVALID,
        "%s and %s cannot be compared: their [data] val have the same pictures, but other sizes or objects: was the ground truth "
        "changed in between?",
        first->name, e->name);
}

static sodet_status describe(compare *c, sodet_err *err)
{
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < c->n; i++) {
        entry *e = &c->entry[i];
        s = e->ini ? describe_ini(c, e, err) : describe_run(c, e, err);
        if (s == SODET_OK)
            s = open_data(e, err);
        if (s != SODET_OK)
            return sd_fail_in(err, s, "%s", e->name);
        if (i)
            s = check_same(&c->entry[0], e, err);
    }
    return s;
}

/* ---- training and running ---- */
static sodet_status train(compare *c, entry *e, bool *stopped, sodet_err *err)
{
    const sd_train_options o = {.quiet = c->cli->quiet, .stop = sd_cli_catch_signals("the batch that is being computed")};
    sd_train_result *result = sd_alloc(1, sizeof *result);
    sodet_status s = result ? sd_train(e->cfg, &o, result, err) : no_memory(err);
    *stopped = s == SODET_OK && result->stopped;
    sd_free(result);
    return s == SODET_OK ? s : sd_fail_in(err, s, "%s", e->name);
}

static int rising(const void *a, const void *b)
{
    double x = ((const sd_point *)a)->value, y = ((const sd_point *)b)->value;
    return x < y ? -1 : x > y;
}

/* The median of a run's logged speed; NaN where there is no log. */
static sodet_status logged_rate(compare *c, const entry *e, double *rate, sodet_err *err)
{
    sd_metrics m = {0};
    char *path = e->folder ? sd_path_join(&c->cli->pool, e->folder, "metrics.jsonl") : NULL;
    *rate = (double)NAN;
    if (!path || !sd_path_exists(path))
        return path ? SODET_OK : no_memory(err);
    sodet_status s = sd_metrics_read(path, &m, err);
    const sd_series *speed = s == SODET_OK ? sd_metrics_find(&m, "images_per_second") : NULL;
    if (speed && speed->n) {
        qsort(speed->point, speed->n, sizeof *speed->point, rising);
        *rate = speed->point[speed->n / 2].value;
    }
    sd_metrics_free(&m);
    return s;
}

static bool progress(void *context, const sd_infer_stats *s)
{
    sd_cli_progress(context, s->done, s->of);
    return true;
}

static sodet_status run_network(compare *c, entry *e, sodet_err *err)
{
    const sd_core_cfg *core = sd_config_core(e->cfg);
    sd_checkpoint *checkpoint = NULL;
    sd_trained net = {0};
    sd_infer_stats stats;
    sodet_cost cost;
    sodet_status s = sd_trained_find(e->ini ? e->folder : e->name, &checkpoint, err);
    if (s == SODET_OK)
        s = sd_trained_open(e->cfg, checkpoint, &net, err);
    sd_checkpoint_close(checkpoint);
    if (s == SODET_OK)
        s = sd_inference_cost(net.model, core->input.size.height, core->input.size.width, &cost, err);
    if (s == SODET_OK)
        s = sd_validation_run(e->validation, net.infer, NULL, progress, c->cli, &stats, err);
    sd_cli_progress(c->cli, 0, 0);
    if (s == SODET_OK) {
        e->row = (sd_compared){.name = e->name,
                               .parameters = net.segments.parameter_count,
                               .macs = cost.macs,
                               .planned = sd_device_pool_bytes(net.pool, 0).total,
                               .batch = core->train.val_batch ? core->train.val_batch : core->train.batch,
                               .width = core->input.size.width,
                               .height = core->input.size.height,
                               .measured = stats.seconds > 0 ? (double)stats.done / stats.seconds : (double)NAN};
        s = logged_rate(c, e, &e->row.logged, err);
    }
    if (s == SODET_OK && !c->device)
        c->device = sd_pool_strdup(&c->cli->pool, sd_device_pool_replica(net.pool, 0)->name);
    sd_trained_close(&net);
    return s == SODET_OK ? s : sd_fail_in(err, s, "%s", e->name);
}

/* ---- judging ---- */
/* One of the first's evaluators on what all of them found; its metrics go to [at, ..) of every row. */
static sodet_status judge(compare *c, uint32_t which, uint64_t *at, sodet_err *err)
{
    const sd_validation *first = c->entry[0].validation;
    const sd_instance *evaluator = sd_validation_evaluator(first, which);
    const char *label = sd_validation_label(first, which);
    const uint64_t n = sd_validation_result(first, which)->n;
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < c->n; i++) {
        entry *e = &c->entry[i];
        const sodet_eval_input *in = sd_validation_input(e->validation);
        sodet_eval_sink sink = {.n = 0};
        s = sd_evaluate(evaluator, in, &sink, err);
        for (uint64_t k = 0; s == SODET_OK && k < n && k < sink.n; k++) {
            e->value[*at + k] = sink.metrics[k].value;
            if (i == 0)
                c->metric[*at + k] = sd_pool_printf(&c->cli->pool, "%s/%s", label, sink.metrics[k].name);
        }
        sd_eval_sink_clear(&sink);
        if (s == SODET_OK && i && c->draws) {
            const sd_bootstrap q = {.evaluator = evaluator,
                                    .a = sd_validation_input(c->entry[0].validation),
                                    .b = in,
                                    .seed = (uint64_t)sd_config_core(c->entry[0].cfg)->run.seed,
                                    .draws = c->draws,
                                    .share = 0.95,
                                    .n_threads = in->n_threads,
                                    .n_metrics = n};
            s = sd_bootstrap_run(&q, e->interval + *at, err);
        }
    }
    *at += n;
    return s;
}

static sodet_status judge_all(compare *c, sodet_err *err)
{
    const sd_validation *first = c->entry[0].validation;
    const uint64_t images = sd_validation_input(first)->n_images;
    uint64_t at = 0;
    for (uint32_t w = 0; w < sd_validation_count(first); w++)
        c->n_metrics += sd_validation_result(first, w)->n;
    c->metric = sd_pool_alloc(&c->cli->pool, (size_t)(c->n_metrics + 1) * sizeof *c->metric);
    bool good = c->metric != NULL;
    for (uint32_t i = 0; i < c->n; i++) {
        entry *e = &c->entry[i];
        e->value = sd_pool_alloc(&c->cli->pool, (size_t)(c->n_metrics + 1) * sizeof *e->value);
        e->interval = sd_pool_alloc(&c->cli->pool, (size_t)(c->n_metrics + 1) * sizeof *e->interval);
        good = good && e->value && e->interval;
        e->row.value = e->value;
        e->row.interval = i && c->draws ? e->interval : NULL;
        if (sd_validation_input(e->validation)->n_images != images)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s and %s could not read the same pictures: %" PRIu64 " and %" PRIu64 " were evaluated", c->entry[0].name,
                              e->name, images, sd_validation_input(e->validation)->n_images);
    }
    sodet_status s = good ? SODET_OK : no_memory(err);
    for (uint32_t w = 0; s == SODET_OK && w < sd_validation_count(first); w++)
        s = judge(c, w, &at, err);
    return s;
}

static sodet_status print(const compare *c, const char *out, sodet_err *err)
{
    sd_compared *rows = sd_alloc(c->n, sizeof *rows);
    if (!rows)
        return no_memory(err);
    for (uint32_t i = 0; i < c->n; i++)
        rows[i] = c->entry[i].row;
    const sd_comparison table = {.n = c->n,
                                 .run = rows,
                                 .n_metrics = c->n_metrics,
                                 .metric = c->metric,
                                 .images = sd_validation_input(c->entry[0].validation)->n_images,
                                 .draws = c->draws,
                                 .seed = (uint64_t)sd_config_core(c->entry[0].cfg)->run.seed,
                                 .share = 0.95,
                                 .device = c->device};
    sd_text t = {0}, page = {0};
    if (c->cli->json)
        sd_compare_json(&table, &t);
    else
        sd_compare_text(&table, &t);
    if (out)
        sd_compare_html(&table, &page);
    sodet_status s = t.failed || page.failed ? no_memory(err) : SODET_OK;
    if (s == SODET_OK && out)
        s = sd_file_write_atomic(out, page.text, page.length, err);
    if (s == SODET_OK)
        fputs(t.text, stdout);
    sd_text_free(&t);
    sd_text_free(&page);
    sd_free(rows);
    return s;
}

static sodet_status compare_all(compare *c, sodet_err *err)
{
    const char *out = sd_cli_flag(c->cli, "--out");
    bool stopped = false;
    sodet_status s = sd_cli_flag_uint(c->cli, "--draws", 0, DRAWS, &c->draws, err);
    if (s == SODET_OK && c->draws > 1000000)
        s = SODET_FAIL(err, SODET_E_INVALID, "--draws %" PRIu64 ": at most 1000000", c->draws);
    if (s == SODET_OK)
        s = sd_cli_check_out(out, err);
    if (s == SODET_OK)
        s = find_entries(c, err);
    if (s == SODET_OK)
        s = describe(c, err);
    c->cli->started = s == SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && !stopped && i < c->n; i++)
        if (c->entry[i].ini)
            s = train(c, &c->entry[i], &stopped, err);
    if (s == SODET_OK && stopped) {
        c->cli->exit_code = sd_cli_signal_code();
        return s;
    }
    for (uint32_t i = 0; s == SODET_OK && i < c->n; i++)
        s = run_network(c, &c->entry[i], err);
    if (s == SODET_OK)
        s = judge_all(c, err);
    return s == SODET_OK ? print(c, out, err) : s;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    compare c = {.cli = cli};
    sodet_status s = compare_all(&c, err);
    for (uint32_t i = 0; i < c.n; i++) {
        sd_validation_close(c.entry[i].validation);
        sd_config_close(c.entry[i].cfg);
    }
    return s;
}

static const sd_flag flags[] = {{"--train", NULL, "train the configurations (.ini) among the arguments first, each in its run folder"},
                                {"--draws", "N", "draws of the bootstrap (1000); 0: no intervals"},
                                {"--out", sd_written_file, "write the table as an HTML page as well"},
                                {0}};
const sd_command sd_cmd_compare;
const sd_command sd_cmd_compare = {
    .name = "compare",
    .synopsis = "runs/a runs/b.. | --train a.ini b.ini..  [section.key=value ...] [--draws N] [--out FILE.html] [--json]",
    .summary = "runs and checkpoints side by side, on the same pictures",
    .help =
        "Runs each one's weights (a folder stands for its best.safetensors) over its [data] val and counts with the first's evaluators:\n"
        "parameters, multiply-adds, planned memory, speed, and every metric with its difference to the first. The interval behind it "
        "holds\n"
        "95% of the differences on the pictures drawn anew with replacement, the same draw for both (seed: [run] seed of the first).\n"
        "Classes and validation pictures must be the same; this is found out before anything is run. Overrides count for all:\n"
        "eval.evaluators=coco, data.val_limit=500, run.devices=..; speed in training is the median of the run's log, the other is "
        "measured\n"
        "now, with reading and decoding.\n"
        "--json: {\"images\", \"draws\", \"seed\", \"share\", \"device\", \"runs\": [{\"run\", \"parameters\", \"macs\", "
        "\"planned_bytes\", \"batch\", "
        "\"width\",\n"
        "\"height\", \"logged_training_images_per_second\", \"measured_images_per_second\", \"metrics\": {..}, \"difference\": {metric: "
        "{\"value\", \"low\", \"high\"}}}]}",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
