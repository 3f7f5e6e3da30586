#include "core/device/program.h"

#include <string.h>

struct sd_program {
    sd_replica *replica;
    struct sd_program *next; /* of the replica's list */
    sodet_graph *graph;
    sodet_plan plan; /* kept for its descriptions and for binding again */
    bool planned;
    void *handle; /* the backend's program; NULL: to be bound before it can run */
    void *own;
    uint64_t work_bytes, own_bytes, weights;
    uint32_t param_arena;
    bool ran;
};

/* ---- one program ---- */
static void unbind(sd_program *p)
{
    if (p->handle)
        p->replica->ops->unbind(p->handle);
    p->handle = NULL;
}

static void discard(sd_program *p)
{
    if (p->planned)
        p->replica->ops->discard(p->replica->device, &p->plan);
    p->planned = false;
}

void sd_program_free(sd_program *p)
{
    if (!p)
        return;
    sd_replica *r = p->replica;
    unbind(p);
    discard(p);
    if (p->own) {
        r->ops->release(r->device, p->own, p->own_bytes);
        r->own_bytes -= p->own_bytes;
    }
    for (sd_program **at = &r->programs; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    sd_graph_free(p->graph);
    sd_free(p);
}

/* The work arena of the device holds at least `bytes`; programs bound to a smaller one lose their binding. */
static sodet_status need_work(sd_replica *r, uint64_t bytes, sodet_err *err)
{
    if (bytes <= r->work_bytes)
        return SODET_OK;
    for (sd_program *p = r->programs; p; p = p->next)
        unbind(p);
    if (r->work)
        r->ops->release(r->device, r->work, r->work_bytes);
    r->work = NULL;
    r->work_bytes = 0;
    sodet_status s = r->ops->alloc(r->device, bytes, &r->work, err);
    if (s != SODET_OK)
        return sd_fail_in(err, s, "%llu bytes of working memory", (unsigned long long)bytes);
    r->work_bytes = bytes;
    return SODET_OK;
}

static sodet_status bind(sd_program *p, sodet_err *err)
{
    sd_replica *r = p->replica;
    sodet_status s = SODET_OK;
    if (!p->planned) {
        p->plan = (sodet_plan){.struct_size = sizeof p->plan};
        s = r->ops->prepare(r->device, p->graph, &p->plan, err);
        if (s != SODET_OK)
            return s;
        p->planned = true;
        uint64_t own;
        s = sd_plan_memory(&p->plan, &p->work_bytes, &own, err);
        if (s == SODET_OK && p->own && own != p->own_bytes)
            s = SODET_FAIL(err, SODET_E_INTERNAL, "a plan made again wants %llu bytes of its own, before %llu", (unsigned long long)own,
                           (unsigned long long)p->own_bytes);
        if (s == SODET_OK && !p->own) {
            /* One byte stands for nothing, so that `own` tells whether it is there. */
            own = own ? own : 1;
            s = r->ops->alloc(r->device, own, &p->own, err);
            if (s == SODET_OK) {
                p->own_bytes = own;
                r->own_bytes += own;
            }
        }
        if (s == SODET_OK)
            s = need_work(r, p->work_bytes, err);
    }
    sodet_binding b = {.struct_size = sizeof b,
                       .param = r->arena[p->param_arena].memory,
                       .frozen = r->arena[SD_ARENA_FROZEN].memory,
                       .grad = r->arena[SD_ARENA_GRAD].memory,
                       .work = r->work,
                       .own = p->own};
    for (uint32_t i = 0; i < SODET_MAX_STATE; i++)
        b.state[i] = r->arena[SD_ARENA_STATE + i].memory;
    if (s == SODET_OK)
        s = r->ops->bind(r->device, &p->plan, &b, &p->handle, err);
    p->ran = false;
    if (s != SODET_OK)
        discard(p);
    return s;
}

sodet_status sd_program_make(sd_replica *r, sodet_graph *g, uint32_t param_arena, sd_program **out, sodet_err *err)
{
    *out = NULL;
    sd_program *p = sd_alloc(1, sizeof *p);
    if (!p) {
        sd_graph_free(g);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a program");
    }
    p->replica = r;
    p->graph = g;
    p->param_arena = param_arena;
    p->next = r->programs;
    r->programs = p;
    sodet_status s = bind(p, err);
    if (s != SODET_OK) {
        sd_program_free(p);
        return s;
    }
    *out = p;
    return SODET_OK;
}

sodet_status sd_program_plan(sd_replica *r, const sodet_graph *g, uint64_t *work_bytes, uint64_t *own_bytes, sd_program_said *said,
                             void *context, sodet_err *err)
{
    *work_bytes = *own_bytes = 0;
    sodet_plan plan = {.struct_size = sizeof plan};
    sodet_status s = r->ops->prepare(r->device, g, &plan, err);
    if (s != SODET_OK)
        return s;
    s = sd_plan_memory(&plan, work_bytes, own_bytes, err);
    for (uint32_t i = 0; s == SODET_OK && said && plan.describe && i < sodet_graph_node_count(g); i++) {
        const char *how = plan.describe(plan.handle, i);
        if (how)
            said(context, i, how);
    }
    r->ops->discard(r->device, &plan);
    return s;
}

const sodet_graph *sd_program_graph(const sd_program *p)
{
    return p->graph;
}

uint64_t sd_program_work_bytes(const sd_program *p)
{
    return p->work_bytes;
}

uint64_t sd_program_own_bytes(const sd_program *p)
{
    return p->own_bytes;
}

const char *sd_program_describe(const sd_program *p, uint32_t node)
{
    return p->planned && p->plan.describe ? p->plan.describe(p->plan.handle, node) : NULL;
}

/* Binding is lost when another program made the work arena grow. Inputs live in the program's own memory and stay. */
static sodet_status bound(sd_program *p, sodet_err *err)
{
    if (p->handle)
        return SODET_OK;
    discard(p);
    return bind(p, err);
}

static sodet_status locate(sd_program *p, sodet_value v, const char *name, const char *what, uint64_t elements, const sodet_shape **shape,
                           void **at, sodet_err *err)
{
    *at = NULL;
    if (!v.id)
        return SODET_FAIL(err, SODET_E_INTERNAL, "the program has no %s \"%s\"", what, name);
    *shape = &sodet_graph_value(p->graph, v)->shape;
    char text[64];
    if ((uint64_t)sodet_elements(*shape) != elements)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s \"%s\" is %s, %llu elements were given", what, name, sd_shape_text(*shape, text),
                          (unsigned long long)elements);
    sodet_status s = bound(p, err);
    if (s == SODET_OK && !(*at = p->replica->ops->address(p->handle, v)))
        s = SODET_FAIL(err, SODET_E_INTERNAL, "the backend has no address for %s \"%s\"", what, name);
    return s;
}

sodet_status sd_program_write(sd_program *p, const char *input, const void *data, uint64_t elements, sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(p, sd_graph_find_input(p->graph, input), input, "input", elements, &shape, &at, err);
    if (s != SODET_OK)
        return s;
    if (shape->dtype == SODET_F32)
        return sd_replica_upload_reals(p->replica, at, 0, elements, data, err);
    return p->replica->ops->upload(p->replica->device, at, 0, data, elements * sizeof(int32_t), err);
}

sodet_status sd_program_write_bytes(sd_program *p, const char *input, uint64_t first, const void *data, uint64_t bytes, sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    sodet_value v = sd_graph_find_input(p->graph, input);
    uint64_t elements = v.id ? (uint64_t)sodet_elements(&sodet_graph_value(p->graph, v)->shape) : 0;
    if (!bytes)
        return SODET_OK;
    sodet_status s = locate(p, v, input, "input", elements, &shape, &at, err);
    if (s == SODET_OK && (shape->dtype != SODET_I32 || first > elements * 4 || bytes > elements * 4 - first))
        s = SODET_FAIL(err, SODET_E_INTERNAL, "bytes [%llu, %llu) of input \"%s\", which has %llu int32", (unsigned long long)first,
                       (unsigned long long)(first + bytes), input, (unsigned long long)elements);
    return s == SODET_OK ? p->replica->ops->upload(p->replica->device, at, first, data, bytes, err) : s;
}

sodet_status sd_program_decode(sd_program *p, const char *input, uint64_t from, uint32_t n, const sodet_coded *pictures, uint32_t *failed,
                               sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    const sodet_value v = sd_graph_find_input(p->graph, input);
    const uint64_t elements = v.id ? (uint64_t)sodet_elements(&sodet_graph_value(p->graph, v)->shape) : 0, room = elements * 4;
    *failed = UINT32_MAX;
    if (!p->replica->ops->decode)
        return SODET_FAIL(err, SODET_E_INTERNAL, "%s has no decoder for pictures", p->replica->name);
    sodet_status s = locate(p, v, input, "input", elements, &shape, &at, err);
    for (uint32_t i = 0; s == SODET_OK && i < n; i++) {
        const sodet_coded *x = &pictures[i];
        const uint64_t bytes = (uint64_t)x->width * x->height * 3, first = x->offset - from;
        if (shape->dtype != SODET_I32 || x->offset < from || first > room || bytes > room - first)
            s = SODET_FAIL(err, SODET_E_INTERNAL, "a picture of %ux%u at byte %llu of input \"%s\", which has %llu", x->width, x->height,
                           (unsigned long long)first, input, (unsigned long long)room);
    }
    return s == SODET_OK ? p->replica->ops->decode(p->replica->device, n, pictures, at, from, failed, err) : s;
}

sodet_status sd_program_read(sd_program *p, const char *output, void *to, uint64_t elements, sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(p, sd_graph_find_output(p->graph, output), output, "output", elements, &shape, &at, err);
    if (s != SODET_OK)
        return s;
    if (shape->dtype == SODET_F32)
        return sd_replica_download_reals(p->replica, at, 0, elements, to, err);
    return p->replica->ops->download(p->replica->device, at, 0, to, elements * sizeof(int32_t), err);
}

sodet_status sd_program_take(sd_program *p, const char *input, uint64_t first, const void *from, uint64_t from_first, uint64_t n,
                             sodet_err *err)
{
    const sodet_value v = sd_graph_find_input(p->graph, input);
    const uint64_t all = v.id ? (uint64_t)sodet_elements(&sodet_graph_value(p->graph, v)->shape) : 0, real = p->replica->real_size;
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(p, v, input, "input", all, &shape, &at, err);
    if (s == SODET_OK && (first > all || n > all - first))
        s = SODET_FAIL(err, SODET_E_INTERNAL, "input \"%s\" has no elements %llu to %llu", input, (unsigned long long)first,
                       (unsigned long long)(first + n));
    return s == SODET_OK ? sd_replica_copy(p->replica, at, first * real, from, from_first * real, n * real, err) : s;
}

sodet_status sd_program_pass(sd_program *from, const char *output, sd_program *p, const char *input, uint64_t first, uint64_t n,
                             sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(from, sd_graph_find_output(from->graph, output), output, "output", n, &shape, &at, err);
    return s == SODET_OK ? sd_program_take(p, input, first, at, 0, n, err) : s;
}

sodet_status sd_program_give(sd_program *p, const char *input, void *to, uint64_t to_first, uint64_t n, sodet_err *err)
{
    const uint64_t real = p->replica->real_size;
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(p, sd_graph_find_input(p->graph, input), input, "input", n, &shape, &at, err);
    return s == SODET_OK ? sd_replica_copy(p->replica, to, to_first * real, at, 0, n * real, err) : s;
}

bool sd_replica_fetches(const sd_replica *r, uint64_t elements)
{
    return r->ops->fetch && elements * sizeof(float) <= SODET_FETCH_BYTES;
}

sodet_status sd_program_fetch(sd_program *p, const char *output, uint32_t slot, uint64_t elements, sodet_err *err)
{
    const sodet_shape *shape;
    void *at;
    sodet_status s = locate(p, sd_graph_find_output(p->graph, output), output, "output", elements, &shape, &at, err);
    return s == SODET_OK && sd_replica_fetches(p->replica, elements)
               ? p->replica->ops->fetch(p->replica->device, slot, at, 0, elements * p->replica->real_size, err)
               : s;
}

sodet_status sd_program_fetched(sd_program *p, const char *output, uint32_t slot, float *to, uint64_t elements, sodet_err *err)
{
    if (!sd_replica_fetches(p->replica, elements))
        return sd_program_read(p, output, to, elements, err);
    if (p->replica->real_size != sizeof *to)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "results that are read later are float32");
    return p->replica->ops->fetched(p->replica->device, slot, to, elements * sizeof *to, err);
}

bool sd_program_has_input(const sd_program *p, const char *name)
{
    return sd_graph_find_input(p->graph, name).id != 0;
}

bool sd_program_has_output(const sd_program *p, const char *name)
{
    return sd_graph_find_output(p->graph, name).id != 0;
}

sodet_status sd_program_run(sd_program *p, uint64_t seed, uint64_t step, double *node_seconds, sodet_err *err)
{
    sodet_status s = bound(p, err);
    if (s != SODET_OK)
        return s;
    sodet_run r = {.struct_size = sizeof r,
                   .flags = !p->ran || p->weights != p->replica->weights ? SODET_RUN_WEIGHTS_CHANGED : 0,
                   .seed = seed,
                   .step = step,
                   .node_seconds = node_seconds};
    s = p->replica->ops->run(p->handle, &r, err);
    p->ran = s == SODET_OK;
    p->weights = p->replica->weights;
    return s;
}

sodet_status sd_program_wait(sd_program *p, sodet_err *err)
{
    char first[4];
    for (uint32_t v = 1; v <= sodet_graph_value_count(p->graph); v++) {
        const sodet_value_info *info = sodet_graph_value(p->graph, (sodet_value){v});
        const void *at = info->is_output && sodet_elements(&info->shape) ? p->replica->ops->address(p->handle, (sodet_value){v}) : NULL;
        if (at)
            return p->replica->ops->download(p->replica->device, at, 0, first, sizeof first, err);
    }
    return SODET_OK;
}

/* ---- the programs of a run ---- */
typedef struct entry {
    sd_program_key key;
    sd_program *program;
    sodet_graph *graph; /* between its making here and sd_program_make on the device's thread */
    uint64_t used;
} entry;

typedef struct device_entries {
    entry *entries;
    uint64_t n, capacity;
    sd_program *evicted;
    uint64_t wanted; /* index of the entry this call is about */
} device_entries;

struct sd_programs {
    sd_programs_config config;
    uint64_t clock;
    device_entries *device;
};

sodet_status sd_programs_create(const sd_programs_config *config, sd_programs **out, sodet_err *err)
{
    *out = NULL;
    sd_programs *s = sd_alloc(1, sizeof *s);
    if (s)
        s->device = sd_alloc(sd_device_pool_count(config->pool), sizeof *s->device);
    if (!s || !s->device) {
        sd_free(s);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the programs");
    }
    s->config = *config;
    if (!s->config.keep)
        s->config.keep = 16;
    *out = s;
    return SODET_OK;
}

static sodet_status free_all(sd_replica *r, void *context, sodet_err *err)
{
    (void)err;
    sd_programs *s = context;
    device_entries *d = &s->device[r->index];
    for (uint64_t i = 0; i < d->n; i++)
        sd_program_free(d->entries[i].program);
    sd_program_free(d->evicted);
    d->n = 0;
    d->evicted = NULL;
    return SODET_OK;
}

void sd_programs_free(sd_programs *s)
{
    if (!s)
        return;
    uint32_t n = sd_device_pool_count(s->config.pool);
    /* A broken pool runs no job any more; its threads are idle, so the programs can be freed from here. */
    if (sd_device_pool_run(s->config.pool, free_all, s, NULL) != SODET_OK)
        for (uint32_t i = 0; i < n; i++)
            free_all(sd_device_pool_replica(s->config.pool, i), s, NULL);
    for (uint32_t i = 0; i < n; i++)
        sd_free(s->device[i].entries);
    sd_free(s->device);
    sd_free(s);
}

static bool same_key(const sd_program_key *a, const sd_program_key *b)
{
    return a->mode == b->mode && a->height == b->height && a->width == b->width && a->batch == b->batch &&
           a->picture_bytes == b->picture_bytes;
}

static sodet_status find_or_build(sd_programs *s, device_entries *d, const sd_program_key *key, bool *fresh, sodet_err *err)
{
    for (uint64_t i = 0; i < d->n; i++)
        if (same_key(&d->entries[i].key, key)) {
            d->wanted = i;
            d->entries[i].used = s->clock;
            return SODET_OK;
        }
    *fresh = true;
    uint64_t at = d->n;
    sodet_status status = SODET_OK;
    if (d->n < s->config.keep) {
        status = sd_grow(&d->entries, &d->capacity, d->n + 1, sizeof *d->entries, err);
    } else {
        at = 0;
        for (uint64_t i = 1; i < d->n; i++)
            if (d->entries[i].used < d->entries[at].used)
                at = i;
    }
    sodet_graph *g = NULL;
    if (status == SODET_OK)
        status = s->config.build(s->config.context, key, &g, err);
    if (status != SODET_OK)
        return status;
    if (at == d->n)
        d->n++;
    else
        d->evicted = d->entries[at].program;
    d->entries[at] = (entry){.key = *key, .graph = g, .used = s->clock};
    d->wanted = at;
    return SODET_OK;
}

static sodet_status make_missing(sd_replica *r, void *context, sodet_err *err)
{
    sd_programs *s = context;
    device_entries *d = &s->device[r->index];
    sd_program_free(d->evicted);
    d->evicted = NULL;
    entry *e = &d->entries[d->wanted];
    if (e->program)
        return SODET_OK;
    sodet_graph *g = e->graph;
    e->graph = NULL;
    return sd_program_make(r, g, s->config.param_arena, &e->program, err);
}

/* Entries whose program could not be made go. */
static void drop_unmade(device_entries *d)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < d->n; i++) {
        if (d->entries[i].program)
            d->entries[kept++] = d->entries[i];
        else
            sd_graph_free(d->entries[i].graph);
    }
    d->n = kept;
}

sodet_status sd_programs_get(sd_programs *s, const sd_program_key *keys, sd_program **out, sodet_err *err)
{
    uint32_t n = sd_device_pool_count(s->config.pool);
    bool fresh = false;
    sodet_status status = SODET_OK;
    s->clock++;
    for (uint32_t i = 0; i < n; i++)
        out[i] = NULL;
    for (uint32_t i = 0; status == SODET_OK && i < n; i++)
        status = find_or_build(s, &s->device[i], &keys[i], &fresh, err);
    if (status == SODET_OK && fresh)
        status = sd_device_pool_run(s->config.pool, make_missing, s, err);
    if (status != SODET_OK) {
        for (uint32_t i = 0; i < n; i++)
            drop_unmade(&s->device[i]);
        return status;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = s->device[i].entries[s->device[i].wanted].program;
    return SODET_OK;
}
