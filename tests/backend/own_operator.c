/* A plugin's own operator (tests/api/example/swish): the reference against differences in double, every other backend against the reference:
 * forward, both gradients, in the layout that the layers around it ask for and in the plain one. --on BACKEND: cuda_host loads
 * swish.cuda_host.so beside the plugin. */
#include "rig.h"

#include "core/detect/features.h"
#include "kernels/kernels.h"
#include "runner.h"

static const sd_plugin *plugin;

static void load(void)
{
    sodet_err err = SODET_ERR_INIT;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/plugins/neck/swish.so", getenv("SODET_BUILD"));
    CHECK_OK(sd_plugin_load(SODET_KIND_NECK, path, &plugin, &err));
    if (!plugin)
        exit(check_done(1));
}

static sodet_value swish(sodet_graph *g, sodet_value x)
{
    sodet_err err = SODET_ERR_INIT;
    const sodet_neck_ops *ops = plugin->ops;
    sodet_features in = {.n = 1, .map = {x}, .stride = {8}}, out = {0};
    void *cfg = calloc(1, plugin->desc.cfg_size);
    CHECK_OK(ops->build(cfg, g, &in, &out, &err));
    CHECK_EQ(out.n, 1);
    free(cfg);
    return out.map[0];
}

static sodet_graph *finished(sodet_graph *g)
{
    sodet_err err = SODET_ERR_INIT;
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

/* sum(w * swish(x)); x: a parameter, so that it has a gradient. */
static sodet_graph *alone(const int64_t *d, bool param)
{
    sodet_graph *g = rig_graph(true);
    const sodet_shape shape = sodet_shape_make(SODET_F32, 4, d[0], d[1], d[2], d[3]);
    const sodet_value x = param ? sodet_parameter(g, "x", &shape, &(sodet_param){.init = SODET_INIT_ZEROS}) : sodet_input(g, "x", &shape);
    const sodet_value y = swish(g, x), loss = sodet_sum(g, sodet_mul(g, y, sodet_input(g, "w", &shape)), 0);
    sodet_output(g, "y", y);
    sodet_output(g, "total", loss);
    sd_graph_add_loss(g, "l", loss);
    return finished(g);
}

/* Between convolutions, whose maps have the backend's own layout and width. */
static sodet_graph *between(const int64_t *d)
{
    sodet_graph *g = rig_graph(true);
    sodet_value x = rig_input(g, "image", d[0], 3, d[2], d[3]);
    x = sodet_conv2d(g, "a", x, SODET_CONV2D(.out = (uint32_t)d[1], .kernel = 3, .pad = {1, 1, 1, 1}));
    x = sodet_conv2d(g, "b", swish(g, x), SODET_CONV2D(.out = 5, .kernel = 1));
    const sodet_shape shape = sodet_shape_of(g, x);
    sodet_output(g, "y", x);
    sd_graph_add_loss(g, "l", sodet_sum(g, sodet_mul(g, x, sodet_input(g, "w", &shape)), 0));
    return finished(g);
}

/* ---- the formulas ---- */
enum { ELEMENTS = 24, AND_BETA };
static const int64_t small[4] = {1, 2, 3, 4};

static double total_of(running *p, const double *v)
{
    sodet_err err = SODET_ERR_INIT;
    double total = NAN;
    CHECK(running_set(p, "x", v, ELEMENTS) && running_set(p, "level0/beta", v + ELEMENTS, 1));
    CHECK_OK(running_run(p, &err));
    CHECK(running_get(p, "total", &total, 1));
    return total;
}

static void formulas(void)
{
    sodet_err err = SODET_ERR_INIT;
    runner *r = runner_open("ref", true, 1);
    sodet_graph *g = alone(small, true);
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    double v[AND_BETA], w[ELEMENTS], y[ELEMENTS], grad[AND_BETA];
    CHECK(p != NULL);
    for (int i = 0; i < AND_BETA; i++)
        v[i] = 3 * sin(1 + 1.7 * i);
    for (int i = 0; i < ELEMENTS; i++)
        w[i] = cos(0.3 + 2.1 * i);
    CHECK(running_set(p, "w", w, ELEMENTS));
    total_of(p, v);
    CHECK(running_get(p, "y", y, ELEMENTS) && running_grad(p, "x", grad, ELEMENTS) && running_grad(p, "level0/beta", grad + ELEMENTS, 1));
    for (int i = 0; i < ELEMENTS; i++)
        CHECK_NEAR(y[i], v[i] / (1 + exp(-v[ELEMENTS] * v[i])), 1e-14, 0);
    for (int i = 0; i < AND_BETA; i++) { /* h^2 / 6 times a third derivative of some 30, and rounding of 1e-16 / h */
        const double h = 1e-5, at = v[i];
        v[i] = at + h;
        const double above = total_of(p, v);
        v[i] = at - h;
        const double below = total_of(p, v);
        v[i] = at;
        CHECK_NEAR(grad[i], (above - below) / (2 * h), 0, 1e-8);
    }
    CHECK(running_damage(p) == NULL);
    running_free(p);
    sd_graph_free(g);
    runner_close(r);
}

/* ---- the backends ---- */
static void describe(rig *r, sodet_graph *g, const char *text, uint32_t wanted)
{
    sodet_err err = SODET_ERR_INIT;
    rig_program p;
    uint32_t n = 0;
    CHECK_OK(rig_make(r, g, &p, &err));
    for (uint32_t i = 0; p.plan.describe && i < sodet_graph_node_count(g); i++) {
        const char *says = p.plan.describe(p.plan.handle, i);
        n += strcmp(sodet_graph_node(g, i)->op->name, "swish") == 0 && says && strcmp(says, text) == 0;
    }
    CHECK_EQ(n, wanted);
    rig_free(&p);
}

static double compared(rig *got, rig *want, sodet_graph *g, double tolerance, const char *name, uint32_t shape, const char *what)
{
    char text[80];
    snprintf(text, sizeof text, "%s, shape %u, %s", name, shape, what);
    const double off = rig_compare(got, want, g, tolerance, text);
    if (shape == 1 && strcmp(what, "between") == 0 && strncmp(name, "cuda", 4) == 0)
        describe(got, g, "own, channels last", 3);
    sd_graph_free(g);
    return off;
}

/* n: of the shapes. */
static void compare(rig *got, rig *want, const char *name, double tolerance, uint32_t n)
{
    /* The last but one goes twice over the largest grid of swish.cu, and a rest. */
    static const int64_t shapes[][4] = {{1, 1, 1, 1}, {2, 5, 7, 9}, {1, 70, 13, 11}, {1, 25, 105, 101}, {0, 3, 4, 5}};
    double worst = 0;
    for (uint32_t i = 0; i < n; i++) {
        double off = i < 3 ? compared(got, want, between(shapes[i]), tolerance, name, i, "between") : 0;
        worst = off > worst ? off : worst;
        for (uint32_t param = 0; param < 2 && i + param < 5; param++) {
            off = compared(got, want, alone(shapes[i], param), tolerance, name, i, "alone");
            worst = off > worst ? off : worst;
        }
    }
    printf("%s: off by %.2g at most\n", name, worst);
}

/* float32: a few roundings of 2^-24, in exp some more, against the largest. 16 bits: 2^-9 and 2^-12 each in three maps and what they are made of. */
static void on(const char *backend, uint32_t threads, uint32_t precision, double tolerance)
{
    static const char *const more[] = {"", " in bf16", " in fp16"};
    sodet_err err = SODET_ERR_INIT;
    char name[60];
    rig got, want;
    sodet_status s = rig_open_as(&got, backend, threads, "", precision, &err);
    CHECK_OK(s);
    if (s != SODET_OK)
        return;
    rig_open(&want, "ref", 1);
    want.coarse = got.coarse;
    snprintf(name, sizeof name, "%s%s", backend, more[precision]);
    compare(&got, &want, name, tolerance, precision == SODET_PRECISION_FP32 ? 5 : 3);
    rig_close(&want);
    rig_close(&got);
}

int main(int argc, char **argv)
{
    load();
    if (argc > 2 && strcmp(argv[1], "--on") == 0) {
        on(argv[2], 1, SODET_PRECISION_FP32, 2e-6);
        on(argv[2], 1, SODET_PRECISION_BF16, 2e-2);
        on(argv[2], 1, SODET_PRECISION_FP16, 3e-3);
        return check_done(740);
    }
    formulas();
    on("cpu", 1, SODET_PRECISION_FP32, 2e-6);
    on("cpu", 3, SODET_PRECISION_FP32, 2e-6);
    return check_done(780);
}
