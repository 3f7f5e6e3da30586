/* Kinds of errors, curves, confusions and the worst images of a scene that was worked out by hand. */
#include "core/eval/errors.h"

#include "check.h"

enum { A, B, CLASSES };
static const char *const names[CLASSES] = {"a", "b"};
static const sodet_object objects[] = {
    {.box = {0, 0, 10, 10}, .label = A},                                 /* image 0: 0 */
    {.box = {20, 0, 30, 10}, .label = B},                                /* 1 */
    {.box = {0, 0, 10, 10}, .label = B},                                 /* image 1: 2, which nothing is said about */
    {.box = {20, 20, 30, 30}, .label = A, .flags = SODET_BOX_DIFFICULT}, /* 3 */
    {.box = {0, 40, 100, 60}, .label = B, .flags = SODET_BOX_CROWD},     /* 4 */
    {.box = {0, 0, 10, 10}, .label = A},                                 /* image 2: 5 */
    {.box = {20, 0, 30, 10}, .label = B},                                /* 6 */
};
static const uint64_t object_first[] = {0, 2, 5, 7};
static const sodet_detection detections[] = {
    {.box = {0, 0, 10, 10}, .score = 0.9f, .label = A},    /* image 0: 0 hit */
    {.box = {50, 50, 60, 60}, .score = 0.4f, .label = A},  /* 1 background */
    {.box = {0, 0, 10, 10}, .score = 0.8f, .label = A},    /* 2 duplicate */
    {.box = {20, 0, 30, 10}, .score = 0.7f, .label = A},   /* 3 class */
    {.box = {25, 0, 35, 10}, .score = 0.6f, .label = B},   /* 4 place: IoU 1/3 */
    {.box = {26, 0, 36, 10}, .score = 0.25f, .label = B},  /* 5 place: IoU 1/4, the less sure of the two */
    {.box = {25, 0, 35, 10}, .score = 0.5f, .label = A},   /* 6 both */
    {.box = {20, 20, 30, 30}, .score = 0.95f, .label = A}, /* image 1: 7 on the difficult one */
    {.box = {10, 45, 20, 55}, .score = 0.3f, .label = B},  /* 8 in the crowd: IoU 0.05 */
    {.box = {0, 0, 10, 10}, .score = NAN, .label = B},     /* 9 no number */
    {.box = {0, 0, 10, 10}, .score = 0.1f, .label = A},    /* image 2: 10 hit */
    {.box = {20, 0, 30, 10}, .score = 0.2f, .label = B},   /* 11 hit */
};
static const uint64_t detection_first[] = {0, 7, 10, 12};
static const sodet_eval_input scene = {.struct_size = sizeof scene,
                                       .n_classes = CLASSES,
                                       .class_names = names,
                                       .n_images = 3,
                                       .object_first = object_first,
                                       .detection_first = detection_first,
                                       .objects = objects,
                                       .detections = detections,
                                       .n_threads = 1};

static void test_kinds(const sd_errors *e)
{
    static const uint8_t fate[] = {SD_FATE_HIT,   SD_ERROR_BACKGROUND, SD_ERROR_DUPLICATE, SD_ERROR_CLASS,   SD_ERROR_PLACE, SD_ERROR_PLACE,
                                   SD_ERROR_BOTH, SD_FATE_LEFT_OUT,    SD_FATE_LEFT_OUT,   SD_FATE_LEFT_OUT, SD_FATE_HIT,    SD_FATE_HIT};
    static const uint64_t count[SD_ERROR_KINDS] = {1, 2, 1, 1, 1, 1}, sure[SD_ERROR_KINDS] = {1, 1, 1, 1, 0, 3};
    for (size_t d = 0; d < sizeof fate; d++)
        CHECK_EQ(e->fate[d], fate[d]);
    for (int k = 0; k < SD_ERROR_KINDS; k++) {
        CHECK_EQ(e->count[k], count[k]);
        CHECK_EQ(e->sure[k], sure[k]);
    }
    /* a: hit, four misses, hit of 2 objects: 1/2 + 1/2 * 2/6. b: two misses, hit of 3 objects: 1/3 * 1/3. */
    const double a = 2.0 / 3, b = 1.0 / 9, map = (a + b) / 2;
    CHECK_NEAR(e->classes[A].ap, a, 1e-12, 0);
    CHECK_NEAR(e->classes[B].ap, b, 1e-12, 0);
    CHECK_NEAR(e->map, map, 1e-12, 0);
    /* Without one of a's misses it is 1/2 + 1/2 * 2/5. */
    CHECK_NEAR(e->gain[SD_ERROR_DUPLICATE], (0.7 + b) / 2 - map, 1e-9, 0);
    CHECK_NEAR(e->gain[SD_ERROR_BOTH], (0.7 + b) / 2 - map, 1e-9, 0);
    CHECK_NEAR(e->gain[SD_ERROR_BACKGROUND], (0.7 + b) / 2 - map, 1e-9, 0);
    /* b begins with a hit, then two misses and a hit: 1/3 + 1/3 * 2/4; a has lost a miss. */
    CHECK_NEAR(e->gain[SD_ERROR_CLASS], (0.7 + 0.5) / 2 - map, 1e-9, 0);
    /* b: two hits; the less sure place error is gone. */
    CHECK_NEAR(e->gain[SD_ERROR_PLACE], (a + 2.0 / 3) / 2 - map, 1e-9, 0);
    /* b: two objects. */
    CHECK_NEAR(e->gain[SD_ERROR_MISSED], (a + 1.0 / 6) / 2 - map, 1e-9, 0);
}

static void test_tables(const sd_errors *e)
{
    static const uint64_t confusion[9] = {1, 0, 1, 1, 0, 2, 2, 1, 0};
    for (int k = 0; k < 9; k++)
        CHECK_EQ(e->confusion[k], confusion[k]);
    CHECK_EQ(e->classes[A].objects, 2);
    CHECK_EQ(e->classes[B].objects, 3);
    CHECK_EQ(e->classes[A].detections, 6);
    CHECK_EQ(e->classes[B].detections, 3);
    CHECK_EQ(e->classes[A].sure, 4);
    CHECK_EQ(e->classes[A].correct, 1);
    CHECK_EQ(e->classes[B].sure, 1);
    CHECK_EQ(e->classes[B].correct, 0);
    CHECK_NEAR(e->classes[A].f1, 2.0 / 3, 1e-12, 0);
    CHECK_NEAR(e->classes[A].f1_score, 0.9, 1e-6, 0);
    CHECK_NEAR(e->classes[A].recall[5], 1, 0, 0);
    CHECK_NEAR(e->classes[A].precision[5], 2.0 / 6, 1e-12, 0);
    CHECK_NEAR(e->classes[A].score[5], 0.1, 1e-6, 0);
    CHECK_EQ(e->images[0].missed, 1);
    CHECK_EQ(e->images[0].wrong, 4);
    CHECK_NEAR(e->images[0].weight, 1 + 0.8 + 0.7 + 0.6 + 0.5, 1e-6, 0);
    CHECK_EQ(e->images[1].missed, 1);
    CHECK_EQ(e->images[1].wrong, 0);
    CHECK_EQ(e->images[2].missed, 2);
    CHECK_EQ(e->worst[0], 0);
    CHECK_EQ(e->worst[1], 2);
    CHECK_EQ(e->worst[2], 1);
}

int main(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_errors e;
    const sd_errors_options options = {.score = 0.45};
    CHECK_OK(sd_errors_find(&scene, &options, &e, &err));
    test_kinds(&e);
    test_tables(&e);
    sd_errors_free(&e);

    /* With IoU 0.3 the sure place error is a hit, the other a duplicate of it. */
    const sd_errors_options loose = {.iou = 0.3, .score = 0.45};
    CHECK_OK(sd_errors_find(&scene, &loose, &e, &err));
    CHECK_EQ(e.fate[4], SD_FATE_HIT);
    CHECK_EQ(e.fate[5], SD_ERROR_PLACE);
    CHECK_EQ(e.fate[6], SD_ERROR_CLASS);
    sd_errors_free(&e);

    /* Nothing at all, and classes without objects. */
    static const uint64_t none[] = {0, 0, 0, 0};
    sodet_eval_input empty = scene;
    empty.detection_first = none;
    CHECK_OK(sd_errors_find(&empty, &options, &e, &err));
    CHECK_EQ(e.count[SD_ERROR_MISSED], 5);
    CHECK_NEAR(e.map, 0, 0, 0);
    sd_errors_free(&e);
    empty.object_first = none;
    CHECK_OK(sd_errors_find(&empty, &options, &e, &err));
    CHECK(isnan(e.map) && isnan(e.gain[SD_ERROR_MISSED]) && isnan(e.classes[A].ap));
    CHECK_EQ(e.classes[A].n, 0);
    sd_errors_free(&e);

    static const sodet_detection stray[] = {{.box = {0, 0, 1, 1}, .score = 1, .label = 2}};
    static const uint64_t one[] = {0, 1, 1, 1};
    empty.detections = stray;
    empty.detection_first = one;
    CHECK_FAILS(sd_errors_find(&empty, &options, &e, &err), SODET_E_INVALID, "detection 0 has class 2 of 2");
    return check_done(60);
}
