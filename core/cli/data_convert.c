/* sodet data convert: the data sets of a configuration, or one section's, written in the layout of another plugin. */
#include <stdio.h>
#include <string.h>

#include "core/cli/data.h"
#include "core/cli/signals.h"
#include "core/data/layout.h"
#include "core/data/recipe.h"

/* The index of a flag's value in a list; `fallback` if it was not given and there is one. */
static sodet_status choice(const sd_cli *cli, const char *flag, const char *const *choices, const char *fallback, uint32_t *out,
                           sodet_err *err)
{
    const char *value = sd_cli_flag(cli, flag);
    char all[200] = "";
    value = value ? value : fallback;
    for (*out = 0; choices[*out]; (*out)++) {
        if (value && strcmp(value, choices[*out]) == 0)
            return SODET_OK;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *out ? ", " : "", choices[*out]);
    }
    return SODET_FAIL(err, SODET_E_INVALID, "data convert: %s%s%s: expected one of %s", flag, value ? " " : "",
                      value ? value : " is missing", all);
}

static sodet_status convert(sd_cli *cli, sd_config *cfg, const char *const splits[2], uint32_t layout, uint32_t pictures,
                            const char *folder, sodet_err *err)
{
    sd_split set[2] = {0};
    sd_layout *l = NULL;
    sd_text report = {0};
    sodet_status status = SODET_OK;
    const volatile sig_atomic_t *stop = NULL;
    const sd_classes *classes = NULL; /* of the set that is opened first: the other's numbers mean the same names */
    for (uint32_t i = 0; i < 2 && status == SODET_OK; i++) {
        if (!splits[i])
            continue;
        status =
            sd_split_open(cfg, i ? SD_SPLIT_VAL : SD_SPLIT_TRAIN, classes ? classes->names : NULL, classes ? classes->n : 0, &set[i], err);
        if (status == SODET_OK && !classes)
            classes = sd_dataset_classes(set[i].dataset);
    }
    if (status == SODET_OK) {
        /* From now on there are files to be removed. */
        stop = sd_cli_catch_signals("the file that is being written; nothing is left of the new folder");
        status = sd_layout_open(folder, layout, pictures, classes, stop, &l, err);
    }
    cli->started = status == SODET_OK;
    for (uint32_t i = 0; i < 2 && status == SODET_OK; i++) {
        if (!splits[i])
            continue;
        const sd_census *c = sd_dataset_census(set[i].dataset);
        if (c->skipped || c->bad_boxes || c->unknown_objects || c->dropped_empty ||
            c->outside) { /* what the INI's rules leave out is not converted */
            sd_text_printf(&report, "%s as it is read:\n", splits[i]);
            sd_dataset_report(set[i].dataset, &report);
        }
        status = sd_layout_add(l, splits[i], set[i].dataset, err);
    }
    if (status == SODET_OK)
        status = sd_layout_finish(l, &report, err);
    if (status == SODET_OK && report.failed)
        status = SODET_FAIL(err, SODET_E_MEMORY, "the files are written, but there is no memory to tell what of");
    if (stop && *stop)
        cli->exit_code = sd_cli_signal_code();
    if (status == SODET_OK && report.text)
        fputs(report.text, stdout);
    sd_text_free(&report);
    sd_layout_close(l);
    sd_split_close(&set[0]);
    sd_split_close(&set[1]);
    return status;
}

sodet_status sd_data_convert(sd_cli *cli, sodet_err *err)
{
    const char *folder = sd_cli_flag(cli, "--output"), *split = sd_cli_flag(cli, "--split"), *section = sd_cli_flag(cli, "--section");
    uint32_t layout, pictures, which;
    sd_config *cfg = NULL;
    sodet_status status = sd_data_which(cli, 0, &which, err);
    if (status == SODET_OK)
        status = choice(cli, "--to", sd_layout_names, NULL, &layout, err);
    if (status == SODET_OK)
        status = choice(cli, "--pictures", sd_picture_modes, "copy", &pictures, err);
    if (status == SODET_OK && section && split)
        status = SODET_FAIL(err, SODET_E_INVALID, "data convert: --section %s and --split %s exclude each other", section, split);
    if (status == SODET_OK)
        status = sd_cli_config(cli, &cfg, err);
    if (status == SODET_OK && section) {
        char name[300];
        snprintf(name, sizeof name, "dataset.%s", section);
        status = sd_config_has_section(cfg, name)
                     ? sd_config_set(cfg, "data", "val", section, err)
                     : SODET_FAIL(err, SODET_E_INVALID, "data convert: --section %s: there is no [%s]", section, name);
    }
    if (status == SODET_OK) {
        const sd_data_cfg *data = &sd_config_core(cfg)->data;
        bool train = data->train.n && !section && (!split || strcmp(split, "train") == 0),
             val = data->val.n && (!split || strcmp(split, "val") == 0);
        const char *const splits[2] = {train ? "train" : NULL, !val ? NULL : section ? section : "val"};
        status = train || val ? convert(cli, cfg, splits, layout, pictures, folder, err)
                              : sd_config_fail(cfg, err, "data", split ? split : "train",
                                               "names no data set; write the label of a "
                                               "[dataset.<label>] section");
    }
    sd_config_close(cfg);
    return status;
}
