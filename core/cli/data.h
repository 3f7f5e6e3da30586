/* cli/data.h: the parts of `sodet data`, a file each; cmd_data.c has the table. */
#ifndef SD_CLI_DATA_H
#define SD_CLI_DATA_H

#include "core/cli/cli.h"
#include "core/data/recipe.h"

sodet_status sd_data_adopt(sd_cli *cli, sodet_err *err);
sodet_status sd_data_anchors(sd_cli *cli, sodet_err *err);
sodet_status sd_data_check(sd_cli *cli, sodet_err *err);
sodet_status sd_data_convert(sd_cli *cli, sodet_err *err);
sodet_status sd_data_show(sd_cli *cli, sodet_err *err);
sodet_status sd_data_stats(sd_cli *cli, sodet_err *err);

/* What several of them share: the sets of a configuration and the chain that shows the network's view of a picture. */
enum { SD_DATA_SETS = 2 };
typedef struct sd_data_sets {
    sd_config *cfg;
    uint32_t n;
    const char *name[SD_DATA_SETS]; /* "train", "val" */
    uint32_t which[SD_DATA_SETS];   /* SD_SPLIT_* */
    sd_split split[SD_DATA_SETS];
    sd_split links;                        /* the chain of [transform] val, without a data set */
    sd_loader_config frames[SD_DATA_SETS]; /* of each set with that chain: for data/frame.h */
} sd_data_sets;
/* The one of --split. Without it: which = SD_DATA_SETS: all that [data] names; else that one alone, or the other if [data] has only that. rules: what to make of the configuration's rules; NULL: nothing. Classes are the first
 * set's, as in training. Sets cli->started. */
sodet_status sd_data_sets_open(sd_cli *cli, uint32_t which, sd_data_rules (*rules)(sd_data_rules), sd_data_sets *out, sodet_err *err);
void sd_data_sets_close(sd_data_sets *s); /* accepts a zeroed one */
/* "dog (difficult)" */
void sd_data_object_name(const sd_classes *classes, const sodet_object *o, char text[120]);
/* --split as one of SD_SPLIT_*; fallback if it was not given. */
sodet_status sd_data_which(const sd_cli *cli, uint32_t fallback, uint32_t *which, sodet_err *err);

#endif
