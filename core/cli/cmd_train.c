#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/api/run_report.h"
#include "core/cli/cli.h"
#include "core/cli/signals.h"
#include "core/plugin/plugin.h"
#include "core/train/train.h"

static void on_started(void *context)
{
    ((sd_cli *)context)->started = true;
    sd_cli_signals_await("the batch that is being computed, with a checkpoint");
}

static sodet_status print_json(const sd_train_result *r, sodet_err *err)
{
    sd_text t = {0};
    sd_text_printf(&t, "{\"folder\": ");
    sd_json_write_string(&t, r->folder);
    sd_text_printf(&t, ", \"ended_by\": ");
    sd_json_write_string(&t, r->why);
    sd_text_printf(&t, ", \"steps\": %llu, \"epochs\": %llu, \"images\": %llu, \"loss\": ", (unsigned long long)r->steps,
                   (unsigned long long)r->epochs, (unsigned long long)r->images);
    sd_json_write_double(&t, r->loss);
    sd_text_printf(&t, ", \"metric\": ");
    sd_json_write_string(&t, r->metric);
    sd_text_printf(&t, ", \"value\": ");
    sd_json_write_double(&t, r->last_metric);
    sd_text_printf(&t, ", \"best\": ");
    sd_json_write_double(&t, r->best);
    sd_text_printf(&t, ", \"best_epoch\": %llu, \"seconds\": ", (unsigned long long)r->best_epoch);
    sd_json_write_double(&t, r->seconds);
    sd_text_printf(&t, ", \"data_wait\": ");
    sd_json_write_double(&t, r->wait);
    const sd_usage_shares *u = &r->usage;
    const struct {
        const char *key;
        double value;
    } shares[] = {{"images_per_second", u->images}, {"efficiency", u->efficiency},       {"reduction_exposed", u->exposed},
                  {"reduction_hidden", u->hidden},  {"waiting_for_slowest", u->awaited}, {"waiting_for_data", u->data}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        sd_text_printf(&t, ", \"%s\": ", shares[i].key);
        sd_json_write_double(&t, u->known || i == 0 || i == 5 ? shares[i].value : (double)NAN);
    }
    sd_text_printf(&t, ", \"planned_bytes\": %llu, \"checkpoint\": ", (unsigned long long)r->planned_bytes);
    sd_json_write_string(&t, r->checkpoint);
    sd_text_printf(&t, ", \"best_checkpoint\": ");
    sd_json_write_string(&t, r->best_checkpoint);
    sd_text_printf(&t, "}\n");
    return sd_cli_say(&t, err);
}

static void print_text(const sd_train_result *r)
{
    printf("%s after %llu steps, %llu epochs, %.1f s\n", r->stopped ? "stopped" : "done", (unsigned long long)r->steps,
           (unsigned long long)r->epochs, r->seconds);
    if (r->metric[0] && !isnan(r->best))
        printf("best %s %.4f after epoch %llu\n", r->metric, r->best, (unsigned long long)r->best_epoch);
    if (r->checkpoint[0])
        printf("checkpoint %s\n", r->checkpoint);
    if (r->best_checkpoint[0])
        printf("best       %s\n", r->best_checkpoint);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    sd_config *cfg;
    sodet_status s = sd_cli_config(cli, &cfg, err);
    if (s != SODET_OK)
        return s;
    sd_train_options o = {.quiet = cli->quiet, .stop = sd_cli_catch_signals("the preparations"), .started = on_started, .context = cli};
    sd_train_result *result = sd_alloc(1, sizeof *result);
    s = result ? sd_plugin_check_all(cfg, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK)
        s = sd_train(cfg, &o, result, err);
    if (s == SODET_OK && cli->json)
        s = print_json(result, err);
    else if (s == SODET_OK && !cli->quiet)
        print_text(result);
    if (s == SODET_OK && !result->stopped && sd_config_core(cfg)->run.report)
        s = sd_run_report_of(cfg, result->folder, err);
    if (s == SODET_OK && result->stopped)
        cli->exit_code = sd_cli_signal_code();
    sd_free(result);
    sd_config_close(cfg);
    return s;
}

const sd_command sd_cmd_train;
const sd_command sd_cmd_train = {
    .name = "train",
    .synopsis = "x.ini [section.key=value ...]",
    .summary = "trains the detector that a configuration describes",
    .help =
        "Writes into [run] output (runs/<name>): config.ini, log.txt, metrics.jsonl, last.safetensors (everything, to be resumed) and\n"
        "best.safetensors (weights). Ctrl-C, SIGTERM and SIGHUP end it after the batch that is being computed, with a checkpoint of the "
        "last whole step\n"
        "(exit code 130, 143, 129), SIGUSR1 too (75, to be requeued); a second signal ends it at once, and the last checkpoint stays. "
        "run.resume=FOLDER goes on from the newest complete checkpoint there, and in that folder unless run.output\n"
        "names another. What the checkpoint depends on (network, input, batch, seed, training transforms) must be as it was; rates, the\n"
        "schedule's end and what only evaluates may be changed: config.ini then says what counts. run.report=yes writes report.html at the "
        "end, as `sodet report` does, run.tensorboard=yes events\n"
        "for TensorBoard. --overfit 8 --epochs 200 is a first run that shows whether the network can learn these data at all; lines that "
        "begin\n"
        "with \"advice:\" say what to do where it cannot, or where anchors match nothing.\n",
    .takes = SD_TAKES_INI | SD_NEEDS_INI | SD_TAKES_JSON,
    .run = run,
};
