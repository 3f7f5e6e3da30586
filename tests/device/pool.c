/* The device pool: what [run] devices may say, replicas that run at the same time, one that fails while another waits for it in a
 * collective, programs that share a work arena which grows, one that does not come back. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "core/device/program.h"

static sodet_err err = SODET_ERR_INIT;

static sd_config *configure(const char *devices)
{
    char text[64];
    sd_config *cfg = NULL;
    snprintf(text, sizeof text, "run.devices=%s", devices);
    sd_override o = {text, NULL};
    CHECK_OK(sd_config_open(NULL, &o, 1, &cfg, &err));
    return cfg;
}

static void refuses(const char *devices, const char *part)
{
    sd_config *cfg = configure(devices);
    sd_device_pool *pool = NULL;
    CHECK_FAILS(sd_device_pool_open(cfg, &pool, &err), SODET_E_INVALID, part);
    CHECK(!pool);
    sd_config_close(cfg);
}

static sd_device_pool *opens(const char *devices, uint32_t n, sd_config **cfg)
{
    sd_device_pool *pool = NULL;
    *cfg = configure(devices);
    CHECK_OK(sd_device_pool_open(*cfg, &pool, &err));
    if (pool)
        CHECK_EQ(sd_device_pool_count(pool), n);
    return pool;
}

/* ---- overlap: every replica waits until all of them have arrived ---- */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t all;
    uint32_t here, wanted;
} meeting;

static sodet_status meet(sd_replica *r, void *context, sodet_err *e)
{
    meeting *m = context;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    int late = 0;
    pthread_mutex_lock(&m->lock);
    if (++m->here == m->wanted)
        pthread_cond_broadcast(&m->all);
    while (m->here < m->wanted && !late)
        late = pthread_cond_timedwait(&m->all, &m->lock, &until);
    pthread_mutex_unlock(&m->lock);
    return late ? SODET_FAIL(e, SODET_E_DEVICE, "replica %u waited alone", r->index) : SODET_OK;
}

/* ---- programs ---- */
typedef struct programs {
    sd_program *first[4], *second[4];
    int64_t n;
} programs;

/* y = sum over devices of (x + 1), on vectors of n elements; with a detour that needs work memory. */
static sodet_status reduce(sd_replica *r, int64_t n, sd_program **out, sodet_err *e)
{
    sodet_graph *g;
    sd_segments none = {0};
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = 2}, &g, e);
    if (s != SODET_OK)
        return s;
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, n, 0, 0, 0);
    sodet_value x = sodet_input(g, "x", &shape), y = sodet_add(g, sodet_exp(g, sodet_log(g, x)), sodet_scalar(g, 1));
    sodet_output(g, "y", sodet_all_reduce(g, y));
    s = sd_graph_bind(g, &none, e);
    if (s != SODET_OK) {
        sd_graph_free(g);
        return s;
    }
    return sd_program_make(r, g, SD_ARENA_PARAM, out, e);
}

static sodet_status make(sd_replica *r, void *context, sodet_err *e)
{
    programs *p = context;
    sodet_status s = reduce(r, 16, &p->first[r->index], e);
    return s == SODET_OK ? reduce(r, 100000, &p->second[r->index], e) : s; /* the work arena grows: the first is bound again */
}

static sodet_status unmake(sd_replica *r, void *context, sodet_err *e)
{
    (void)e;
    programs *p = context;
    sd_program_free(p->first[r->index]);
    sd_program_free(p->second[r->index]);
    return SODET_OK;
}

static sodet_status run_both(sd_replica *r, void *context, sodet_err *e)
{
    programs *p = context;
    static const float start[2] = {1, 5};
    for (int k = 0; k < 2; k++) {
        sd_program *q = k ? p->second[r->index] : p->first[r->index];
        int64_t n = k ? 100000 : 16;
        float *x = malloc((size_t)n * sizeof *x);
        for (int64_t i = 0; i < n; i++)
            x[i] = start[r->index];
        sodet_status s = sd_program_write(q, "x", x, (uint64_t)n, e);
        if (s == SODET_OK)
            s = sd_program_run(q, 0, 0, NULL, e);
        if (s == SODET_OK)
            s = sd_program_read(q, "y", x, (uint64_t)n, e);
        bool right = s == SODET_OK;
        for (int64_t i = 0; right && i < n; i++)
            right = fabsf(x[i] - 8) < 1e-5f;
        free(x);
        if (s != SODET_OK)
            return s;
        if (!right)
            return SODET_FAIL(e, SODET_E_INTERNAL, "the sum over devices is wrong");
    }
    return SODET_OK;
}

/* Replica 1 fails; 0 is in a collective that 1 never joins. */
static sodet_status fail_one(sd_replica *r, void *context, sodet_err *e)
{
    programs *p = context;
    if (r->index == 1)
        return SODET_FAIL(e, SODET_E_DEVICE, "planted");
    float x[16] = {1};
    sodet_status s = sd_program_write(p->first[0], "x", x, 16, e);
    return s == SODET_OK ? sd_program_run(p->first[0], 0, 0, NULL, e) : s;
}

static void together(const char *devices)
{
    sd_config *cfg;
    sd_device_pool *pool = opens(devices, 2, &cfg);
    if (!pool)
        return;
    meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 2};
    CHECK_OK(sd_device_pool_run(pool, meet, &m, &err));
    programs p = {0};
    sd_segments none = {0};
    CHECK_OK(sd_device_pool_arenas(pool, &none, false, 0, &err));
    CHECK_OK(sd_device_pool_run(pool, make, &p, &err));
    CHECK_OK(sd_device_pool_run(pool, run_both, &p, &err));
    CHECK_OK(sd_device_pool_run(pool, run_both, &p, &err));
    sodet_err why = SODET_ERR_INIT;
    CHECK_EQ(sd_device_pool_run(pool, fail_one, &p, &why), SODET_E_DEVICE);
    CHECK(strstr(why.text, "planted") && strstr(why.text, "replica 1"));
    why = (sodet_err)SODET_ERR_INIT; /* it stays broken, and says the same */
    CHECK_EQ(sd_device_pool_run(pool, run_both, &p, &why), SODET_E_DEVICE);
    CHECK(strstr(why.text, "planted"));
    for (uint32_t i = 0; i < 2; i++)
        unmake(sd_device_pool_replica(pool, i), &p, &why);
    sd_device_pool_close(pool);
    sd_config_close(cfg);
}

/* ---- one that hangs: last, since what it was given stays with it ---- */
static sodet_status hang_one(sd_replica *r, void *context, sodet_err *e)
{
    (void)context;
    (void)e;
    while (r->index == 1)
        pause();
    return SODET_OK;
}

static void silent(void)
{
    const sd_override lines[] = {{"run.devices=ref:x3", NULL}, {"run.timeout=1", NULL}};
    sodet_err why = SODET_ERR_INIT;
    sd_config *cfg = NULL;
    static sd_device_pool *pool; /* a leak checker is to find it */
    CHECK_OK(sd_config_open(NULL, lines, 2, &cfg, &err));
    CHECK_OK(sd_device_pool_open(cfg, &pool, &err));
    if (!pool)
        return;
    CHECK(!sd_device_pool_hung(pool));
    CHECK_EQ(sd_device_pool_run(pool, hang_one, NULL, &why), SODET_E_DEVICE);
    CHECK(strstr(why.text, "replica 1") && strstr(why.text, "has not answered for 1 s") && strstr(why.text, "run.timeout"));
    CHECK(sd_device_pool_hung(pool));
    why = (sodet_err)SODET_ERR_INIT;
    CHECK_EQ(sd_device_pool_run(pool, hang_one, NULL, &why), SODET_E_DEVICE); /* at once */
    CHECK(strstr(why.text, "replica 1"));
    sd_device_pool_close(pool); /* does not wait for it */
    sd_config_close(cfg);
}

/* ---- one device's weights are not the others' ---- */
static sodet_status spoil(sd_replica *r, void *context, sodet_err *e)
{
    const uint32_t *arena = context;
    const float value = 1;
    return r->index == 2 ? sd_replica_write(r, *arena, 4000000, 1, &value, e) : SODET_OK;
}

static void agreed(const char *devices)
{
    sd_config *cfg;
    sd_device_pool *pool = opens(devices, 3, &cfg);
    const sd_segments segments = {.param_elements = 4000001, .frozen_elements = 4000001};
    CHECK_OK(sd_device_pool_arenas(pool, &segments, true, 2, &err));
    CHECK_OK(sd_device_pool_agree(pool, true, &err));
    uint32_t arena = SD_ARENA_GRAD;
    CHECK_OK(sd_device_pool_run(pool, spoil, &arena, &err));
    CHECK_OK(sd_device_pool_agree(pool, true, &err)); /* every device has gradients of its own */
    arena = SD_ARENA_FROZEN;
    CHECK_OK(sd_device_pool_run(pool, spoil, &arena, &err));
    CHECK_OK(sd_device_pool_agree(pool, false, &err));
    CHECK_FAILS(sd_device_pool_agree(pool, true, &err), SODET_E_DEVICE, "frozen of cpu:0 replica 2");
    arena = SD_ARENA_STATE + 1;
    CHECK_OK(sd_device_pool_run(pool, spoil, &arena, &err));
    CHECK_FAILS(sd_device_pool_agree(pool, false, &err), SODET_E_DEVICE, "optimizer 1 of cpu:0 replica 2");
    sd_device_pool_close(pool);
    sd_config_close(cfg);
}

int main(void)
{
    refuses("ref:x0", "1 to 64");
    refuses("ref:x2y", "1 to 64");
    refuses("ref:0,0", "twice");
    refuses("ref:7", "no device 7");
    refuses("ref:", "nothing behind the colon");
    refuses("ref:0,", "last comma");
    refuses("ref:a", "no index");
    refuses("c-pu", "no name of a backend");
    sd_config *cfg;
    sd_device_pool *pool = opens("ref:x3", 3, &cfg);
    sd_device_pool_close(pool);
    sd_config_close(cfg);
    together("ref:x2");
    together("cpu:x2");
    agreed("cpu:x3");
    silent();
    return check_done(50);
}
