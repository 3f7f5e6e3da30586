#include <string.h>

#include "core/cli/data.h"

static const char *const names[SD_DATA_SETS] = {[SD_SPLIT_TRAIN] = "train", [SD_SPLIT_VAL] = "val"};

sodet_status sd_data_which(const sd_cli *cli, uint32_t fallback, uint32_t *which, sodet_err *err)
{
    const char *split = sd_cli_flag(cli, "--split");
    *which = fallback;
    for (uint32_t i = 0; split && i < SD_DATA_SETS; i++) {
        *which = i;
        if (strcmp(split, names[i]) == 0)
            return SODET_OK;
    }
    return !split ? SODET_OK : SODET_FAIL(err, SODET_E_INVALID, "data %s: --split %s: expected train or val", cli->files[0], split);
}

static sodet_status open_sets(sd_cli *cli, uint32_t which, sd_data_rules (*rules)(sd_data_rules), sd_data_sets *s, sodet_err *err)
{
    uint32_t only;
    sodet_status status = sd_data_which(cli, which, &only, err);
    if (status == SODET_OK)
        status = sd_cli_config(cli, &s->cfg, err);
    if (status == SODET_OK)
        status = sd_split_open_links(s->cfg, SD_SPLIT_VAL, &s->links, err);
    if (status != SODET_OK)
        return status;
    const sd_data_cfg *data = &sd_config_core(s->cfg)->data;
    const sd_classes *classes = NULL;
    if (!sd_cli_flag(cli, "--split") && which < SD_DATA_SETS && !(which == SD_SPLIT_TRAIN ? data->train.n : data->val.n))
        only = SD_DATA_SETS;
    for (uint32_t i = 0; i < SD_DATA_SETS && status == SODET_OK; i++) {
        bool there = i == SD_SPLIT_TRAIN ? data->train.n : data->val.n;
        if (only == SD_DATA_SETS ? !there : only != i)
            continue;
        sd_data_rules r = sd_recipe_rules(s->cfg, i);
        r = rules ? rules(r) : r;
        s->name[s->n] = names[i];
        s->which[s->n] = i;
        status = sd_split_open_under(s->cfg, i, classes ? classes->names : NULL, classes ? classes->n : 0, &r, &s->split[s->n], err);
        if (status != SODET_OK)
            return status;
        classes = classes ? classes : sd_dataset_classes(s->split[s->n].dataset);
        sd_loader_config *f = &s->frames[s->n];
        *f = sd_split_loader(s->cfg, &s->split[s->n], i);
        f->links = s->links.links;
        f->n_links = s->links.n_links;
        s->n++;
    }
    return s->n ? SODET_OK
                : sd_config_fail(s->cfg, err, "data", "train", "names no data set; write the label of a [dataset.<label>] section");
}

sodet_status sd_data_sets_open(sd_cli *cli, uint32_t which, sd_data_rules (*rules)(sd_data_rules), sd_data_sets *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status status = open_sets(cli, which, rules, out, err);
    if (status != SODET_OK)
        sd_data_sets_close(out);
    cli->started = status == SODET_OK;
    return status;
}

void sd_data_sets_close(sd_data_sets *s)
{
    for (uint32_t i = 0; i < SD_DATA_SETS; i++)
        sd_split_close(&s->split[i]);
    sd_split_close(&s->links);
    sd_config_close(s->cfg);
    memset(s, 0, sizeof *s);
}
