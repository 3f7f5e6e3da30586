/* sodet report: a run as one page, or its figures as a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/api/run_report.h"
#include "core/cli/trained.h"
#include "core/report/metrics.h"
#include "core/train/folder.h"

static bool progress(void *context, const sd_infer_stats *s)
{
    sd_cli_progress(context, s->done, s->of);
    return true;
}

static sodet_status write_csv(sd_cli *cli, const char *folder, const char *path, sodet_err *err)
{
    sd_metrics m = {0};
    sd_text t = {0};
    char *metrics = sd_path_join(&cli->pool, folder, "metrics.jsonl");
    sodet_status s = metrics ? sd_cli_check_out(path, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK)
        s = sd_metrics_read(metrics, &m, err);
    if (s == SODET_OK)
        sd_metrics_csv(&m, &t);
    if (s == SODET_OK)
        s = t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory") : sd_file_write_atomic(path, t.text, t.length, err);
    sd_text_free(&t);
    sd_metrics_free(&m);
    return s;
}

/* Which of a run's checkpoints its folder stands for. */
static sodet_status name_weights(sd_cli *cli, const char **weights, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    sodet_status s = sd_trained_find(*weights, &c, err);
    if (s == SODET_OK)
        *weights = sd_pool_strdup(&cli->pool, sd_checkpoint_path(c));
    sd_checkpoint_close(c);
    return s == SODET_OK && !*weights ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory") : s;
}

static sodet_status write_page(sd_cli *cli, sd_run_report_request *q, sodet_err *err)
{
    sd_config *cfg = NULL;
    sd_trained net = {0};
    sodet_status s = sd_cli_check_out(q->out, err);
    if (s == SODET_OK)
        s = name_weights(cli, &q->weights, err);
    if (s == SODET_OK)
        s = sd_cli_open_trained(cli, q->weights, NULL, &cfg, &net, err);
    q->cfg = cfg;
    q->net = &net;
    cli->started = s == SODET_OK;
    if (s == SODET_OK)
        s = sd_run_report_write(q, err);
    sd_cli_progress(cli, 0, 0);
    if (s == SODET_OK && !cli->quiet)
        printf("%s\n", q->out);
    sd_trained_close(&net);
    sd_config_close(cfg);
    return s;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    const char *weights = sd_cli_take_weights(cli), *out = sd_cli_flag(cli, "--out"), *csv = sd_cli_flag(cli, "--csv");
    const char *threshold = sd_cli_flag(cli, "--threshold");
    uint64_t pictures;
    double score = SD_RUN_REPORT_SCORE;
    if (!weights && cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: neither the folder of a run nor a checkpoint (.safetensors)", cli->files[0]);
    if (!weights)
        return SODET_FAIL(err, SODET_E_INVALID, "which run? usage: sodet report %s", cli->command->synopsis);
    if (cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: one argument too many; several runs: `sodet compare`", cli->files[0]);
    if (threshold && (!sd_parse_double(threshold, &score) || score < 0 || score > 1))
        return SODET_FAIL(err, SODET_E_INVALID, "--threshold %s: a score from 0 to 1 is needed", threshold);
    sodet_status s = sd_cli_flag_uint(cli, "--pictures", 0, SD_RUN_REPORT_PICTURES, &pictures, err);
    if (s == SODET_OK && pictures > 1000)
        s = SODET_FAIL(err, SODET_E_INVALID, "--pictures %llu: at most 1000 fit on a page", (unsigned long long)pictures);
    char *folder = sd_run_folder_of(weights, &cli->pool);
    const char *page = out ? out : folder ? sd_path_join(&cli->pool, folder, "report.html") : NULL;
    if (s == SODET_OK && !page)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK && csv)
        s = write_csv(cli, folder, csv, err);
    if (s != SODET_OK || (csv && !out))
        return s;
    sd_run_report_request q = {.weights = weights,
                               .folder = folder,
                               .out = page,
                               .threshold = score,
                               .pictures = (uint32_t)pictures,
                               .progress = progress,
                               .context = cli};
    return write_page(cli, &q, err);
}

static const sd_flag flags[] = {{"--out", sd_written_file, "the page; default: report.html in the run's folder"},
                                {"--csv", sd_written_file, "write the run's metrics.jsonl as a table; without --out nothing else is done"},
                                {"--threshold", "SCORE", "detections are looked at from this score on (0.5)"},
                                {"--pictures", "N", "at most so many of the worst pictures (12)"},
                                {"--weights", "FILE", "checkpoint; without an INI its own configuration counts"},
                                {0}};
const sd_command sd_cmd_report;
const sd_command sd_cmd_report = {
    .name = "report",
    .synopsis = "runs/x | FILE.safetensors | x.ini --weights FILE  [section.key=value ...] [--out FILE.html] [--csv FILE.csv]",
    .summary = "a run as one HTML page: curves, classes, errors, the worst pictures",
    .help =
        "Runs the weights over [data] val, as `sodet eval` does (a run's folder stands for its best.safetensors), and writes one page "
        "that\n"
        "needs no network: curves of metrics.jsonl, what the evaluators say, a table of classes, precision over recall, who was taken for\n"
        "whom, kinds of errors with what each costs (after TIDE, Bolya et al. 2020), ground truth beside detections of the worst "
        "pictures,\n"
        "the configuration, machine, versions and times. [run] report = yes does the same at the end of a training.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES,
    .flags = flags,
    .run = run,
};
