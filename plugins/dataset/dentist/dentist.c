/* DENTIST: dental X-rays in VOC layout. The model for a data set of one's own: class names, a folder, and who reads it. */
#include <stdlib.h>

#include "sodet/voc.h"

static const char *const class_names[] = {"Cavity", "Fillings", "Impacted Tooth", "Implant", NULL};

typedef struct dentist_cfg {
    const char *root, *split;
} dentist_cfg;

static const sodet_opt options[] = {
    SODET_OPT_PATH(dentist_cfg, root, SODET_OPT_REQUIRED, "folder that holds JPEGImages, Annotations and ImageSets"),
    SODET_OPT_STRING(dentist_cfg, split, "train", "list: ImageSets/Main/<split>.txt"),
};

typedef struct dentist {
    const dentist_cfg *cfg;
    sodet_voc *voc;
} dentist;

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    dentist *d = calloc(1, sizeof *d);
    *self = d;
    if (!d)
        return SODET_FAIL(err, SODET_E_MEMORY, "dentist: no memory for the data set");
    d->cfg = cfg;
    return SODET_OK;
}

static void destroy(void *self)
{
    dentist *d = self;
    if (!d)
        return;
    sodet_voc_close(d->voc);
    free(d);
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    dentist *d = self;
    const sodet_voc_layout layout = {.struct_size = sizeof layout, .root = d->cfg->root, .split = d->cfg->split};
    sodet_status status = sodet_voc_open(&layout, &d->voc, err);
    *n_samples = status == SODET_OK ? sodet_voc_size(d->voc) : 0;
    return status;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_voc_describe(((const dentist *)self)->voc, index, out, err);
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_voc_pixels(((const dentist *)self)->voc, index, out, err);
}

static const char *const *classes(const void *self)
{
    (void)self;
    return class_names;
}

static const sodet_dataset_ops ops = {.struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes};
SODET_PLUGIN(SODET_KIND_DATASET, "dentist", "dental X-rays in VOC layout", dentist_cfg, options, .create = create, .destroy = destroy,
             .ops = &ops);
