/* data/check.h: everything that is wrong or odd in data sets, found by reading every annotation and decoding every picture, several at a
 * time. Findings are gathered by kind: a count, the first examples, and what to do. The result does not depend on the number of threads.
 *
 * The sets are opened under sd_check_rules, so that what would stop a run is listed instead. Content is compared by a 64-bit hash of the
 * decoded pixels: a copy under another name, or in another lossless format, is found; a picture that was scaled or packed again is not. */
#ifndef SD_DATA_CHECK_H
#define SD_DATA_CHECK_H

#include "core/data/loader.h"

enum {
    SD_CHECK_MISSING,       /* a file is not there or cannot be opened */
    SD_CHECK_UNDECODABLE,   /* a picture is damaged, cut, or none */
    SD_CHECK_ANNOTATION,    /* an annotation cannot be used: damaged, a class number out of range */
    SD_CHECK_SIZE,          /* the annotation was made for another size than the picture has */
    SD_CHECK_UNKNOWN_CLASS, /* an object's class is not in the list */
    SD_CHECK_NOT_FINITE,    /* a box with an infinite coordinate, or one that is no number */
    SD_CHECK_NO_AREA,       /* a box of zero or negative width or height */
    SD_CHECK_OUTSIDE,       /* a box that has nothing in its picture */
    SD_CHECK_OVER_EDGE,     /* a box that reaches over its picture's edge by more than SD_EDGE pixels */
    SD_CHECK_SAME_FILE,     /* one file twice in a set */
    SD_CHECK_LEAK,          /* the same content in two sets */
    SD_CHECK_COPY,          /* the same content twice in a set, under two names */
    SD_CHECK_SAME_BOX,      /* one box twice, with the same class */
    SD_CHECK_TINY,          /* a side of at most SD_CHECK_TINY_SIDE pixels in the network's input */
    SD_CHECK_CLASS_NAMES,   /* two classes of the list whose names differ by case, blanks, - or _ alone */
    SD_CHECK_ABSENT_CLASS,  /* a class without objects in a set */
    SD_CHECK_EMPTY,         /* a picture without objects */
    SD_CHECK_ORIENTATION,   /* a picture with an EXIF orientation other than 1 */
    SD_CHECK_PICTURE_SHAPE, /* a picture more than SD_CHECK_PICTURE_RATIO times as long as wide */
    SD_CHECK_BOX_SHAPE,     /* a box more than SD_CHECK_BOX_RATIO times as long as wide, in its picture */
    SD_CHECK_KINDS
};
#define SD_CHECK_TINY_SIDE     2.0
#define SD_CHECK_PICTURE_RATIO 4.0
#define SD_CHECK_BOX_RATIO     10.0

typedef struct sd_check_set {
    const char *name; /* "train" */
    const sd_dataset *dataset;
    const sd_loader_config *frames; /* links that take a picture to the network's input, without chance */
    uint64_t decoded, broken;       /* out: pictures that could and could not be used */
} sd_check_set;

typedef struct sd_check_example {
    uint32_t set, object; /* object: from 1, in the order of the annotation; 0: it is about the picture, or the set */
    uint64_t item;
    const char *file;     /* annotation or picture; or the set's name */
    const char *class;    /* NULL: not about an object */
    const char *value;    /* what was found */
    const char *expected; /* NULL: the value says it all */
} sd_check_example;
typedef struct sd_check_finding {
    const char *name, *what, *remedy; /* "no_area", "boxes of zero or negative size" */
    bool error;                       /* what must be corrected; else a note */
    uint64_t count;
    uint32_t n_examples;
    sd_check_example *examples; /* the first ones, by set, item and object */
} sd_check_finding;

typedef struct sd_check_config {
    uint32_t n_sets, threads;
    sd_check_set *sets; /* their classes are the first one's */
    uint32_t examples;  /* kept of each kind */
    bool turned;        /* pictures are turned upright ([data] ignore_orientation = no) */
    double min_side;    /* [data] min_side: for the remedy of tiny boxes */
    /* Kinds that the configuration says it passes over: they become notes. Bit 1 << SD_CHECK_*. */
    uint32_t allowed;
    void (*progress)(void *context, uint64_t done, uint64_t of); /* pictures, now and then, one thread at a time; may be NULL */
    void *context;
} sd_check_config;
typedef struct sd_check {
    sd_check_finding finding[SD_CHECK_KINDS]; /* count 0: nothing of the kind */
    sd_pool pool;
} sd_check;

/* The rules under which sets that are to be checked are opened: nothing stops, nothing is left out. limit, list, max_pixels and
 * ignore_orientation stay. */
sd_data_rules sd_check_rules(sd_data_rules rules);
/* *out is to be cleared by the caller, whatever comes back. */
sodet_status sd_check_run(const sd_check_config *config, sd_check *out, sodet_err *err);
void sd_check_clear(sd_check *c);

#endif
