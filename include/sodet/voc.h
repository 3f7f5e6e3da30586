/* sodet/voc.h: the PASCAL VOC layout, for data sets that only differ in classes, splits or folder names. A dataset plugin's open, describe
 * and pixels can hand straight on to these.
 *
 * Found below root, the first that exists:
 *   list         <split> itself if it is a path to a file (absolute, or below root); ImageSets/Main/<split>.txt; ImageSets/<split>.txt;
 *                <split>.txt. No split: every annotation, in the order of names.
 *   annotation   <annotations>/<name>.xml, by default Annotations/ or beside the picture
 *   picture      <pictures>/<name>.jpg .jpeg .png .bmp (also in capitals), by default JPEGImages/, images/ or root itself
 * A line of a list is a name; a second column of -1, 0 or 1 (class lists), an extension, folders before the name, blanks at the ends, CR and
 * empty lines are borne; so are lines "picture annotation.xml". Names and folders may hold blanks and dots.
 *
 * Annotations are read when the layout is opened: numbers strictly, decimals kept; difficult and truncated are 0 where the tag is missing;
 * parts of objects are left out. Corners are 1-based and inclusive (base 1): (xmin, ymin, xmax, ymax) becomes (xmin - 1, ymin - 1, xmax,
 * ymax); with base 0 they are 0-based with exclusive ends and stay as they are. A sample whose annotation or picture is missing or cannot
 * be read gives its error when it is described, so that the run's rules decide. */
#ifndef SODET_VOC_H
#define SODET_VOC_H

#include "sodet/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_voc sodet_voc;
enum { SODET_VOC_NO_PICTURES = 1 /* pictures need not be there: annotations alone are wanted */ };
typedef struct sodet_voc_layout {
    uint32_t struct_size, flags;        /* SODET_VOC_* */
    const char *root, *split;           /* split: NULL or "": everything */
    const char *annotations, *pictures; /* folders below root; NULL: as above */
    uint32_t zero_based;                /* 0: base 1 */
} sodet_voc_layout;

SODET_EXPORT sodet_status sodet_voc_open(const sodet_voc_layout *layout, sodet_voc **out, sodet_err *err);
SODET_EXPORT uint64_t sodet_voc_size(const sodet_voc *voc);
SODET_EXPORT sodet_status sodet_voc_describe(const sodet_voc *voc, uint64_t index, sodet_sample *out, sodet_err *err); /* any thread */
SODET_EXPORT sodet_status sodet_voc_pixels(const sodet_voc *voc, uint64_t index, sodet_sample *out, sodet_err *err);   /* any thread */
SODET_EXPORT void sodet_voc_close(sodet_voc *voc);                                                                     /* accepts NULL */

#ifdef __cplusplus
}
#endif
#endif
