#include "core/device/pool.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/parallel.h"
#include "core/device/transport.h"

const char *const sd_arena_names[] = {"parameters",  "frozen",      "gradients",   "optimizer 0",
                                      "optimizer 1", "optimizer 2", "optimizer 3", NULL};

enum { MAX_REPLICAS = 64, MAX_DEVICES = 256 };

typedef struct worker {
    sd_device_pool *pool;
    pthread_t thread;
    bool started, busy;
    uint64_t seen; /* generation of the last job that was looked at */
    sodet_status status;
    sodet_err err;
    uint32_t device; /* the backend's index */
    sd_replica replica;
} worker;

struct sd_device_pool {
    sd_instance backend;
    char name[64]; /* of the backend */
    uint32_t n, threads, precision;
    void *group;
    worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    uint64_t generation;
    uint32_t only; /* the one worker of this generation, or UINT32_MAX for all */
    uint32_t running;
    bool quit;
    sd_replica_job job;
    void *context;
    uint32_t failed; /* 1 + the worker that failed first, ever */
    double timeout;  /* [run] */
    double first;    /* when the first worker ended the job that runs; 0: none has */
    bool hung;       /* a worker did not come back in time, and is not waited for any more */
    sodet_err why;   /* then */
};

/* ---- threads ---- */
static void *serve(void *arg)
{
    worker *w = arg;
    sd_device_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && pool->generation == w->seen)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->quit)
            break;
        w->seen = pool->generation;
        if (pool->only != UINT32_MAX && pool->only != w->replica.index)
            continue;
        sd_replica_job job = pool->job;
        void *context = pool->context;
        w->busy = true;
        pthread_mutex_unlock(&pool->lock);
        w->err = (sodet_err)SODET_ERR_INIT;
        sodet_status s = job(&w->replica, context, &w->err);
        pthread_mutex_lock(&pool->lock);
        w->status = s;
        w->busy = false;
        if (pool->first == 0)
            pool->first = sd_now();
        if (s != SODET_OK && !pool->failed) {
            pool->failed = w->replica.index + 1;
            /* The others may be waiting for this one in a collective. */
            if (pool->group && w->replica.ops->abort_group)
                w->replica.ops->abort_group(pool->group);
        }
        if (--pool->running == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static sodet_status broken(const sd_device_pool *pool, sodet_err *err)
{
    const worker *w = &pool->workers[pool->failed - 1];
    const sodet_err *why = pool->why.code ? &pool->why : &w->err; /* what hangs may still write into its own */
    if (err) {
        uint32_t size = err->struct_size;
        *err = *why;
        err->struct_size = size;
    }
    if (why == &pool->why)
        return why->code;
    return pool->n > 1 ? sd_fail_in(err, w->status, "device %s", w->replica.name) : w->status;
}

/* All replicas do the same work, so one for which the others have waited for [run] timeout, in a collective or at the end, hangs. One
 * alone may take as long as it takes. */
static void look_for_silence(sd_device_pool *pool)
{
    double seconds = 0, since = pool->first > 0 ? sd_now() - pool->first : 0;
    const sodet_backend_ops *ops = pool->backend.ops;
    uint32_t who = pool->group && ops->awaited && !pool->failed ? ops->awaited(pool->group, &seconds) : UINT32_MAX;
    for (uint32_t i = 0; who == UINT32_MAX && since > 0 && i < pool->n; i++) {
        who = pool->workers[i].busy ? i : UINT32_MAX;
        seconds = since;
    }
    if (who >= pool->n || seconds < pool->timeout)
        return;
    pool->hung = true;
    if (pool->failed)
        return;
    pool->failed = who + 1;
    pool->why = (sodet_err)SODET_ERR_INIT;
    SODET_FAIL(
        &pool->why, SODET_E_DEVICE,
        "device %s has not answered for %.0f s while the others waited for it; a run goes on from its last checkpoint (run.resume), a "
        "device that is only slow needs a longer run.timeout",
        pool->workers[who].replica.name, seconds);
    if (pool->group && ops->abort_group)
        ops->abort_group(pool->group);
}

static void wait_for_workers(sd_device_pool *pool)
{
    enum { LOOKS = 20 }; /* per timeout, at most one a second */
    double step = pool->timeout / LOOKS < 1 ? pool->timeout / LOOKS : 1;
    while (pool->running && !pool->hung) {
        if (pool->n == 1) {
            pthread_cond_wait(&pool->done, &pool->lock);
            continue;
        }
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        long nano = at.tv_nsec + (long)(step * 1e9);
        at.tv_sec += nano / 1000000000;
        at.tv_nsec = nano % 1000000000;
        if (pthread_cond_timedwait(&pool->done, &pool->lock, &at) == ETIMEDOUT)
            look_for_silence(pool);
    }
}

static sodet_status dispatch(sd_device_pool *pool, uint32_t only, sd_replica_job job, void *context, sodet_err *err)
{
    pthread_mutex_lock(&pool->lock);
    if (!pool->failed) {
        pool->job = job;
        pool->context = context;
        pool->only = only;
        pool->running = only == UINT32_MAX ? pool->n : 1;
        pool->generation++;
        pool->first = 0;
        pthread_cond_broadcast(&pool->work);
        wait_for_workers(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return pool->failed ? broken(pool, err) : SODET_OK;
}

sodet_status sd_device_pool_run(sd_device_pool *pool, sd_replica_job job, void *context, sodet_err *err)
{
    return dispatch(pool, UINT32_MAX, job, context, err);
}

sodet_status sd_device_pool_run_one(sd_device_pool *pool, uint32_t i, sd_replica_job job, void *context, sodet_err *err)
{
    return dispatch(pool, i, job, context, err);
}

/* ---- opening ---- */
/* Splits "cuda:0,1" into backend and device indices. `all` is told by n = 0. */
static sodet_status parse_devices(const sd_config *cfg, const char *text, char name[64], uint32_t device[MAX_REPLICAS], uint32_t *n,
                                  sodet_err *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (!length || length >= 64)
        return sd_config_fail(cfg, err, "run", "devices", "expected cpu, cpu:x4, ref, cuda:0,1 or cuda:all");
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return sd_config_fail(cfg, err, "run", "devices",
                                  "\"%.*s\" is no name of a backend; expected cpu, cpu:x4, ref, cuda:0,1 or cuda:all", (int)length, text);
    memcpy(name, text, length);
    name[length] = '\0';
    *n = 1;
    device[0] = 0;
    if (!colon)
        return SODET_OK;
    const char *which = colon + 1;
    uint64_t v;
    if (!strcmp(which, "all")) {
        *n = 0;
        return SODET_OK;
    }
    if (which[0] == 'x') {
        if (!sd_parse_uint64(which + 1, &v) || !v || v > MAX_REPLICAS)
            return sd_config_fail(cfg, err, "run", "devices", "\"%s\": the number of replicas is 1 to %d, as in %s:x4", which, MAX_REPLICAS,
                                  name);
        *n = (uint32_t)v;
        for (uint32_t i = 0; i < *n; i++)
            device[i] = 0;
        return SODET_OK;
    }
    *n = 0;
    while (*which) {
        char number[16];
        size_t k = strcspn(which, ",");
        while (k && *which == ' ')
            which++, k--;
        if (k >= sizeof number)
            k = sizeof number - 1;
        memcpy(number, which, k);
        while (k && number[k - 1] == ' ')
            k--;
        number[k] = '\0';
        if (!sd_parse_uint64(number, &v) || v >= MAX_DEVICES)
            return sd_config_fail(cfg, err, "run", "devices", "\"%s\" is no index of a device; expected %s:0,1, %s:all or %s:x2", number,
                                  name, name, name);
        for (uint32_t i = 0; i < *n; i++)
            if (device[i] == v)
                return sd_config_fail(cfg, err, "run", "devices", "device %u is named twice", device[i]);
        if (*n == MAX_REPLICAS)
            return sd_config_fail(cfg, err, "run", "devices", "more than %d devices", MAX_REPLICAS);
        device[(*n)++] = (uint32_t)v;
        which += strcspn(which, ",");
        if (*which == ',' && !*++which)
            return sd_config_fail(cfg, err, "run", "devices", "nothing behind the last comma");
    }
    if (!*n)
        return sd_config_fail(cfg, err, "run", "devices", "nothing behind the colon; expected %s:0,1, %s:all or %s:x2", name, name, name);
    return SODET_OK;
}

static sodet_status open_device(sd_replica *r, void *context, sodet_err *err)
{
    sd_device_pool *pool = context;
    uint32_t base = pool->threads / pool->n, rest = pool->threads % pool->n;
    sodet_device_options o = {.struct_size = sizeof o,
                              .threads = base + (r->index < rest ? 1 : 0),
                              .rank = r->index,
                              .world = pool->n,
                              .group = pool->group,
                              .precision = pool->precision};
    if (!o.threads)
        o.threads = 1;
    sodet_status s = r->ops->open(pool->backend.self, pool->workers[r->index].device, &o, &r->device, err);
    if (s == SODET_OK)
        r->real_size = r->ops->real_size(r->device);
    return s;
}

static sodet_status close_device(sd_replica *r, void *context, sodet_err *err)
{
    (void)context;
    (void)err;
    if (!r->device)
        return SODET_OK;
    for (uint32_t a = 0; a < SD_ARENA_COUNT; a++)
        if (r->arena[a].memory)
            r->ops->release(r->device, r->arena[a].memory, r->arena[a].elements * r->real_size);
    if (r->work)
        r->ops->release(r->device, r->work, r->work_bytes);
    sd_free(r->staging);
    r->ops->close(r->device);
    r->device = NULL;
    return SODET_OK;
}

void sd_device_pool_close(sd_device_pool *pool)
{
    if (!pool || pool->hung) /* what a thread that hangs may still touch stays until the process ends */
        return;
    if (pool->workers) {
        /* Also when the pool is broken: every device is closed by its own thread. */
        pool->failed = 0;
        bool all = pool->n > 0;
        for (uint32_t i = 0; i < pool->n; i++)
            all = all && pool->workers[i].started;
        if (all)
            dispatch(pool, UINT32_MAX, close_device, pool, NULL);
        pthread_mutex_lock(&pool->lock);
        pool->quit = true;
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
        for (uint32_t i = 0; i < pool->n; i++)
            if (pool->workers[i].started)
                pthread_join(pool->workers[i].thread, NULL);
    }
    const sodet_backend_ops *ops = pool->backend.ops;
    if (pool->group)
        ops->close_group(pool->group);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    sd_free(pool->workers);
    sd_instance_destroy(&pool->backend);
    sd_free(pool);
}

static sodet_status open_pool(sd_device_pool *pool, sd_config *cfg, sodet_err *err)
{
    const sd_run_cfg *run = &sd_config_core(cfg)->run;
    uint32_t device[MAX_REPLICAS] = {0}, available = 0;
    sodet_status s = parse_devices(cfg, run->devices, pool->name, device, &pool->n, err);
    char section[80];
    snprintf(section, sizeof section, "backend.%s", pool->name);
    if (s == SODET_OK)
        s = sd_instance_create(cfg, section, &pool->backend, err);
    if (s != SODET_OK)
        return s;
    const sodet_backend_ops *ops = pool->backend.ops;
    sodet_device_info *info = sd_alloc(MAX_DEVICES, sizeof *info);
    if (!info)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of devices");
    for (uint32_t i = 0; i < MAX_DEVICES; i++)
        info[i].struct_size = sizeof *info;
    s = ops->devices(pool->backend.self, MAX_DEVICES, info, &available, err);
    if (available > MAX_DEVICES)
        available = MAX_DEVICES;
    if (s == SODET_OK && !available)
        s = sd_config_fail(cfg, err, "run", "devices", "backend %s finds no device on this machine; devices = cpu runs everywhere",
                           pool->name);
    if (s == SODET_OK && !pool->n) {
        pool->n = available > MAX_REPLICAS ? MAX_REPLICAS : available;
        for (uint32_t i = 0; i < pool->n; i++)
            device[i] = i;
    }
    for (uint32_t i = 0; s == SODET_OK && i < pool->n; i++)
        if (device[i] >= available)
            s = sd_config_fail(cfg, err, "run", "devices", "no device %u: backend %s finds %u on this machine (0 to %u)", device[i],
                               pool->name, available, available - 1);
    pool->timeout = run->timeout;
    pool->threads = run->threads ? run->threads : sd_processors();
    pool->precision = run->precision;
    if (s == SODET_OK && !(pool->workers = sd_alloc(pool->n, sizeof *pool->workers)))
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %u devices", pool->n);
    const sd_world alone = {.ops = &sd_transport_self, .info = {.size = 1}};
    sd_world_group group = {0};
    if (s == SODET_OK)
        s = sd_world_join(&alone, ops, pool->backend.self, pool->name, pool->n, &group, err);
    pool->group = group.group;
    for (uint32_t i = 0; s == SODET_OK && i < pool->n; i++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->device = device[i];
        w->replica.index = i;
        w->replica.ops = ops;
        w->replica.memory = info[device[i]].memory;
        char which[32] = "";
        if (pool->n > 1)
            snprintf(which, sizeof which, " replica %u", i);
        snprintf(w->replica.name, sizeof w->replica.name, "%s:%u%s (%.80s)", pool->name, device[i], which, info[device[i]].name);
    }
    sd_free(info);
    for (uint32_t i = 0; s == SODET_OK && i < pool->n; i++) {
        if (pthread_create(&pool->workers[i].thread, NULL, serve, &pool->workers[i]) != 0)
            return SODET_FAIL(err, SODET_E_MEMORY, "no thread could be started for device %s", pool->workers[i].replica.name);
        pool->workers[i].started = true;
    }
    return s == SODET_OK ? sd_device_pool_run(pool, open_device, pool, err) : s;
}

sodet_status sd_device_pool_open(sd_config *cfg, sd_device_pool **out, sodet_err *err)
{
    *out = NULL;
    sd_device_pool *pool = sd_alloc(1, sizeof *pool);
    if (!pool)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the device pool");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sodet_status s = open_pool(pool, cfg, err);
    if (s != SODET_OK) {
        sd_device_pool_close(pool);
        return s;
    }
    *out = pool;
    return SODET_OK;
}

bool sd_device_pool_hung(const sd_device_pool *pool)
{
    return pool->hung;
}

uint32_t sd_device_pool_count(const sd_device_pool *pool)
{
    return pool->n;
}

sd_replica *sd_device_pool_replica(sd_device_pool *pool, uint32_t i)
{
    return &pool->workers[i].replica;
}

const char *sd_device_pool_backend(const sd_device_pool *pool)
{
    return pool->name;
}

uint32_t sd_device_pool_threads(const sd_device_pool *pool)
{
    uint32_t each = pool->threads / pool->n;
    return each ? each : 1;
}

/* ---- arenas ---- */
typedef struct arenas_job {
    uint64_t elements[SD_ARENA_COUNT];
} arenas_job;

static sodet_status make_arenas(sd_replica *r, void *context, sodet_err *err)
{
    const arenas_job *j = context;
    for (uint32_t a = 0; a < SD_ARENA_COUNT; a++) {
        if (!j->elements[a])
            continue;
        if (r->arena[a].memory)
            return SODET_FAIL(err, SODET_E_INTERNAL, "the %s arena is made twice", sd_arena_names[a]);
        sodet_status s = r->ops->alloc(r->device, j->elements[a] * r->real_size, &r->arena[a].memory, err);
        if (s != SODET_OK)
            return sd_fail_in(err, s, "%llu bytes for %s", (unsigned long long)(j->elements[a] * r->real_size), sd_arena_names[a]);
        r->arena[a].elements = j->elements[a];
    }
    return SODET_OK;
}

sodet_status sd_device_pool_arenas(sd_device_pool *pool, const sd_segments *segments, bool training, uint32_t n_state, sodet_err *err)
{
    arenas_job j = {{0}};
    /* An arena is there even if it is empty: programs are bound to its address. */
    j.elements[SD_ARENA_PARAM] = segments->param_elements ? segments->param_elements : 16;
    j.elements[SD_ARENA_FROZEN] = segments->frozen_elements ? segments->frozen_elements : 16;
    if (training)
        j.elements[SD_ARENA_GRAD] = j.elements[SD_ARENA_PARAM];
    for (uint32_t i = 0; i < n_state && i < SODET_MAX_STATE; i++)
        j.elements[SD_ARENA_STATE + i] = j.elements[SD_ARENA_PARAM];
    return sd_device_pool_run(pool, make_arenas, &j, err);
}

/* ---- transfer ---- */
static sodet_status staging(sd_replica *r, uint64_t bytes, sodet_err *err)
{
    if (bytes <= r->staging_bytes)
        return SODET_OK;
    sd_free(r->staging);
    r->staging = sd_alloc((size_t)bytes, 1);
    r->staging_bytes = r->staging ? bytes : 0;
    return r->staging ? SODET_OK
                      : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu bytes to convert values", (unsigned long long)bytes);
}

sodet_status sd_replica_upload_reals(sd_replica *r, void *to, uint64_t first, uint64_t n, const float *values, sodet_err *err)
{
    if (r->real_size == sizeof(float))
        return r->ops->upload(r->device, to, first * sizeof(float), values, n * sizeof(float), err);
    sodet_status s = staging(r, n * sizeof(double), err);
    if (s != SODET_OK)
        return s;
    double *wide = r->staging;
    for (uint64_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    return r->ops->upload(r->device, to, first * sizeof(double), wide, n * sizeof(double), err);
}

sodet_status sd_replica_download_reals(sd_replica *r, const void *from, uint64_t first, uint64_t n, float *out, sodet_err *err)
{
    if (r->real_size == sizeof(float))
        return r->ops->download(r->device, from, first * sizeof(float), out, n * sizeof(float), err);
    sodet_status s = staging(r, n * sizeof(double), err);
    if (s == SODET_OK)
        s = r->ops->download(r->device, from, first * sizeof(double), r->staging, n * sizeof(double), err);
    if (s != SODET_OK)
        return s;
    const double *wide = r->staging;
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)wide[i];
    return SODET_OK;
}

sodet_status sd_replica_copy(sd_replica *r, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes,
                             sodet_err *err)
{
    if (r->ops->copy)
        return r->ops->copy(r->device, to, to_offset, from, from_offset, bytes, err);
    sodet_status s = staging(r, bytes, err);
    if (s == SODET_OK)
        s = r->ops->download(r->device, from, from_offset, r->staging, bytes, err);
    return s == SODET_OK ? r->ops->upload(r->device, to, to_offset, r->staging, bytes, err) : s;
}

static sodet_status in_arena(const sd_replica *r, uint32_t arena, uint64_t offset, uint64_t n, sodet_err *err)
{
    uint64_t have = arena < SD_ARENA_COUNT ? r->arena[arena].elements : 0;
    if (offset > have || n > have - offset)
        return SODET_FAIL(err, SODET_E_INTERNAL, "elements %llu to %llu of an arena of %llu", (unsigned long long)offset,
                          (unsigned long long)(offset + n), (unsigned long long)have);
    return SODET_OK;
}

sodet_status sd_replica_read(sd_replica *r, uint32_t arena, uint64_t offset, uint64_t n, float *out, sodet_err *err)
{
    sodet_status s = in_arena(r, arena, offset, n, err);
    return s == SODET_OK ? sd_replica_download_reals(r, r->arena[arena].memory, offset, n, out, err) : s;
}

sodet_status sd_replica_write(sd_replica *r, uint32_t arena, uint64_t offset, uint64_t n, const float *values, sodet_err *err)
{
    sodet_status s = in_arena(r, arena, offset, n, err);
    r->weights++;
    return s == SODET_OK ? sd_replica_upload_reals(r, r->arena[arena].memory, offset, n, values, err) : s;
}

typedef struct transfer_job {
    uint32_t arena;
    uint64_t offset, n;
    const void *from;
    void *to;
    bool raw;
} transfer_job;

static sodet_status read_job(sd_replica *r, void *context, sodet_err *err)
{
    const transfer_job *j = context;
    if (!j->raw)
        return sd_replica_read(r, j->arena, j->offset, j->n, j->to, err);
    sodet_status s = in_arena(r, j->arena, j->offset, j->n, err);
    return s == SODET_OK ? r->ops->download(r->device, r->arena[j->arena].memory, j->offset * r->real_size, j->to, j->n * r->real_size, err)
                         : s;
}

static sodet_status write_job(sd_replica *r, void *context, sodet_err *err)
{
    const transfer_job *j = context;
    if (!j->raw)
        return sd_replica_write(r, j->arena, j->offset, j->n, j->from, err);
    sodet_status s = in_arena(r, j->arena, j->offset, j->n, err);
    r->weights++;
    return s == SODET_OK ? r->ops->upload(r->device, r->arena[j->arena].memory, j->offset * r->real_size, j->from, j->n * r->real_size, err)
                         : s;
}

sodet_status sd_device_pool_read(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, float *out, sodet_err *err)
{
    return dispatch(pool, 0, read_job, &(transfer_job){.arena = arena, .offset = offset, .n = n, .to = out}, err);
}

sodet_status sd_device_pool_read_raw(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, void *out, sodet_err *err)
{
    return dispatch(pool, 0, read_job, &(transfer_job){.arena = arena, .offset = offset, .n = n, .to = out, .raw = true}, err);
}

sodet_status sd_device_pool_write(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, const float *values, sodet_err *err)
{
    return sd_device_pool_run(pool, write_job, &(transfer_job){.arena = arena, .offset = offset, .n = n, .from = values}, err);
}

sodet_status sd_device_pool_write_raw(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, const void *values, sodet_err *err)
{
    return sd_device_pool_run(pool, write_job, &(transfer_job){.arena = arena, .offset = offset, .n = n, .from = values, .raw = true}, err);
}

sodet_status sd_device_pool_init(sd_device_pool *pool, const sd_segments *segments, uint64_t seed, uint32_t default_init, sodet_err *err)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < segments->n; i++)
        most = segments->segment[i].n > most ? segments->segment[i].n : most;
    float *values = sd_alloc((size_t)most, sizeof *values);
    if (!values)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu initial values", (unsigned long long)most);
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < segments->n; i++) {
        const sd_segment *g = &segments->segment[i];
        sd_segment_init(g, seed, default_init, values);
        s = sd_device_pool_write(pool, g->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, g->offset, g->n, values, err);
    }
    sd_free(values);
    return s;
}

sd_device_bytes sd_device_pool_bytes(const sd_device_pool *pool, uint32_t i)
{
    const sd_replica *r = &pool->workers[i].replica;
    sd_device_bytes b = {.work = r->work_bytes, .own = r->own_bytes};
    b.total = b.work + b.own;
    for (uint32_t a = 0; a < SD_ARENA_COUNT; a++) {
        b.arena[a] = r->arena[a].elements * r->real_size;
        b.total += b.arena[a];
    }
    return b;
}
