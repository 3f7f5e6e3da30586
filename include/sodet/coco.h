/* sodet/coco.h: COCO's instances files, for data sets in that format. A dataset plugin's functions can hand straight on to these.
 *
 * The file is read once, strictly, in the order in which it is; segmentations and whatever else is unknown are skipped. Category ids may have
 * gaps and come in any order: classes are the categories by rising id. Image and annotation ids are opaque (0 and negative ones too).
 * iscrowd is 0 where it is missing, area that of the box. "difficult" and "truncated", VOC's marks, are no keys of COCO's but are read where
 * they stand. Images without annotations are samples like others. Boxes are [x, y, w, h] with x, y
 * from 0. Duplicate ids of images, annotations of unknown images or categories, and missing required keys are errors with place and id. */
#ifndef SODET_COCO_H
#define SODET_COCO_H

#include "sodet/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_coco sodet_coco;
/* annotations: the JSON file; pictures: the folder that file_name is relative to (NULL: the JSON's own). */
SODET_EXPORT sodet_status sodet_coco_open(const char *annotations, const char *pictures, sodet_coco **out, sodet_err *err);
SODET_EXPORT uint64_t sodet_coco_size(const sodet_coco *coco);
SODET_EXPORT sodet_status sodet_coco_describe(const sodet_coco *coco, uint64_t index, sodet_sample *out, sodet_err *err); /* any thread */
SODET_EXPORT sodet_status sodet_coco_pixels(const sodet_coco *coco, uint64_t index, sodet_sample *out, sodet_err *err);   /* any thread */
SODET_EXPORT const char *const *sodet_coco_classes(const sodet_coco *coco);                /* NULL at the end */
SODET_EXPORT int64_t sodet_coco_category_id(const sodet_coco *coco, uint32_t class_index); /* of classes()[i] */
SODET_EXPORT void sodet_coco_close(sodet_coco *coco);                                      /* accepts NULL */

#ifdef __cplusplus
}
#endif
#endif
