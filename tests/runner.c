#include "runner.h"

#include "core/plugin/plugin.h"

#define GUARD      64u /* bytes before and behind everything */
#define GUARD_BYTE 0xa5

struct runner {
    sd_config *cfg;
    sd_instance backend;
    const sodet_backend_ops *ops;
    void *device;
    uint32_t real;
    char name[48];
};

typedef struct block { /* of device memory: GUARD, bytes, GUARD */
    void *memory;
    uint64_t bytes;
    const char *what;
} block;
enum { PARAM, FROZEN, GRAD, WORK, OWN, BLOCKS };

struct running {
    runner *r;
    const sodet_graph *g;
    sd_segments segments;
    sodet_plan plan;
    block block[BLOCKS];
    void *handle;
    uint32_t flags;
    char damage[160];
};

runner *runner_open(const char *backend, bool real64, uint32_t threads)
{
    sodet_err err = SODET_ERR_INIT;
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    char text[200], section[64], name[32];
    uint32_t precision = 0;
    runner *r = calloc(1, sizeof *r);
    const char *colon = strchr(backend, ':');
    while (colon && precision < 2 && strcmp(colon + 1, precisions[precision]) != 0)
        precision++;
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - backend) : (int)sizeof name - 1, backend);
    int n = snprintf(text, sizeof text, "[run]\ndevices = %s\n%s", name, real64 ? "[backend.ref]\nprecision = double\n" : "");
    snprintf(section, sizeof section, "backend.%s", name);
    snprintf(r->name, sizeof r->name, "%s%s", backend, real64 ? " (double)" : "");
    sodet_status s = sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &r->cfg, &err);
    if (s == SODET_OK)
        s = sd_instance_create(r->cfg, section, &r->backend, &err);
    if (s == SODET_OK) {
        r->ops = r->backend.ops;
        s = r->ops->open(
            r->backend.self, 0,
            &(sodet_device_options){.struct_size = sizeof(sodet_device_options), .threads = threads, .world = 1, .precision = precision},
            &r->device, &err);
    }
    CHECK_OK(s);
    if (s != SODET_OK)
        exit(check_done(1));
    r->real = r->ops->real_size(r->device);
    return r;
}

void runner_close(runner *r)
{
    if (!r)
        return;
    r->ops->close(r->device);
    sd_instance_destroy(&r->backend);
    sd_config_close(r->cfg);
    free(r);
}

const char *runner_name(const runner *r)
{
    return r->name;
}

sodet_graph *running_graph(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(&(sd_graph_options){.training = training}, &g, &err));
    if (!g)
        exit(check_done(1));
    return g;
}

static void *start_of(const block *b)
{
    return b->memory ? (char *)b->memory + GUARD : NULL;
}

static sodet_status allocate(running *p, uint32_t which, const char *what, uint64_t bytes, int fill, sodet_err *err)
{
    block *b = &p->block[which];
    b->what = what;
    b->bytes = bytes;
    sodet_status s = p->r->ops->alloc(p->r->device, bytes + 2 * GUARD, &b->memory, err);
    if (s != SODET_OK)
        return s;
    char *all = malloc((size_t)bytes + 2 * GUARD);
    memset(all, GUARD_BYTE, (size_t)bytes + 2 * GUARD);
    memset(all + GUARD, fill, (size_t)bytes);
    s = p->r->ops->upload(p->r->device, b->memory, 0, all, bytes + 2 * GUARD, err);
    free(all);
    return s;
}

/* Every buffer a place of its own, with room for a guard in front and behind. */
static void spread(sodet_plan *plan, uint64_t *work, uint64_t *own)
{
    *work = *own = GUARD;
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        sodet_plan_buffer *b = &plan->buffers[i];
        uint64_t *at = b->lifetime == SODET_LIFE_RUN ? work : own;
        b->offset = *at;
        *at += (b->bytes + 63) / 64 * 64 + GUARD;
    }
}

static sodet_status write_guards(running *p, sodet_err *err)
{
    char guard[2 * GUARD];
    memset(guard, GUARD_BYTE, sizeof guard);
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < p->plan.n_buffers; i++) {
        const sodet_plan_buffer *b = &p->plan.buffers[i];
        void *base = start_of(&p->block[b->lifetime == SODET_LIFE_RUN ? WORK : OWN]);
        uint64_t pad = (64 - b->bytes % 64) % 64;
        s = p->r->ops->upload(p->r->device, base, b->offset - GUARD, guard, GUARD, err);
        if (s == SODET_OK)
            s = p->r->ops->upload(p->r->device, base, b->offset + b->bytes, guard, pad + GUARD, err);
    }
    return s;
}

running *running_make(runner *r, sodet_graph *g, uint32_t flags, sodet_err *err)
{
    running *p = calloc(1, sizeof *p);
    *p = (running){.r = r, .g = g, .flags = flags};
    uint64_t work = 0, own = 0;
    sodet_status s = sd_segments_make(g, &p->segments, err);
    if (s == SODET_OK)
        s = sd_graph_bind(g, &p->segments, err);
    if (s == SODET_OK)
        s = r->ops->prepare(r->device, g, &p->plan, err);
    if (s == SODET_OK)
        s = sd_plan_memory(&p->plan, &work, &own, err);
    if (s == SODET_OK && (flags & RUNNING_GUARDS))
        spread(&p->plan, &work, &own);
    int junk = flags & RUNNING_GUARDS ? 0xff : 0; /* NaN in float and in double */
    if (s == SODET_OK)
        s = allocate(p, PARAM, "parameters", p->segments.param_elements * r->real, 0, err);
    if (s == SODET_OK)
        s = allocate(p, FROZEN, "frozen arena", p->segments.frozen_elements * r->real, 0, err);
    if (s == SODET_OK)
        s = allocate(p, GRAD, "gradients", p->segments.param_elements * r->real, junk, err);
    if (s == SODET_OK)
        s = allocate(p, WORK, "work arena", work, junk, err);
    if (s == SODET_OK)
        s = allocate(p, OWN, "program's memory", own, junk, err);
    if (s == SODET_OK && (flags & RUNNING_GUARDS))
        s = write_guards(p, err);
    const sodet_binding b = {.struct_size = sizeof b,
                             .param = start_of(&p->block[PARAM]),
                             .frozen = start_of(&p->block[FROZEN]),
                             .grad = start_of(&p->block[GRAD]),
                             .work = start_of(&p->block[WORK]),
                             .own = start_of(&p->block[OWN])};
    if (s == SODET_OK)
        s = r->ops->bind(r->device, &p->plan, &b, &p->handle, err);
    if (s == SODET_OK)
        return p;
    running_free(p);
    return NULL;
}

void running_free(running *p)
{
    if (!p)
        return;
    if (p->handle)
        p->r->ops->unbind(p->handle);
    if (p->plan.handle)
        p->r->ops->discard(p->r->device, &p->plan);
    for (int i = 0; i < BLOCKS; i++)
        if (p->block[i].memory)
            p->r->ops->release(p->r->device, p->block[i].memory, p->block[i].bytes + 2 * GUARD);
    sd_segments_free(&p->segments);
    free(p);
}

const sd_segments *running_segments(const running *p)
{
    return &p->segments;
}

typedef struct where {
    void *base;
    uint64_t offset, n; /* offset: bytes */
    uint32_t dtype;
} where;

static bool find(running *p, const char *name, bool output, where *w)
{
    const sd_segment *s = sd_segments_find(&p->segments, name);
    sodet_value v = output ? sd_graph_find_output(p->g, name) : sd_graph_find_input(p->g, name);
    if (v.id && v.id != SODET_POISON.id) {
        const sodet_shape *shape = &sodet_graph_value(p->g, v)->shape;
        *w = (where){p->r->ops->address(p->handle, v), 0, (uint64_t)sodet_elements(shape), shape->dtype};
        return w->base != NULL;
    }
    if (!s)
        return false;
    *w = (where){start_of(&p->block[s->frozen ? FROZEN : PARAM]), s->offset * p->r->real, s->n, s->shape.dtype};
    return true;
}

static bool put(running *p, const where *w, const double *v)
{
    sodet_err err = SODET_ERR_INIT;
    bool wide = w->dtype == SODET_F32 && p->r->real == 8;
    void *raw = malloc((size_t)w->n * 8 + 8);
    for (uint64_t i = 0; i < w->n; i++)
        if (wide)
            ((double *)raw)[i] = v[i];
        else if (w->dtype == SODET_F32)
            ((float *)raw)[i] = (float)v[i];
        else
            ((int32_t *)raw)[i] = (int32_t)v[i];
    sodet_status s = p->r->ops->upload(p->r->device, w->base, w->offset, raw, w->n * (wide ? 8 : 4), &err);
    free(raw);
    return s == SODET_OK;
}

static bool take(running *p, const where *w, double *v)
{
    sodet_err err = SODET_ERR_INIT;
    bool wide = w->dtype == SODET_F32 && p->r->real == 8;
    void *raw = malloc((size_t)w->n * 8 + 8);
    sodet_status s = p->r->ops->download(p->r->device, w->base, w->offset, raw, w->n * (wide ? 8 : 4), &err);
    for (uint64_t i = 0; i < w->n; i++)
        v[i] = wide ? ((double *)raw)[i] : w->dtype == SODET_F32 ? (double)((float *)raw)[i] : (double)((int32_t *)raw)[i];
    free(raw);
    return s == SODET_OK;
}

bool running_set(running *p, const char *name, const double *v, uint64_t n)
{
    where w;
    return find(p, name, false, &w) && w.n == n && put(p, &w, v);
}

bool running_set_f32(running *p, const char *name, const float *v, uint64_t n)
{
    double *wide = malloc((size_t)n * 8 + 8);
    for (uint64_t i = 0; i < n; i++)
        wide[i] = (double)v[i];
    bool ok = running_set(p, name, wide, n);
    free(wide);
    return ok;
}

sodet_status running_run(running *p, sodet_err *err)
{
    const sodet_run run = {.struct_size = sizeof run, .flags = SODET_RUN_WEIGHTS_CHANGED, .seed = 20261130, .step = 3};
    return p->r->ops->run(p->handle, &run, err);
}

bool running_get(running *p, const char *name, double *v, uint64_t n)
{
    where w;
    return find(p, name, true, &w) && w.n == n && take(p, &w, v);
}

bool running_grad(running *p, const char *parameter, double *v, uint64_t n)
{
    const sd_segment *s = sd_segments_find(&p->segments, parameter);
    if (!s || s->frozen || s->n != n)
        return false;
    return take(p, &(where){start_of(&p->block[GRAD]), s->offset * p->r->real, n, SODET_F32}, v);
}

static bool guard_is_whole(running *p, const void *base, uint64_t offset, uint64_t bytes)
{
    sodet_err err = SODET_ERR_INIT;
    unsigned char guard[4 * GUARD];
    if (p->r->ops->download(p->r->device, base, offset, guard, bytes, &err) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < bytes; i++)
        if (guard[i] != GUARD_BYTE)
            return false;
    return true;
}

const char *running_damage(running *p)
{
    if (!(p->flags & RUNNING_GUARDS))
        return NULL;
    for (int i = 0; i < BLOCKS; i++)
        if (!guard_is_whole(p, p->block[i].memory, 0, GUARD) || !guard_is_whole(p, p->block[i].memory, GUARD + p->block[i].bytes, GUARD)) {
            snprintf(p->damage, sizeof p->damage, "memory beside the %s was written", p->block[i].what);
            return p->damage;
        }
    for (uint32_t i = 0; i < p->plan.n_buffers; i++) {
        const sodet_plan_buffer *b = &p->plan.buffers[i];
        void *base = start_of(&p->block[b->lifetime == SODET_LIFE_RUN ? WORK : OWN]);
        if (!guard_is_whole(p, base, b->offset - GUARD, GUARD) ||
            !guard_is_whole(p, base, b->offset + b->bytes, GUARD + (64 - b->bytes % 64) % 64)) {
            snprintf(p->damage, sizeof p->damage, "memory beside buffer %u (value %u, %llu bytes, nodes %u to %u) was written", i, b->value,
                     (unsigned long long)b->bytes, b->first, b->last);
            return p->damage;
        }
    }
    return NULL;
}
