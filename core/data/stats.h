/* data/stats.h: what a data set consists of, in figures. */
#ifndef SD_DATA_STATS_H
#define SD_DATA_STATS_H

#include "core/data/boxes.h"

enum { SD_STATS_BINS = 16, SD_STATS_QUANTILES = 7 };
typedef struct sd_spread {
    double quantile[SD_STATS_QUANTILES]; /* at sd_stats_share, by nearest rank: each is a value that is there. NaN of no values */
    uint32_t n_bins;
    const double *edge;            /* bin i counts what is in [edge[i], edge[i + 1]); the last has no end */
    uint64_t count[SD_STATS_BINS]; /* [n_bins] */
} sd_spread;
extern const double sd_stats_share[SD_STATS_QUANTILES]; /* 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1 */

enum { SD_STATS_SMALL, SD_STATS_MEDIUM, SD_STATS_LARGE, SD_STATS_SIZES }; /* COCO's: areas below 32^2, below 96^2, from there on */
extern const char *const sd_stats_size_names[SD_STATS_SIZES];
typedef struct sd_stats_class {
    uint64_t boxes, pictures;       /* pictures that have one */
    uint64_t input[SD_STATS_SIZES]; /* by their area in the input */
    double side;                    /* median of sqrt(area) in the input; NaN of none */
} sd_stats_class;
typedef struct sd_stats {
    uint64_t pictures, empty, boxes, difficult, crowd;        /* crowds count as boxes */
    uint64_t labelled[SD_STATS_SIZES], input[SD_STATS_SIZES]; /* by area in the picture, as COCO's evaluation has it; in the input */
    sd_spread per_picture, side, ratio;                       /* boxes; sqrt(area) in the input; width / height in the picture */
    uint32_t n_classes;
    sd_stats_class *of_class; /* [n_classes] */
} sd_stats;

sodet_status sd_stats_make(const sd_boxes *b, uint32_t n_classes, sd_stats *out, sodet_err *err);
void sd_stats_free(sd_stats *s); /* accepts a zeroed one */

#endif
