/* What the backends tell of their devices' time: a device that comes late is waited for by the others, a sum that is needed at once is
 * exposed, one beside which there is enough to compute is hidden (where collectives have a stream of their own). --on cuda_host: virtual
 * GPUs. Delays are slept, and only what must be longer than what is compared. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "core/device/program.h"

enum { SMALL = 64, LARGE = 1 << 16, RUNS = 3, MANY = 8, LATE_MS = 200 };
static sodet_err err = SODET_ERR_INIT;

typedef struct job {
    int64_t n;
    int chain;     /* operators between a sum and what needs it */
    uint32_t late; /* device that comes LATE_MS late to each run */
    int runs;      /* 0: RUNS, each read; else so many, none of which is looked at before the last is begun */
    sodet_device_times times[2];
    sd_program *program[2];
} job;

static void nap(void)
{
    const struct timespec t = {.tv_nsec = LATE_MS * 1000000L};
    nanosleep(&t, NULL);
}

/* y = sum over the devices of x; z = exp(log(.. x)): beside it. */
static sodet_status build(sd_replica *r, const job *j, sd_program **out, sodet_err *e)
{
    sodet_graph *g;
    sd_segments none = {0};
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = 2}, &g, e);
    if (s != SODET_OK)
        return s;
    const sodet_shape shape = sodet_shape_make(SODET_F32, 1, j->n, 0, 0, 0);
    const sodet_value x = sodet_input(g, "x", &shape), y = sodet_all_reduce(g, x);
    sodet_value z = x;
    for (int i = 0; i < j->chain; i++)
        z = i & 1 ? sodet_exp(g, z) : sodet_log(g, z);
    sodet_output(g, "y", y);
    sodet_output(g, "z", z);
    s = sd_graph_bind(g, &none, e);
    if (s != SODET_OK) {
        sd_graph_free(g);
        return s;
    }
    return sd_program_make(r, g, SD_ARENA_PARAM, out, e);
}

static sodet_status prepare(sd_replica *r, void *context, sodet_err *e)
{
    job *j = context;
    sd_program **p = &j->program[r->index];
    float *x = malloc((size_t)j->n * sizeof *x);
    sodet_status s = build(r, j, p, e);
    for (int64_t i = 0; i < j->n; i++)
        x[i] = 2;
    if (s == SODET_OK)
        s = sd_program_write(*p, "x", x, (uint64_t)j->n, e);
    if (s == SODET_OK)
        s = sd_program_run(*p, 0, 0, NULL, e); /* what a first run has to make is not looked at */
    free(x);
    return s == SODET_OK ? sd_program_wait(*p, e) : s;
}

static sodet_status run(sd_replica *r, void *context, sodet_err *e)
{
    job *j = context;
    sd_program *p = j->program[r->index];
    float *y = malloc((size_t)j->n * sizeof *y);
    sodet_status s = SODET_OK;
    for (int i = 0; s == SODET_OK && i < (j->runs ? j->runs : RUNS); i++) {
        if (r->index == j->late)
            nap();
        s = sd_program_run(p, 0, 0, NULL, e);
        if (j->runs)
            continue;
        /* Read later, and where that is too much, as below, as if it had been asked for now. */
        if (s == SODET_OK)
            s = sd_program_fetch(p, "y", (uint32_t)i % SODET_FETCHES, (uint64_t)j->n, e);
        if (s == SODET_OK)
            s = sd_program_fetched(p, "y", (uint32_t)i % SODET_FETCHES, y, (uint64_t)j->n, e);
        if (s == SODET_OK && y[j->n - 1] != 4)
            s = SODET_FAIL(e, SODET_E_INTERNAL, "the sum is %g", (double)y[j->n - 1]);
    }
    free(y);
    return s == SODET_OK ? sd_program_wait(p, e) : s;
}

static sodet_status unmake(sd_replica *r, void *context, sodet_err *e)
{
    (void)e;
    sd_program_free(((job *)context)->program[r->index]);
    return SODET_OK;
}

/* Asked twice: what a device has waited for another is known when that one has been asked. */
static sodet_status ask(sd_replica *r, void *context, sodet_err *e)
{
    sodet_device_times now = {.struct_size = sizeof now};
    (void)context;
    return r->ops->times(r->device, &now, e);
}

static sodet_status begin(sd_replica *r, void *context, sodet_err *e)
{
    sodet_device_times *from = &((job *)context)->times[r->index];
    *from = (sodet_device_times){.struct_size = sizeof *from};
    return r->ops->times(r->device, from, e);
}

static sodet_status tell(sd_replica *r, void *context, sodet_err *e)
{
    sodet_device_times *from = &((job *)context)->times[r->index], to = {.struct_size = sizeof to};
    sodet_status s = r->ops->times(r->device, &to, e);
    *from = (sodet_device_times){.run = to.run - from->run,
                                 .collective = to.collective - from->collective,
                                 .exposed = to.exposed - from->exposed,
                                 .awaited = to.awaited - from->awaited};
    return s;
}

static job timed(const char *devices, job j)
{
    char text[64];
    sd_config *cfg = NULL;
    sd_device_pool *pool = NULL;
    sd_segments none = {0};
    snprintf(text, sizeof text, "run.devices=%s", devices);
    CHECK_OK(sd_config_open(NULL, &(sd_override){text, NULL}, 1, &cfg, &err));
    CHECK_OK(sd_device_pool_open(cfg, &pool, &err));
    if (pool) {
        CHECK_OK(sd_device_pool_arenas(pool, &none, false, 0, &err));
        const sd_replica_job jobs[] = {prepare, ask, begin, run, ask, tell, unmake};
        for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
            CHECK_OK(sd_device_pool_run(pool, jobs[i], &j, &err));
        for (uint32_t d = 0; d < 2; d++) {
            const sodet_device_times *t = &j.times[d];
            printf("%s device %u: run %.4f s, collectives %.4f, exposed %.4f, awaited %.4f\n", devices, d, t->run, t->collective,
                   t->exposed, t->awaited);
            CHECK(t->run > 0 && t->collective > 0 && t->exposed > 0 && t->awaited >= 0);
            CHECK(t->exposed <= t->run * 1.001 && t->awaited <= t->exposed * 1.001);
        }
    }
    sd_device_pool_close(pool);
    sd_config_close(cfg);
    return j;
}

static void both(const char *devices, bool streams)
{
    const double slept = RUNS * LATE_MS * 1e-3;
    for (uint32_t late = 0; late < 2; late++) {
        const job j = timed(devices, (job){.n = SMALL, .late = late});
        const sodet_device_times *waits = &j.times[1 - late], *comes = &j.times[late];
        CHECK(waits->awaited > 0.8 * slept && waits->exposed > 0.8 * slept);
        CHECK(comes->awaited < 0.5 * waits->awaited);
    }
    /* As with batches of which many make a step. */
    job j = timed(devices, (job){.n = SMALL, .late = 1, .runs = MANY});
    CHECK(j.times[0].exposed > 0.8 * MANY * LATE_MS * 1e-3 && j.times[0].awaited > 0.8 * MANY * LATE_MS * 1e-3);
    if (!streams) {
        j = timed(devices, (job){.n = LARGE, .late = UINT32_MAX});
        for (uint32_t d = 0; d < 2; d++)
            CHECK(j.times[d].exposed == j.times[d].collective);
        return;
    }
    /* On a stream of its own, what is needed at once is exposed: above, by who waits for the late one (without one it is milliseconds, in
     * which a busy machine decides). What other work lies over is not. */
    j = timed(devices, (job){.n = LARGE, .chain = 24, .late = UINT32_MAX});
    for (uint32_t d = 0; d < 2; d++)
        CHECK(j.times[d].exposed < 0.5 * j.times[d].collective);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--on") == 0) {
        both("cuda_host:0,1", true);
        return check_done(20);
    }
    both("ref:x2", false);
    both("cpu:x2", false);
    return check_done(40);
}
