/* labels: big */
/* Training runs against PyTorch (tests/golden/train-*.json): losses of every step, every parameter's gradient of step 1, parameters and
 * running statistics after the steps; batches made by hand, through the stepper.
 *
 *     test_train_golden_runs [cpu|ref|ref:double] [name]     default: cpu all, ref what ends within a minute
 *
 * Tolerance of a tensor: ten times the deviation of torch's own float32 run (f32_max_abs_dev), and 2e-6 of the largest value for those
 * that torch happened to meet exactly. ref in double meets it everywhere. In float32 a ReLU gate that lies within rounding may be set
 * otherwise, which one depends on the machine's vectors: it changes a gradient by 1e-3 of the largest (../golden/README.md). Convolutions
 * are computed directly here, so that no coarse map is touched. Where gates were moved in step 1, what follows is another path: within the
 * same 1e-3 with SGD, losses within 5e-2 with AdamW.
 *
 * AdamW divides by the size of the gradient: an element whose gradient g is uncertain by d moves lr * d / |g| elsewhere in a step, and never
 * more than 2 lr. d is what gradients were seen to be within, 1.5e-5 of the largest, or 1e-2 where gates were moved (the
 * first step's 1e-3 grows on the other path); four times that, since the steps behind add theirs. So elements of large gradients stay strict. */
#include "core/train/stepper.h"
#include "models/rig.h"

static sodet_err err = SODET_ERR_INIT;

static const double gate = 1e-3;      /* of the largest value */
static const double no_gate = 1.5e-5; /* what float32 gradients are within otherwise */
static const double adam_loss = 5e-2;

typedef struct run {
    const char *name, *file, *base, *map;
    const char *part, *lr;                      /* members of the file: "both_have_boxes", "lr_0.001"; NULL: the root */
    uint32_t classes, images, side, label_from; /* label_from: the number that the file gives class 0 */
    double box_scale;                           /* of the boxes in the file to pixels */
    const char *cls, *box;                      /* the file's names of the terms */
    const char *options[12];
    uint32_t steps_on_ref; /* ref is slow; 0: only when asked for */
    double slack;          /* factor on the tolerances after the first step: rounding grows */
} run;

static const run runs[] = {
    {.name = "tinyssd_d2l",
     .file = "train-tinyssd_d2l.json",
     .base = "model/tinyssd_d2l.ini, model/dialect/ssd_d2l.ini",
     .map = "tinyssd_d2l.map",
     .classes = 1,
     .images = 4,
     .side = 256,
     .box_scale = 256,
     .cls = "classification",
     .box = "bbox",
     .options = {"optimizer.type=sgd", "optimizer.lr=0.05", "optimizer.momentum=0", "optimizer.weight_decay=5e-4"},
     .steps_on_ref = 1,
     .slack = 4},
    {.name = "ssd300",
     .file = "train-ssd300_vgg16_21.json",
     .base = "model/ssd300_vgg16_coco.ini, model/dialect/ssd_torchvision.ini",
     .map = "torchvision_ssd300_vgg16.map",
     .part = "both_have_boxes",
     .lr = "lr_0.0001",
     .classes = 20,
     .images = 2,
     .side = 300,
     .label_from = 1,
     .box_scale = 1,
     .cls = "classification",
     .box = "bbox_regression",
     .options = {"optimizer.type=sgd", "optimizer.lr=1e-4", "optimizer.momentum=0.9", "optimizer.weight_decay=5e-4"},
     .slack = 1},
    {.name = "ssd300_empty",
     .file = "train-ssd300_vgg16_21.json",
     .base = "model/ssd300_vgg16_coco.ini, model/dialect/ssd_torchvision.ini",
     .map = "torchvision_ssd300_vgg16.map",
     .part = "second_has_none",
     .classes = 20,
     .images = 2,
     .side = 300,
     .label_from = 1,
     .box_scale = 1,
     .cls = "classification",
     .box = "bbox_regression",
     .options = {"optimizer.type=sgd", "optimizer.lr=1e-3", "optimizer.momentum=0.9", "optimizer.weight_decay=5e-4"},
     .slack = 1},
    {.name = "retinanet_frozen",
     .file = "train-retinanet_r18_fpn_5.json",
     .base = "model/retinanet_r18_fpn.ini, model/dialect/retinanet_torchvision.ini",
     .map = "torchvision_retinanet_resnet_fpn.map",
     .part = "frozen_bn",
     .classes = 5,
     .images = 2,
     .side = 128,
     .box_scale = 1,
     .cls = "classification",
     .box = "bbox_regression",
     .options = {"optimizer.type=adamw", "optimizer.lr=1e-4", "optimizer.weight_decay=0.05", "optimizer.clip_norm=0.1",
                 "backbone.frozen_norm=yes"},
     .slack = 8},
    {.name = "retinanet_live",
     .file = "train-retinanet_r18_fpn_5.json",
     .base = "model/retinanet_r18_fpn.ini, model/dialect/retinanet_torchvision.ini",
     .map = "torchvision_retinanet_resnet_fpn.map",
     .part = "live_bn",
     .classes = 5,
     .images = 2,
     .side = 128,
     .box_scale = 1,
     .cls = "classification",
     .box = "bbox_regression",
     .options = {"optimizer.type=adamw", "optimizer.lr=1e-4", "optimizer.weight_decay=0.05", "optimizer.clip_norm=0.1"},
     .slack = 1},
};

/* ---- the batch ---- */
typedef struct made {
    sd_batch b;
    uint32_t most;
} made;

static void make_batch(made *m, const run *r, const sd_model *model, const gold *targets)
{
    const sd_model_grid *grid;
    uint64_t pixels = 3ull * r->side * r->side;
    CHECK_OK(sd_model_grid_of(model, r->side, r->side, &grid, &err));
    m->most = 5;
    m->b = (sd_batch){.steps = 1,
                      .n = r->images,
                      .global_n = r->images,
                      .width = r->side,
                      .height = r->side,
                      .channels = 3,
                      .n_anchors = (uint32_t)grid->anchors->n,
                      .max_objects = m->most};
    m->b.image = malloc(r->images * pixels * sizeof(float));
    m->b.index = malloc(r->images * grid->anchors->n * sizeof(int32_t));
    m->b.truth = calloc(r->images * m->most * 4, sizeof(float));
    m->b.label = calloc(r->images * m->most, sizeof(int32_t));
    m->b.items = calloc(r->images, sizeof *m->b.items);
    for (uint32_t i = 0; i < r->images; i++) {
        char name[16];
        uint64_t n = 0, k = 0;
        snprintf(name, sizeof name, "input%u", i);
        gold_fill_u(m->b.image + i * pixels, pixels, name);
        const gold *t = gold_at(targets, i);
        double *boxes = gold_numbers(gold_get(t, "boxes"), &n);
        double *labels = gold_numbers(gold_get(t, "labels"), &k);
        sodet_box box[8];
        int32_t label[8];
        uint32_t flags[8] = {0};
        for (uint64_t j = 0; j < k; j++) {
            for (int c = 0; c < 4; c++)
                m->b.truth[(i * m->most + j) * 4 + (uint64_t)c] = (float)(boxes[j * 4 + (uint64_t)c] * r->box_scale);
            memcpy(&box[j], &m->b.truth[(i * m->most + j) * 4], sizeof box[j]);
            label[j] = (int32_t)labels[j] - (int32_t)r->label_from;
            m->b.label[i * m->most + j] = label[j];
        }
        sodet_boxes truth = {.struct_size = sizeof truth, .n = (uint32_t)k, .box = box, .label = label, .flags = flags};
        uint32_t positives = 0;
        CHECK_OK(sd_model_assign(model, grid, &truth, m->b.index + i * grid->anchors->n, &positives, &err));
        m->b.items[i] = (sd_batch_item){.n_objects = (uint32_t)k, .positives = positives};
        free(boxes);
        free(labels);
    }
}

static void free_batch(made *m)
{
    free(m->b.image);
    free(m->b.index);
    free(m->b.truth);
    free(m->b.label);
    free(m->b.items);
}

/* ---- comparison ---- */
typedef struct bound {
    double slack, relative; /* factor on the record's own tolerance; what is allowed at least, of the largest value */
    double moves;           /* AdamW: lr times steps; 0: no such allowance */
    const float *gradient;  /* of step 1, the arena */
    double uncertain;       /* it is within this, of a tensor's largest */
} bound;

static double record_tolerance(const gold *record, bound b)
{
    const gold *dev = gold_try(record, "f32_max_abs_dev");
    double max = gold_number(gold_get(record, "max"));
    double tolerance = max > 0 ? b.slack * (10 * (dev ? gold_number(dev) : 0) + 2e-6 * max + 1e-8) / max : 1e-6;
    return fmax(tolerance, b.relative);
}

/* What each element may be off since AdamW divided. */
static float *adam_room(const sd_segment *s, bound b)
{
    const float *g = b.gradient + s->offset;
    float *room = malloc(s->n * sizeof *room);
    double most = 0;
    for (uint64_t k = 0; k < s->n; k++)
        most = fmax(most, fabs((double)g[k]));
    for (uint64_t k = 0; room && k < s->n; k++)
        room[k] = (float)(b.moves * fmin(2, 4 * b.uncertain * most / fabs((double)g[k])));
    return room;
}

/* arena of the segment's own kind, or the gradients. */
static void compare_all(gold_tally *t, rig *g, const run *r, const char *device, const char *what, const gold *records, bool gradients,
                        bool buffers, bound b)
{
    for (uint32_t i = 0; i < g->segments.n; i++) {
        const sd_segment *s = &g->segments.segment[i];
        char theirs[256], text[512];
        if (s->buffer != buffers || (gradients && s->frozen) || !rig_their_name(r->map, s->name, theirs, sizeof theirs))
            continue;
        const gold *record = gold_try(records, theirs);
        if (!record) {
            if (!s->frozen) {
                snprintf(text, sizeof text, "%s: the file has no %s of %s", r->name, what, theirs);
                gold_count(t, text, false);
            }
            continue;
        }
        float *values = malloc(s->n * sizeof *values);
        CHECK_OK(sd_device_pool_read(g->pool,
                                     gradients   ? SD_ARENA_GRAD
                                     : s->frozen ? SD_ARENA_FROZEN
                                                 : SD_ARENA_PARAM,
                                     s->offset, s->n, values, &err));
        snprintf(text, sizeof text, "%s %s %s %s", device, r->name, what, theirs);
        if (gold_number(gold_get(record, "max")) < 1e-9) { /* a bias in front of a batch norm: nothing but rounding, or exactly 0 */
            double most = 0, allowed = 1e-8 + 10 * gold_number(gold_get(record, "f32_max_abs_dev"));
            for (uint64_t k = 0; k < s->n; k++)
                most = !(fabs((double)values[k]) <= most) ? fabs((double)values[k]) : most;
            gold_count(t, text, most <= allowed);
            free(values);
            continue;
        }
        float *room = b.moves > 0 && !s->frozen && !gradients ? adam_room(s, b) : NULL;
        gold_compare_each(t, text, record, values, s->n, record_tolerance(record, b), room);
        free(room);
        free(values);
    }
}

static void compare_loss(gold_tally *t, const run *r, const char *device, uint64_t step, const gold *losses, const sd_step *x, double least)
{
    const gold *want = gold_at(losses, step);
    char text[128];
    const char *names[2] = {r->cls, r->box};
    for (int i = 0; i < 2; i++) {
        const gold *pair = gold_get(want, names[i]);
        double f64 = gold_number(gold_get(pair, "f64")), f32 = gold_number(gold_get(pair, "f32"));
        snprintf(text, sizeof text, "%s %s step %d %s", device, r->name, (int)step + 1, names[i]);
        double slack = step ? r->slack : 1;
        gold_compare_number(t, text, f64, x->term[i], fmax(slack * 5e-6, least), slack * 10 * fabs(f64 - f32));
    }
}

static void run_one(gold_tally *t, const run *r, const char *device, uint32_t steps_wanted)
{
    char devices[64];
    const char *overrides[20] = {devices, "run.threads=2"};
    uint32_t n = 2;
    bool twice = !strcmp(device, "ref:double");
    snprintf(devices, sizeof devices, "run.devices=%s", twice ? "ref" : device);
    if (twice)
        overrides[n++] = "backend.ref.precision=double";
    if (!strcmp(device, "cpu")) /* which gates Winograd's rounding sets otherwise is chance; its own accuracy is backend/conv2d's to test */
        overrides[n++] = "backend.cpu.winograd=never";
    for (uint32_t i = 0; r->options[i]; i++)
        overrides[n++] = r->options[i];
    const gold *root = gold_open(r->file), *part = r->part ? gold_get(root, r->part) : root;
    rig g = {0};
    sd_stepper *stepper = NULL;
    double began = sd_now();
    CHECK_OK(test_model_open(&g.m, r->base, overrides, r->classes, &err));
    if (g.m.model)
        CHECK_OK(sd_device_pool_open(g.m.cfg, &g.pool, &err));
    if (!g.pool)
        return;
    sd_stepper_config c = {.core = sd_config_core(g.m.cfg),
                           .pool = g.pool,
                           .model = g.m.model,
                           .batch = r->images,
                           .height = r->side,
                           .width = r->side,
                           .boxes = 5};
    CHECK_OK(sd_stepper_open(&c, &stepper, &err));
    if (!stepper)
        return;
    g.segments = *sd_stepper_segments(stepper);
    rig_fill_golden(&g, r->map, gold_number(gold_get(root, "gain")));
    made m;
    const gold *targets = gold_try(part, "targets") ? gold_get(part, "targets") : gold_get(root, "targets");
    make_batch(&m, r, g.m.model, targets);
    const gold *match = gold_get(part, "match");
    for (uint32_t i = 0; i < r->images; i++)
        gold_compare_number(t, "positives", gold_number(gold_get(gold_at(match, i), "n_fg")), m.b.items[i].positives, 0, 0);
    uint32_t steps = (uint32_t)gold_number(gold_get(root, "steps"));
    const gold *sequence = r->lr ? gold_get(part, r->lr) : gold_try(part, "losses") ? part : gold_get(part, "lr_0.001");
    const sd_batch *batches[1] = {&m.b};
    const bool adam = c.core->optimizer.type != SD_OPTIMIZER_SGD;
    double after = 0; /* allowed at least behind step 1 */
    bound parameters = {.slack = r->slack};
    float *gradient = malloc(g.segments.param_elements * sizeof *gradient);
    const double lr = c.core->optimizer.lr;
    for (uint32_t step = 0; step < steps && step < steps_wanted; step++) {
        sd_step x = {.step = step, .lr = c.core->optimizer.lr};
        CHECK_OK(sd_stepper_gradients(stepper, batches, &x, &err));
        compare_loss(t, r, device, step, gold_get(sequence, "losses"), &x, after);
        if (step == 0) {
            gold_tally of_gradients = *t;
            of_gradients.worst = 0;
            compare_all(&of_gradients, &g, r, device, "gradient", gold_get(part, "gradients_step1"), true, false,
                        (bound){.slack = 1, .relative = twice ? 0 : gate});
            bool moved = !twice && of_gradients.worst > no_gate;
            if (moved)
                printf("%s on %s: gates were moved, the gradient by up to %.2g\n", r->name, device, of_gradients.worst);
            if (of_gradients.worst < t->worst) {
                of_gradients.worst = t->worst;
                memcpy(of_gradients.worst_at, t->worst_at, sizeof t->worst_at);
            }
            *t = of_gradients;
            after = !moved ? 0 : adam ? adam_loss : gate;
            parameters.relative = moved && !adam ? gate : 0;
            parameters.gradient = gradient;
            parameters.uncertain = moved ? 10 * gate : no_gate;
            CHECK_OK(sd_device_pool_read(g.pool, SD_ARENA_GRAD, 0, g.segments.param_elements, gradient, &err));
        }
        CHECK_OK(sd_stepper_update(stepper, &x, &err));
        const gold *norms = gold_try(part, "grad_norms");
        if (norms) {
            double f64 = gold_number(gold_get(gold_at(norms, step), "f64")), f32 = gold_number(gold_get(gold_at(norms, step), "f32"));
            gold_compare_number(t, "gradient norm", f64, x.norm,
                                fmax(r->slack * 1e-5, step        ? after
                                                      : after > 0 ? gate
                                                                  : 0),
                                r->slack * 10 * fabs(f64 - f32));
        }
        parameters.moves = adam && !twice ? lr * (double)(step + 1) : 0;
        if (step == 1 && gold_try(part, "parameters_after_step2"))
            compare_all(t, &g, r, device, "step 2:", gold_get(part, "parameters_after_step2"), false, false, parameters);
    }
    if (steps_wanted >= steps) {
        compare_all(t, &g, r, device, "after:", gold_get(sequence, "parameters_after"), false, false, parameters);
        if (gold_try(part, "running_statistics_after"))
            compare_all(t, &g, r, device, "statistics:", gold_get(part, "running_statistics_after"), false, true,
                        (bound){.slack = r->slack, .relative = after});
    }
    printf("%s on %s: %.1f s\n", r->name, device, sd_now() - began);
    free(gradient);
    free_batch(&m);
    sd_stepper_close(stepper);
    sd_device_pool_close(g.pool);
    test_model_close(&g.m);
    gold_close(root);
}

int main(int argc, char **argv)
{
    gold_tally t = GOLD_TALLY("train");
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        if (argc > 2 && strcmp(argv[2], runs[i].name) != 0)
            continue;
        if (argc > 1) {
            run_one(&t, &runs[i], argv[1], argc > 3 ? (uint32_t)atoi(argv[3]) : 100);
            continue;
        }
        run_one(&t, &runs[i], "cpu", 100);
        if (runs[i].steps_on_ref)
            run_one(&t, &runs[i], "ref", runs[i].steps_on_ref);
    }
    if (argc > 1)
        printf("%llu records, %llu failed, worst %.2g at %s\n", (unsigned long long)t.records, (unsigned long long)t.failed, t.worst,
               t.worst_at);
    else
        gold_done(&t);
    return check_done(50);
}
