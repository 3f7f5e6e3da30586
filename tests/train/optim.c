/* Optimizers through the update graph, on ref (float and double) and cpu, against PyTorch's sequences (optim.json, "optimizers" and
 * "clip"): 10 steps of SGD, Adam, AdamW; clipping by the 2-norm; accumulation; averaged weights; a gradient that is not finite.
 * Left out: dampening, amsgrad, RMSprop, clipping by other norms and by value, which sodet does not have. */
#include <stdio.h>
#include <string.h>

#include "core/device/program.h"
#include "core/train/optimizer.h"
#include "golden.h"

enum { N = 64 };

typedef struct bench {
    sd_config *cfg;
    sd_device_pool *pool;
    sd_segments segments;
    sd_slots slots;
    sd_program *update, *accumulate;
    float hyper[SD_HYPER_MOST], ok, norm, finite, keep;
} bench;

static sodet_status make(sd_replica *r, void *context, sodet_err *err)
{
    bench *b = context;
    const sd_optimizer_cfg *c = &sd_config_core(b->cfg)->optimizer;
    sodet_graph *g;
    sodet_status s = sd_update_build(c, &b->slots, &b->segments, &(sd_update_options){.world = 1, .losses = 1}, &g, err);
    if (s == SODET_OK)
        s = sd_program_make(r, g, SD_ARENA_PARAM, &b->update, err);
    if (s == SODET_OK && b->slots.accumulator != UINT32_MAX) {
        s = sd_accumulate_build(&b->slots, &b->segments, &g, err);
        if (s == SODET_OK)
            s = sd_program_make(r, g, SD_ARENA_PARAM, &b->accumulate, err);
    }
    return s;
}

static sodet_status unmake(sd_replica *r, void *context, sodet_err *err)
{
    (void)r, (void)err;
    bench *b = context;
    sd_program_free(b->update);
    sd_program_free(b->accumulate);
    return SODET_OK;
}

static sodet_status update(sd_replica *r, void *context, sodet_err *err)
{
    bench *b = context;
    float loss = b->ok > 0 ? 3 : NAN, told[3] = {0};
    sodet_status s = sd_program_write(b->update, "hyper", b->hyper, sd_optimizer_of(&sd_config_core(b->cfg)->optimizer)->n_hyper, err);
    if (s == SODET_OK)
        s = sd_program_write(b->update, "loss", &loss, 1, err);
    if (s == SODET_OK)
        s = sd_program_write(b->update, "alive", &(float){1}, 1, err);
    if (s == SODET_OK)
        s = sd_program_run(b->update, 0, 0, NULL, err);
    if (s == SODET_OK)
        s = sd_program_read(b->update, "told", told, 3, err);
    b->norm = told[0];
    b->finite = told[1];
    r->weights++;
    return s;
}

static sodet_status accumulate(sd_replica *r, void *context, sodet_err *err)
{
    (void)r;
    bench *b = context;
    sodet_status s = sd_program_write(b->accumulate, "keep", &b->keep, 1, err);
    return s == SODET_OK ? sd_program_run(b->accumulate, 0, 0, NULL, err) : s;
}

/* A "network" whose parameters are given by n shapes; offsets of the segments are what the arenas have. */
static void open_bench(bench *b, const char *const *settings, uint32_t n_settings, const sodet_shape *shapes, uint32_t n_shapes)
{
    sodet_err err = SODET_ERR_INIT;
    sd_override o[12];
    memset(b, 0, sizeof *b);
    for (uint32_t i = 0; i < n_settings; i++)
        o[i] = (sd_override){settings[i], NULL};
    CHECK_OK(sd_config_open(NULL, o, n_settings, &b->cfg, &err));
    if (!b->cfg)
        exit(check_done(1));
    sodet_graph *g;
    CHECK_OK(sd_graph_create(&(sd_graph_options){.training = true, .world = 1}, &g, &err));
    sodet_value sum = SODET_NONE;
    for (uint32_t i = 0; i < n_shapes; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        sodet_value p = sodet_parameter(g, name, &shapes[i], &(sodet_param){.init = SODET_INIT_ZEROS});
        sodet_value square = sodet_sum(g, sodet_mul(g, p, p), 0);
        for (uint32_t k = 1; k < shapes[i].rank; k++)
            square = sodet_sum(g, square, 0);
        sum = i ? sodet_add(g, sum, square) : square;
    }
    sd_graph_add_loss(g, "square", sum);
    CHECK_OK(sd_graph_backward(g, &err));
    CHECK_OK(sd_segments_make(g, &b->segments, &err));
    sd_graph_free(g);
    CHECK_OK(sd_slots_of(&sd_config_core(b->cfg)->optimizer, &b->slots, &err));
    CHECK_OK(sd_device_pool_open(b->cfg, &b->pool, &err));
    if (!b->pool)
        exit(check_done(1));
    CHECK_OK(sd_device_pool_arenas(b->pool, &b->segments, true, b->slots.n, &err));
    CHECK_OK(sd_device_pool_run(b->pool, make, b, &err));
    b->ok = 1;
}

static void close_bench(bench *b)
{
    sd_device_pool_run(b->pool, unmake, b, NULL);
    sd_device_pool_close(b->pool);
    sd_segments_free(&b->segments);
    sd_config_close(b->cfg);
}

typedef struct setting {
    const char *name;
    const char *options[6];
} setting;
static const setting settings[] = {
    {"SGD lr=0.1", {"optimizer.type=sgd", "optimizer.lr=0.1", "optimizer.momentum=0"}},
    {"SGD lr=0.1 wd=0.01", {"optimizer.type=sgd", "optimizer.lr=0.1", "optimizer.momentum=0", "optimizer.weight_decay=0.01"}},
    {"SGD lr=0.1 momentum=0.9", {"optimizer.type=sgd", "optimizer.lr=0.1", "optimizer.momentum=0.9"}},
    {"SGD lr=0.1 momentum=0.9 wd=0.0005",
     {"optimizer.type=sgd", "optimizer.lr=0.1", "optimizer.momentum=0.9", "optimizer.weight_decay=0.0005"}},
    {"SGD lr=0.1 momentum=0.9 nesterov wd=0.0005",
     {"optimizer.type=sgd", "optimizer.lr=0.1", "optimizer.momentum=0.9", "optimizer.nesterov=yes", "optimizer.weight_decay=0.0005"}},
    {"Adam lr=0.01", {"optimizer.type=adam", "optimizer.lr=0.01"}},
    {"Adam lr=0.01 wd=0.01 betas=(0.8,0.99) eps=1e-6",
     {"optimizer.type=adam", "optimizer.lr=0.01", "optimizer.weight_decay=0.01", "optimizer.betas=0.8, 0.99", "optimizer.eps=1e-6"}},
    {"AdamW lr=0.01 wd=0.05", {"optimizer.type=adamw", "optimizer.lr=0.01", "optimizer.weight_decay=0.05"}},
};

static void run_settings(const gold *root, const char *const *device, gold_tally *t)
{
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        sodet_err err = SODET_ERR_INIT;
        const char *all[8];
        uint32_t n = 0;
        for (; device[n]; n++)
            all[n] = device[n];
        for (uint32_t k = 0; k < 6 && settings[i].options[k]; k++)
            all[n++] = settings[i].options[k];
        bench b;
        open_bench(&b, all, n, &shape, 1);
        const sd_optimizer_cfg *c = &sd_config_core(b.cfg)->optimizer;
        const gold *want = gold_path(root, "optimizers", settings[i].name, NULL);
        double *sums = gold_numbers(gold_get(want, "step_sums"), NULL);
        float p[N], grad[N];
        gold_fill(p, N, "opt.p", 1);
        CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_PARAM, 0, N, p, &err));
        for (uint64_t step = 1; step <= 10; step++) {
            char name[32], what[128];
            snprintf(name, sizeof name, "opt.g%d", (int)step);
            gold_fill(grad, N, name, 0.5);
            CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_GRAD, 0, N, grad, &err));
            sd_optimizer_of(c)->hyper(c, c->lr, step, b.hyper);
            CHECK_OK(sd_device_pool_run(b.pool, update, &b, &err));
            CHECK_NEAR(b.finite, 1, 0, 0);
            CHECK_OK(sd_device_pool_read(b.pool, SD_ARENA_PARAM, 0, N, p, &err));
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += (double)p[k];
            snprintf(what, sizeof what, "%s, %s, step %d", settings[i].name, device[0], (int)step);
            gold_compare_number(t, what, sums[step - 1], sum, 0, 64 * 1e-6);
            snprintf(name, sizeof name, "step%d", (int)step);
            if (gold_try(want, name))
                gold_compare_list_f32(t, what, gold_get(want, name), p, N, 1e-6, 0);
        }
        free(sums);
        close_bench(&b);
    }
}

/* The norm of three tensors' gradients, and the clipped gradient as what one step of plain descent with lr = 1 takes away. */
static void run_clip(const gold *root, const char *const *device, gold_tally *t)
{
    const struct {
        const char *name, *option;
    } cases[] = {{"norm 2, max 1", "optimizer.clip_norm=1"}, {"norm 2, max 100 (no clip)", "optimizer.clip_norm=100"}};
    for (size_t k = 0; k < 2; k++) {
        sodet_err err = SODET_ERR_INIT;
        const gold *want = gold_path(root, "clip", cases[k].name, NULL);
        const gold *grads = gold_get(want, "grads"), *raw = gold_path(root, "clip", "norm 2, max 100 (no clip)", "grads", NULL);
        sodet_shape shapes[8];
        uint32_t n = (uint32_t)gold_size(grads);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t elements;
            free(gold_numbers(gold_at(grads, i), &elements));
            shapes[i] = sodet_shape_make(SODET_F32, 1, (int64_t)elements, 0, 0, 0);
        }
        const char *all[8];
        uint32_t m = 0;
        for (; device[m]; m++)
            all[m] = device[m];
        all[m++] = "optimizer.type=sgd", all[m++] = "optimizer.momentum=0", all[m++] = "optimizer.lr=1", all[m++] = cases[k].option;
        bench b;
        open_bench(&b, all, m, shapes, n);
        for (uint32_t i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "p%u", i);
            const sd_segment *s = sd_segments_find(&b.segments, name);
            double *g = gold_numbers(gold_at(raw, i), NULL);
            float f[512];
            for (uint64_t e = 0; e < s->n; e++)
                f[e] = (float)g[e];
            CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_GRAD, s->offset, s->n, f, &err));
            free(g);
        }
        const sd_optimizer_cfg *c = &sd_config_core(b.cfg)->optimizer;
        sd_optimizer_of(c)->hyper(c, 1, 1, b.hyper);
        CHECK_OK(sd_device_pool_run(b.pool, update, &b, &err));
        gold_compare_number(t, cases[k].name, gold_number(gold_get(want, "total_norm")), (double)b.norm, 1e-6, 0);
        for (uint32_t i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "p%u", i);
            const sd_segment *s = sd_segments_find(&b.segments, name);
            float p[512];
            CHECK_OK(sd_device_pool_read(b.pool, SD_ARENA_PARAM, s->offset, s->n, p, &err));
            for (uint64_t e = 0; e < s->n; e++)
                p[e] = -p[e];
            gold_compare_list_f32(t, cases[k].name, gold_at(grads, i), p, s->n, 1e-6, 0);
        }
        close_bench(&b);
    }
}

/* Three micro-batches are one gradient, three times their mean; averaged weights follow; NaN changes nothing. */
static void run_rest(const char *const *device)
{
    sodet_err err = SODET_ERR_INIT;
    const char *all[8];
    uint32_t m = 0;
    for (; device[m]; m++)
        all[m] = device[m];
    all[m++] = "optimizer.momentum=0.5", all[m++] = "optimizer.lr=0.25", all[m++] = "optimizer.accumulate=3",
    all[m++] = "optimizer.ema=0.75";
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0);
    bench b;
    open_bench(&b, all, m, &shape, 1);
    const sd_optimizer_cfg *c = &sd_config_core(b.cfg)->optimizer;
    CHECK_EQ(b.slots.n, 3);
    float p[N], first[N], grad[N], sum[N] = {0};
    gold_fill(first, N, "opt.p", 1);
    CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_PARAM, 0, N, first, &err));
    CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_STATE + b.slots.ema, 0, N, first, &err));
    for (int j = 0; j < 3; j++) {
        char name[24];
        snprintf(name, sizeof name, "opt.g%d", j + 1);
        gold_fill(grad, N, name, 0.5);
        for (int e = 0; e < N; e++)
            sum[e] += grad[e];
        CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_GRAD, 0, N, grad, &err));
        b.keep = (float)(1 - 1.0 / (j + 1));
        CHECK_OK(sd_device_pool_run(b.pool, accumulate, &b, &err));
    }
    sd_optimizer_of(c)->hyper(c, c->lr, 1, b.hyper);
    CHECK_OK(sd_device_pool_run(b.pool, update, &b, &err));
    CHECK_OK(sd_device_pool_read(b.pool, SD_ARENA_PARAM, 0, N, p, &err));
    for (int e = 0; e < N; e++)
        CHECK_NEAR(p[e], first[e] - 0.25f * sum[e], 0, 1e-6);
    float average[N];
    CHECK_OK(sd_device_pool_read(b.pool, SD_ARENA_STATE + b.slots.ema, 0, N, average, &err));
    for (int e = 0; e < N; e++)
        CHECK_NEAR(average[e], 0.75f * first[e] + 0.25f * p[e], 0, 1e-6);
    /* A gradient that is not finite, and a loss that was not: nothing moves, neither parameter, momentum nor average. */
    float arenas[3][N], now[N];
    const uint32_t which[3] = {SD_ARENA_PARAM, SD_ARENA_STATE, SD_ARENA_STATE + b.slots.ema};
    for (int a = 0; a < 3; a++)
        CHECK_OK(sd_device_pool_read(b.pool, which[a], 0, N, arenas[a], &err));
    for (int bad = 0; bad < 3; bad++) {
        gold_fill(grad, N, "opt.g9", 0.5);
        if (bad < 2)
            grad[N - 1] = bad ? INFINITY : NAN;
        CHECK_OK(sd_device_pool_write(b.pool, SD_ARENA_STATE + b.slots.accumulator, 0, N, grad, &err));
        b.ok = bad < 2 ? 1 : 0;
        CHECK_OK(sd_device_pool_run(b.pool, update, &b, &err));
        CHECK_NEAR(b.finite, 0, 0, 0);
        for (int a = 0; a < 3; a++) {
            CHECK_OK(sd_device_pool_read(b.pool, which[a], 0, N, now, &err));
            CHECK(!memcmp(now, arenas[a], sizeof now));
        }
    }
    close_bench(&b);
}

int main(void)
{
    static const char *const devices[][3] = {
        {"run.devices=ref", NULL}, {"run.devices=ref", "backend.ref.precision=double", NULL}, {"run.devices=cpu", NULL}};
    const gold *root = gold_open("optim.json");
    gold_tally t = GOLD_TALLY("optim/update");
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        run_settings(root, devices[i], &t);
        run_clip(root, devices[i], &t);
        run_rest(devices[i]);
    }
    gold_done(&t);
    gold_close(root);
    return check_done(1000);
}
