/* O-17: a batch without a positive anchor. The losses are what they should be, no division by zero, and every gradient is finite. */
#include "runner.h"
#include "sodet/detection.h"

enum { PRIORS = 8, CLASSES = 3 };
static const double background[PRIORS] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.05, 0.05, 0.05};

/* Eight priors whose background cross-entropies are those above: two equal logits of the others, x of the background. */
static void logits_for(const double *loss, double *out)
{
    for (int i = 0; i < PRIORS; i++) {
        double p = exp(-loss[i]); /* e^x / (e^x + 2) */
        out[CLASSES * i] = log(2 * p / (1 - p));
        out[CLASSES * i + 1] = out[CLASSES * i + 2] = 0;
    }
}

typedef struct ssd {
    sodet_graph *g;
    sodet_targets t;
} ssd;

static ssd build(uint32_t least)
{
    ssd s = {.g = running_graph(true)};
    sodet_graph *g = s.g;
    sodet_shape logits = sodet_shape_make(SODET_F32, 3, 1, PRIORS, CLASSES, 0), codes = sodet_shape_make(SODET_F32, 3, 1, PRIORS, 4, 0);
    sodet_shape index = sodet_shape_make(SODET_I32, 2, 1, PRIORS, 0, 0), truth = sodet_shape_make(SODET_F32, 3, 1, 2, 4, 0),
                label = sodet_shape_make(SODET_I32, 2, 1, 2, 0, 0);
    sodet_shape anchors = sodet_shape_make(SODET_F32, 2, PRIORS, 4, 0, 0), images = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    s.t = (sodet_targets){.index = sodet_input(g, "index", &index),
                          .truth = sodet_input(g, "truth", &truth),
                          .label = sodet_input(g, "label", &label),
                          .anchors = sodet_input(g, "anchors", &anchors),
                          .weight = sodet_input(g, "weight", &images)};
    sodet_value x = sodet_parameter(g, "logits", &logits, NULL), c = sodet_parameter(g, "codes", &codes, NULL), zero = sodet_scalar(g, 0);
    sodet_value cross = sodet_softmax_cross_entropy(g, x, sodet_softmax_labels(g, &s.t));
    sodet_value keep = sodet_hard_negatives(g, cross, s.t.index, 3, least, 0);
    sodet_value box = sodet_smooth_l1(g, c, sodet_encode_boxes(g, &s.t, (const float[]){0.1f, 0.1f, 0.2f, 0.2f}, NULL), 1);
    sodet_emit_loss(g, "cls", &s.t, sodet_sum_per_image(g, sodet_where(g, keep, cross, zero)), 1);
    sodet_emit_loss(g, "box", &s.t, sodet_sum_per_image(g, sodet_where(g, sodet_ge(g, s.t.index, zero), box, zero)), 1);
    sodet_emit_loss(g, "focal", &s.t, sodet_sum_per_image(g, sodet_sigmoid_focal(g, x, sodet_sigmoid_labels(g, &s.t), 0.25, 2)), 0);
    return s;
}

static void multibox(runner *r, uint32_t least, double want)
{
    sodet_err err = SODET_ERR_INIT;
    ssd s = build(least);
    CHECK_OK(sd_graph_backward(s.g, &err));
    running *p = running_make(r, s.g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double none[PRIORS], zeros[4 * PRIORS] = {0}, codes[4 * PRIORS], anchors[4 * PRIORS], logits[PRIORS * CLASSES],
                                       slope[PRIORS * CLASSES], loss = NAN;
        const double weight = 1; /* 1 / max(1, positives) */
        logits_for(background, logits);
        for (int i = 0; i < PRIORS; i++)
            none[i] = SODET_INDEX_BACKGROUND;
        for (int i = 0; i < 4 * PRIORS; i++) {
            codes[i] = 0.3 * i - 4;
            anchors[i] = 10 + i;
        }
        CHECK(running_set(p, "index", none, PRIORS) && running_set(p, "truth", zeros, 8) && running_set(p, "label", zeros, 2));
        CHECK(running_set(p, "anchors", anchors, 4 * PRIORS) && running_set(p, "weight", &weight, 1));
        CHECK(running_set(p, "logits", logits, PRIORS * CLASSES) && running_set(p, "codes", codes, 4 * PRIORS));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "loss/cls", &loss, 1));
        CHECK_NEAR(loss, want, 0, 1e-6);
        CHECK(running_get(p, "loss/box", &loss, 1));
        CHECK_NEAR(loss, 0, 0, 0);
        CHECK(running_grad(p, "codes", codes, 4 * PRIORS));
        CHECK(running_grad(p, "logits", slope, PRIORS * CLASSES));
        for (int i = 0; i < 4 * PRIORS; i++)
            CHECK_NEAR(codes[i], 0, 0, 0);
        for (int i = 0; i < PRIORS; i++) { /* the hardest are priors 4, 3, 2; their background gradient is p - 1 */
            int kept = least > 0 && i >= 2 && i <= 4;
            CHECK_NEAR(slope[CLASSES * i], kept ? exp(-background[i]) - 1 : 0, 0, 1e-6);
            CHECK_NEAR(slope[CLASSES * i + 1], kept ? (1 - exp(-background[i])) / 2 : 0, 0, 1e-6);
        }
    }
    running_free(p);
    sd_graph_free(s.g);
}

/* RetinaNet: the sum of the background terms, divided by max(1, 0) = 1. */
static void focal(runner *r)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(true);
    sodet_shape shape = sodet_shape_make(SODET_F32, 3, 1, PRIORS, CLASSES, 0), index = sodet_shape_make(SODET_I32, 2, 1, PRIORS, 0, 0);
    sodet_value x = sodet_parameter(g, "logits", &shape, NULL);
    sd_graph_add_loss(g, "cls", sodet_sum(g, sodet_sigmoid_focal(g, x, sodet_input(g, "label", &index), 0.25, 2), 0));
    CHECK_OK(sd_graph_backward(g, &err));
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double logits[PRIORS * CLASSES], slope[PRIORS * CLASSES], label[PRIORS], want = 0, loss = NAN;
        for (int i = 0; i < PRIORS * CLASSES; i++) {
            logits[i] = -log(99.0) + 0.1 * i; /* the prior of 0.01, and up */
            double q = 1 / (1 + exp(-logits[i]));
            want += 0.75 * q * q * log1p(exp(logits[i]));
        }
        for (int i = 0; i < PRIORS; i++)
            label[i] = -1;
        CHECK(running_set(p, "logits", logits, PRIORS * CLASSES) && running_set(p, "label", label, PRIORS));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "loss/cls", &loss, 1));
        CHECK_NEAR(loss, want, 1e-6, 0);
        CHECK(running_grad(p, "logits", slope, PRIORS * CLASSES));
        for (int i = 0; i < PRIORS * CLASSES; i++)
            CHECK(isfinite(slope[i]) && slope[i] > 0);
    }
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    runner *all[3] = {runner_open("ref", true, 1), runner_open("ref", false, 1), runner_open("cpu", false, 2)};
    for (int i = 0; i < 3; i++) {
        multibox(all[i], 0, 0);
        multibox(all[i], 3, 0.5 + 0.4 + 0.3);
        focal(all[i]);
        runner_close(all[i]);
    }
    return check_done(250);
}
