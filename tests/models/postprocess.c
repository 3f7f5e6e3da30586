/* From logits and codes to detections, against torchvision (tests/golden/postprocess.json): SSD and RetinaNet, on `ref` and `cpu`; and
 * small cases of the other dialects worked by hand. */
#include "rig.h"
#include "sodet/postprocess.h"

static sodet_err err = SODET_ERR_INIT;

static void raw_shape(const sd_model_grid *grid, bool ssd, sodet_head_out *raw)
{
    static const uint32_t per_cell[] = {4, 6, 6, 6, 4, 4};
    raw->n_levels = grid->n_levels;
    for (uint32_t l = 0; l < grid->n_levels; l++)
        raw->level_boxes[l] = grid->level[l].height * grid->level[l].width * (ssd ? per_cell[l] : 9);
    for (uint32_t c = 0; c < 4; c++)
        raw->variance[c] = ssd ? (c < 2 ? 0.1f : 0.2f) : 1;
}

static double power(double u, uint32_t squarings)
{
    while (squarings--)
        u *= u;
    return u;
}

static void against_torchvision(gold_tally *t, const char *key, const char *base, uint32_t side, uint32_t classes, uint32_t keep, bool ssd,
                                const char *device)
{
    char devices[64], what[120];
    snprintf(devices, sizeof devices, "run.devices=%s", device);
    const char *const overrides[] = {devices, "run.threads=2", NULL};
    const gold *root = gold_open("postprocess.json"), *rows = gold_path(root, key, "detections_label_score_x1_y1_x2_y2_f64", NULL);
    const sd_graph_options options = {.training = false};
    rig r = {0};
    CHECK_OK(test_model_open(&r.m, base, overrides, classes, &err));
    const sd_model_grid *grid = NULL;
    CHECK_OK(sd_model_grid_of(r.m.model, side, side, &grid, &err));
    const uint64_t a = grid->anchors->n, k = sd_model_context(r.m.model)->columns;
    CHECK_OK(sd_graph_create(&options, &r.graph, &err));
    const sodet_shape logits = sodet_shape_make(SODET_F32, 3, 1, (int64_t)a, (int64_t)k, 0),
                      codes = sodet_shape_make(SODET_F32, 3, 1, (int64_t)a, 4, 0);
    const sodet_shape table = sodet_shape_make(SODET_F32, 2, (int64_t)a, 4, 0, 0);
    sodet_head_out raw = {
        .struct_size = sizeof raw, .logits = sodet_input(r.graph, "logits", &logits), .codes = sodet_input(r.graph, "codes", &codes)};
    raw_shape(grid, ssd, &raw);
    const sodet_head_ops *head = sd_model_part(r.m.model, SODET_KIND_HEAD)->ops;
    sodet_detections d = {.struct_size = sizeof d};
    CHECK_OK(head->build_infer(sd_model_part(r.m.model, SODET_KIND_HEAD)->self, r.graph, &raw,
                               sodet_constant(r.graph, &table, grid->anchors->box), (sodet_shape2d){side, side, 0},
                               sd_model_context(r.m.model), &d, &err));
    sodet_output(r.graph, "boxes", d.boxes);
    sodet_output(r.graph, "scores", d.scores);
    sodet_output(r.graph, "labels", d.labels);
    sodet_output(r.graph, "count", d.count);
    CHECK_OK(rig_start(&r, &err));
    if (r.program) {
        float *cls = malloc(a * k * sizeof *cls), *reg = malloc(a * 4 * sizeof *reg), *box = malloc(keep * 4 * sizeof *box),
              *score = malloc(keep * sizeof *score);
        int32_t *label = malloc(keep * sizeof *label), count = 0;
        char name[64];
        snprintf(name, sizeof name, "post.%s.cls", ssd ? "ssd" : "retinanet");
        for (uint64_t i = 0; i < a * k; i++) {
            double u = gold_u53(name, i);
            cls[i] = (float)(!ssd ? -6 + 9 * power(u, 8) : i % k == 0 ? 4 + u : -2 + 8 * power(u, 6));
        }
        snprintf(name, sizeof name, "post.%s.reg", ssd ? "ssd" : "retinanet");
        for (uint64_t i = 0; i < a * 4; i++)
            reg[i] = (float)(ssd ? (gold_u53(name, i) - 0.5) * 2 : gold_u53(name, i) - 0.5);
        const rig_io io[] = {{"logits", cls, NULL, a * k},  {"codes", reg, NULL, a * 4},   {"boxes", NULL, box, keep * 4ull},
                             {"scores", NULL, score, keep}, {"labels", NULL, label, keep}, {"count", NULL, &count, 1},
                             {NULL, NULL, NULL, 0}};
        double start = sd_now();
        CHECK_OK(rig_run(&r, io, &err));
        printf("%s on %s: %.1f ms\n", key, device, (sd_now() - start) * 1e3);
        CHECK_EQ(count, gold_size(rows));
        /* Where two scores are closer than float's rounding in the softmax, their rows may change places: a row is looked for beside
         * its own. */
        double worst_box = 0, worst_score = 0;
        uint32_t wrong = 0;
        for (int64_t i = 0; i < (int64_t)gold_size(rows) && i < keep; i++) {
            const gold *row = gold_at(rows, (uint64_t)i);
            double best = INFINITY, best_score = INFINITY;
            for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < count; j++) {
                double off = 0;
                for (uint32_t c = 0; c < 4; c++)
                    off = fmax(off, fabs((double)box[4 * j + c] - gold_number(gold_at(row, 2 + c))));
                if (label[j] + (ssd ? 1 : 0) == (int32_t)gold_number(gold_at(row, 0)) && off < best) {
                    best = off;
                    best_score = fabs((double)score[j] - gold_number(gold_at(row, 1)));
                }
            }
            wrong += !(best < 1);
            worst_box = fmax(worst_box, best < 1 ? best : 0);
            worst_score = fmax(worst_score, best < 1 ? best_score : 0);
        }
        snprintf(what, sizeof what, "%s on %s: rows (%u missing)", key, device, wrong);
        gold_count(t, what, wrong == 0);
        snprintf(what, sizeof what, "%s on %s: scores", key, device);
        gold_compare_number(t, what, 0, worst_score, 0, 1e-6);
        snprintf(what, sizeof what, "%s on %s: boxes", key, device);
        gold_compare_number(t, what, 0, worst_box, 0, 3e-4);
        free(cls);
        free(reg);
        free(box);
        free(score);
        free(label);
    }
    rig_close(&r);
    gold_close(root);
}

/* ---- by hand: four anchors of 10x10 in a picture of 40x20, two classes ---- */
typedef struct small {
    float logits[4][2], codes[4][4];
    uint32_t activation;
} small;

static void by_hand(const sodet_detect_options *o, const small *in, const float variance[4], int32_t count, const float (*want)[6],
                    int line)
{
    static const float anchors[4][4] = {{5, 5, 10, 10}, {7, 5, 10, 10}, {25, 5, 10, 10}, {35, 15, 10, 10}};
    static const char *const overrides[] = {"run.devices=ref", NULL};
    const sd_graph_options options = {.training = false};
    const sodet_shape logits = sodet_shape_make(SODET_F32, 3, 1, 4, 2, 0), codes = sodet_shape_make(SODET_F32, 3, 1, 4, 4, 0),
                      table = sodet_shape_make(SODET_F32, 2, 4, 4, 0, 0);
    const sodet_head_context ctx = {.struct_size = sizeof ctx, .n_classes = 2, .columns = 2, .activation = SODET_SIGMOID};
    sodet_head_out raw = {.struct_size = sizeof raw, .n_levels = 2, .level_boxes = {3, 1}};
    memcpy(raw.variance, variance, sizeof raw.variance);
    rig r = {0};
    CHECK_OK(test_model_open(&r.m, "model/retinanet_r18_fpn.ini", overrides, 2, &err));
    CHECK_OK(sd_graph_create(&options, &r.graph, &err));
    raw.logits = sodet_input(r.graph, "logits", &logits);
    raw.codes = sodet_input(r.graph, "codes", &codes);
    sodet_detections d = {.struct_size = sizeof d};
    sodet_build_detections(r.graph, o, &raw, sodet_constant(r.graph, &table, anchors), (sodet_shape2d){20, 40, 0}, &ctx, &d);
    sodet_output(r.graph, "boxes", d.boxes);
    sodet_output(r.graph, "scores", d.scores);
    sodet_output(r.graph, "labels", d.labels);
    sodet_output(r.graph, "count", d.count);
    CHECK_OK(rig_start(&r, &err));
    float box[8][4], score[8];
    int32_t label[8], n = -1;
    const uint64_t k = (uint64_t)sodet_dim(sd_program_graph(r.program), d.scores, 1);
    const rig_io io[] = {
        {"logits", in->logits, NULL, 8}, {"codes", in->codes, NULL, 16}, {"boxes", NULL, box, 4 * k}, {"scores", NULL, score, k},
        {"labels", NULL, label, k},      {"count", NULL, &n, 1},         {NULL, NULL, NULL, 0}};
    CHECK_OK(rig_run(&r, io, &err));
    check_count();
    if (n != count)
        check_fail(__FILE__, line, "%d detections, expected %d", (int)n, (int)count);
    for (int32_t i = 0; i < n && i < count; i++) {
        check_count();
        if (label[i] != (int32_t)want[i][0] || !check_close((double)score[i], (double)want[i][1], 1e-5, 0) ||
            check_worst(box[i], want[i] + 2, 4) > 1e-5)
            check_fail(__FILE__, line, "detection %d: class %d score %g box (%g, %g, %g, %g)", (int)i, (int)label[i], (double)score[i],
                       (double)box[i][0], (double)box[i][1], (double)box[i][2], (double)box[i][3]);
    }
    rig_close(&r);
}
#define BY_HAND(o, in, v, n, ...) by_hand(o, in, v, n, (const float[][6]){__VA_ARGS__}, __LINE__)

static void dialects(void)
{
    static const float ones[4] = {1, 1, 1, 1};
    /* scores: anchor 0: .9 .2; anchor 1: .8 .6; anchor 2: .3 .7; anchor 3: .02 .04. IoU of anchors 0 and 1: 80 / 120 = 2/3 */
    const small s = {.logits = {{2.1972246f, -1.3862944f}, {1.3862944f, 0.4054651f}, {-0.8472979f, 0.8472979f}, {-3.8918203f, -3.1780538f}},
                     .codes = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0.55f, 0, 0, 0}}};
    sodet_detect_options o = {
        .struct_size = sizeof o, .score = 0.05, .top_k = 100, .top_scope = SODET_TOP_PER_LEVEL, .nms = 0.5, .keep = 8};
    BY_HAND(&o, &s, ones, 4, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.6f, 2, 0, 12, 10}, {0, 0.3f, 20, 0, 30, 10});
    /* exactly at the bound: only above it suppresses, or from it on */
    o.nms = (double)(80.0f / 120.0f);
    BY_HAND(&o, &s, ones, 6, {0, 0.9f, 0, 0, 10, 10}, {0, 0.8f, 2, 0, 12, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.6f, 2, 0, 12, 10},
            {0, 0.3f, 20, 0, 30, 10}, {1, 0.2f, 0, 0, 10, 10});
    o.nms_equal = 1;
    BY_HAND(&o, &s, ones, 4, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.6f, 2, 0, 12, 10}, {0, 0.3f, 20, 0, 30, 10});
    o = (sodet_detect_options){.struct_size = sizeof o,
                               .score = 0.01,
                               .labels = SODET_LABELS_BEST,
                               .nms = 0.5,
                               .nms_scope = SODET_NMS_AGNOSTIC,
                               .keep = 8,
                               .top_scope = SODET_TOP_OVER_ALL,
                               .clip = SODET_CLIP_BOXES_NEVER};
    /* one label each, whatever the class; the last box leaves the picture and is not clipped */
    BY_HAND(&o, &s, ones, 3, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.04f, 35.5f, 10, 45.5f, 20});
    o.clip = SODET_CLIP_BOXES_AFTER;
    BY_HAND(&o, &s, ones, 3, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.04f, 35.5f, 10, 40, 20});
    o.truncate = 1;
    o.clip = SODET_CLIP_BOXES_BEFORE;
    BY_HAND(&o, &s, ones, 3, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10}, {1, 0.04f, 35, 10, 40, 20});
    o.keep = 1;
    BY_HAND(&o, &s, ones, 1, {0, 0.9f, 0, 0, 10, 10});
    o = (sodet_detect_options){.struct_size = sizeof o, .score = 0.05, .top_k = 1, .top_scope = SODET_TOP_PER_CLASS, .nms = 1, .keep = 8};
    BY_HAND(&o, &s, ones, 2, {0, 0.9f, 0, 0, 10, 10}, {1, 0.7f, 20, 0, 30, 10});
    o.top_scope = SODET_TOP_OVER_ALL;
    BY_HAND(&o, &s, ones, 1, {0, 0.9f, 0, 0, 10, 10});
    o.score = 0.95; /* nothing is left */
    BY_HAND(&o, &s, ones, 0, {0});
    /* variances and the clamp: w = 10 exp(min(20 * 0.2, clamp)) */
    const small wide = {.logits = {{3, -9}, {-9, -9}, {-9, -9}, {-9, -9}}, .codes = {{1, 0, 20, 0}}};
    static const float v[4] = {0.1f, 0.1f, 0.2f, 0.2f};
    o = (sodet_detect_options){.struct_size = sizeof o, .score = 0.05, .nms = 0.5, .keep = 8, .clamp = 0.5, .clip = SODET_CLIP_BOXES_NEVER};
    BY_HAND(&o, &wide, v, 1, {0, 0.95257413f, 6 - 8.2436064f, 0, 6 + 8.2436064f, 10});
    o.clamp = 0;
    BY_HAND(&o, &wide, v, 1, {0, 0.95257413f, 6 - 272.99075f, 0, 6 + 272.99075f, 10});
}

int main(void)
{
    gold_tally t = GOLD_TALLY("detections");
    static const char *const devices[] = {"ref", "cpu"};
    for (uint32_t i = 0; i < 2; i++) {
        against_torchvision(&t, "ssd300_K21", "model/ssd300_vgg16_coco.ini, model/dialect/ssd_torchvision.ini", 300, 20, 200, true,
                            devices[i]);
        against_torchvision(&t, "retinanet_320_K21", "model/retinanet_r50_fpn.ini, model/dialect/retinanet_torchvision.ini", 320, 21, 300,
                            false, devices[i]);
    }
    gold_done(&t);
    dialects();
    return check_done(40);
}
