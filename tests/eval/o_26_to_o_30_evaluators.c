/* Field cases O-26 to O-30, and hand-worked average precisions. Boxes of the cases are inclusive pixels; here the far corner is one more. */
#include "run.h"

#define BOX(i, l, left, top, right, bottom) .image = (i), .label = (l), .x1 = (left), .y1 = (top), .x2 = (right) + 1, .y2 = (bottom) + 1
#define A                                   BOX(0, 0, 10, 10, 49, 49)
#define B                                   BOX(0, 0, 100, 100, 149, 149)
#define FAR                                 BOX(0, 0, 300, 300, 339, 339)
#define COUNT(list)                         (int)(sizeof(list) / sizeof *(list))
#define RUN(evaluator, options, metric, objects, detections)                                                                               \
    run_toy(evaluator, options, metric, objects, COUNT(objects), detections, COUNT(detections), 1, 1, NULL)

static const toy two[] = {{A}, {B}};

/* O-26 Second hit on the same object: further hits are false. */
static void o26_second_hit(void)
{
    const toy d[] = {{A, .score = .9}, {A, .score = .8}, {B, .score = .7}};
    CHECK_NEAR(RUN("voc", "", "mAP", two, d), (6 + 5 * 2.0 / 3) / 11, 1e-12, 0); /* 0.848485 */
    CHECK_NEAR(RUN("voc", "ap = area", "mAP", two, d), 0.5 + 0.5 * 2 / 3, 1e-12, 0);
    CHECK_NEAR(RUN("coco", "", "AP50", two, d), (51 + 50 * 2.0 / 3) / 101, 1e-12, 0); /* 0.834983 */
    CHECK_NEAR(RUN("coco", "", "AP50", two, d), 0.834983, 0, 1e-6);
}

/* O-27 Difficult objects in VOC evaluation: neither right nor wrong, each time, and not in the recall. */
static void o27_difficult(void)
{
    const toy d[] = {{A, .score = .95}, {A, .score = .9}, {B, .score = .8}};
    const toy hard[] = {{A, .flags = SODET_BOX_DIFFICULT}, {B}}, crowd[] = {{A, .flags = SODET_BOX_CROWD}, {B}}, removed[] = {{B}};
    CHECK_NEAR(RUN("voc", "", "mAP", hard, d), 1, 1e-12, 0);
    CHECK_NEAR(RUN("voc", "ap = area", "mAP", hard, d), 1, 1e-12, 0);
    CHECK_NEAR(RUN("voc", "", "mAP", crowd, d), 1, 1e-12, 0);
    CHECK_NEAR(RUN("voc", "difficult = count", "mAP", hard, d), 0.848485, 0, 1e-6);
    CHECK_NEAR(RUN("voc", "", "mAP", removed, d), 1.0 / 3, 1e-12, 0);
    const toy all_hard[] = {{A, .flags = SODET_BOX_DIFFICULT}, {B, .flags = SODET_BOX_DIFFICULT}};
    CHECK(isnan(RUN("voc", "", "mAP", all_hard, d)));
}

/* O-28 No detections at all: evaluated normally. The empty result file is in files.c. */
static void o28_no_detections(void)
{
    const toy object[] = {{BOX(0, 0, 10, 10, 129, 129)}}, other[] = {{BOX(0, 1, 10, 10, 129, 129), .score = .9}};
    for (int n = 0; n < 2; n++) {
        sodet_eval_sink sink;
        static const char *const zero[] = {"AP", "AP50", "AP75", "APl", "AR1", "AR10", "AR100", "ARl", "AP/a"}, *const none[] = {
                                                                                                                    "APs", "APm", "ARs",
                                                                                                                    "ARm", "AP/b"};
        run_toy("coco", "", NULL, object, 1, other, n, 1, 2, &sink);
        for (int i = 0; i < COUNT(zero); i++)
            CHECK(sd_eval_sink_get(&sink, zero[i], NULL) == 0);
        for (int i = 0; i < COUNT(none); i++)
            CHECK(sd_eval_sink_get(&sink, none[i], NULL) == -1);
        CHECK(n || strstr(sink.lines.text, "there are no detections"));
        sd_eval_sink_clear(&sink);
        CHECK(run_toy("voc", "", "mAP", object, 1, other, n, 1, 2, NULL) == 0);
        CHECK(isnan(run_toy("voc", "", "AP/b", object, 1, other, n, 1, 2, NULL)));
    }
    /* No objects either, and no images at all. */
    CHECK(run_toy("coco", "", "AP", NULL, 0, NULL, 0, 1, 1, NULL) == -1);
    CHECK(run_toy("coco", "", "AP", NULL, 0, NULL, 0, 0, 1, NULL) == -1);
    CHECK(isnan(run_toy("voc", "", "mAP", NULL, 0, NULL, 0, 0, 1, NULL)));
}

/* O-29 Equal scores: by image, then by order in the list; the same with any number of threads. */
static void o29_equal_scores(void)
{
    const toy hit_first[] = {{A, .score = .9}, {FAR, .score = .9}, {B, .score = .8}},
              far_first[] = {{FAR, .score = .9}, {A, .score = .9}, {B, .score = .8}};
    for (int round = 0; round < 10; round++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            CHECK_NEAR(run_toy("coco", "", "AP50", two, 2, hit_first, 3, 1, threads, NULL), 0.834983, 0, 1e-6);
            CHECK_NEAR(run_toy("voc", "", "mAP", two, 2, hit_first, 3, 1, threads, NULL), 0.848485, 0, 1e-6);
            CHECK_NEAR(run_toy("coco", "", "AP50", two, 2, far_first, 3, 1, threads, NULL), 2.0 / 3, 1e-12, 0);
            CHECK_NEAR(run_toy("voc", "", "mAP", two, 2, far_first, 3, 1, threads, NULL), 2.0 / 3, 1e-12, 0);
        }
    /* Between images: the earlier image first. */
    const toy later[] = {{BOX(1, 0, 10, 10, 49, 49)}}, d[] = {{FAR, .score = .5}, {BOX(1, 0, 10, 10, 49, 49), .score = .5}};
    CHECK_NEAR(run_toy("voc", "", "mAP", later, 1, d, 2, 2, 1, NULL), 0.5, 1e-12, 0);
    sodet_eval_sink sink;
    run_toy("coco", "", NULL, later, 1, d, 2, 2, 1, &sink);
    CHECK(strstr(sink.lines.text, "all 2 scores are equal"));
    sd_eval_sink_clear(&sink);
}

/* O-30 Two tools, two numbers: each rule by name. */
static void o30_rules(void)
{
    const toy small[] = {{BOX(0, 0, 0, 0, 9, 9)}}, half[] = {{BOX(0, 0, 0, 0, 9, 4), .score = 1}};
    CHECK_NEAR(RUN("voc", "", "mAP", small, half), 1, 1e-12, 0); /* IoU 0.5 is enough */
    const toy small_raw[] = {{.x2 = 9, .y2 = 9}}, half_raw[] = {{.x2 = 9, .y2 = 4, .score = 1}};
    CHECK_NEAR(RUN("voc", "plus_one = yes", "mAP", small_raw, half_raw), 1, 1e-12, 0);
    CHECK(RUN("voc", "", "mAP", small_raw, half_raw) == 0); /* IoU 4/9 */

    /* Only the best object counts in VOC; COCO gives the second detection the other one. */
    const toy pair[] = {{BOX(0, 0, 0, 0, 99, 99)}, {BOX(0, 0, 20, 0, 119, 99)}};
    const toy both[] = {{BOX(0, 0, 0, 0, 99, 99), .score = .9}, {BOX(0, 0, 8, 0, 107, 99), .score = .8}};
    CHECK_NEAR(RUN("voc", "", "mAP", pair, both), 6.0 / 11, 1e-12, 0);
    CHECK_NEAR(RUN("coco", "", "AP50", pair, both), 1, 1e-12, 0);
    CHECK_NEAR(RUN("coco", "", "AP", pair, both), 0.801980, 0, 1e-6);

    /* A cut of scores before the evaluation costs recall: [head] score_threshold stays low for it. */
    const toy hits[] = {{A, .score = .9}, {B, .score = .3}};
    CHECK_NEAR(run_toy("voc", "", "mAP", two, 2, hits, 2, 1, 1, NULL), 1, 1e-12, 0);
    CHECK_NEAR(run_toy("voc", "", "mAP", two, 2, hits, 1, 1, 1, NULL), 0.545455, 0, 1e-6);

    const toy one[] = {{.x2 = 100, .y2 = 100}};
    static const double heights[] = {65, 70, 80, 85, 90, 95}, ap[] = {.4, .5, .7, .8, .9, 1};
    for (int i = 0; i < 6; i++) {
        const toy d[] = {{.x2 = 100, .y2 = (float)heights[i], .score = 1}};
        CHECK_NEAR(RUN("coco", "", "AP", one, d), ap[i], 1e-12, 0);
    }
}

/* Average precision of curves. */
static void curves(void)
{
    const double r[] = {.2, .2, .4, .4, .6}, p[] = {1, .5, 2.0 / 3, .5, .6};
    CHECK_NEAR(sodet_ap_11point(r, p, 5), (3 + 4 * 2.0 / 3 * 0.5 + 0 + (2.0 / 3 * 2 - 4 * 2.0 / 3 * 0.5) + .6 * 1) / 11, 1e-12, 0);
    CHECK_NEAR(sodet_ap_area(r, p, 5), .2 + .2 * 2 / 3 + .2 * .6, 1e-12, 0);
    CHECK(sodet_ap_11point(NULL, NULL, 0) == 0 && sodet_ap_area(NULL, NULL, 0) == 0);
    const double full[] = {1}, one[] = {1};
    CHECK_NEAR(sodet_ap_11point(full, one, 1), 1, 1e-15, 0);
    uint64_t order[40], scratch[40];
    double scores[40];
    for (int i = 0; i < 40; i++)
        scores[i] = (i * 7) % 5;
    sodet_eval_rank(scores, 40, order, scratch);
    for (int i = 1; i < 40; i++)
        CHECK(scores[order[i - 1]] > scores[order[i]] || (scores[order[i - 1]] == scores[order[i]] && order[i - 1] < order[i]));
}

/* Values that are not finite are left out, and said so. */
static void not_finite(void)
{
    const toy d[] = {{A, .score = (double)NAN}, {A, .score = .9}, {B, .score = (double)INFINITY}, {.x1 = (float)NAN, .score = .5}};
    sodet_eval_sink sink;
    for (int i = 0; i < 2; i++) {
        run_toy(i ? "voc" : "coco", "", NULL, two, 2, d, 4, 1, 1, &sink);
        CHECK(strstr(sink.lines.text, "note: 3 detections"));
        CHECK_NEAR(sd_eval_sink_get(&sink, i ? "mAP" : "AP50", NULL), i ? 6.0 / 11 : 51.0 / 101, 1e-12, 0);
        sd_eval_sink_clear(&sink);
    }
}

int main(void)
{
    o26_second_hit();
    o27_difficult();
    o28_no_detections();
    o29_equal_scores();
    o30_rules();
    curves();
    not_finite();
    return check_done(300);
}
