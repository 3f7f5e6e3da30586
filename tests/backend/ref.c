/* labels: threads valgrind */
/* The reference backend: its option, what it refuses, a plugin's own operator in both precisions, times, dropout's decisions. */
#include "check.h"
#include "core/plugin/plugin.h"
#include "kernels/kernels.h"
#include "runner.h"

/* ---- an operator of a plugin: y = 3 x, with or without a kernel in double ---- */
static sodet_status triple_infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    (void)err;
    *out = n->in_shape[0];
    return SODET_OK;
}

static void triple_float(const sodet_kernel_args *a)
{
    for (int64_t i = 0; i < sodet_elements(&a->in[0].shape); i++)
        ((float *)a->out[0].data)[i] = 3 * ((const float *)a->in[0].data)[i];
}

static void triple_double(const sodet_kernel_args *a)
{
    for (int64_t i = 0; i < sodet_elements(&a->in[0].shape); i++)
        ((double *)a->out[0].data)[i] = 3 * ((const double *)a->in[0].data)[i];
}

static const sodet_ref_kernel in_float[] = {triple_float}, in_double[] = {triple_double};
static const sodet_custom_kernels both = {.struct_size = sizeof both, .ref_float = in_float, .ref_double = in_double},
                                  one = {.struct_size = sizeof one, .ref_float = in_float};
static const sodet_op triple = {.struct_size = sizeof triple, .name = "triple", .n_parts = 1, .infer = triple_infer, .kernels = &both},
                      triple_one = {
                          .struct_size = sizeof triple_one, .name = "triple", .n_parts = 1, .infer = triple_infer, .kernels = &one};

static sodet_graph *tripled(const sodet_op *op)
{
    const sodet_shape s = sodet_shape_make(SODET_F32, 2, 2, 3, 0, 0);
    sodet_graph *g = running_graph(false);
    sodet_enter(g, "own");
    sodet_value x = sodet_input(g, "x", &s);
    sodet_output(g, "y", sodet_apply(g, op, NULL, &x, 1));
    sodet_leave(g);
    return g;
}

static void own_operators(void)
{
    const double x[6] = {1, -2, 3, 0.1, 1e-30, 5};
    for (int wide = 0; wide < 2; wide++) {
        sodet_err err = SODET_ERR_INIT;
        runner *r = runner_open("ref", wide, 1);
        sodet_graph *g = tripled(&triple);
        running *p = running_make(r, g, RUNNING_GUARDS, &err);
        CHECK(p != NULL);
        CHECK(running_set(p, "x", x, 6));
        CHECK_OK(running_run(p, &err));
        double y[6];
        CHECK(running_get(p, "y", y, 6));
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(y[i], 3 * x[i], wide ? 0 : 2e-7, 0);
        running_free(p);
        sd_graph_free(g);
        g = tripled(&triple_one);
        p = running_make(r, g, 0, &err);
        CHECK_EQ(p == NULL, wide);
        if (wide) {
            CHECK_EQ(err.code, SODET_E_UNSUPPORTED);
            CHECK_STR(err.text, "own: operator triple, part 0, has no reference kernel in double");
        }
        running_free(p);
        sd_graph_free(g);
        runner_close(r);
    }
}

static void refusals(void)
{
    sodet_err err = SODET_ERR_INIT;
    const char text[] = "[run]\ndevices = ref\n[backend.ref]\nprecision = double\n",
               wrong[] = "[run]\ndevices = ref\n[backend.ref]\nprecision = half\n";
    sd_config *cfg = NULL;
    sd_instance backend = {0};
    CHECK_OK(sd_config_open_text(text, sizeof text - 1, "test.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "backend.ref", &backend, &err));
    const sodet_backend_ops *ops = backend.ops;
    sodet_device_info info = {.struct_size = sizeof info};
    uint32_t n = 0;
    CHECK_OK(ops->devices(backend.self, 1, &info, &n, &err));
    CHECK_EQ(n, 1);
    CHECK_STR(info.name, "reference, double");
    void *device = NULL, *group = NULL;
    const sodet_device_options o = {.struct_size = sizeof o, .threads = 1, .world = 1};
    CHECK_FAILS(ops->open(backend.self, 3, &o, &device, &err), SODET_E_INVALID, "write ref:x4");
    CHECK(device == NULL);
    CHECK_FAILS(ops->open_group(backend.self, 0, &group, &err), SODET_E_INVALID, "at least 1");
    CHECK_OK(ops->open(backend.self, 0, &o, &device, &err));
    CHECK_EQ(ops->real_size(device), 8);
    void *memory = NULL;
    CHECK_FAILS(ops->alloc(device, UINT64_MAX - 64, &memory, &err), SODET_E_MEMORY, "smaller batch");
    ops->close(device);
    sd_instance_destroy(&backend);
    sd_config_close(cfg);
    CHECK_OK(sd_config_open_text(wrong, sizeof wrong - 1, "test.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_FAILS(sd_instance_create(cfg, "backend.ref", &backend, &err), SODET_E_INVALID, "precision");
    sd_config_close(cfg);
}

/* About `rate` of the elements are dropped, another layer and another path of the same layer name drop others. */
static void dropout(void)
{
    enum { N = 20000 };
    sodet_err err = SODET_ERR_INIT;
    runner *r = runner_open("ref", false, 1);
    const sodet_shape s = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0);
    sodet_graph *g = running_graph(true);
    sodet_value x = sodet_input(g, "x", &s);
    sodet_output(g, "a", sodet_dropout(g, "drop", x, 0.3f));
    sodet_enter(g, "deeper");
    sodet_output(g, "b", sodet_dropout(g, "drop", x, 0.3f));
    sodet_leave(g);
    running *p = running_make(r, g, 0, &err);
    CHECK_OK(err.code);
    static double ones[N], a[N], b[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    CHECK(running_set(p, "x", ones, N));
    CHECK_OK(running_run(p, &err));
    CHECK(running_get(p, "a", a, N) && running_get(p, "b", b, N));
    int dropped = 0, alike = 0, wrong = 0;
    for (int i = 0; i < N; i++) {
        dropped += a[i] == 0;
        alike += (a[i] == 0) == (b[i] == 0);
        wrong += a[i] != 0 && fabs(a[i] - 1 / 0.7) > 1e-6;
    }
    CHECK_NEAR(dropped, 0.3 * N, 0, 5 * sqrt(0.21 * N));
    CHECK_NEAR(alike, 0.58 * N, 0, 5 * sqrt(0.25 * N));
    CHECK_EQ(wrong, 0);
    running_free(p);
    sd_graph_free(g);
    runner_close(r);
}

int main(void)
{
    own_operators();
    refusals();
    dropout();
    return check_done(40);
}
