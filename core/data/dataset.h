/* data/dataset.h: data sets as the rest of the core sees them: parts joined in order, one class list, every annotation looked at once.
 *
 * sd_dataset_open calls each part's open and then describes every sample. So whatever is wrong with the annotations is found before
 * the first batch, and sizes, counts and names are known without opening a picture. A part is a loaded dataset plugin; it stays the
 * caller's and must outlive the set. After opening, every call but close may be made from any thread. */
#ifndef SD_DATA_DATASET_H
#define SD_DATA_DATASET_H

#include "core/base/base.h"

enum { SD_STOP = 0, SD_SKIP = 1, SD_KEEP = 2 };
enum { SD_OUTSIDE_CLIP = 0, SD_OUTSIDE_SKIP = SD_SKIP, SD_OUTSIDE_STOP = 2 };

/* What to do with what is wrong. All zero but max_pixels is a good beginning; sd_data_rules_init gives the defaults. */
typedef struct sd_data_rules {
    uint32_t unknown_class;      /* an object's class is not in the list: SD_STOP (default) or SD_SKIP the object */
    uint32_t bad_box;            /* a box without area, or not finite: SD_SKIP (default) the object, or SD_STOP */
    uint32_t outside;            /* SD_OUTSIDE_*: a box that reaches over the picture's edge is clipped (default), left out, or refused */
    uint32_t bad_file;           /* an annotation or a picture that cannot be read: SD_STOP (default) or SD_SKIP the sample; SD_KEEP: it
                                  * stays in the set, and describing or loading it fails again (for who lists what is wrong) */
    uint32_t drop_empty;         /* leave out samples without objects; default 0: they are kept */
    uint32_t ignore_orientation; /* do not turn pictures as their EXIF tag says; default 0 */
    uint64_t max_pixels;         /* width * height of a picture; larger ones are refused before memory is taken; 2^28 */
    uint64_t limit;              /* use the first so many samples only; 0: all */
    const char *list; /* file of ids, one a line: others are passed over without a count; NULL: all. An id of no sample is an error */
} sd_data_rules;
void sd_data_rules_init(sd_data_rules *rules);

typedef struct sd_classes {
    uint32_t n;
    const char *const *names;   /* [n] */
    const int64_t *category_id; /* [n] as the files number them (COCO), else label + 1 */
} sd_classes;

/* One sample, known without reading its picture. */
typedef struct sd_item {
    const char *id;         /* what a person calls it: a file name, mostly */
    int64_t number;         /* COCO's image id, or the row */
    uint32_t width, height; /* 0: the annotation does not say */
    uint32_t n_objects;     /* that are used */
    uint32_t part;
    uint64_t row; /* in the part */
} sd_item;

typedef struct sd_dataset_part {
    const char *label;                   /* of the INI: for messages */
    const struct sodet_dataset_ops *ops; /* the plugin's table */
    void *self;
} sd_dataset_part;

typedef struct sd_unknown {
    const char *name, *example; /* a class name that is not in the list, and a sample that has it */
    uint64_t count;
} sd_unknown;
typedef struct sd_census {
    uint64_t images, empty;          /* in use; of these without objects */
    uint64_t dropped_empty, skipped; /* left out by drop_empty; by bad_file */
    uint64_t objects, difficult, crowd, truncated;
    uint64_t bad_boxes, clipped, unknown_objects; /* skipped; reaching over the picture's edge (kept, clipped when loaded); skipped */
    uint64_t beyond,
        outside; /* of `clipped` those with nothing in the picture, which are dropped when it is loaded; left out by `outside` */
    const uint64_t *per_class; /* [n classes] objects */
    uint32_t most_objects;     /* in one image */
    uint32_t n_unknown;
    const sd_unknown *unknown;
    const char *first_bad_box, *first_skipped, *first_beyond, *first_outside; /* a sentence each, or NULL */
} sd_census;

typedef struct sd_dataset sd_dataset;
/* classes: NULL takes the names of the parts, which must then agree. Objects of unknown classes end in one error that lists every such
 * name with its count, unless the rules say otherwise. */
sodet_status sd_dataset_open(const sd_dataset_part *parts, uint32_t n_parts, const char *const *classes, uint32_t n_classes,
                             const sd_data_rules *rules, sd_dataset **out, sodet_err *err);
void sd_dataset_close(sd_dataset *d); /* accepts NULL */
uint64_t sd_dataset_size(const sd_dataset *d);
const sd_item *sd_dataset_item(const sd_dataset *d, uint64_t i);
const sd_classes *sd_dataset_classes(const sd_dataset *d);
const sd_census *sd_dataset_census(const sd_dataset *d);
/* Of ids, sizes, classes and objects in order: equal data sets have equal fingerprints wherever they lie. */
uint64_t sd_dataset_fingerprint(const sd_dataset *d);
/* The census as lines for a person, each indented by two blanks. */
void sd_dataset_report(const sd_dataset *d, sd_text *out);

/* A sample belongs to one thread; its buffers grow and are used again. */
sodet_status sd_sample_new(const sd_dataset *d, struct sodet_sample **out, sodet_err *err);
void sd_sample_free(struct sodet_sample *s); /* accepts NULL */
/* Objects in pixels of the picture as stored in the file (turned upright); nothing is opened. Resets the sample first. */
sodet_status sd_dataset_describe(const sd_dataset *d, uint64_t i, struct sodet_sample *s, sodet_err *err);
/* The same with the picture as the data set gives it, not decoded: path, bytes or pixels (data/sample.h); objects are not clipped. */
sodet_status sd_dataset_locate(const sd_dataset *d, uint64_t i, struct sodet_sample *s, sodet_err *err);
/* The same with the decoded picture; objects are clipped to it. */
sodet_status sd_dataset_load(const sd_dataset *d, uint64_t i, struct sodet_sample *s, sodet_err *err);

/* Pictures by path, without annotations: what `detect` works on. n_classes names are the detector's. Paths are copied. */
sodet_status sd_dataset_of_files(const char *const *paths, uint64_t n, const char *const *classes, uint32_t n_classes,
                                 const sd_data_rules *rules, sd_dataset **out, sodet_err *err);

#endif
