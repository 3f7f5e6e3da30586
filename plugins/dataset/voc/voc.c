/* voc: PASCAL VOC's layout of lists, XML annotations and pictures; also what people keep in that layout or something like it. */
#include <stdlib.h>
#include <string.h>

#include "sodet/voc.h"

/* Everingham et al., "The PASCAL Visual Object Classes Challenge 2007", in the order that ssd.pytorch, GluonCV and Detectron2 use. */
static const char *const pascal[] = {"aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",       "car",
                                     "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",     "motorbike",
                                     "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor", NULL};

typedef struct voc_cfg {
    const char *root, *split, *annotations, *pictures;
    uint32_t zero_based, need_pictures;
    sodet_string_list classes;
} voc_cfg;

static const sodet_opt options[] = {
    SODET_OPT_PATH(voc_cfg, root, SODET_OPT_REQUIRED,
                   "folder that holds JPEGImages, Annotations and ImageSets; or pictures and .xml side by side"),
    SODET_OPT_STRING(voc_cfg, split, NULL, "list: ImageSets/Main/<split>.txt, or the path of a .txt; none: every annotation there is"),
    SODET_OPT_STRING(voc_cfg, annotations, NULL, "folder below root; default Annotations"),
    SODET_OPT_STRING(voc_cfg, pictures, NULL, "folder below root; default JPEGImages, images, or root itself"),
    SODET_OPT_STRINGS(voc_cfg, classes, NULL, 0, "class names; default: PASCAL VOC's twenty ([data] classes overrides both)"),
    SODET_OPT_BOOL(voc_cfg, zero_based, "no",
                   "corners are 0-based with exclusive ends (most home-made tools), not VOC's 1-based inclusive ones"),
    SODET_OPT_BOOL(voc_cfg, need_pictures, "yes", "a missing picture is an error when the annotations are read"),
};

typedef struct voc {
    const voc_cfg *cfg;
    sodet_voc *files;
    const char **classes; /* NULL: pascal */
} voc;

static void destroy(void *self)
{
    voc *v = self;
    if (!v)
        return;
    sodet_voc_close(v->files);
    free(v->classes);
    free(v);
}

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    const voc_cfg *c = cfg;
    *self = NULL;
    voc *v = calloc(1, sizeof *v);
    if (v && c->classes.n)
        v->classes = calloc(c->classes.n + 1u, sizeof *v->classes);
    if (!v || (c->classes.n && !v->classes)) {
        free(v);
        return SODET_FAIL(err, SODET_E_MEMORY, "voc: no memory");
    }
    v->cfg = c;
    if (v->classes)
        memcpy(v->classes, c->classes.v, c->classes.n * sizeof *v->classes);
    *self = v;
    return SODET_OK;
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    voc *v = self;
    const voc_cfg *c = v->cfg;
    const sodet_voc_layout layout = {.struct_size = sizeof layout,
                                     .flags = c->need_pictures ? 0 : SODET_VOC_NO_PICTURES,
                                     .root = c->root,
                                     .split = c->split,
                                     .annotations = c->annotations,
                                     .pictures = c->pictures,
                                     .zero_based = c->zero_based};
    sodet_status status = sodet_voc_open(&layout, &v->files, err);
    *n_samples = status == SODET_OK ? sodet_voc_size(v->files) : 0;
    return status;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_voc_describe(((const voc *)self)->files, index, out, err);
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    return sodet_voc_pixels(((const voc *)self)->files, index, out, err);
}

static const char *const *classes(const void *self)
{
    const voc *v = self;
    return v->classes ? v->classes : pascal;
}

static const sodet_dataset_ops ops = {.struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes};
SODET_PLUGIN(SODET_KIND_DATASET, "voc", "PASCAL VOC layout: lists, XML annotations, pictures", voc_cfg, options, .create = create,
             .destroy = destroy, .ops = &ops);
