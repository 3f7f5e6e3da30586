#include "core/detect/model.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/detect/features.h"

enum { BACKBONE, NECK, HEAD, LOSS, PARTS };
static const char *const part_section[PARTS] = {"backbone", "neck", "head", "loss"};

typedef struct grid {
    sd_model_grid seen;
    sodet_anchors anchors;
    sodet_shape2d level[SODET_MAX_LEVELS];
    struct grid *next;
} grid;

struct sd_model {
    sd_instance part[PARTS];
    sodet_head_context context;
    const sd_input_cfg *input;
    pthread_mutex_t lock;
    grid *grids;
};

static const char *plugin_name(const sd_model *m, uint32_t part)
{
    return m->part[part].plugin->desc.name;
}

/* Puts the plugins that take part in front of what one of them said. */
static sodet_status said_by(const sd_model *m, uint32_t first, uint32_t last, sodet_status s, sodet_err *err)
{
    if (s == SODET_OK)
        return s;
    char who[400];
    int n = 0;
    for (uint32_t p = first; p <= last && n >= 0 && n < (int)sizeof who; p++)
        n += snprintf(who + n, sizeof who - (size_t)n, "%s%s/%s", p == first ? "" : " on ", part_section[first + last - p],
                      plugin_name(m, first + last - p));
    return sd_fail_in(err, s, "%s", who);
}

/* ---- open, close ---- */
sodet_status sd_model_open(sd_config *cfg, uint32_t n_classes, sd_model **out, sodet_err *err)
{
    *out = NULL;
    if (n_classes == 0)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "a detector of 0 classes: name them in [data] classes, or use a data set that names its own");
    sd_model *m = sd_alloc(1, sizeof *m);
    if (!m)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the model");
    pthread_mutex_init(&m->lock, NULL);
    for (uint32_t p = 0; p < PARTS; p++) {
        sodet_status s = sd_instance_create(cfg, part_section[p], &m->part[p], err);
        if (s != SODET_OK) {
            sd_model_close(m);
            return s;
        }
    }
    const sodet_loss_ops *loss = m->part[LOSS].ops;
    if (loss->activation != SODET_SOFTMAX && loss->activation != SODET_SIGMOID) {
        sodet_status s = SODET_FAIL(err, SODET_E_INVALID, "loss/%s declares activation %u: SODET_SOFTMAX or SODET_SIGMOID is wanted",
                                    plugin_name(m, LOSS), loss->activation);
        sd_model_close(m);
        return s;
    }
    m->context = (sodet_head_context){.struct_size = sizeof m->context,
                                      .n_classes = n_classes,
                                      .columns = loss->activation == SODET_SOFTMAX ? n_classes + 1 : n_classes,
                                      .activation = loss->activation};
    m->input = &sd_config_core(cfg)->input;
    *out = m;
    return SODET_OK;
}

void sd_model_close(sd_model *m)
{
    if (!m)
        return;
    while (m->grids) {
        grid *g = m->grids;
        m->grids = g->next;
        sd_free(g->anchors.box);
        sd_free(g);
    }
    for (uint32_t p = PARTS; p-- > 0;)
        sd_instance_destroy(&m->part[p]);
    pthread_mutex_destroy(&m->lock);
    sd_free(m);
}

const sodet_head_context *sd_model_context(const sd_model *m)
{
    return &m->context;
}

const sd_instance *sd_model_part(const sd_model *m, uint32_t kind)
{
    return kind >= SODET_KIND_BACKBONE && kind <= SODET_KIND_LOSS ? &m->part[kind - SODET_KIND_BACKBONE] : NULL;
}

/* ---- features ---- */
static sodet_status check_features(const sodet_graph *g, const sodet_features *f, sodet_err *err)
{
    if (f->n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "gave no feature map");
    for (uint32_t l = 1; l < f->n; l++) {
        if (f->stride[l] && (f->stride[l - 1] == 0 || f->stride[l] < f->stride[l - 1]))
            return SODET_FAIL(err, SODET_E_INVALID, "feature %u has stride %u behind one of stride %u: feature maps go from fine to coarse",
                              l, f->stride[l], f->stride[l - 1]);
        if (sodet_dim(g, f->map[l], 0) != sodet_dim(g, f->map[0], 0))
            return SODET_FAIL(err, SODET_E_INVALID, "feature %u is of %lld pictures, feature 0 of %lld", l,
                              (long long)sodet_dim(g, f->map[l], 0), (long long)sodet_dim(g, f->map[0], 0));
    }
    return SODET_OK;
}

/* The graph's own state comes first: a plugin that returns OK after a failed call is found out. */
static sodet_status after_build(const sd_model *m, uint32_t part, const sodet_graph *g, sodet_status s, sodet_err *err)
{
    char who[160];
    snprintf(who, sizeof who, "%s/%s", part_section[part], plugin_name(m, part));
    return s == SODET_OK ? sd_graph_check(g, who, err) : s;
}

static sodet_status build_features(const sd_model *m, sodet_graph *g, sodet_value image, sodet_features *out, sodet_err *err)
{
    const sodet_backbone_ops *backbone = m->part[BACKBONE].ops;
    const sodet_neck_ops *neck = m->part[NECK].ops;
    sodet_features first = {0};
    *out = (sodet_features){0};

    sodet_enter(g, "backbone");
    sodet_status s = backbone->build(m->part[BACKBONE].self, g, image, &first, err);
    sodet_leave(g);
    s = after_build(m, BACKBONE, g, s, err);
    if (s == SODET_OK)
        s = check_features(g, &first, err);
    if (s != SODET_OK)
        return said_by(m, BACKBONE, BACKBONE, s, err);

    sodet_enter(g, "neck");
    s = neck->build(m->part[NECK].self, g, &first, out, err);
    sodet_leave(g);
    s = after_build(m, NECK, g, s, err);
    if (s == SODET_OK)
        s = check_features(g, out, err);
    return said_by(m, BACKBONE, NECK, s, err);
}

/* The image from pictures of bytes. */
static sodet_value make_pixels(const sd_model *m, sodet_graph *g, const sd_model_shape *s)
{
    const int64_t n = s->batch;
    const sodet_shape pictures = sodet_shape_make(SODET_I32, 1, n * (int64_t)(s->picture_bytes / 4), 0, 0, 0);
    const sodet_shape place = sodet_shape_make(SODET_I32, 2, n, SODET_PIXELS_PLACES, 0, 0);
    const sodet_shape value = sodet_shape_make(SODET_F32, 2, n, SODET_PIXELS_VALUES, 0, 0);
    static const uint32_t orders[] = {
        [SD_CHANNELS_RGB] = SODET_PIXELS_RGB, [SD_CHANNELS_BGR] = SODET_PIXELS_BGR, [SD_CHANNELS_GREY] = SODET_PIXELS_GREY};
    sodet_pixels_attr a = {.channels = orders[m->input->channels], .height = (int32_t)s->height, .width = (int32_t)s->width};
    for (uint32_t c = 0; c < 3 && c < m->input->mean.n && c < m->input->std.n; c++) {
        a.mean[c] = (float)m->input->mean.v[c];
        a.std[c] = (float)m->input->std.v[c];
    }
    sodet_enter(g, "input");
    sodet_value image =
        sodet_pixels(g, sodet_input(g, "pictures", &pictures), sodet_input(g, "place", &place), sodet_input(g, "value", &value), &a);
    sodet_leave(g);
    return image;
}

static sodet_status make_image(const sd_model *m, sodet_graph *g, const sd_model_shape *s, sodet_value *out, sodet_err *err)
{
    if (s->height == 0 || s->width == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "an input of %ux%u pixels: set [input] size", s->width, s->height);
    const sodet_shape shape = sodet_shape_make(SODET_F32, 4, s->batch, m->input->channels == SD_CHANNELS_GREY ? 1 : 3, s->height, s->width);
    *out = s->picture_bytes ? make_pixels(m, g, s) : sodet_input(g, "image", &shape);
    return sodet_graph_status(g, err);
}

/* ---- grids ---- */
static sodet_status check_anchors(const sodet_anchors *a, sodet_err *err)
{
    for (uint64_t k = 0; k < a->n; k++) {
        const float *b = a->box + 4 * k;
        if (!(isfinite(b[0]) && isfinite(b[1]) && isfinite(b[2]) && isfinite(b[3]) && b[2] > 0 && b[3] > 0))
            return SODET_FAIL(err, SODET_E_INVALID, "anchor %llu is (%g, %g) of %g x %g: finite numbers and a size above 0 are wanted",
                              (unsigned long long)k, (double)b[0], (double)b[1], (double)b[2], (double)b[3]);
    }
    return SODET_OK;
}

static sodet_status fill_grid(const sd_model *m, grid *out, uint32_t height, uint32_t width, sodet_err *err)
{
    const sd_graph_options options = {.training = false};
    const sodet_head_ops *head = m->part[HEAD].ops;
    sodet_graph *g = NULL;
    sodet_features f;
    sodet_value image;
    sodet_status s = sd_graph_create(&options, &g, err);
    if (s == SODET_OK)
        s = make_image(m, g, &(sd_model_shape){.batch = 1, .height = height, .width = width}, &image, err);
    if (s == SODET_OK)
        s = build_features(m, g, image, &f, err);
    if (s != SODET_OK)
        goto end;
    for (uint32_t l = 0; l < f.n; l++)
        out->level[l] = (sodet_shape2d){
            .height = (uint32_t)sodet_dim(g, f.map[l], 2), .width = (uint32_t)sodet_dim(g, f.map[l], 3), .stride = f.stride[l]};
    out->anchors = (sodet_anchors){.struct_size = sizeof out->anchors, .height = height, .width = width};
    s = head->anchors(m->part[HEAD].self, out->level, f.n, (sodet_shape2d){.height = height, .width = width}, &out->anchors, err);
    if (s == SODET_OK)
        s = check_anchors(&out->anchors, err);
    out->seen = (sd_model_grid){height, width, f.n, out->level, &out->anchors};
    s = said_by(m, BACKBONE, HEAD, s, err);
end:
    sd_graph_free(g);
    return s;
}

sodet_status sd_model_grid_of(const sd_model *model, uint32_t height, uint32_t width, const sd_model_grid **out, sodet_err *err)
{
    sd_model *m = (sd_model *)model; /* the list of grids is a cache behind its own lock */
    *out = NULL;
    pthread_mutex_lock(&m->lock);
    grid *g = m->grids;
    while (g && (g->seen.height != height || g->seen.width != width))
        g = g->next;
    sodet_status s = SODET_OK;
    if (!g) {
        g = sd_alloc(1, sizeof *g);
        s = g ? fill_grid(m, g, height, width, err) : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the anchors of %ux%u", width, height);
        if (s == SODET_OK) {
            g->next = m->grids;
            m->grids = g;
        } else if (g) {
            sd_free(g->anchors.box);
            sd_free(g);
        }
    }
    if (s == SODET_OK)
        *out = &g->seen;
    pthread_mutex_unlock(&m->lock);
    return s;
}

sodet_status sd_model_assign(const sd_model *m, const sd_model_grid *grid_, const sodet_boxes *truth, int32_t *index, uint32_t *positives,
                             sodet_err *err)
{
    const sodet_head_ops *head = m->part[HEAD].ops;
    if (positives)
        *positives = 0;
    for (uint32_t i = 0; i < truth->n; i++) {
        if ((uint32_t)truth->label[i] >= m->context.n_classes) /* below 0, too */
            return SODET_FAIL(err, SODET_E_INVALID, "object %u has class %d, the model has %u (0 to %u)", i, (int)truth->label[i],
                              m->context.n_classes, m->context.n_classes - 1);
    }
    sodet_status s = head->assign(m->part[HEAD].self, grid_->anchors, truth, index, err);
    uint32_t n = 0;
    for (uint64_t k = 0; k < grid_->anchors->n && s == SODET_OK; k++) {
        if (index[k] < SODET_INDEX_IGNORE || index[k] >= (int32_t)truth->n)
            s = SODET_FAIL(err, SODET_E_INVALID, "assign gave anchor %llu object %d of %u", (unsigned long long)k, (int)index[k], truth->n);
        n += index[k] >= 0;
    }
    if (positives && s == SODET_OK)
        *positives = n;
    return said_by(m, HEAD, HEAD, s, err);
}

/* ---- the graph ---- */
static sodet_status check_head(const sd_model *m, const sodet_graph *g, const sodet_head_out *raw, uint64_t n_anchors, sodet_err *err)
{
    const int64_t batch = sodet_dim(g, raw->logits, 0);
    sodet_shape logits = sodet_shape_of(g, raw->logits), codes = sodet_shape_of(g, raw->codes);
    char a[64], b[64];
    if (logits.rank != 3 || codes.rank != 3 || logits.dim[1] != codes.dim[1] || codes.dim[2] != 4 || codes.dim[0] != batch ||
        logits.dim[2] != (int64_t)m->context.columns)
        return SODET_FAIL(err, SODET_E_INVALID, "logits are %s and codes %s: [N, A, %u] and [N, A, 4] are wanted",
                          sd_shape_text(&logits, a), sd_shape_text(&codes, b), m->context.columns);
    if ((uint64_t)logits.dim[1] != n_anchors)
        return SODET_FAIL(err, SODET_E_INVALID, "build made %lld boxes, anchors made %llu: both must follow the same sizes and ratios",
                          (long long)logits.dim[1], (unsigned long long)n_anchors);
    uint64_t boxes = 0;
    for (uint32_t l = 0; l < raw->n_levels && l < SODET_MAX_LEVELS; l++)
        boxes += raw->level_boxes[l];
    if (raw->n_levels > SODET_MAX_LEVELS || boxes != n_anchors)
        return SODET_FAIL(err, SODET_E_INVALID, "level_boxes of %u levels add up to %llu boxes, not to %llu", raw->n_levels,
                          (unsigned long long)boxes, (unsigned long long)n_anchors);
    for (uint32_t c = 0; c < 4; c++) {
        if (!(raw->variance[c] > 0 && isfinite(raw->variance[c])))
            return SODET_FAIL(err, SODET_E_INVALID, "variance %u is %g: above 0 is wanted", c, (double)raw->variance[c]);
    }
    return SODET_OK;
}

static sodet_status build_loss(const sd_model *m, sodet_graph *g, const sd_model_shape *shape, const sodet_head_out *raw,
                               sodet_value anchors, int64_t n_anchors, sodet_err *err)
{
    const sodet_loss_ops *loss = m->part[LOSS].ops;
    const int64_t n = shape->batch, boxes = shape->boxes;
    const sodet_shape index = sodet_shape_make(SODET_I32, 2, n, n_anchors, 0, 0), truth = sodet_shape_make(SODET_F32, 3, n, boxes, 4, 0);
    const sodet_shape label = sodet_shape_make(SODET_I32, 2, n, boxes, 0, 0), each = sodet_shape_make(SODET_F32, 1, n, 0, 0, 0);
    const sodet_targets t = {.struct_size = sizeof t,
                             .index = sodet_input(g, "index", &index),
                             .truth = sodet_input(g, "truth", &truth),
                             .label = sodet_input(g, "label", &label),
                             .anchors = anchors,
                             .weight = sodet_input(g, "weight", &each),
                             .share = sodet_input(g, "share", &each)};
    sodet_enter(g, "loss");
    sodet_status s = loss->build(m->part[LOSS].self, g, raw, &t, err);
    sodet_leave(g);
    s = after_build(m, LOSS, g, s, err);
    if (s == SODET_OK && sd_graph_loss_count(g) == 0)
        s = SODET_FAIL(err, SODET_E_INVALID, "emitted no loss term: call sodet_emit_loss");
    return said_by(m, HEAD, LOSS, s, err);
}

static sodet_status build_detections(const sd_model *m, sodet_graph *g, const sd_model_shape *shape, const sodet_head_out *raw,
                                     sodet_value anchors, sodet_err *err)
{
    const sodet_head_ops *head = m->part[HEAD].ops;
    sodet_detections d = {.struct_size = sizeof d};
    sodet_enter(g, "detect");
    sodet_status s = head->build_infer(m->part[HEAD].self, g, raw, anchors, (sodet_shape2d){.height = shape->height, .width = shape->width},
                                       &m->context, &d, err);
    sodet_leave(g);
    s = after_build(m, HEAD, g, s, err);
    if (s == SODET_OK) {
        sodet_output(g, "detections/boxes", d.boxes);
        sodet_output(g, "detections/scores", d.scores);
        sodet_output(g, "detections/labels", d.labels);
        sodet_output(g, "detections/count", d.count);
        s = sodet_graph_status(g, err);
    }
    return said_by(m, HEAD, HEAD, s, err);
}

static void raw_outputs(sodet_graph *g, const sodet_features *f, const sodet_head_out *raw)
{
    char name[32];
    sodet_output(g, "raw/logits", raw->logits);
    sodet_output(g, "raw/codes", raw->codes);
    for (uint32_t l = 0; l < f->n; l++) {
        snprintf(name, sizeof name, "raw/feature%u", l);
        sodet_output(g, name, f->map[l]);
    }
}

sodet_status sd_model_build(const sd_model *m, const sd_graph_options *options, const sd_model_shape *shape, sodet_graph **out,
                            sodet_err *err)
{
    *out = NULL;
    const sodet_head_ops *head = m->part[HEAD].ops;
    const sd_model_grid *at;
    sodet_graph *g = NULL;
    sodet_features f;
    sodet_value image;
    sodet_head_out raw = {.struct_size = sizeof raw};
    if (options->training && shape->boxes == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "a training graph with room for 0 boxes per picture: at least 1 is wanted");
    sodet_status s = sd_model_grid_of(m, shape->height, shape->width, &at, err);
    if (s == SODET_OK)
        s = sd_graph_create(options, &g, err);
    if (s == SODET_OK)
        s = make_image(m, g, shape, &image, err);
    if (s == SODET_OK)
        s = build_features(m, g, image, &f, err);
    if (s != SODET_OK)
        goto end;

    sodet_enter(g, "head");
    s = head->build(m->part[HEAD].self, g, &f, &m->context, &raw, err);
    sodet_leave(g);
    s = after_build(m, HEAD, g, s, err);
    if (s == SODET_OK)
        s = check_head(m, g, &raw, at->anchors->n, err);
    s = said_by(m, BACKBONE, HEAD, s, err);
    if (s != SODET_OK)
        goto end;

    const sodet_shape table = sodet_shape_make(SODET_F32, 2, (int64_t)at->anchors->n, 4, 0, 0);
    sodet_value anchors = sodet_constant(g, &table, at->anchors->box);
    if (!options->training && (shape->flags & SD_MODEL_NETWORK)) {
        sodet_output(g, "raw/logits", raw.logits);
        sodet_output(g, "raw/codes", raw.codes);
        s = sd_graph_check(g, "model", err);
        goto end;
    }
    s = options->training ? build_loss(m, g, shape, &raw, anchors, (int64_t)at->anchors->n, err)
                          : build_detections(m, g, shape, &raw, anchors, err);
    if (s == SODET_OK && (shape->flags & SD_MODEL_RAW))
        raw_outputs(g, &f, &raw);
    if (s == SODET_OK)
        s = sd_graph_check(g, "model", err);
end:
    if (s != SODET_OK) {
        sd_graph_free(g);
        return s;
    }
    *out = g;
    return SODET_OK;
}
