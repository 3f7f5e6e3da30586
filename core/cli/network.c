#include "core/cli/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/data/recipe.h"
#include "core/train/scale.h"

static sodet_status count_classes(sd_cli *cli, sd_cli_network *out, sodet_err *err)
{
    uint64_t given;
    const char *const *names;
    sodet_status s = sd_cli_flag_uint(cli, "--classes", 1, 0, &given, err);
    if (s == SODET_OK && given > 100000)
        s = SODET_FAIL(err, SODET_E_INVALID, "--classes %" PRIu64 ": at most 100000", given);
    out->n_classes = (uint32_t)given;
    if (s == SODET_OK && !given)
        s = sd_recipe_classes(out->cfg, &cli->pool, &names, &out->n_classes, err);
    if (s != SODET_OK || out->n_classes)
        return s;
    sd_split split = {0};
    s = sd_split_open(out->cfg, SD_SPLIT_TRAIN, NULL, 0, &split, err);
    if (s == SODET_OK)
        out->n_classes = sd_dataset_classes(split.dataset)->n;
    sd_split_close(&split);
    return s == SODET_OK ? s : sd_fail_in(err, s, "the number of classes is needed (--classes N, [data] classes, or the data)");
}

sodet_status sd_cli_network_open(sd_cli *cli, sd_cli_network *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status s = sd_cli_config(cli, &out->cfg, err);
    if (s == SODET_OK)
        s = sd_plugin_check_all(out->cfg, err);
    if (s == SODET_OK) {
        out->core = sd_config_core(out->cfg);
        s = count_classes(cli, out, err);
    }
    if (s == SODET_OK)
        s = sd_model_open(out->cfg, out->n_classes, &out->model, err);
    return s;
}

void sd_cli_network_close(sd_cli_network *n)
{
    sd_model_close(n->model);
    sd_config_close(n->cfg);
    memset(n, 0, sizeof *n);
}

static sodet_status bind(sodet_graph **g, sd_segments *segments, sodet_status s, sodet_err *err)
{
    if (s == SODET_OK && !segments->n)
        s = sd_segments_make(*g, segments, err);
    if (s == SODET_OK)
        s = sd_graph_bind(*g, segments, err);
    if (s != SODET_OK) {
        sd_graph_free(*g);
        *g = NULL;
    }
    return s;
}

sodet_status sd_cli_training_graph(const sd_cli_network *n, uint32_t world, const sd_model_shape *shape, sd_segments *segments,
                                   sodet_graph **out, sodet_err *err)
{
    static const uint32_t norms[] = {
        [SD_TRAIN_NORM_SYNC] = SD_NORM_SYNC, [SD_TRAIN_NORM_LOCAL] = SD_NORM_TRAIN, [SD_TRAIN_NORM_FROZEN] = SD_NORM_FROZEN};
    sd_graph_options options = {.training = true, .norm = norms[n->core->train.norm], .world = world, .scaled = sd_loss_scaled(n->core)};
    if (world == 1 && options.norm == SD_NORM_SYNC)
        options.norm = SD_NORM_TRAIN;
    sodet_status s = sd_model_build(n->model, &options, shape, out, err);
    if (s == SODET_OK)
        s = sd_graph_optimize(*out, err);
    if (s == SODET_OK)
        s = sd_graph_backward(*out, err);
    return bind(out, segments, s, err);
}

sodet_status sd_cli_inference_graph(const sd_cli_network *n, const sd_model_shape *shape, sd_segments *segments, sodet_graph **out,
                                    sodet_err *err)
{
    const sd_graph_options options = {.training = false, .world = 1};
    sodet_status s = sd_model_build(n->model, &options, shape, out, err);
    if (s == SODET_OK && !segments->n)
        s = sd_segments_make(*out, segments, err);
    if (s == SODET_OK)
        s = sd_graph_optimize(*out, err);
    return bind(out, segments, s, err);
}

const char *sd_cli_count(uint64_t n, char text[32])
{
    char plain[24];
    int k = snprintf(plain, sizeof plain, "%" PRIu64, n), at = 0;
    for (int i = 0; i < k; i++) {
        if (i && (k - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = plain[i];
    }
    text[at] = '\0';
    return text;
}

const char *sd_cli_amount(double n, char text[32])
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    text[0] = '\0';
    for (uint32_t i = 0; i < 5; i++) {
        if (n < units[i].unit)
            continue;
        snprintf(text, 32, units[i].unit > 1 ? "%.2f %s" : "%.0f%s", n / units[i].unit, units[i].name);
        break;
    }
    return text;
}
