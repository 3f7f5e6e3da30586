/* bn-sync.json: batch norm of 4 samples jointly, on two devices that hold 1 and 3 of them: what each sees is what torch saw of all four.
 * The batch is a parameter that both devices know, each normalises its own stretch; so the reduced gradient of the parameter is dx. */
#include "core/device/program.h"
#include "golden.h"

enum { DEVICES = 2, CHANNELS = 3, AREA = 15, SAMPLE = CHANNELS * AREA, BATCH = 4, ALL = BATCH * SAMPLE };
static const int64_t first[DEVICES + 1] = {0, 1, 4};

typedef struct run {
    sd_config *cfg;
    sd_segments segments;
    uint32_t norm;
    double dy[ALL];
    float y[ALL];
} run;

static sodet_graph *build(run *r, uint32_t device, sodet_err *err)
{
    sodet_graph *g;
    if (sd_graph_create(&(sd_graph_options){.training = true, .norm = r->norm, .world = DEVICES}, &g, err) != SODET_OK)
        return NULL;
    const sodet_shape all = sodet_shape_make(SODET_F32, 4, BATCH, CHANNELS, 3, 5);
    const sodet_value x = sodet_parameter(g, "x", &all, NULL);
    const int64_t n = first[device + 1] - first[device];
    const sodet_value own = sodet_slice(g, x, 0, first[device], n);
    const sodet_value y = sodet_batch_norm(g, "bn", own, SODET_NORM(.epsilon = 1e-5f, .momentum = 0.1f));
    const sodet_shape shape = sodet_shape_of(g, y);
    sodet_output(g, "y", y);
    sd_graph_add_loss(g, "along", sodet_sum(g, sodet_mul(g, y, sodet_input(g, "dy", &shape)), 15));
    if (sd_graph_backward(g, err) != SODET_OK) {
        sd_graph_free(g);
        return NULL;
    }
    return g;
}

static sodet_status job(sd_replica *replica, void *context, sodet_err *err)
{
    run *r = context;
    const uint32_t d = replica->index;
    sodet_graph *g = build(r, d, err);
    if (!g)
        return err->code;
    sodet_status status = sd_graph_bind(g, &r->segments, err);
    sd_program *p = NULL;
    if (status == SODET_OK)
        status = sd_program_make(replica, g, SD_ARENA_PARAM, &p, err);
    else
        sd_graph_free(g);
    const uint64_t n = (uint64_t)((first[d + 1] - first[d]) * SAMPLE);
    float dy[ALL];
    for (uint64_t i = 0; i < n; i++)
        dy[i] = (float)r->dy[(uint64_t)(first[d] * SAMPLE) + i];
    if (status == SODET_OK)
        status = sd_program_write(p, "dy", dy, n, err);
    if (status == SODET_OK)
        status = sd_program_run(p, 1, 1, NULL, err);
    if (status == SODET_OK)
        status = sd_program_read(p, "y", r->y + first[d] * SAMPLE, n, err);
    sd_program_free(p);
    return status;
}

static void write(sd_device_pool *pool, const run *r, const char *name, const gold *list)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_segment *s = sd_segments_find(&r->segments, name);
    uint64_t n;
    double *v = gold_numbers(list, &n);
    float f[ALL];
    CHECK(s && s->n == n);
    for (uint64_t i = 0; i < n && n <= ALL; i++)
        f[i] = (float)v[i];
    if (s)
        CHECK_OK(sd_device_pool_write(pool, s->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, s->offset, n, f, &err));
    free(v);
}

typedef struct reading {
    uint32_t arena;
    const sd_segment *segment;
    float v[DEVICES][ALL];
} reading;

static sodet_status read_one(sd_replica *replica, void *context, sodet_err *err)
{
    reading *r = context;
    return sd_replica_read(replica, r->arena, r->segment->offset, r->segment->n, r->v[replica->index], err);
}

/* The same bits on both devices, and those of the record. */
static void compare(gold_tally *t, sd_device_pool *pool, const run *r, const char *what, const char *name, uint32_t arena, const gold *list,
                    double tolerance)
{
    static reading got;
    sodet_err err = SODET_ERR_INIT;
    char text[64];
    got.arena = arena;
    got.segment = sd_segments_find(&r->segments, name);
    CHECK(got.segment != NULL);
    CHECK_OK(sd_device_pool_run(pool, read_one, &got, &err));
    CHECK(memcmp(got.v[0], got.v[1], got.segment->n * sizeof(float)) == 0);
    snprintf(text, sizeof text, "%s/%s", what, name);
    gold_compare_list_f32(t, text, list, got.v[0], got.segment->n, tolerance, 0);
}

static sd_device_pool *start(const char *backend, run *r, const gold *root)
{
    sodet_err err = SODET_ERR_INIT;
    sd_device_pool *pool = NULL;
    char text[160];
    const bool wide = strcmp(backend, "ref double") == 0;
    int n =
        snprintf(text, sizeof text, "[run]\ndevices = %.3s:x%d\n%s", backend, DEVICES, wide ? "[backend.ref]\nprecision = double\n" : "");
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &r->cfg, &err));
    CHECK_OK(sd_device_pool_open(r->cfg, &pool, &err));
    sodet_graph *g = build(r, 0, &err);
    CHECK_OK(err.code);
    if (!pool || !g)
        exit(check_done(1));
    CHECK_OK(sd_segments_make(g, &r->segments, &err));
    sd_graph_free(g);
    CHECK_OK(sd_device_pool_arenas(pool, &r->segments, true, 0, &err));
    const gold *in = gold_get(root, "inputs");
    write(pool, r, "x", gold_get(in, "x"));
    write(pool, r, "bn/weight", gold_get(in, "w"));
    write(pool, r, "bn/bias", gold_get(in, "b"));
    write(pool, r, "bn/running_mean", gold_get(in, "running_mean_before"));
    write(pool, r, "bn/running_var", gold_get(in, "running_var_before"));
    uint64_t n_dy;
    double *dy = gold_numbers(gold_get(in, "dy"), &n_dy);
    CHECK_EQ(n_dy, ALL);
    memcpy(r->dy, dy, sizeof r->dy);
    free(dy);
    CHECK_OK(sd_device_pool_run(pool, job, r, &err));
    return pool;
}

static void finish(sd_device_pool *pool, run *r)
{
    sd_device_pool_close(pool);
    sd_config_close(r->cfg);
    sd_segments_free(&r->segments);
}

static void synchronised(gold_tally *t, const gold *root, const char *backend, double tolerance)
{
    static run r;
    r = (run){.norm = SD_NORM_SYNC};
    sd_device_pool *pool = start(backend, &r, root);
    const gold *joint = gold_get(root, "joint");
    char text[64];
    snprintf(text, sizeof text, "%s/y", backend);
    gold_compare_list_f32(t, text, gold_get(joint, "y"), r.y, ALL, tolerance, 0);
    compare(t, pool, &r, backend, "x", SD_ARENA_GRAD, gold_get(joint, "dx"), tolerance);
    compare(t, pool, &r, backend, "bn/weight", SD_ARENA_GRAD, gold_get(joint, "dw"), tolerance);
    compare(t, pool, &r, backend, "bn/bias", SD_ARENA_GRAD, gold_get(joint, "db"), tolerance);
    compare(t, pool, &r, backend, "bn/running_mean", SD_ARENA_FROZEN, gold_get(joint, "running_mean"), tolerance);
    compare(t, pool, &r, backend, "bn/running_var", SD_ARENA_FROZEN, gold_get(joint, "running_var"), tolerance);
    finish(pool, &r);
}

/* Without synchronisation each device's samples are normalised alone. */
static void alone(gold_tally *t, const gold *root, const char *backend, double tolerance)
{
    static run r;
    r = (run){.norm = SD_NORM_TRAIN};
    sd_device_pool *pool = start(backend, &r, root);
    for (uint32_t d = 0; d < DEVICES; d++) {
        char text[64];
        snprintf(text, sizeof text, "%s/alone %u", backend, d);
        gold_compare_list_f32(t, text, gold_path(gold_at(gold_get(root, "not_synchronised"), d), "y", NULL), r.y + first[d] * SAMPLE,
                              (uint64_t)((first[d + 1] - first[d]) * SAMPLE), tolerance, 0);
    }
    finish(pool, &r);
}

int main(void)
{
    const gold *root = gold_open("bn-sync.json");
    gold_tally t = GOLD_TALLY("bn-sync");
    synchronised(&t, root, "ref double", 2e-7);
    synchronised(&t, root, "ref", 2e-6);
    synchronised(&t, root, "cpu", 2e-6);
    alone(&t, root, "ref", 2e-6);
    gold_done(&t);
    gold_close(root);
    return check_done(60);
}
