/* cli/data_adopt.h: the two halves of `sodet data adopt`. data_adopt_look.c finds out what a folder is and opens it, data_adopt.c splits it
 * and writes the INI.
 *
 * Sets are opened so that nothing is left out: samples that cannot be read stay in them, for lists and counts, and fail again when they are
 * described. A folder of which no sample can be read is not recognised. A file that is meant as a set's labels and cannot be read ends the
 * search: what is left would be taken for the whole. */
#ifndef SD_CLI_DATA_ADOPT_H
#define SD_CLI_DATA_ADOPT_H

#include <limits.h>

#include "core/data/recipe.h"

enum { SD_ADOPT_TRAIN, SD_ADOPT_VAL, SD_ADOPT_TEST, SD_ADOPT_SETS, SD_ADOPT_WHOLE = SD_ADOPT_TRAIN };
typedef struct sd_adopt_pair {
    const char *key, *value;
    bool path; /* below the folder */
} sd_adopt_pair;
typedef struct sd_adopt {
    char folder[PATH_MAX], shown[PATH_MAX]; /* absolute; as the INI says it */
    const char *ini;                        /* file to write */
    const char *layout;
    sd_adopt_pair pairs[SD_ADOPT_SETS][8]; /* of [dataset.<set>]; none of VAL where there is no split; TEST: is there, but not used */
    uint32_t n[SD_ADOPT_SETS];
    sd_split set[SD_ADOPT_SETS];
    sd_config *cfg[SD_ADOPT_SETS];
    const char **names; /* of voc, whose files do not list them */
    uint32_t n_names;
    char refused[500]; /* why a file that meant to be labels was left out */
    bool damaged;      /* `refused` is about a file that would have been a set's */
    uint8_t *lost[2];  /* [samples] 1: annotation or picture cannot be read */
    uint64_t n_lost;   /* of these, those whose picture is at fault; the annotations' are in the census */
    char first_lost[500];
    double *scales; /* sqrt(box / picture) of every object */
    uint64_t n_scales, scales_capacity;
    uint32_t side;          /* median of the longer sides of the pictures */
    const char *written[4]; /* files that are removed where it fails */
    uint32_t n_written;
    sd_text report;
    sd_pool pool;
} sd_adopt;

/* The first layout as which the folder reads, opened; only: the one of that name, or NULL. Closed by sd_adopt_close. */
sodet_status sd_adopt_recognise(sd_adopt *a, const char *only, sodet_err *err);
/* To the report: what else the folder could be taken for, and what of it is not used. */
void sd_adopt_tell_others(sd_adopt *a);
void sd_adopt_tell_unused(sd_adopt *a);
/* The [dataset.*] sections of the first n sets. */
void sd_adopt_sections(const sd_adopt *a, const char *folder, uint32_t n, sd_text *out);
void sd_adopt_close(sd_adopt *a);

#endif
