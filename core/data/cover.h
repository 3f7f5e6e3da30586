/* data/cover.h: how well a head's anchors cover the boxes of a data set, and what its options could be instead. */
#ifndef SD_DATA_COVER_H
#define SD_DATA_COVER_H

#include "core/data/boxes.h"
#include "core/detect/cluster.h"
#include "core/detect/model.h"

enum { SD_COVER_BINS = 10 };
typedef struct sd_cover {
    uint64_t n;                  /* boxes */
    uint64_t bin[SD_COVER_BINS]; /* by the largest IoU with an anchor: [0, 0.1), [0.1, 0.2) .. [0.9, 1] */
    uint64_t below;              /* less than the threshold: whatever anchor they have was claimed, or they have none */
    uint64_t without;            /* left without an anchor by the head's matching, among the boxes of their picture */
    uint64_t positives;          /* anchors that are theirs */
    double iou;                  /* mean of the largest IoUs */
} sd_cover;

/* all: over everything; of_class[C of the model]. threshold: what `below` counts against. Crowds are left out. */
sodet_status sd_cover_measure(const sd_model *m, const sd_boxes *b, double threshold, uint32_t threads, sd_cover *all, sd_cover *of_class,
                              sodet_err *err);

/* A key of the head and a value for it. */
typedef struct sd_suggestion {
    char key[32], value[480];
} sd_suggestion;
enum { SD_SUGGESTIONS_MOST = 8 };
typedef struct sd_suggestions {
    uint32_t n;
    sd_suggestion row[SD_SUGGESTIONS_MOST];
} sd_suggestions;
/* For heads that have the options of sodet_ssd_boxes or sodet_retina_boxes (sodet/anchors.h), by their names: as many levels, shapes and
 * ratios as it has now. cells: how many of a level's cells a box measures that the level is to find; 2 to 6 are worth a try. n = 0: the head has neither. SODET_E_INVALID where there is nothing to suggest from. */
sodet_status sd_cover_suggest(const sd_model *m, const sd_boxes *b, double cells, uint64_t seed, sd_suggestions *out, sodet_err *err);
/* The value of a head's option that is a number (real, whole, or an enum's index); false: it has none of that name. */
bool sd_head_number(const sd_model *m, const char *name, double *value);

#endif
