#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/api/opened.h"
#include "core/cli/cli.h"
#include "core/eval/validate.h"

/* As many threads as [run] threads says, or as the process may run on. */
static uint32_t threads_of(const sd_config *cfg)
{
    cpu_set_t set;
    uint32_t n = sd_config_core(cfg)->run.threads;
    if (n == 0 && sched_getaffinity(0, sizeof set, &set) == 0)
        n = (uint32_t)CPU_COUNT(&set);
    return n ? n : 1;
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
        fputs(text.text ? text.text : "", stdout);
    sd_text_free(&text);
    return s;
}

static void progressed(void *context, const sd_infer_stats *s)
{
    (void)context;
    fprintf(stderr, "\revaluating  %llu/%llu%s", (unsigned long long)s->done, (unsigned long long)s->of, s->done == s->of ? "\n" : "");
}

static void print_results(const sd_validation *v, const sd_infer_stats *stats, bool json)
{
    if (json) {
        sd_text t = {0};
        sd_validation_json(v, &t);
        printf("{%s, \"images\": %llu, \"missing\": %llu, \"seconds\": %.3f}\n", t.text && !t.failed ? t.text : "",
               (unsigned long long)stats->done, (unsigned long long)stats->missing, stats->seconds);
        sd_text_free(&t);
        return;
    }
    for (uint32_t i = 0; i < sd_validation_count(v); i++) {
        const sodet_eval_sink *sink = sd_validation_result(v, i);
        if (sd_validation_count(v) > 1)
            printf("%s\n", sd_validation_label(v, i));
        fputs(sink->lines.text ? sink->lines.text : "", stdout);
    }
    if (stats->missing)
        printf("%llu pictures could not be read\n", (unsigned long long)stats->missing);
}

/* `sodet eval runs/x`: the detector of a checkpoint over the validation set of its configuration. */
static sodet_status run_checkpoint(sd_cli *cli, sodet_err *err)
{
    sd_opened o;
    sd_validation *v = NULL;
    sd_infer *f = NULL;
    sd_infer_stats stats;
    sodet_status s = sd_opened_open(&o, cli->files[0], cli->overrides, cli->n_overrides, err);
    if (s == SODET_OK)
        s = sd_validation_open(o.cfg, o.classes, o.n_classes, &v, err);
    sd_infer_config c = {.pool = o.pool, .model = o.model, .segments = &o.segments};
    if (s == SODET_OK)
        s = sd_infer_open(&c, &f, err);
    if (s == SODET_OK) {
        cli->started = true;
        s = sd_validation_run(v, f, sd_cli_flag(cli, "--out"), !cli->quiet && isatty(STDERR_FILENO) ? progressed : NULL, NULL, &stats, err);
    }
    if (s == SODET_OK)
        print_results(v, &stats, cli->json);
    sd_infer_close(f);
    sd_validation_close(v);
    sd_opened_close(&o);
    return s;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    if (cli->n_files > 1)
        return SODET_FAIL(err, SODET_E_INVALID, "one checkpoint or run folder is expected, %llu names were given",
                          (unsigned long long)cli->n_files);
    if (cli->n_files == 1)
        return run_checkpoint(cli, err);
    const char *detections = sd_cli_flag(cli, "--detections"), *truth = sd_cli_flag(cli, "--ground-truth");
    if (!detections || !truth)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s is missing: `sodet eval CHECKPOINT`, or `sodet eval --detections d.json --ground-truth g.json`",
                          detections ? "--ground-truth" : "--detections");
    sd_config *cfg;
    sodet_status s = sd_cli_config(cli, &cfg, err);
    if (s != SODET_OK)
        return s;
    s = run_files(cli, cfg, detections, truth, err);
    sd_config_close(cfg);
    return s;
}

static const sd_flag flags[] = {{"--detections", "FILE", "COCO result list: [{image_id, category_id, bbox, score}]"},
                                {"--ground-truth", "FILE", "COCO instances file"},
                                {"--out", "FILE", "of a checkpoint: writes its detections as a COCO result list"},
                                {"--evaluator", "NAME", "coco (the default), voc, or several: coco,voc"},
                                {0}};
const sd_command sd_cmd_eval;
const sd_command sd_cmd_eval = {
    .name = "eval",
    .synopsis = "CHECKPOINT [section.key=value ...] [--out FILE], or\n       sodet eval --detections d.json --ground-truth g.json "
                "[--evaluator coco|voc] [evaluator.coco.compat=pycocotools] [--json]",
    .summary = "evaluates a detector, or detections in files",
    .help = "CHECKPOINT, a file or a run's folder (its best.safetensors), brings its configuration: [data] val is run through the detector "
            "and\n"
            "counted by [eval] evaluators. section.key=value changes anything of it (run.devices=cpu, data.val=..., "
            "evaluator.coco.compat=...).\n"
            "Without one: counts the detections of a file against the ground truth of a file. A result file that brings `images` and "
            "`categories` of "
            "its own\n"
            "is matched by file_name and category name instead of by ids.\n"
            "--json: {\"AP\", \"AP50\", \"AP75\", \"APs\", \"APm\", \"APl\", \"AR1\", \"AR10\", \"AR100\", \"ARs\", \"ARm\", \"ARl\", "
            "\"AP/<class>\"} for coco,\n"
            "{\"mAP\", \"AP/<class>\"} for voc, with `coco/` or `voc/` before each name if several evaluators ran.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
