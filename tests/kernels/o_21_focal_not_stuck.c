/* O-21: the focal loss works on logits, so a hopeless positive keeps its gradient (a probability clamped at 1e-4 gives 2.302125 for ever, and
 * no gradient); and the head's classes begin at a score of 0.01, however many they are. */
#include "models/models.h"
#include "runner.h"

enum { N = 4 };
static const double logits[N] = {-20, 0, 0, -200}, alpha = 0.25, gamma_ = 2;
static const int own[N] = {0, 0, -1, 0}; /* row by row: the only class is the anchor's own, or not */

/* By the formula, and its derivative, at logit x: p = sigmoid(x) of the own class, 1 - p of another. */
static double slope_of(double x, int is_own)
{
    double s = is_own ? x : -x, p = 1 / (1 + exp(-s)), q = 1 / (1 + exp(s)), nll = s > 0 ? log1p(exp(-s)) : -s + log1p(exp(s));
    double ds = -(is_own ? alpha : 1 - alpha) * pow(q, gamma_) * (gamma_ * p * nll + q);
    return is_own ? ds : -ds;
}

static void one(runner *r)
{
    static const double want[N] = {5.000000, 0.043322, 0.129965, 50};
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(true);
    sodet_shape shape = sodet_shape_make(SODET_F32, 3, 1, N, 1, 0), index = sodet_shape_make(SODET_I32, 2, 1, N, 0, 0);
    sodet_value x = sodet_parameter(g, "logits", &shape, NULL);
    sodet_value rows = sodet_sigmoid_focal(g, x, sodet_input(g, "label", &index), alpha, gamma_);
    sodet_output(g, "rows", rows);
    sd_graph_add_loss(g, "cls", sodet_sum(g, rows, 0));
    CHECK_OK(sd_graph_backward(g, &err));
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double label[N], loss[N], slope[N];
        for (int i = 0; i < N; i++)
            label[i] = own[i];
        CHECK(running_set(p, "logits", logits, N) && running_set(p, "label", label, N));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "rows", loss, N) && running_grad(p, "logits", slope, N));
        for (int i = 0; i < N; i++) {
            CHECK_NEAR(loss[i], want[i], 1e-6, 1e-6);
            CHECK_NEAR(slope[i], slope_of(logits[i], own[i] == 0), 1e-5, 0);
        }
        CHECK(slope[0] < -0.2 && slope[3] < -0.2); /* it goes on pushing up, at full strength */
    }
    running_free(p);
    sd_graph_free(g);
}

/* The bias of the last class convolution: -ln(99), for 1, 20 and 91 classes. */
static void initial_bias(void)
{
    static const uint32_t classes[] = {1, 20, 91};
    for (uint32_t i = 0; i < 3; i++) {
        sodet_err err = SODET_ERR_INIT;
        test_model m;
        sodet_graph *g = NULL;
        sd_segments segments = {0};
        const sd_graph_options options = {.training = false};
        const sd_model_shape shape = {.batch = 1, .height = 64, .width = 64, .boxes = 1};
        CHECK_OK(test_model_open(&m, "model/retinanet_r18_fpn.ini", (const char *[]){"backbone.width=0.125", NULL}, classes[i], &err));
        CHECK_OK(m.model ? sd_model_build(m.model, &options, &shape, &g, &err) : SODET_E_INVALID);
        CHECK_OK(g ? sd_segments_make(g, &segments, &err) : SODET_E_INVALID);
        uint32_t seen = 0;
        for (uint32_t k = 0; k < segments.n; k++) {
            const sd_segment *s = &segments.segment[k];
            if (s->n % classes[i] != 0 || !strstr(s->name, "cls") || !strstr(s->name, "out") || !strstr(s->name, "bias"))
                continue;
            float *v = calloc(s->n, sizeof *v);
            sd_segment_init(s, 1, SODET_INIT_HE, v);
            for (uint64_t n = 0; n < s->n; n++)
                CHECK_NEAR(v[n], -4.595120, 0, 1e-6);
            seen++;
            free(v);
        }
        CHECK_EQ(seen, 1);
        sd_segments_free(&segments);
        sd_graph_free(g);
        test_model_close(&m);
    }
}

int main(void)
{
    runner *all[3] = {runner_open("ref", true, 1), runner_open("ref", false, 1), runner_open("cpu", false, 2)};
    for (int i = 0; i < 3; i++) {
        one(all[i]);
        runner_close(all[i]);
    }
    initial_bias();
    return check_done(600);
}
