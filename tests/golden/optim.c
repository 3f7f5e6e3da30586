/* optim.json, "optimizers" and "clip": ten steps of each optimizer, and clipping by the norm, as torch makes them. Left out, as sodet has no such
 * thing: dampening, amsgrad, RMSprop; clipping by other norms and by value. */
#include "golden.h"
#include "runner.h"
#include "sodet/graph.h"

enum { N = 64, STEPS = 10 };

static const struct {
    const char *name;
    enum { SGD, ADAM, ADAMW } kind;
    double lr, decay, a, b, epsilon; /* a, b: momentum and nesterov, or the betas */
} optimizers[] = {
    {"SGD lr=0.1", SGD, 0.1, 0, 0, 0, 0},
    {"SGD lr=0.1 wd=0.01", SGD, 0.1, 0.01, 0, 0, 0},
    {"SGD lr=0.1 momentum=0.9", SGD, 0.1, 0, 0.9, 0, 0},
    {"SGD lr=0.1 momentum=0.9 wd=0.0005", SGD, 0.1, 0.0005, 0.9, 0, 0},
    {"SGD lr=0.1 momentum=0.9 nesterov wd=0.0005", SGD, 0.1, 0.0005, 0.9, 1, 0},
    {"Adam lr=0.01", ADAM, 0.01, 0, 0.9, 0.999, 1e-8},
    {"Adam lr=0.01 wd=0.01 betas=(0.8,0.99) eps=1e-6", ADAM, 0.01, 0.01, 0.8, 0.99, 1e-6},
    {"AdamW lr=0.01 wd=0.05", ADAMW, 0.01, 0.05, 0.9, 0.999, 1e-8},
};

static sodet_graph *build(size_t k)
{
    static const int32_t start = 0;
    static const float ones[2] = {1, 1};
    sodet_graph *g = running_graph(true);
    sodet_shape arena = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0), one = sodet_shape_make(SODET_I32, 1, 1, 0, 0, 0);
    sodet_shape two = sodet_shape_make(SODET_F32, 2, 1, 2, 0, 0),
                hyper = sodet_shape_make(SODET_F32, 1, optimizers[k].kind == SGD ? 3 : 7, 0, 0, 0);
    sodet_update u = {.struct_size = sizeof u, .p = sodet_buffer(g, "p", &arena, 0), .grad = sodet_input(g, "grad", &arena)};
    u.start = sodet_constant(g, &one, &start);
    u.factor = sodet_constant(g, &two, ones);
    u.hyper = sodet_input(g, "hyper", &hyper);
    if (optimizers[k].kind == SGD)
        sodet_sgd_update(g, &u, optimizers[k].a > 0 ? sodet_buffer(g, "v", &arena, 0) : SODET_NONE, optimizers[k].b > 0);
    else
        sodet_adam_update(g, &u, sodet_buffer(g, "m", &arena, 0), sodet_buffer(g, "v", &arena, 0), optimizers[k].kind == ADAMW);
    return g;
}

static void ten_steps(gold_tally *t, runner *r, const gold *all, size_t k, double tolerance)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = build(k);
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    const gold *want = gold_get(all, optimizers[k].name);
    double now[N], sums[STEPS] = {0};
    float values[N];
    char name[32], what[160];
    gold_fill(values, N, "opt.p", 1);
    if (p)
        CHECK(running_set_f32(p, "p", values, N));
    for (int s = 1; p && s <= STEPS; s++) {
        double lr = optimizers[k].lr, decay = optimizers[k].decay, a = optimizers[k].a, b = optimizers[k].b;
        const double sgd[3] = {lr, a, decay}, adam[7] = {lr, a, b, optimizers[k].epsilon, decay, 1 - pow(a, s), 1 - pow(b, s)};
        CHECK(running_set(p, "hyper", optimizers[k].kind == SGD ? sgd : adam, optimizers[k].kind == SGD ? 3 : 7));
        snprintf(name, sizeof name, "opt.g%d", s);
        gold_fill(values, N, name, 0.5);
        CHECK(running_set_f32(p, "grad", values, N));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "p", now, N));
        for (int i = 0; i < N; i++)
            sums[s - 1] += now[i];
        snprintf(name, sizeof name, "step%d", s);
        const gold *list = gold_try(want, name);
        snprintf(what, sizeof what, "%s, %s: %s", optimizers[k].name, runner_name(r), name);
        if (list)
            gold_compare_list(t, what, list, now, N, tolerance, 0);
    }
    snprintf(what, sizeof what, "%s, %s: sums", optimizers[k].name, runner_name(r));
    gold_compare_list(t, what, gold_get(want, "step_sums"), sums, STEPS, tolerance * N, 0);
    running_free(p);
    sd_graph_free(g);
}

static void clip(gold_tally *t, runner *r, const gold *all, const char *name, double limit, double tolerance)
{
    static const uint64_t length[3] = {7, 5, 9};
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(true);
    sodet_shape arena = sodet_shape_make(SODET_F32, 1, 21, 0, 0, 0);
    sodet_value grad = sodet_input(g, "grad", &arena), norm, finite, sum = sodet_square_sum(g, grad, SODET_NONE, SODET_NONE, 1, &finite);
    sodet_value factor = sodet_clip_factor(g, sum, sodet_scalar(g, limit), SODET_NONE, &norm);
    sodet_output(g, "norm", norm);
    sodet_output(g, "finite", finite);
    sodet_output(g, "clipped", sodet_mul(g, grad, factor));
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    float values[21];
    double clipped[21], total = 0, flag = 0;
    for (uint64_t i = 0, at = 0; i < 3; at += length[i++]) {
        char stream[16];
        snprintf(stream, sizeof stream, "clip.g%llu", (unsigned long long)i);
        gold_fill(values + at, length[i], stream, 2);
    }
    char what[100];
    const gold *want = gold_get(all, name);
    if (p) {
        CHECK(running_set_f32(p, "grad", values, 21));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "norm", &total, 1));
        CHECK(running_get(p, "finite", &flag, 1));
        CHECK(running_get(p, "clipped", clipped, 21));
    }
    CHECK(flag == 1);
    snprintf(what, sizeof what, "%s, %s: norm", name, runner_name(r));
    gold_compare_number(t, what, gold_number(gold_get(want, "total_norm")), total, tolerance, 0);
    snprintf(what, sizeof what, "%s, %s: gradients", name, runner_name(r));
    gold_compare_list(t, what, gold_get(want, "grads"), clipped, 21, tolerance, 0);
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    const gold *root = gold_open("optim.json");
    gold_tally t = GOLD_TALLY("optim/updates");
    runner *exact = runner_open("ref", true, 1), *cpu = runner_open("cpu", false, 2);
    for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++) {
        ten_steps(&t, exact, gold_get(root, "optimizers"), k, 1e-13);
        ten_steps(&t, cpu, gold_get(root, "optimizers"), k, 1e-6);
    }
    const gold *clips = gold_get(root, "clip");
    for (int i = 0; i < 2; i++) { /* the graph's 1e-6 is a float */
        clip(&t, i ? cpu : exact, clips, "norm 2, max 1", 1, i ? 1e-6 : 1e-13);
        clip(&t, i ? cpu : exact, clips, "norm 2, max 100 (no clip)", 100, i ? 1e-6 : 1e-13);
    }
    runner_close(exact);
    runner_close(cpu);
    gold_done(&t);
    gold_close(root);
    return check_done(1);
}
