/* Models as configurations describe them: parts swapped by one line each, several input shapes, what does not fit together and how the
 * message says it, targets, and the losses of a batch without objects. */
#include <pthread.h>

#include "rig.h"

static sodet_err err = SODET_ERR_INIT;

/* One INI; the four lines that differ are put in. */
static sodet_status open_text(test_model *m, const char *backbone, const char *neck, const char *head, const char *loss, const char *more)
{
    char text[1024];
    *m = (test_model){NULL, NULL};
    snprintf(text, sizeof text,
             "[run]\nname = swap\n[input]\nsize = 300x300\n[backbone]\nplugin = %s\nwidth = 0.25\n[neck]\nplugin = %s\n[head]\nplugin = "
             "%s\n[loss]\nplugin = %s\n%s",
             backbone, neck, head, loss, more ? more : "");
    sodet_status s = sd_config_open_text(text, strlen(text), "swap.ini", NULL, NULL, 0, &m->cfg, &err);
    return s == SODET_OK ? sd_model_open(m->cfg, 3, &m->model, &err) : s;
}

static void bind_both(const sd_model *m, uint32_t height, uint32_t width, sd_segments *segments)
{
    const sd_model_shape shape = {.batch = 2, .height = height, .width = width, .boxes = 5};
    for (uint32_t training = 0; training < 2; training++) {
        const sd_graph_options options = {.training = training == 0};
        sodet_graph *g = NULL;
        CHECK_OK(sd_model_build(m, &options, &shape, &g, &err));
        if (!g)
            return;
        CHECK_OK(sd_graph_optimize(g, &err));
        if (options.training) {
            CHECK_EQ(sd_graph_loss_count(g), 2);
            CHECK_OK(sd_graph_backward(g, &err));
        }
        if (segments->n == 0)
            CHECK_OK(sd_segments_make(g, segments, &err));
        CHECK_OK(sd_graph_bind(g, segments, &err));
        sd_graph_free(g);
    }
}

static void swapping(void)
{
    static const struct {
        const char *backbone, *neck, *head, *loss;
        uint32_t levels, columns, other_height, other_width, strides[6]; /* stride 0: one cell for the whole picture */
    } nets[] = {
        {"tinyssd", "none", "ssd", "multibox", 5, 4, 128, 192, {8, 16, 32, 64, 0}},
        {"vgg16", "ssd_extras", "ssd", "multibox", 6, 4, 320, 288, {8, 16, 32, 64, 107, 0}},
        {"resnet\ndepth = 18", "ssd_extras\nladder = 512\nextra_levels = 2", "ssd", "multibox", 5, 4, 192, 320, {8, 16, 32, 64, 128}},
        {"resnet\ndepth = 50\nfirst_level = 4\nlast_level = 4\nlast_stride = 1",
         "ssd_extras\nlead = yes\nnorm = yes",
         "ssd",
         "multibox",
         6,
         4,
         320,
         288,
         {8, 16, 32, 64, 107, 0}},
        {"resnet\ndepth = 18\nlast_level = 3", "ssd_extras\nlead = yes\nextra_levels = 2", "ssd", "focal", 3, 3, 192, 320, {8, 16, 32}},
        {"resnet\ndepth = 18\nfirst_level = 2\nlast_level = 2\nlast_stride = 1", "none", "ssd", "focal", 1, 3, 192, 320, {4}},
        {"resnet\ndepth = 18", "fpn", "retinanet", "focal", 5, 3, 192, 320, {8, 16, 32, 64, 128}},
        {"resnet\ndepth = 18", "fpn", "ssd", "focal", 5, 3, 192, 320, {8, 16, 32, 64, 128}},
        {"resnet\ndepth = 50", "fpn", "retinanet", "multibox", 5, 4, 256, 128, {8, 16, 32, 64, 128}},
        {"mobilenet_v2", "fpn", "retinanet", "focal", 5, 3, 192, 320, {8, 16, 32, 64, 128}},
        {"mobilenet_v2\nfrozen_stages = 2\nfrozen_norm = yes", "none", "ssd", "multibox", 3, 4, 192, 320, {8, 16, 32}},
        {"tinyssd\nvariant = paper", "none", "ssd", "focal", 6, 3, 320, 320, {8, 16, 32, 64, 128, 0}}};
    for (uint32_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        test_model m;
        sd_segments s = {0};
        const sd_model_grid *grid = NULL;
        CHECK_OK(open_text(&m, nets[i].backbone, nets[i].neck, nets[i].head, nets[i].loss, NULL));
        if (m.model) {
            CHECK_OK(sd_model_grid_of(m.model, 300, 300, &grid, &err));
            CHECK(grid && grid->n_levels == nets[i].levels);
            for (uint32_t l = 0; grid && l < grid->n_levels; l++)
                CHECK_EQ(grid->level[l].stride, nets[i].strides[l]);
            CHECK_EQ(sd_model_context(m.model)->columns, nets[i].columns);
            bind_both(m.model, 300, 300, &s);
            bind_both(m.model, nets[i].other_height, nets[i].other_width, &s); /* the same parameters at another shape */
        }
        sd_segments_free(&s);
        test_model_close(&m);
    }
}

static void refused(const char *backbone, const char *neck, const char *head, const char *loss, const char *more, const char *part)
{
    test_model m;
    const sd_model_grid *grid;
    const sd_graph_options options = {.training = true};
    const sd_model_shape shape = {.batch = 1, .height = 300, .width = 300, .boxes = 1};
    sodet_graph *g = NULL;
    CHECK_OK(open_text(&m, backbone, neck, head, loss, more));
    if (m.model) {
        err = (sodet_err)SODET_ERR_INIT;
        sodet_status s = sd_model_grid_of(m.model, 300, 300, &grid, &err);
        if (s == SODET_OK)
            s = sd_model_build(m.model, &options, &shape, &g, &err);
        check_count();
        if (s != SODET_E_INVALID || !strstr(err.text, part))
            check_fail(__FILE__, __LINE__, "%s + %s + %s: status %d, \"%s\"; expected \"%s\"", backbone, neck, head, (int)s, err.text,
                       part);
    }
    sd_graph_free(g);
    test_model_close(&m);
}

static void pairing(void)
{
    refused("tinyssd", "fpn", "ssd", "multibox", NULL, "neck/fpn on backbone/tinyssd: feature map 4 covers the whole picture");
    refused("tinyssd", "ssd_extras", "ssd", "multibox", NULL,
            "neck/ssd_extras on backbone/tinyssd: the backbone's feature map 4 already covers");
    refused("vgg16", "ssd_extras", "retinanet", "focal", NULL,
            "head/retinanet on neck/ssd_extras on backbone/vgg16: level 1 has 256 channels, level 0 has 128");
    refused("vgg16", "ssd_extras\nextra_levels = 5", "ssd", "multibox", NULL, "extra_levels = 5: the ladder of 300 has 4");
    refused("vgg16", "ssd_extras\nextra_levels = 6\nlead = yes", "ssd", "multibox", NULL, "extra_levels = 6: the ladder of 300 has 5");
    refused("resnet", "fpn", "ssd\nsizes = 10 20 30", "multibox", NULL,
            "head/ssd on neck/fpn on backbone/resnet: sizes has 3 values for 5 levels: give 5, or 6");
    refused("resnet", "fpn", "ssd\nper_cell = 12", "multibox", NULL, "per_cell is 12 on level 0, which takes 5 ratios, but ratios has 2");

    test_model m;
    CHECK_FAILS(open_text(&m, "resnet\nfirst_level = 5\nlast_level = 4", "none", "ssd", "multibox", NULL), SODET_E_INVALID,
                "last_level = 4: below first_level = 5");
    test_model_close(&m);
    CHECK_OK(open_text(&m, "vgg16", "ssd_extras", "ssd", "multibox", NULL));
    const sd_model_grid *grid;
    CHECK_FAILS(sd_model_grid_of(m.model, 128, 128, &grid, &err), SODET_E_INVALID, "ladder is for inputs of about 300 pixels");
    CHECK_FAILS(sd_model_grid_of(m.model, 0, 128, &grid, &err), SODET_E_INVALID, "set [input] size");
    const sd_graph_options options = {.training = true};
    const sd_model_shape no_boxes = {.batch = 1, .height = 300, .width = 300};
    sodet_graph *g;
    CHECK_FAILS(sd_model_build(m.model, &options, &no_boxes, &g, &err), SODET_E_INVALID, "room for 0 boxes");
    sd_model *none = NULL;
    CHECK_FAILS(sd_model_open(m.cfg, 0, &none, &err), SODET_E_INVALID, "0 classes");
    CHECK(none == NULL);
    test_model_close(&m);
}

/* Every dialect opens on a model of its family, and says what it says. */
static void dialects(void)
{
    static const char *const files[][2] = {{"model/ssd300_vgg16.ini", "ssd_caffe"},
                                           {"model/ssd300_vgg16.ini", "ssd_pytorch"},
                                           {"model/ssd300_vgg16.ini", "ssd_torchvision"},
                                           {"model/ssd300_resnet50.ini", "ssd_nvidia"},
                                           {"model/tinyssd_d2l.ini", "ssd_d2l"},
                                           {"model/retinanet_r50_fpn.ini", "retinanet_torchvision"},
                                           {"model/retinanet_r50_fpn.ini", "retinanet_detectron2"},
                                           {"model/retinanet_r50_fpn.ini", "retinanet_zgcr"},
                                           {"model/retinanet_r50_fpn.ini", "retinanet_fizyr"}};
    for (uint32_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char base[160];
        test_model m;
        const sd_model_grid *grid = NULL;
        snprintf(base, sizeof base, "%s, model/dialect/%s.ini", files[i][0], files[i][1]);
        const char *const overrides[] = {"backbone.width=0.1", NULL};
        CHECK_OK(test_model_open(&m, base, overrides, 2, &err));
        if (m.model) {
            CHECK_OK(sd_model_grid_of(m.model, 304, 304, &grid, &err));
            sd_segments s = {0};
            bind_both(m.model, 304, 304, &s);
            sd_segments_free(&s);
            const float *box = grid->anchors->box;
            if (strcmp(files[i][1], "ssd_nvidia") == 0)
                CHECK_NEAR(box[4], 12, 0, 0); /* shape by shape: the next anchor is the next cell */
            else if (strcmp(files[i][1], "retinanet_detectron2") == 0)
                CHECK(box[0] == 0 && fabsf(box[2] - 32 * 1.41421356f) < 1e-4f);
            else if (strcmp(files[i][1], "retinanet_zgcr") == 0)
                CHECK(box[0] == 4 && fabsf(box[2] - 32 * 0.70710678f) < 1e-4f);
            else if (strcmp(files[i][1], "retinanet_torchvision") == 0)
                CHECK(box[0] == 0 && box[2] == 46 && box[3] == 22);
        }
        test_model_close(&m);
    }
}

/* Field case O-19, the part that the model sees: a class that it does not have is named, with both numbers. */
static void o_19_labels_out_of_range(void)
{
    test_model m;
    const sd_model_grid *grid = NULL;
    CHECK_OK(open_text(&m, "tinyssd", "none", "ssd", "multibox", NULL));
    CHECK_OK(sd_model_grid_of(m.model, 128, 128, &grid, &err));
    int32_t *index = calloc(grid->anchors->n, sizeof *index), label[2] = {2, 3};
    uint32_t positives = 9;
    const sodet_box box[2] = {{10, 10, 60, 60}, {70, 70, 120, 120}};
    sodet_boxes t = {.struct_size = sizeof t, .n = 1, .box = box, .label = label};
    CHECK_OK(sd_model_assign(m.model, grid, &t, index, &positives, &err));
    CHECK(positives > 0);
    uint32_t counted = 0;
    for (uint64_t k = 0; k < grid->anchors->n; k++)
        counted += index[k] == 0;
    CHECK_EQ(counted, positives);
    t.n = 2;
    CHECK_FAILS(sd_model_assign(m.model, grid, &t, index, &positives, &err), SODET_E_INVALID,
                "object 1 has class 3, the model has 3 (0 to 2)");
    label[1] = -1;
    CHECK_FAILS(sd_model_assign(m.model, grid, &t, index, &positives, &err), SODET_E_INVALID, "class -1");
    free(index);
    test_model_close(&m);
}

/* Field case O-17: no positive in a batch. The multibox loss is 0, or that of a minimum of negatives; gradients are finite. */
static void o_17_no_positive(uint32_t least, double want)
{
    static const double cross[8] = {.1, .2, .3, .4, .5, .05, .05, .05};

    rig r = {0};
    char text[512];
    snprintf(text, sizeof text,
             "[run]\ndevices = ref\n[backbone]\nplugin = tinyssd\n[head]\nplugin = ssd\n[loss]\nplugin = multibox\nmin_negatives = %u\n",
             least);
    CHECK_OK(sd_config_open_text(text, strlen(text), "o17.ini", NULL, NULL, 0, &r.m.cfg, &err));
    CHECK_OK(sd_model_open(r.m.cfg, 1, &r.m.model, &err));
    const sd_graph_options options = {.training = true};
    CHECK_OK(sd_graph_create(&options, &r.graph, &err));
    const sodet_shape logits = sodet_shape_make(SODET_F32, 3, 1, 8, 2, 0), codes = sodet_shape_make(SODET_F32, 3, 1, 8, 4, 0),
                      table = sodet_shape_make(SODET_F32, 2, 8, 4, 0, 0);
    const sodet_shape index = sodet_shape_make(SODET_I32, 2, 1, 8, 0, 0), truth = sodet_shape_make(SODET_F32, 3, 1, 1, 4, 0),
                      label = sodet_shape_make(SODET_I32, 2, 1, 1, 0, 0), each = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    const sodet_param param = {.init = SODET_INIT_ZEROS};
    float anchors[8][4], x[8][2], grad[48], weight = 1, loss_cls = NAN, loss_box = NAN; /* 1 / max(1, 0) */
    int32_t none[8];
    for (uint32_t k = 0; k < 8; k++) {
        anchors[k][0] = anchors[k][1] = 4;
        anchors[k][2] = anchors[k][3] = 8;
        x[k][0] = (float)-log(exp(cross[k]) - 1); /* against 0 this column's cross-entropy is cross[k] */
        x[k][1] = 0;
        none[k] = SODET_INDEX_BACKGROUND;
    }
    sodet_head_out raw = {.struct_size = sizeof raw, .variance = {0.1f, 0.1f, 0.2f, 0.2f}};
    raw.logits = sodet_parameter(r.graph, "logits", &logits, &param);
    raw.codes = sodet_parameter(r.graph, "codes", &codes, &param);
    const sodet_targets t = {.struct_size = sizeof t,
                             .index = sodet_input(r.graph, "index", &index),
                             .truth = sodet_input(r.graph, "truth", &truth),
                             .label = sodet_input(r.graph, "label", &label),
                             .anchors = sodet_constant(r.graph, &table, anchors),
                             .weight = sodet_input(r.graph, "weight", &each),
                             .share = sodet_input(r.graph, "share", &each)};
    const sodet_loss_ops *ops = sd_model_part(r.m.model, SODET_KIND_LOSS)->ops;
    CHECK_OK(ops->build(sd_model_part(r.m.model, SODET_KIND_LOSS)->self, r.graph, &raw, &t, &err));
    CHECK_OK(rig_start(&r, &err));
    const sd_segment *sl = sd_segments_find(&r.segments, "logits"), *sc = sd_segments_find(&r.segments, "codes");
    CHECK_OK(rig_set(&r, sl, x[0], &err));
    const float box[4] = {0};
    const int32_t zero = 0;
    const rig_io io[] = {{"index", none, NULL, 8},         {"truth", box, NULL, 4},     {"label", &zero, NULL, 1},
                         {"weight", &weight, NULL, 1},     {"share", &weight, NULL, 1}, {"loss/cls", NULL, &loss_cls, 1},
                         {"loss/box", NULL, &loss_box, 1}, {NULL, NULL, NULL, 0}};
    CHECK_OK(rig_run(&r, io, &err));
    CHECK_NEAR(loss_cls, want, 0, 1e-6);
    CHECK_NEAR(loss_box, 0, 0, 0);
    CHECK_OK(sd_device_pool_read(r.pool, SD_ARENA_GRAD, sl->offset, 16, grad, &err));
    CHECK_OK(sd_device_pool_read(r.pool, SD_ARENA_GRAD, sc->offset, 32, grad + 16, &err));
    uint32_t with = 0;
    for (uint32_t k = 0; k < 48; k++) {
        CHECK(isfinite(grad[k]));
        with += grad[k] != 0;
    }
    CHECK_EQ(with, 2 * least);
    rig_close(&r);
}

/* Grids and assignment from several threads at once. */
typedef struct worker {
    const sd_model *model;
    uint32_t number;
    uint64_t sum;
    sodet_status status;
} worker;

static void *work(void *context)
{
    worker *w = context;
    sodet_err e = SODET_ERR_INIT;
    const sodet_box box[1] = {{20, 20, 90, 80}};
    const int32_t label[1] = {1};
    const sodet_boxes t = {.struct_size = sizeof t, .n = 1, .box = box, .label = label};
    for (uint32_t i = 0; i < 6 && w->status == SODET_OK; i++) {
        const sd_model_grid *grid = NULL;
        w->status = sd_model_grid_of(w->model, 128 + 64 * ((i + w->number) % 3), 128, &grid, &e);
        if (w->status != SODET_OK)
            break;
        int32_t *index = calloc(grid->anchors->n, sizeof *index);
        uint32_t positives = 0;
        w->status = sd_model_assign(w->model, grid, &t, index, &positives, &e);
        w->sum += positives + grid->anchors->n;
        free(index);
    }
    return NULL;
}

static void threads(void)
{
    test_model m;
    pthread_t id[4];
    worker w[4];
    CHECK_OK(open_text(&m, "tinyssd", "none", "ssd", "multibox", NULL));
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = (worker){.model = m.model, .number = i};
        CHECK(pthread_create(&id[i], NULL, work, &w[i]) == 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(id[i], NULL);
        CHECK_EQ(w[i].status, SODET_OK);
        CHECK_EQ(w[i].sum, w[0].sum); /* each saw all three shapes twice */
    }
    test_model_close(&m);
}

int main(void)
{
    swapping();
    pairing();
    dialects();
    o_19_labels_out_of_range();
    o_17_no_positive(0, 0);
    o_17_no_positive(3, 1.2);
    threads();
    return check_done(120);
}
