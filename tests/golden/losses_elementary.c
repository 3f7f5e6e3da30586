/* losses.json, "elementary": focal loss, cross-entropies and smooth L1 of torch, values and gradients, one element at a time. */
#include "golden.h"
#include "runner.h"
#include "sodet/graph.h"

enum { N = 24 };

typedef sodet_value loss_of(sodet_graph *g, sodet_value x, sodet_value t, double a, double b);

static sodet_value focal(sodet_graph *g, sodet_value x, sodet_value t, double alpha, double gamma)
{
    sodet_value label = sodet_cast(g, sodet_sub(g, t, sodet_scalar(g, 1)), SODET_I32); /* 1 is the anchor's class 0, 0 is background */
    return sodet_sigmoid_focal(g, x, label, alpha, gamma);
}

static sodet_value smooth(sodet_graph *g, sodet_value x, sodet_value t, double beta, double unused)
{
    (void)t, (void)unused;
    return sodet_smooth_l1(g, x, sodet_mul(g, x, sodet_scalar(g, 0)), beta);
}

static sodet_value cross(sodet_graph *g, sodet_value x, sodet_value t, double a, double b)
{
    static const int32_t target[4] = {0, 5, 2, 2};
    (void)t, (void)a, (void)b;
    sodet_shape four = sodet_shape_make(SODET_I32, 1, 4, 0, 0, 0);
    return sodet_softmax_cross_entropy(g, sodet_reshape(g, x, 2, (const int64_t[]){4, 6}), sodet_constant(g, &four, target));
}

static const struct {
    const char *name;
    loss_of *build;
    double a, b;
} losses[] = {
    {"focal_a025_g2", focal, 0.25, 2}, {"focal_noalpha_g15", focal, -1, 1.5},  {"bce", focal, -1, 0},
    {"smooth_l1_b1", smooth, 1, 0},    {"smooth_l1_b1_9", smooth, 1.0 / 9, 0}, {"cross_entropy_4x6_targets_0_5_2_2", cross, 0, 0},
};

static void check(gold_tally *t, const gold *all, runner *r, size_t k, double tolerance)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(true);
    sodet_shape column = sodet_shape_make(SODET_F32, 2, N, 1, 0, 0), rows = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0);
    sodet_value x = sodet_parameter(g, "x", &column, NULL), target = sodet_input(g, "t", &rows);
    sodet_value loss = losses[k].build(g, x, target, losses[k].a, losses[k].b);
    sodet_output(g, "each", loss);
    sd_graph_add_loss(g, "sum", sodet_sum(g, loss, 0));
    CHECK_OK(sd_graph_backward(g, &err));
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    double *values = gold_numbers(gold_get(all, "x"), NULL), *targets = gold_numbers(gold_get(all, "t"), NULL), got[N];
    const gold *want = gold_get(all, losses[k].name);
    if (p) {
        char what[80];
        uint64_t n = (uint64_t)gold_size(gold_get(want, "loss"));
        CHECK(running_set(p, "x", values, N));
        running_set(p, "t", targets, N);
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "each", got, n));
        snprintf(what, sizeof what, "%s, %s: loss", losses[k].name, runner_name(r));
        gold_compare_list(t, what, gold_get(want, "loss"), got, n, tolerance, 0);
        CHECK(running_grad(p, "x", got, N));
        snprintf(what, sizeof what, "%s, %s: gradient", losses[k].name, runner_name(r));
        gold_compare_list(t, what, gold_get(want, "grad"), got, N, tolerance, 0);
    }
    free(values);
    free(targets);
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    const gold *root = gold_open("losses.json"), *all = gold_get(root, "elementary");
    gold_tally t = GOLD_TALLY("losses/elementary");
    runner *exact = runner_open("ref", true, 1), *cpu = runner_open("cpu", false, 2);
    for (size_t k = 0; k < sizeof losses / sizeof losses[0]; k++) {
        check(&t, all, exact, k, 1e-14);
        check(&t, all, cpu, k, 1e-6);
    }
    runner_close(exact);
    runner_close(cpu);
    gold_done(&t);
    gold_close(root);
    return check_done(1);
}
