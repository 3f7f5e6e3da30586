/* labels: threads
 * Intervals of differences: draws of images, pairs, seeds; against distributions that are known. */
#include "core/eval/bootstrap.h"

#include "check.h"

enum { IMAGES = 40, DRAWS = 1000, METRICS = 3 };
static const char *const names[] = {"a", "b"};
static sodet_object objects[IMAGES];
static uint64_t first[IMAGES + 1];

/* One object of class a in each image, and what a detector found: which(i) says whether image i's. */
typedef struct found {
    sodet_eval_input in;
    sodet_detection detection[IMAGES];
    uint64_t first[IMAGES + 1];
} found;

static void make(found *f, bool (*which)(uint64_t i))
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < IMAGES; i++) {
        f->first[i] = n;
        if (which(i))
            f->detection[n++] = (sodet_detection){.box = objects[i].box, .score = 0.5f};
    }
    f->first[IMAGES] = n;
    f->in = (sodet_eval_input){sizeof f->in, 2, names, IMAGES, first, f->first, objects, NULL, NULL, f->detection, NULL, 1};
}

static bool all(uint64_t i)
{
    return i < IMAGES;
}

static bool even(uint64_t i)
{
    return i % 2 == 0;
}

static bool even_but_the_first(uint64_t i)
{
    return i % 2 == 0 && i;
}

static void run(const sd_instance *evaluator, const found *a, const found *b, uint64_t seed, uint64_t draws, uint32_t threads,
                sd_interval *out)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_bootstrap q = {.evaluator = evaluator,
                            .a = &a->in,
                            .b = &b->in,
                            .seed = seed,
                            .draws = draws,
                            .share = 0.95,
                            .n_threads = threads,
                            .n_metrics = METRICS};
    CHECK_OK(sd_bootstrap_run(&q, out, &err));
}

static void test_resample(void)
{
    static const uint64_t objects_at[] = {0, 2, 2, 3}, found_at[] = {0, 0, 1, 3};
    static const sodet_object o[] = {{.id = 1}, {.id = 2}, {.id = 3}};
    static const sodet_detection d[] = {{.label = 1}, {.label = 2}, {.label = 3}};
    static const double xywh[12] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, scores[3] = {0.1, 0.2, 0.3};
    const sodet_eval_input in = {sizeof in, 2, names, 3, objects_at, found_at, o, xywh, xywh, d, scores, 1};
    static const uint64_t picks[] = {2, 0, 2, 1};
    static const int64_t ids[] = {3, 1, 2, 3}, labels[] = {2, 3, 2, 3, 1};
    static const uint64_t want_o[] = {0, 1, 3, 4, 4}, want_d[] = {0, 2, 2, 4, 5};
    sodet_err err = SODET_ERR_INIT;
    sd_resample r;
    CHECK_OK(sd_resample_make(&in, picks, 4, &r, &err));
    CHECK_EQ(r.in.n_images, 4);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(r.in.object_first[i], want_o[i]);
        CHECK_EQ(r.in.detection_first[i], want_d[i]);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(r.in.objects[i].id, ids[i]);
        CHECK_NEAR(r.in.object_xywh[4 * i + 3], (double)ids[i], 0, 0);
    }
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(r.in.detections[i].label, labels[i]);
        CHECK_NEAR(r.in.detection_xywh[4 * i], (double)labels[i], 0, 0);
        CHECK_NEAR(r.in.detection_scores[i], 0.1 * (double)labels[i], 1e-15, 0);
    }
    sd_resample_free(&r);
}

int main(void)
{
    static found every, half, fewer;
    static const char ini[] = "[evaluator.voc]\nap = area\n";
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg = NULL;
    sd_instance voc;
    sd_interval x[METRICS], y[METRICS];
    for (uint64_t i = 0; i < IMAGES; i++) {
        objects[i] = (sodet_object){.box = {0, 0, 10, 10}, .area = 100, .id = (int64_t)i + 1};
        first[i + 1] = i + 1;
    }
    make(&every, all);
    make(&half, even);
    make(&fewer, even_but_the_first);
    test_resample();
    CHECK_OK(sd_config_open_text(ini, sizeof ini - 1, "test.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "evaluator.voc", &voc, &err));

    /* AP is the share of found objects among the drawn: Binomial(40, 1/2) / 40, whose 2.5% and 97.5% points are 14 and 26 of 40. A
     * thousand draws know them to one of 40. */
    run(&voc, &every, &half, 1, DRAWS, 1, x);
    CHECK_NEAR(x[0].low, -26.0 / 40, 0, 1.01 / 40);
    CHECK_NEAR(x[0].high, -14.0 / 40, 0, 1.01 / 40);
    CHECK_EQ(x[0].n, DRAWS);
    CHECK_NEAR(x[1].low, x[0].low, 0, 0);
    CHECK(isnan(x[2].low) && isnan(x[2].high)); /* there is no object of class b */
    CHECK_EQ(x[2].n, 0);

    /* The same for any number of threads, another one for another seed. */
    run(&voc, &every, &half, 1, DRAWS, 3, y);
    CHECK_NEAR(y[0].low, x[0].low, 0, 0);
    CHECK_NEAR(y[0].high, x[0].high, 0, 0);
    sd_interval z[METRICS];
    uint32_t other = 0;
    run(&voc, &every, &half, 1, 20, 1, z); /* few, since many know the quantiles too well to differ */
    for (uint64_t seed = 2; seed < 6; seed++) {
        run(&voc, &every, &half, seed, 20, 2, y);
        other += y[0].low != z[0].low || y[0].high != z[0].high;
    }
    CHECK(other > 0);

    /* In pairs: the difference is how often image 0 was drawn, about Poisson(1), whose 97.5% point is 3; apart it would be some +-0.2. */
    run(&voc, &half, &fewer, 1, DRAWS, 2, x);
    CHECK_NEAR(x[0].low, -3.0 / 40, 0, 1.01 / 40);
    CHECK_NEAR(x[0].high, 0, 0, 0);
    run(&voc, &half, &half, 1, DRAWS, 2, x);
    CHECK(x[0].low == 0 && x[0].high == 0);

    sodet_eval_input short_one = half.in;
    short_one.n_images--;
    const sd_bootstrap odd = {
        .evaluator = &voc, .a = &every.in, .b = &short_one, .draws = 2, .share = 0.95, .n_threads = 1, .n_metrics = 1};
    CHECK_FAILS(sd_bootstrap_run(&odd, x, &err), SODET_E_INVALID, "40 and 39 images");
    sd_instance_destroy(&voc);
    sd_config_close(cfg);
    return check_done(55);
}
