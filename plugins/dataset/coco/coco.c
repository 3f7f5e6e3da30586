/* coco: instances files in COCO's JSON format. Classes are the file's categories by rising id. */
#include <stdlib.h>

#include "sodet/coco.h"

typedef struct coco_cfg {
    const char *annotations, *pictures;
} coco_cfg;

static const sodet_opt options[] = {
    SODET_OPT_PATH(coco_cfg, annotations, SODET_OPT_REQUIRED,
                   "JSON file with images, annotations and categories (instances_train2017.json)"),
    SODET_OPT_PATH(coco_cfg, pictures, 0, "folder that the file names in it are relative to; default: the JSON's own"),
};

typedef struct coco {
    const coco_cfg *cfg;
    sodet_coco *file;
} coco;

static void destroy(void *self)
{
    coco *c = self;
    if (!c)
        return;
    sodet_coco_close(c->file);
    free(c);
}

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    coco *c = calloc(1, sizeof *c);
    *self = c;
    if (!c)
        return SODET_FAIL(err, SODET_E_MEMORY, "coco: no memory");
    c->cfg = cfg;
    return SODET_OK;
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    coco *c = self;
    sodet_status status = sodet_coco_open(c->cfg->annotations, c->cfg->pictures, &c->file, err);
    *n_samples = status == SODET_OK ? sodet_coco_size(c->file) : 0;
    return status;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_coco_describe(((const coco *)self)->file, index, out, err);
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_coco_pixels(((const coco *)self)->file, index, out, err);
}

static const char *const *classes(const void *self)
{
    return sodet_coco_classes(((const coco *)self)->file);
}

static int64_t category_id(const void *self, uint32_t i)
{
    return sodet_coco_category_id(((const coco *)self)->file, i);
}

static const sodet_dataset_ops ops = {
    .struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes, .category_id = category_id};
SODET_PLUGIN(SODET_KIND_DATASET, "coco", "COCO's instances files", coco_cfg, options, .create = create, .destroy = destroy, .ops = &ops);
