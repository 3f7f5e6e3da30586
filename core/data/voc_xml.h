/* data/voc_xml.h: one VOC annotation file to numbers. */
#ifndef SD_DATA_VOC_XML_H
#define SD_DATA_VOC_XML_H

#include "core/base/base.h"
#include "sodet/data.h"

typedef struct sd_voc_object {
    const char *name; /* in the caller's pool */
    double corner[4]; /* xmin ymin xmax ymax as written */
    uint32_t flags;   /* SODET_BOX_* */
} sd_voc_object;
typedef struct sd_voc_file {
    uint32_t width, height; /* 0: not said */
    sd_voc_object *objects; /* grows, used again */
    uint64_t n, capacity;
} sd_voc_file;

/* Errors name path, object and tag. Only memory, and what the system refuses, are not SODET_E_INVALID. */
sodet_status sd_voc_xml_read(const char *path, sd_pool *pool, sd_voc_file *out, sodet_err *err);

#endif
