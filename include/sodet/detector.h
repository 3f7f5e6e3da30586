/* sodet/detector.h: a trained detector inside another program. Link libsodet (pkg-config sodet).
 *
 *     sodet_err err = SODET_ERR_INIT;
 *     sodet_detector *d;
 *     sodet_result *r;
 *     if (sodet_detector_open("best.safetensors", NULL, &d, &err) != SODET_OK ||
 *         sodet_detect_file(d, "street.jpg", &r, &err) != SODET_OK)
 *         return fprintf(stderr, "%s\n", err.text), 1;
 *     for (uint32_t i = 0; i < r->n; i++)
 *         printf("%s %.2f\n", r->found[i].name, (double)r->found[i].score);
 *     sodet_result_free(r);
 *     sodet_detector_close(d);
 *
 * The checkpoint brings everything: network, class names, pixel rules (mean, std, channel order) and how pictures are resized. The plugins
 * that it names are looked for in options.plugin_folder, SODET_PLUGIN_PATH and the install prefix.
 *
 * Ownership: what is passed in is borrowed for the call. Results are the caller's until sodet_result_free, which may come after
 * sodet_detector_close, except that found[i].name belongs to the detector.
 * Threads: any thread may call; calls on one detector wait for one another. For detection at the same time, open several, each with its
 * share of the processor (options.threads). The detector has threads of its own, one per device and those of the backend.
 * The library neither prints results nor ends the process; what it has to warn of goes to the standard error stream. */
#ifndef SODET_DETECTOR_H
#define SODET_DETECTOR_H

#include "sodet/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_detector sodet_detector;

/* Zero means the default, here and in sodet_picture. */
typedef struct sodet_detector_options {
    uint32_t struct_size;
    uint32_t threads;             /* of the processor; 0: the checkpoint's [run] threads, else as many as the process may use */
    const char *devices;          /* [run] devices: "cpu", "cuda:0"; NULL: the checkpoint's */
    const char *plugin_folder;    /* looked at first; stays known to the process */
    const char *const *overrides; /* "head.nms_iou=0.5": values that replace the checkpoint's configuration */
    uint32_t n_overrides;
    float threshold; /* scores below it are left out; 0: whatever [head] lets through */
} sodet_detector_options;
#define SODET_DETECTOR_OPTIONS_INIT                                                                                                        \
    {                                                                                                                                      \
        sizeof(sodet_detector_options), 0, NULL, NULL, NULL, 0, 0                                                                          \
    }

/* checkpoint: a file, or a run's folder, whose best.safetensors (else the newest) is taken. options may be NULL. */
SODET_EXPORT sodet_status sodet_detector_open(const char *checkpoint, const sodet_detector_options *options, sodet_detector **out,
                                              sodet_err *err);
SODET_EXPORT void sodet_detector_close(sodet_detector *d); /* accepts NULL */
SODET_EXPORT uint32_t sodet_detector_class_count(const sodet_detector *d);
SODET_EXPORT const char *sodet_detector_class(const sodet_detector *d, uint32_t label); /* NULL: no such label */

/* The first picture of a shape waits until the network is laid out and compiled for it; after this call n pictures of width x height at
 * once do not. 0 x 0: pictures of the size of [input]; n 0: 1. */
SODET_EXPORT sodet_status sodet_detector_warm_up(sodet_detector *d, uint32_t width, uint32_t height, uint32_t n, sodet_err *err);

/* One picture in one of three forms: path, or bytes, or rgb. */
typedef struct sodet_picture {
    uint32_t struct_size;
    const char *name;  /* for messages; NULL: the path, or "picture" */
    const char *path;  /* a JPEG, PNG, BMP, TGA or PNM file */
    const void *bytes; /* such a file's content */
    size_t n_bytes;
    const uint8_t *rgb;     /* [height][width][3] */
    uint32_t width, height; /* of rgb */
    size_t stride;          /* bytes from a row of rgb to the next; 0: 3 * width */
} sodet_picture;
#define SODET_PICTURE_INIT                                                                                                                 \
    {                                                                                                                                      \
        sizeof(sodet_picture), NULL, NULL, NULL, 0, NULL, 0, 0, 0                                                                          \
    }

typedef struct sodet_found {
    sodet_box box; /* pixels of the picture (turned upright as its EXIF tag says), 0-based, end-exclusive, inside it */
    float score;   /* 0..1 */
    int32_t label;
    const char *name; /* of the label */
} sodet_found;

typedef struct sodet_result {
    uint32_t struct_size;   /* as the library made it */
    uint32_t width, height; /* of the picture, upright */
    uint32_t n;
    const sodet_found *found; /* [n], scores falling */
} sodet_result;
SODET_EXPORT void sodet_result_free(sodet_result *r); /* accepts NULL */

/* A picture that cannot be read is SODET_E_INVALID, or SODET_E_IO if the system refused; the detector goes on working. After
 * SODET_E_DEVICE it does not: every later call fails with the same sentence. */
SODET_EXPORT sodet_status sodet_detect(sodet_detector *d, const sodet_picture *picture, sodet_result **out, sodet_err *err);
SODET_EXPORT sodet_status sodet_detect_file(sodet_detector *d, const char *path, sodet_result **out, sodet_err *err);
/* Several at once: pictures of one shape go through the network together, dealt out to the devices; memory grows with n. A picture that
 * cannot be read gets NULL in out[n] and the others are done; the first such is what is returned. */
SODET_EXPORT sodet_status sodet_detect_many(sodet_detector *d, const sodet_picture *const *pictures, uint32_t n, sodet_result **out,
                                            sodet_err *err);

#ifdef __cplusplus
}
#endif
#endif
