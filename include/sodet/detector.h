/* sodet/detector.h: a trained detector inside another program. Link with libsodet (pkg-config sodet).
 *
 *     sodet_err err = SODET_ERR_INIT;
 *     sodet_detector *d;
 *     if (sodet_detector_open("runs/shapes/best.safetensors", NULL, &d, &err) != SODET_OK)
 *         return fail(err.text);
 *     const sodet_detection *found;
 *     uint64_t n;
 *     sodet_detector_run(d, rgb, width, height, 0, &found, &n, &err);
 *     for (uint64_t i = 0; i < n; i++)
 *         use(sodet_detector_class(d, (uint32_t)found[i].label), found[i].score, found[i].box);
 *     sodet_detector_close(d);
 *
 * Everything about the detector, its input size and pixel rules included, is in the checkpoint. Plugins are searched where the program
 * `sodet` searches them. A detector is used by one thread at a time; several detectors by several threads. */
#ifndef SODET_DETECTOR_H
#define SODET_DETECTOR_H

#include "sodet/evaluator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_detector sodet_detector;

/* Zero means the default. */
typedef struct sodet_detector_options {
    uint32_t struct_size;
    uint32_t n_settings;
    /* As on the command line: "run.devices=cpu", "run.threads=2", "head.score_threshold=0.3". They win over what the checkpoint says. */
    const char *const *settings;
} sodet_detector_options;

/* checkpoint: a file, or a run's folder, whose best.safetensors (else the newest) is taken. options may be NULL. */
SODET_EXPORT sodet_status sodet_detector_open(const char *checkpoint, const sodet_detector_options *options, sodet_detector **out,
                                              sodet_err *err);
SODET_EXPORT void sodet_detector_close(sodet_detector *d); /* accepts NULL */
SODET_EXPORT uint32_t sodet_detector_class_count(const sodet_detector *d);
SODET_EXPORT const char *sodet_detector_class(const sodet_detector *d, uint32_t label); /* NULL: no such label */

/* rgb: rows of width * 3 bytes, `stride` bytes apart (0: width * 3). Detections in pixels of this picture, 0-based, end-exclusive,
 * clipped to it, scores falling; valid until the next call on d. */
SODET_EXPORT sodet_status sodet_detector_run(sodet_detector *d, const uint8_t *rgb, uint32_t width, uint32_t height, uint64_t stride,
                                             const sodet_detection **found, uint64_t *n, sodet_err *err);
/* A JPEG, PNG, BMP, TGA or PNM file, turned upright by its EXIF tag. *rgb (may be NULL): the decoded picture, valid as long as found. */
SODET_EXPORT sodet_status sodet_detector_run_file(sodet_detector *d, const char *path, const sodet_detection **found, uint64_t *n,
                                                  const uint8_t **rgb, uint32_t *width, uint32_t *height, sodet_err *err);

#ifdef __cplusplus
}
#endif
#endif
