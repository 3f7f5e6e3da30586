/* detect/model.h: the detector that a configuration describes: backbone, neck, head and loss, opened from their sections and put
 * together as a graph for one input shape at a time.
 *
 * A graph's inputs (find them with sd_graph_find_input; one that nothing in the graph uses may be missing):
 *   "image"  [N, 3 or 1, H, W]  normalised pixels; or, where the shape says picture_bytes, the tables of kernels/pixels/pixels.h:
 *   "pictures" [N * picture_bytes / 4] int32, "place" [N, SODET_PIXELS_PLACES] int32, "value" [N, SODET_PIXELS_VALUES]
 * and in training graphs also
 *   "index"  [N, A] int32       what sd_model_assign wrote, per image
 *   "truth"  [N, T, 4]          boxes x1 y1 x2 y2 in input pixels, zeros behind the last
 *   "label"  [N, T] int32       0..C-1, zeros behind the last
 *   "weight" [N]                what each image's loss sums are multiplied by ([loss] normaliser)
 *   "share"  [N]                1 / images of the whole step, over all devices; 0 for a row without an image
 * Training graphs hold loss terms (sd_graph_loss); the others have the outputs
 *   "detections/boxes" [N, K, 4], "detections/scores" [N, K], "detections/labels" [N, K] int32, "detections/count" [N] int32
 * in input pixels, scores falling. With SD_MODEL_RAW: "raw/logits" [N, A, columns], "raw/codes" [N, A, 4], "raw/feature<l>" as well.
 *
 * Threads: sd_model_build by one thread per graph, several graphs at once; everything that takes a const model from any thread. */
#ifndef SD_DETECT_MODEL_H
#define SD_DETECT_MODEL_H

#include "core/config/config.h"
#include "core/graph/graph.h"
#include "core/plugin/plugin.h"
#include "sodet/detection.h"

typedef struct sd_model sd_model;

/* Makes the instances of [backbone] [neck] [head] [loss]. cfg must outlive the model. n_classes: C, without background. */
sodet_status sd_model_open(sd_config *cfg, uint32_t n_classes, sd_model **out, sodet_err *err);
void sd_model_close(sd_model *m); /* accepts NULL */

enum { SD_MODEL_RAW = 1, SD_MODEL_NETWORK = 2 /* inference: only "raw/logits" and "raw/codes", no detections */ };
typedef struct sd_model_shape {
    uint32_t batch, height, width; /* N, H, W */
    uint32_t boxes;                /* T: rows of truth per image (training); at least 1 */
    uint32_t flags;                /* SD_MODEL_* */
    uint64_t picture_bytes;        /* 0: pixels are an input; else they are made of pictures of at most so many bytes */
} sd_model_shape;
/* A new graph, checked (sd_graph_check) and not yet optimised or differentiated; options->training decides which of the two kinds. The
 * caller frees it. Errors name the plugins and what to change. */
sodet_status sd_model_build(const sd_model *m, const sd_graph_options *options, const sd_model_shape *shape, sodet_graph **out,
                            sodet_err *err);

/* What the network makes of an input size. Made when first asked for (by building backbone and neck once), kept until close. */
typedef struct sd_model_grid {
    uint32_t height, width, n_levels;
    const sodet_shape2d *level; /* [n_levels], finest first */
    const sodet_anchors *anchors;
} sd_model_grid;
sodet_status sd_model_grid_of(const sd_model *m, uint32_t height, uint32_t width, const sd_model_grid **out, sodet_err *err);
/* head.assign for one image: index[grid->anchors->n]. Checks that labels are below C; returns the number of positives in *positives
 * (may be NULL). */
sodet_status sd_model_assign(const sd_model *m, const sd_model_grid *grid, const sodet_boxes *truth, int32_t *index, uint32_t *positives,
                             sodet_err *err);

const sodet_head_context *sd_model_context(const sd_model *m);      /* classes, columns, activation */
const sd_instance *sd_model_part(const sd_model *m, uint32_t kind); /* SODET_KIND_BACKBONE .. SODET_KIND_LOSS; NULL for another */

#endif
