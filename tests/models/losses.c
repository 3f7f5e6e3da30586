/* The losses against torchvision's (tests/golden/losses.json): heads' matching, targets, loss plugins and their gradients, on logits and
 * codes made by formula. `ref` in double and in float, and `cpu`. Sets A and B, and RetinaNet's T; on ssd/T torchvision's own float and
 * double runs match unlike boxes. */
#include "rig.h"

static sodet_err err = SODET_ERR_INIT;

typedef struct kind {
    const char *name, *base;
    uint32_t side, classes; /* C of ours: with softmax torchvision's label L is our class L - 1 */
    int32_t shift;
    double offset; /* added to the logits */
    bool per_image;
} kind;
static const kind kinds[] = {
    {"ssd", "model/ssd300_vgg16_coco.ini, model/dialect/ssd_torchvision.ini", 300, 20, 1, 0, false},
    {"retinanet", "model/retinanet_r50_fpn.ini, model/dialect/retinanet_torchvision.ini", 320, 21, 0, -3, true},
};

typedef struct device {
    const char *devices, *real;
    double tolerance;
} device;

typedef struct batch {
    int32_t *index, label[2][8];
    float truth[2][8][4], weight[2], share[2];
} batch;

static void fill_batch(const kind *k, const sd_model *m, const sd_model_grid *grid, const gold *set, batch *b)
{
    uint32_t positives[2];
    memset(b->label, 0, sizeof b->label);
    memset(b->truth, 0, sizeof b->truth);
    for (uint32_t n = 0; n < 2; n++) {
        const gold *boxes = gold_get(gold_at(set, n), "boxes"), *labels = gold_get(gold_at(set, n), "labels");
        sodet_box truth[8];
        sodet_boxes t = {.struct_size = sizeof t, .n = (uint32_t)gold_size(boxes), .box = truth, .label = b->label[n]};
        for (uint32_t i = 0; i < t.n && i < 8; i++) {
            for (uint32_t c = 0; c < 4; c++)
                b->truth[n][i][c] = (float)gold_number(gold_at(gold_at(boxes, i), c));
            truth[i] = (sodet_box){b->truth[n][i][0], b->truth[n][i][1], b->truth[n][i][2], b->truth[n][i][3]};
            b->label[n][i] = (int32_t)gold_number(gold_at(labels, i)) - k->shift;
        }
        CHECK_OK(sd_model_assign(m, grid, &t, b->index + n * grid->anchors->n, &positives[n], &err));
    }
    const uint32_t all = positives[0] + positives[1];
    for (uint32_t n = 0; n < 2; n++) {
        b->share[n] = 0.5f;
        b->weight[n] = k->per_image ? 0.5f / (float)(positives[n] ? positives[n] : 1) : 1.0f / (float)(all ? all : 1);
    }
}

/* Head and loss plugins alone: logits and codes are parameters, so that their gradients can be read. */
static sodet_graph *build(const sd_model *m, const sd_model_grid *grid)
{
    const sd_graph_options options = {.training = true};
    const sodet_loss_ops *loss = sd_model_part(m, SODET_KIND_LOSS)->ops;
    const int64_t a = (int64_t)grid->anchors->n;
    const sodet_shape logits = sodet_shape_make(SODET_F32, 3, 2, a, sd_model_context(m)->columns, 0);
    const sodet_shape codes = sodet_shape_make(SODET_F32, 3, 2, a, 4, 0), table = sodet_shape_make(SODET_F32, 2, a, 4, 0, 0);
    const sodet_shape index = sodet_shape_make(SODET_I32, 2, 2, a, 0, 0), truth = sodet_shape_make(SODET_F32, 3, 2, 8, 4, 0);
    const sodet_shape label = sodet_shape_make(SODET_I32, 2, 2, 8, 0, 0), each = sodet_shape_make(SODET_F32, 1, 2, 0, 0, 0);
    const sodet_param param = {.init = SODET_INIT_ZEROS};
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(&options, &g, &err));
    sodet_head_out raw = {.struct_size = sizeof raw};
    raw.logits = sodet_parameter(g, "logits", &logits, &param);
    raw.codes = sodet_parameter(g, "codes", &codes, &param);
    const bool ssd = sd_model_context(m)->activation == SODET_SOFTMAX;
    for (uint32_t c = 0; c < 4; c++)
        raw.variance[c] = ssd ? (c < 2 ? 0.1f : 0.2f) : 1;
    const sodet_targets t = {.struct_size = sizeof t,
                             .index = sodet_input(g, "index", &index),
                             .truth = sodet_input(g, "truth", &truth),
                             .label = sodet_input(g, "label", &label),
                             .anchors = sodet_constant(g, &table, grid->anchors->box),
                             .weight = sodet_input(g, "weight", &each),
                             .share = sodet_input(g, "share", &each)};
    CHECK_OK(loss->build(sd_model_part(m, SODET_KIND_LOSS)->self, g, &raw, &t, &err));
    return g;
}

static void gradients(gold_tally *t, const char *what, const gold *e, const float *cls, const float *reg, uint64_t anchors,
                      uint32_t columns, double tolerance)
{
    char name[160];
    const gold *want = gold_get(e, "grad_cls");
    const double most = gold_number(gold_get(want, "max"));
    double sum = 0, worst = 0;
    uint64_t rows = 0, index_sum = 0;
    for (uint64_t r = 0; r < 2 * anchors; r++) {
        double row = 0;
        for (uint32_t c = 0; c < columns; c++)
            row += fabs((double)cls[r * columns + c]);
        sum += row;
        rows += row > 0;
        index_sum += row > 0 ? r : 0;
    }
    snprintf(name, sizeof name, "%s rows with a gradient (%llu, %llu)", what, (unsigned long long)rows, (unsigned long long)index_sum);
    gold_count(t, name,
               (double)rows == gold_number(gold_get(want, "nonzero_rows")) &&
                   (double)index_sum == gold_number(gold_get(want, "nonzero_row_index_sum")));
    snprintf(name, sizeof name, "%s |grad cls|", what);
    gold_compare_number(t, name, gold_number(gold_get(want, "abs")), sum, tolerance * 10, 0);
    const gold *samples = gold_get(want, "samples_in_nonzero_rows");
    for (uint64_t i = 0; i < gold_size(samples); i++) {
        const gold *s = gold_at(samples, i);
        uint64_t at = (uint64_t)gold_number(gold_at(s, 0)) * columns + (uint64_t)gold_number(gold_at(s, 1));
        worst = fmax(worst, fabs((double)cls[at] - gold_number(gold_at(s, 2))));
    }
    snprintf(name, sizeof name, "%s samples of grad cls", what);
    gold_compare_number(t, name, 0, worst, 0, tolerance * most);

    want = gold_get(e, "grad_reg");
    const gold *listed = gold_get(want, "nonzero_rows");
    double reg_sum = 0, reg_listed = 0;
    for (uint64_t i = 0; i < 8 * anchors; i++)
        reg_sum += fabs((double)reg[i]);
    worst = 0;
    for (uint64_t i = 0; i < gold_size(listed); i++) {
        const gold *row = gold_at(listed, i);
        uint64_t at = 4 * (uint64_t)gold_number(gold_at(row, 0));
        for (uint32_t c = 0; c < 4; c++) {
            worst = fmax(worst, fabs((double)reg[at + c] - gold_number(gold_at(row, c + 1))));
            reg_listed += fabs((double)reg[at + c]);
        }
    }
    snprintf(name, sizeof name, "%s grad box", what);
    gold_compare_number(t, name, 0, worst, 0, tolerance * gold_number(gold_get(want, "max")));
    snprintf(name, sizeof name, "%s grad box elsewhere", what);
    gold_compare_number(t, name, reg_listed, reg_sum, 1e-6, 0);
}

static void run(gold_tally *t, const gold *root, const kind *k, const device *d)
{
    char devices[64], real[64];
    snprintf(devices, sizeof devices, "run.devices=%s", d->devices);
    snprintf(real, sizeof real, "backend.ref.precision=%s", d->real ? d->real : "float");
    const char *const overrides[] = {devices, "run.threads=2", d->real ? real : NULL, NULL};
    rig r = {0};
    CHECK_OK(test_model_open(&r.m, k->base, overrides, k->classes, &err));
    const sd_model_grid *grid = NULL;
    CHECK_OK(sd_model_grid_of(r.m.model, k->side, k->side, &grid, &err));
    const uint32_t columns = sd_model_context(r.m.model)->columns;
    CHECK_EQ(columns, 21);
    r.graph = build(r.m.model, grid);
    CHECK_OK(rig_start(&r, &err));
    if (r.program) {
        const uint64_t a = grid->anchors->n, n_cls = 2 * a * columns, n_reg = 8 * a;
        float *cls = malloc(n_cls * sizeof *cls), *reg = malloc(n_reg * sizeof *reg);
        char name[64], what[96];
        snprintf(name, sizeof name, "loss.%s.cls", k->name);
        gold_fill(cls, n_cls, name, 2);
        for (uint64_t i = 0; i < n_cls; i++)
            cls[i] = cls[i] + (float)k->offset;
        snprintf(name, sizeof name, "loss.%s.reg", k->name);
        gold_fill(reg, n_reg, name, 1);
        const sd_segment *sc = sd_segments_find(&r.segments, "logits"), *sr = sd_segments_find(&r.segments, "codes");
        CHECK_OK(rig_set(&r, sc, cls, &err));
        CHECK_OK(rig_set(&r, sr, reg, &err));
        static const char *const sets[] = {"A", "B", "T"};
        batch b = {.index = malloc(2 * a * sizeof(int32_t))};
        for (uint32_t i = 0; i < (k->per_image ? 3u : 2u); i++) {
            char key[32];
            float got_cls = 0, got_box = 0;
            snprintf(key, sizeof key, "%s/%s", k->name, sets[i]);
            snprintf(what, sizeof what, "%s %s%s", key, d->devices, d->real ? d->real : "");
            const gold *e = gold_get(root, key);
            fill_batch(k, r.m.model, grid, gold_path(root, "sets", sets[i], NULL), &b);
            const rig_io io[] = {{"index", b.index, NULL, 2 * a}, {"truth", b.truth, NULL, 64}, {"label", b.label, NULL, 16},
                                 {"weight", b.weight, NULL, 2},   {"share", b.share, NULL, 2},  {"loss/cls", NULL, &got_cls, 1},
                                 {"loss/box", NULL, &got_box, 1}, {NULL, NULL, NULL, 0}};
            CHECK_OK(rig_run(&r, io, &err));
            char line[160];
            snprintf(line, sizeof line, "%s class loss", what);
            gold_compare_number(t, line, gold_number(gold_path(e, "losses", "classification", "f64", NULL)), (double)got_cls, d->tolerance,
                                0);
            snprintf(line, sizeof line, "%s box loss", what);
            gold_compare_number(t, line, gold_number(gold_path(e, "losses", "bbox_regression", "f64", NULL)), (double)got_box, d->tolerance,
                                0);
            CHECK_OK(sd_device_pool_read(r.pool, SD_ARENA_GRAD, sc->offset, n_cls, cls, &err));
            CHECK_OK(sd_device_pool_read(r.pool, SD_ARENA_GRAD, sr->offset, n_reg, reg, &err));
            gradients(t, what, e, cls, reg, a, columns, d->tolerance);
        }
        free(b.index);
        free(cls);
        free(reg);
    }
    rig_close(&r);
}

int main(void)
{
    /* double too starts from anchors in float, and those are rounded as centre and size, not as corners */
    static const device devices[] = {{"ref", "double", 3e-6}, {"ref", "float", 2e-6}, {"cpu", NULL, 3e-6}};
    const gold *root = gold_open("losses.json");
    gold_tally t = GOLD_TALLY("losses");
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t d = 0; d < 3; d++)
            run(&t, root, &kinds[k], &devices[d]);
    }
    gold_done(&t);
    gold_close(root);
    return check_done(40);
}
