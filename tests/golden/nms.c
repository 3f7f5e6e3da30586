/* postprocess.json, "nms" and "box_coder": which boxes torchvision keeps, in which order, at seven thresholds, class-agnostic and by class;
 * codes from boxes and boxes from codes. */
#include "golden.h"
#include "runner.h"
#include "sodet/detection.h"

static void set_list(running *p, const char *name, const gold *list)
{
    uint64_t n;
    double *v = gold_numbers(list, &n);
    CHECK(running_set(p, name, v, n));
    free(v);
}

static void keep_list(gold_tally *t, runner *r, const gold *set, const char *name, const char *threshold, bool by_class, const gold *want)
{
    sodet_err err = SODET_ERR_INIT;
    int64_t n = (int64_t)gold_size(gold_get(set, "scores"));
    sodet_graph *g = running_graph(false);
    sodet_shape boxes = sodet_shape_make(SODET_F32, 3, 1, n, 4, 0), scores = sodet_shape_make(SODET_F32, 2, 1, n, 0, 0);
    sodet_shape classes = sodet_shape_make(SODET_I32, 2, 1, n, 0, 0);
    sodet_value index, count, label = by_class ? sodet_input(g, "classes", &classes) : SODET_NONE;
    sodet_value box = sodet_input(g, "boxes", &boxes), score = sodet_input(g, "scores", &scores);
    sodet_nms(g, box, score, label, SODET_NMS(.iou_threshold = strtod(threshold, NULL)), &index, &count);
    sodet_output(g, "index", index);
    sodet_output(g, "count", count);
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double kept[64], many = 0;
        bool equal = n <= 64;
        set_list(p, "boxes", gold_get(set, "boxes"));
        set_list(p, "scores", gold_get(set, "scores"));
        if (by_class)
            set_list(p, "classes", gold_get(set, "classes"));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "index", kept, (uint64_t)n));
        CHECK(running_get(p, "count", &many, 1));
        equal = equal && (uint64_t)many == gold_size(want);
        for (int64_t i = 0; i < n && equal; i++)
            equal = (int64_t)kept[i] == (i < (int64_t)many ? (int64_t)gold_number(gold_at(want, (uint64_t)i)) : -1);
        char what[200];
        snprintf(what, sizeof what, "%s at %s, %s, %s", name, threshold, by_class ? "by class" : "agnostic", runner_name(r));
        gold_count(t, what, equal);
    }
    running_free(p);
    sd_graph_free(g);
}

static void keep_lists(const gold *root, runner *const *r, int n)
{
    gold_tally t = GOLD_TALLY("postprocess/nms");
    const gold *sets = gold_get(root, "nms");
    for (uint64_t s = 0; s < gold_size(sets); s++)
        for (int by_class = 0; by_class < 2; by_class++) {
            const gold *set = gold_at(sets, s), *lists = gold_get(set, by_class ? "batched_nms" : "nms");
            for (uint64_t k = 0; k < gold_size(lists); k++)
                for (int i = 0; i < n; i++)
                    keep_list(&t, r[i], set, gold_key(sets, s), gold_key(lists, k), by_class, gold_at(lists, k));
        }
    gold_done(&t);
}

enum { BOXES = 12 };

/* Anchors in the file are corners. */
static void centres(const double *corner, double *out)
{
    for (int i = 0; i < BOXES; i++)
        for (int d = 0; d < 2; d++) {
            double size = corner[4 * i + d + 2] - corner[4 * i + d];
            out[4 * i + d] = corner[4 * i + d] + 0.5 * size;
            out[4 * i + d + 2] = size;
        }
}

static void coder(gold_tally *t, runner *r, const gold *all, const char *weights, const float variance[4], double tolerance)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(false);
    sodet_shape list = sodet_shape_make(SODET_F32, 3, 1, BOXES, 4, 0), table = sodet_shape_make(SODET_F32, 2, BOXES, 4, 0, 0),
                one = sodet_shape_make(SODET_I32, 2, 1, BOXES, 0, 0);
    sodet_targets targets = {
        .index = sodet_input(g, "index", &one), .truth = sodet_input(g, "truth", &list), .anchors = sodet_input(g, "anchors", &table)};
    sodet_output(g, "codes", sodet_encode_boxes(g, &targets, variance, NULL));
    sodet_output(
        g, "boxes",
        sodet_decode_boxes(g, sodet_input(g, "deltas", &list), targets.anchors, variance, SODET_DECODE(.clamp = SODET_DECODE_CLAMP)));
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double got[4 * BOXES], own[BOXES], *corner = gold_numbers(gold_get(all, "anchors"), NULL), anchors[4 * BOXES];
        char what[100], key[40];
        for (int i = 0; i < BOXES; i++)
            own[i] = i;
        centres(corner, anchors);
        free(corner);
        CHECK(running_set(p, "index", own, BOXES));
        CHECK(running_set(p, "anchors", anchors, 4 * BOXES));
        set_list(p, "truth", gold_get(all, "gt"));
        set_list(p, "deltas", gold_get(all, "deltas"));
        CHECK_OK(running_run(p, &err));
        for (int k = 0; k < 2; k++) {
            CHECK(running_get(p, k ? "boxes" : "codes", got, 4 * BOXES));
            snprintf(key, sizeof key, "%s_%s", k ? "decode" : "encode", weights);
            snprintf(what, sizeof what, "%s, %s", key, runner_name(r));
            gold_compare_list(t, what, gold_get(all, key), got, 4 * BOXES, tolerance, 0);
        }
    }
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    const gold *root = gold_open("postprocess.json");
    runner *all[3] = {runner_open("ref", true, 1), runner_open("ref", false, 1), runner_open("cpu", false, 2)};
    keep_lists(root, all, 3);
    gold_tally t = GOLD_TALLY("postprocess/box_coder");
    for (int i = 0; i < 3; i++) { /* variances are floats: 0.1 is off by 1.5e-8 of itself */
        coder(&t, all[i], gold_get(root, "box_coder"), "w10_10_5_5", (const float[]){0.1f, 0.1f, 0.2f, 0.2f}, i == 0 ? 1e-7 : 1e-6);
        coder(&t, all[i], gold_get(root, "box_coder"), "w1", (const float[]){1, 1, 1, 1}, i == 0 ? 1e-14 : 1e-6);
        runner_close(all[i]);
    }
    gold_done(&t);
    gold_close(root);
    return check_done(1);
}
