/* labels: threads */
/* The COCO evaluator against numbers of pycocotools, to 1e-12: random boxes made for it (make_coco_random.py), and the public fixtures
 * where the data are there. Also: any number of threads says the same, and written results are read back to the same numbers. */
#include "golden.h"
#include "run.h"

static const char *const twelve[][2] = {{"AP", "AP"},        {"AP50", "AP50"},   {"AP75", "AP75"},    {"APs", "APsmall"},
                                        {"APm", "APmedium"}, {"APl", "APlarge"}, {"AR1", "AR1"},      {"AR10", "AR10"},
                                        {"AR100", "AR100"},  {"ARs", "ARsmall"}, {"ARm", "ARmedium"}, {"ARl", "ARlarge"}};
static double worst;

static void compare(const char *what, const char *name, double got, double want)
{
    check_count();
    double e = fabs(got - want);
    if (!(e <= 1e-12))
        check_fail(__FILE__, __LINE__, "%s: %s = %.17g, expected %.17g", what, name, got, want);
    worst = e > worst ? e : worst;
}

static sd_gather *load(const char *truth, const char *detections, uint32_t n_threads, sodet_eval_input *in)
{
    sodet_err err = SODET_ERR_INIT;
    sd_gather *g = NULL;
    CHECK_OK(sd_read_coco_truth(truth, n_threads, &g, &err));
    if (!g)
        return NULL;
    CHECK_OK(sd_read_coco_detections(detections, g, n_threads, &err));
    CHECK_OK(sd_gather_finish(g, n_threads, in, &err));
    return g;
}

static void random_boxes(void)
{
    sodet_err err = SODET_ERR_INIT;
    const char *truth = check_source("tests/eval/coco-random-gt.json"), *detections = check_source("tests/eval/coco-random-dt.json");
    const gold *root = gold_read(check_source("tests/eval/coco-random-expected.json"), "coco-random-expected.json"),
               *want = gold_get(root, "metrics");
    CHECK_EQ(gold_size(want), 17);
    sd_text first = {0};
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
        sodet_eval_input in;
        sodet_eval_sink sink = {.n = 0};
        sd_gather *g = load(truth, detections, threads, &in);
        if (!g)
            return;
        CHECK_OK(run_evaluator("coco", "compat = pycocotools", &in, &sink, &err));
        CHECK_EQ(sink.n, 17);
        for (uint64_t i = 0; i < gold_size(want); i++)
            compare("random", gold_key(want, i), sd_eval_sink_get(&sink, gold_key(want, i), NULL), gold_number(gold_at(want, i)));
        sd_text json = {0};
        sd_eval_sink_json(&sink, "", &json);
        if (threads == 1)
            first = json;
        else {
            CHECK_STR(json.text, first.text);
            sd_text_free(&json);
        }
        /* Annotation id 0 is an object like any other where pycocotools need not be met. */
        double with_quirk = sd_eval_sink_get(&sink, "AP", NULL);
        CHECK_OK(run_evaluator("coco", "", &in, &sink, &err));
        CHECK(sd_eval_sink_get(&sink, "AP", NULL) != with_quirk);
        sd_eval_sink_clear(&sink);
        sd_gather_free(g);
    }

    /* Written and read again. */
    const char *folder = check_scratch("coco");
    char path[1200];
    sodet_eval_input in;
    sodet_eval_sink sink = {.n = 0};
    snprintf(path, sizeof path, "%s/results.json", folder ? folder : "");
    sd_gather *g = load(truth, detections, 2, &in);
    if (g)
        CHECK_OK(sd_write_coco_detections(path, g, &in, &err));
    sd_gather_free(g);
    g = load(truth, path, 2, &in);
    if (g)
        CHECK_OK(run_evaluator("coco", "compat = pycocotools", &in, &sink, &err));
    sd_text again = {0};
    sd_eval_sink_json(&sink, "", &again);
    CHECK_STR(again.text, first.text);
    sd_text_free(&again);
    sd_text_free(&first);
    sd_eval_sink_clear(&sink);
    sd_gather_free(g);
    gold_close(root);
}

static void fixture(const gold *expected, const char *name, const char *truth, const char *detections)
{
    sodet_err err = SODET_ERR_INIT;
    char paths[2][600];
    const gold *want = gold_get(expected, name);
    snprintf(paths[0], sizeof paths[0], "data/%s", truth);
    snprintf(paths[1], sizeof paths[1], "data/%s", detections);
    const char *a = check_shared(paths[0]), *b = check_shared(paths[1]);
    if (!a || !b) {
        check_skip(name);
        return;
    }
    sodet_eval_input in;
    sodet_eval_sink sink = {.n = 0};
    sd_gather *g = load(a, b, 2, &in);
    if (!g)
        return;
    CHECK_OK(run_evaluator("coco", "compat = pycocotools", &in, &sink, &err));
    for (int i = 0; i < 12; i++)
        compare(name, twelve[i][0], sd_eval_sink_get(&sink, twelve[i][0], NULL), gold_number(gold_get(want, twelve[i][1])));
    const gold *classes = gold_try(want, "per_category_AP");
    CHECK(gold_size(classes) > 0);
    for (uint64_t i = 0; i < gold_size(classes); i++)
        for (uint32_t c = 0; c < in.n_classes; c++)
            if (sd_gather_category(g, c) == strtoll(gold_key(classes, i), NULL, 10)) {
                char metric[300];
                snprintf(metric, sizeof metric, "AP/%s", in.class_names[c]);
                compare(name, metric, sd_eval_sink_get(&sink, metric, NULL), gold_number(gold_at(classes, i)));
            }
    sd_eval_sink_clear(&sink);
    sd_gather_free(g);
}

static void fixtures(void)
{
    const char *path = check_shared("data/eval-fixtures/expected-coco-bbox.json");
    if (!path) {
        check_skip("the evaluators' fixtures are not there");
        return;
    }
    const gold *e = gold_read(path, "expected-coco-bbox.json");
#define FIX "eval-fixtures/"
    fixture(e, "cocoapi-fakebbox100", FIX "cocoapi-fakebbox100/instances_val2014_100.json",
            FIX "cocoapi-fakebbox100/instances_val2014_fakebbox100_results.json");
    fixture(e, "rafaelpadilla test_coco_eval", FIX "rafaelpadilla/test_coco_eval/gts/sampled_gts_bbox_area.json",
            FIX "rafaelpadilla/test_coco_eval/dets/sampled_bbox_results.json");
    fixture(e, "voc2012-100 coco_format_v1 vs dets/coco_format (matched by file_name and category name)",
            "voc2012-100/gts-other-formats/coco_format_v1/instances_default.json", "voc2012-100/dets/coco_format/coco_dets.json");
    fixture(e, "voc2012-100 coco_format_v2 vs dets/coco_format (matched by file_name and category name)",
            "voc2012-100/gts-other-formats/coco_format_v2/instances_v2.json", "voc2012-100/dets/coco_format/coco_dets.json");
    fixture(e, "faster_coco_eval gt_ignore/dt_ignore, ids read as integers", FIX "faster_coco_eval/gt_ignore_test.json",
            FIX "faster_coco_eval/dt_ignore_test.json");
    fixture(e, "faster_coco_eval gt_dataset/dt_dataset", FIX "faster_coco_eval/gt_dataset.json", FIX "faster_coco_eval/dt_dataset.json");
    gold_close(e);
}

int main(void)
{
    random_boxes();
    fixtures();
    printf("largest difference to pycocotools %.2g\n", worst);
    return check_done(60);
}
