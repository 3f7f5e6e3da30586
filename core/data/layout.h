/* data/layout.h: a data set written as files in one of the layouts that the plugins voc, coco, yolo and csv read.
 *
 *     voc   JPEGImages/<name>  Annotations/<stem>.xml  ImageSets/Main/<split>.txt
 *     coco  images/<name>  annotations/instances_<split>.json
 *     yolo  images/<split>/<name>  labels/<split>/<stem>.txt  data.yaml
 *     csv   images/<name>  <split>.csv  classes.csv (keras-retinanet's: no header)
 *     all   data.ini: the data sets and their classes, as sodet reads them; an INI can name it as its base
 *
 * Boxes are written with as many digits as it takes to read back the same floats by the reading plugin's rule; those where no number of digits
 * does (VOC takes what lies up to a pixel over the left or upper edge as the edge) are counted. What a layout has no mark for is counted, too:
 * objects of a crowd are left out of all but coco, difficult and truncated ones become ordinary ones in yolo and csv, areas of
 * segmentations are lost in all but coco.
 *
 * What a layout's files cannot say at all is refused by name before a file is written for it: a class or picture name that would not be read
 * back as it is (voc and csv: line breaks; voc: more than 255 bytes; voc, coco and yolo: bytes that are no UTF-8; yolo: hidden pictures), and in
 * voc and yolo, whose readers go by endings, a picture without one. Everything is written into .unfinished below the folder and moved up by
 * sd_layout_finish; what an error or an interrupt leaves there is removed, by sd_layout_close or by the next sd_layout_open. */
#ifndef SD_DATA_LAYOUT_H
#define SD_DATA_LAYOUT_H

#include <signal.h>

#include "core/data/dataset.h"

enum { SD_LAYOUT_VOC, SD_LAYOUT_COCO, SD_LAYOUT_YOLO, SD_LAYOUT_CSV, SD_LAYOUTS };
extern const char *const sd_layout_names[SD_LAYOUTS + 1]; /* the plugins' names; NULL at the end */
enum { SD_PICTURES_COPY, SD_PICTURES_LINK, SD_PICTURES_LEAVE };
extern const char *const sd_picture_modes[4]; /* copy, link, leave; NULL at the end */

typedef struct sd_layout sd_layout;
/* folder is made, or must be empty; stop: looked at between samples, an error where it is set (may be NULL). With SD_PICTURES_LEAVE files name the pictures where they are; yolo, whose labels lie beside the pictures,
 * cannot. Drawn pictures, which are no files, are written as PNG by SD_PICTURES_COPY alone. */
sodet_status sd_layout_open(const char *folder, uint32_t layout, uint32_t pictures, const sd_classes *classes,
                            const volatile sig_atomic_t *stop, sd_layout **out, sodet_err *err);
/* The whole set becomes a split of this name. Its classes must be those of sd_layout_open. */
sodet_status sd_layout_add(sd_layout *l, const char *split, const sd_dataset *d, sodet_err *err);
/* What belongs to all splits, and everything in its place. Lines for a person, each with its line end, are put behind *report. */
sodet_status sd_layout_finish(sd_layout *l, sd_text *report, sodet_err *err);
void sd_layout_close(sd_layout *l); /* accepts NULL */

/* "classes = a, b" for an INI, or, where a name or the length of the list forbids that, "classes = @<file>"; then *needs_file is set and
 * the caller writes the names there, one a line. Nothing where no line can hold a name (a line break): the data set's own
 * list counts then. */
void sd_layout_classes(sd_text *ini, const sd_classes *classes, const char *file, bool *needs_file);
/* "key = value", quoted where the value needs it. */
void sd_layout_ini_value(sd_text *ini, const char *key, const char *value);
bool sd_layout_has_control(const char *text);
/* The name's beginning, with what is no text in it as \xNN, so that a message of one line can show it. Returns out. */
const char *sd_layout_shown(const char *name, char out[120]);

#endif
