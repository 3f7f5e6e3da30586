#include <stdio.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/cli/trained.h"
#include "core/data/send.h"
#include "core/eval/validate.h"

/* As many threads as [run] threads says, or as the process may run on. */
static uint32_t threads_of(const sd_config *cfg)
{
    uint32_t n = sd_config_core(cfg)->run.threads;
    return n ? n : sd_processors();
}

/* "coco" is [evaluator.coco], "coco, voc" both; without the flag, those of [eval] evaluators if an INI was given, else coco. */
static sodet_status sections_of(sd_cli *cli, const sd_config *cfg, const char *sections[16], sodet_err *err)
{
    const char *flag = sd_cli_flag(cli, "--evaluator");
    const sodet_string_list *configured = &sd_config_core(cfg)->eval.evaluators;
    char *list = flag ? sd_pool_strdup(&cli->pool, flag) : NULL;
    uint32_t n = 0;
    for (char *name; list && (name = strsep(&list, ", "));)
        if (*name && n < 15)
            sections[n++] = sd_pool_printf(&cli->pool, "evaluator.%s", name);
    for (uint32_t i = 0; !flag && cli->ini && i < configured->n && n < 15; i++)
        sections[n++] = sd_pool_printf(&cli->pool, "evaluator.%s", configured->v[i]);
    if (n == 0 && !flag)
        sections[n++] = "evaluator.coco";
    sections[n] = NULL;
    if (n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "--evaluator %s: names none; `sodet list evaluator` shows what there is", flag);
    for (uint32_t i = 0; i < n; i++)
        if (!sections[i])
            return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    return SODET_OK;
}

/* `sodet eval --detections d.json --ground-truth g.json`: no network, no device. */
static sodet_status run_files(sd_cli *cli, sd_config *cfg, const char *detections, const char *truth, sodet_err *err)
{
    const char *sections[16];
    sd_text text = {0};
    sodet_status s = sections_of(cli, cfg, sections, err);
    const sd_eval_files_request request = {.detections = detections,
                                           .ground_truth = truth,
                                           .config = cfg,
                                           .sections = sections,
                                           .n_threads = threads_of(cfg),
                                           .json = cli->json};
    if (s == SODET_OK)
        s = sd_eval_files(&request, &text, err);
    if (s == SODET_OK)
        return sd_cli_say(&text, err);
    sd_text_free(&text);
    return s;
}

/* ---- a trained network on [data] val ---- */
/* --evaluator coco,voc stands for [eval] evaluators, its first for [eval] best. */
static sodet_status set_evaluators(sd_cli *cli, sd_config *cfg, sodet_err *err)
{
    const char *flag = sd_cli_flag(cli, "--evaluator");
    if (!flag)
        return SODET_OK;
    size_t n = strcspn(flag, ", ");
    const char *first = sd_pool_printf(&cli->pool, "%.*s", (int)n, flag);
    if (!first)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (!n)
        return SODET_FAIL(err, SODET_E_INVALID, "--evaluator %s: names none; `sodet list evaluator` shows what there is", flag);
    sodet_status s = sd_config_set(cfg, "eval", "evaluators", flag, err);
    return s == SODET_OK ? sd_config_set(cfg, "eval", "best", first, err) : s;
}

static bool progress(void *context, const sd_infer_stats *s)
{
    sd_cli_progress(context, s->done, s->of);
    return true;
}

static void print_text(const sd_validation *v, const sd_infer_stats *stats)
{
    for (uint32_t i = 0; i < sd_validation_count(v); i++) {
        const sodet_eval_sink *r = sd_validation_result(v, i);
        if (sd_validation_count(v) > 1)
            printf("%s\n", sd_validation_label(v, i));
        fputs(r->lines.text ? r->lines.text : "", stdout);
    }
    fprintf(stderr, "%llu pictures, %.1f s, %.1f img/s", (unsigned long long)stats->done, stats->seconds,
            stats->seconds > 0 ? (double)stats->done / stats->seconds : 0.0);
    if (stats->missing)
        fprintf(stderr, "; %llu could not be read and were left out", (unsigned long long)stats->missing);
    fprintf(stderr, "\n");
}

static sodet_status print_json(const sd_validation *v, const sd_infer_stats *stats, sodet_err *err)
{
    sd_text t = {0};
    uint32_t n = sd_validation_count(v);
    sd_text_printf(&t, "{");
    for (uint32_t i = 0; i < n; i++) {
        char prefix[128] = "";
        if (n > 1)
            snprintf(prefix, sizeof prefix, "%.120s/", sd_validation_label(v, i));
        sd_eval_sink_json(sd_validation_result(v, i), prefix, &t);
        sd_text_printf(&t, ", ");
    }
    sd_text_printf(&t, "\"images\": %llu, \"missing\": %llu, \"seconds\": ", (unsigned long long)stats->done,
                   (unsigned long long)stats->missing);
    sd_json_write_double(&t, stats->seconds);
    sd_text_printf(&t, "}\n");
    return sd_cli_say(&t, err);
}

static sodet_status run_network(sd_cli *cli, const char *weights, sodet_err *err)
{
    sd_config *cfg = NULL;
    sd_trained net;
    sd_validation *v = NULL;
    sd_infer_stats stats;
    const char *out = sd_cli_flag(cli, "--detections-out");
    sodet_status s = sd_cli_check_out(out, err);
    memset(&net, 0, sizeof net);
    if (s == SODET_OK)
        s = sd_cli_open_trained(cli, weights, set_evaluators, &cfg, &net, err);
    if (s == SODET_OK)
        s = sd_validation_open(cfg, net.classes.names, net.classes.n, &v, err);
    if (s == SODET_OK)
        s = sd_send_ready(net.pool, sd_config_core(cfg)->data.decode == SD_DECODE_DEVICE, err);
    if (s == SODET_OK) {
        cli->started = true;
        s = sd_validation_run(v, net.infer, out, progress, cli, &stats, err);
        sd_cli_progress(cli, 0, 0);
    }
    if (s == SODET_OK && cli->json)
        s = print_json(v, &stats, err);
    else if (s == SODET_OK)
        print_text(v, &stats);
    sd_validation_close(v);
    sd_trained_close(&net);
    sd_config_close(cfg);
    return s;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    const char *detections = sd_cli_flag(cli, "--detections"), *truth = sd_cli_flag(cli, "--ground-truth");
    const char *weights = sd_cli_take_weights(cli);
    if (cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: one argument too many; a checkpoint ends in .safetensors, is a run's folder, or stands behind --weights",
                          cli->files[0]);
    if (weights && (detections || truth))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: weights are to be run, or files counted, not both",
                          detections ? "--detections" : "--ground-truth");
    if (weights)
        return run_network(cli, weights, err);
    if (!detections && !truth)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "which weights? `sodet eval x.ini --weights best.safetensors`, `sodet eval runs/x`, or "
                          "`sodet eval --detections d.json --ground-truth g.json`");
    if (!detections || !truth)
        return SODET_FAIL(err, SODET_E_INVALID, "%s is missing: `sodet eval --detections d.json --ground-truth g.json`",
                          detections ? "--ground-truth" : "--detections");
    sd_config *cfg;
    sodet_status s = sd_cli_config(cli, &cfg, err);
    if (s != SODET_OK)
        return s;
    s = run_files(cli, cfg, detections, truth, err);
    sd_config_close(cfg);
    return s;
}

static const sd_flag flags[] = {{"--weights", "FILE", "checkpoint to evaluate; without an INI its own configuration counts"},
                                {"--detections-out", sd_written_file, "write what was found as a COCO result list"},
                                {"--evaluator", "NAME", "coco, voc, or several: coco,voc; default: [eval] evaluators, for files coco"},
                                {"--detections", "FILE", "COCO result list: [{image_id, category_id, bbox, score}]"},
                                {"--ground-truth", "FILE", "COCO instances file"},
                                {0}};
const sd_command sd_cmd_eval;
const sd_command sd_cmd_eval = {
    .name = "eval",
    .synopsis =
        "x.ini --weights FILE | FILE.safetensors | runs/x | --detections d.json --ground-truth g.json  [section.key=value ...] [--json]",
    .summary = "evaluates a trained network, or detections in files",
    .help =
        "Runs the weights over [data] val and prints what the evaluators say: the same numbers as validation in training. A run's folder\n"
        "stands for its best.safetensors. A checkpoint's own configuration holds data paths as the INI had them; relative ones then start\n"
        "from the working directory.\n"
        "\n"
        "With --detections, counts the detections of a file against the ground truth of a file. A result file that brings `images` and\n"
        "`categories` of its own is matched by file_name and category name instead of by ids.\n"
        "\n"
        "--json: {\"AP\", \"AP50\", \"AP75\", \"APs\", \"APm\", \"APl\", \"AR1\", \"AR10\", \"AR100\", \"ARs\", \"ARm\", \"ARl\", "
        "\"AP/<class>\"} for coco,\n"
        "{\"mAP\", \"AP/<class>\"} for voc, with `coco/` or `voc/` before each name if several evaluators ran; of a network also\n"
        "\"images\", \"missing\" (could not be read) and \"seconds\".",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
