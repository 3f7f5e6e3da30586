/* data/recipe.h: the data sets and transforms of a configuration: [data], [dataset.<label>], [transform] and [transform.<label>]. */
#ifndef SD_DATA_RECIPE_H
#define SD_DATA_RECIPE_H

#include "core/data/loader.h"
#include "core/plugin/plugin.h"

enum { SD_SPLIT_TRAIN = 0, SD_SPLIT_VAL };

/* The instances behind a set and a chain; they live until sd_split_close. */
typedef struct sd_split {
    uint32_t n_parts, n_links;
    sd_instance *parts, *transforms;
    sd_dataset_part *part;
    sd_link *links;
    sd_dataset *dataset;
    sd_pool pool;
} sd_split;

/* Opens the labels of [data] train or val and the chain of [transform] for it. classes: the run's names; NULL takes those of [data]
 * classes, else the data sets' own. */
sodet_status sd_split_open(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, sd_split *out, sodet_err *err);
/* What [data] says about a split, and the same opened under other rules. */
sd_data_rules sd_recipe_rules(const sd_config *cfg, uint32_t which);
sodet_status sd_split_open_under(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, const sd_data_rules *rules,
                                 sd_split *out, sodet_err *err);
/* Whether there is anything to evaluate on: [data] val, or the pictures of [data] overfit. */
bool sd_recipe_validates(const sd_config *cfg);
/* The chain alone, for pictures that come from elsewhere. */
sodet_status sd_split_open_links(sd_config *cfg, uint32_t which, sd_split *out, sodet_err *err);
void sd_split_close(sd_split *s); /* accepts a zeroed one */

/* Loader settings of [input], [data] and [run] for a split; batch and assigner are the caller's to add. */
sd_loader_config sd_split_loader(const sd_config *cfg, const sd_split *s, uint32_t which);
/* Names of [data] classes, or n = 0 where the data sets are to say. */
sodet_status sd_recipe_classes(const sd_config *cfg, sd_pool *pool, const char *const **names, uint32_t *n, sodet_err *err);

#endif
