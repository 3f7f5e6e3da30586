/* The state of a run in a checkpoint. */
#include "core/train/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void sd_train_state_init(sd_train_state *s)
{
    memset(s, 0, sizeof *s);
    s->best = NAN;
}

/* ---- numbers ---- */
typedef struct number {
    const char *key;
    bool real;
    size_t offset;
} number;
#define WHOLE(field)                                                                                                                       \
    {                                                                                                                                      \
        "state/" #field, false, offsetof(sd_train_state, field)                                                                            \
    }
#define REAL(field)                                                                                                                        \
    {                                                                                                                                      \
        "state/" #field, true, offsetof(sd_train_state, field)                                                                             \
    }
static const number numbers[] = {
    WHOLE(step),         WHOLE(epoch),        WHOLE(batch),         WHOLE(samples),         WHOLE(boundary),           WHOLE(evaluations),
    WHOLE(stale),        REAL(best),          WHOLE(best_epoch),    REAL(loss_sum),         REAL(loss_count),          REAL(normaliser),
    WHOLE(plateau.seen), REAL(plateau.best),  WHOLE(plateau.bad),   WHOLE(plateau.cooling), WHOLE(plateau.reductions), REAL(scale.factor),
    WHOLE(scale.good),   WHOLE(scale.in_row), WHOLE(scale.skipped),
};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static char *number_text(sd_pool *pool, const number *n, const sd_train_state *s)
{
    const char *at = (const char *)s + n->offset;
    if (n->real) {
        double v;
        memcpy(&v, at, sizeof v);
        return isnan(v) ? sd_pool_strdup(pool, "none") : sd_pool_printf(pool, "%.17g", v);
    }
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return sd_pool_printf(pool, "%" PRIu64, v);
}

static sodet_status read_number(const sd_checkpoint *c, const number *n, sd_train_state *s, sodet_err *err)
{
    const char *text = sd_checkpoint_meta(c, n->key);
    char *at = (char *)s + n->offset;
    double v = NAN;
    uint64_t u = 0;
    bool good = text && (n->real ? !strcmp(text, "none") || sd_parse_double(text, &v) : sd_parse_uint64(text, &u));
    if (!good)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is %s%s%s; the file cannot be resumed by this version", sd_checkpoint_path(c),
                          n->key, text ? "\"" : "", text ? text : "missing", text ? "\"" : "");
    if (n->real)
        memcpy(at, &v, sizeof v);
    else
        memcpy(at, &u, sizeof u);
    return SODET_OK;
}

/* ---- tensors ---- */
typedef struct place {
    uint32_t arena;
    uint64_t offset, n;
} place;

typedef struct table {
    sd_pool strings;
    sd_tensor *tensors;
    place *places;
    uint64_t n;
    sd_meta *meta;
    uint64_t n_meta;
    sd_device_pool *pool;
    uint32_t real_size;
    float *narrow; /* converted values on their way to a file of weights */
    bool weights;
    bool failed;
} table;

static void table_free(table *t)
{
    sd_free(t->tensors);
    sd_free(t->places);
    sd_free(t->meta);
    sd_pool_clear(&t->strings);
}

static void add_tensor(table *t, const char *prefix, const sd_segment *g, uint32_t arena)
{
    sd_tensor *x = &t->tensors[t->n];
    x->name = *prefix ? sd_pool_printf(&t->strings, "%s%s", prefix, g->name) : g->name;
    x->type = t->real_size == sizeof(double) && !t->weights ? SD_F64 : SD_F32;
    x->rank = g->shape.rank;
    for (uint32_t i = 0; i < x->rank; i++)
        x->dims[i] = (uint64_t)g->shape.dim[i];
    t->places[t->n++] = (place){arena, g->offset, g->n};
    t->failed |= !x->name;
}

static void add_meta(table *t, const char *key, const char *value)
{
    t->meta[t->n_meta++] = (sd_meta){key, value};
    t->failed |= !value;
}

/* Tensors of a run (weights: of what inference needs), in the order of the segments. */
static sodet_status list_tensors(const sd_run_facts *f, bool weights, table *t, sodet_err *err)
{
    uint64_t most = (uint64_t)f->segments->n * (2 + SODET_MAX_STATE);
    memset(t, 0, sizeof *t);
    t->pool = f->pool;
    t->weights = weights;
    t->real_size = sd_device_pool_replica(f->pool, 0)->real_size;
    t->tensors = sd_alloc((size_t)most, sizeof *t->tensors);
    t->places = sd_alloc((size_t)most, sizeof *t->places);
    t->meta = sd_alloc(16 + N_NUMBERS, sizeof *t->meta);
    if (!t->tensors || !t->places || !t->meta) {
        table_free(t);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of a checkpoint's tensors");
    }
    for (uint32_t i = 0; i < f->segments->n; i++) {
        const sd_segment *g = &f->segments->segment[i];
        uint32_t arena = g->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM;
        if (weights && !g->frozen && f->ema_slot != UINT32_MAX)
            arena = SD_ARENA_STATE + f->ema_slot;
        add_tensor(t, "", g, arena);
        for (uint32_t k = 0; !weights && !g->frozen && k < f->n_slots; k++) {
            char prefix[64];
            if (k == f->ema_slot)
                snprintf(prefix, sizeof prefix, "ema/");
            else
                snprintf(prefix, sizeof prefix, "optimizer/%s/", f->slot_names[k]);
            add_tensor(t, prefix, g, SD_ARENA_STATE + k);
        }
    }
    if (t->failed) {
        table_free(t);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of a checkpoint's tensors");
    }
    return SODET_OK;
}

static sodet_status fetch(void *context, uint64_t index, void *to, sodet_err *err)
{
    const table *t = context;
    const place *p = &t->places[index];
    return t->weights ? sd_device_pool_read(t->pool, p->arena, p->offset, p->n, to, err)
                      : sd_device_pool_read_raw(t->pool, p->arena, p->offset, p->n, to, err);
}

static sodet_status put(void *context, uint64_t index, const void *from, sodet_err *err)
{
    const table *t = context;
    const place *p = &t->places[index];
    return sd_device_pool_write_raw(t->pool, p->arena, p->offset, p->n, from, err);
}

/* ---- saving ---- */
static char *reals(sd_pool *pool, const sodet_double_list *l)
{
    sd_text t = {0};
    for (uint32_t i = 0; i < l->n; i++)
        sd_text_printf(&t, "%s%.17g", i ? " " : "", l->v[i]);
    char *out = t.failed ? NULL : sd_pool_strdup(pool, t.text ? t.text : "");
    sd_text_free(&t);
    return out;
}

static char *lines(sd_pool *pool, const sd_classes *c, bool categories)
{
    sd_text t = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        if (categories)
            sd_text_printf(&t, "%s%" PRId64, i ? "\n" : "", c->category_id[i]);
        else
            sd_text_printf(&t, "%s%s", i ? "\n" : "", c->names[i]);
    }
    char *out = t.failed ? NULL : sd_pool_strdup(pool, t.text ? t.text : "");
    sd_text_free(&t);
    return out;
}

static char *plugin_list(const sd_run_facts *f, sd_pool *pool)
{
    sd_text t = {0};
    for (uint32_t kind = SODET_KIND_BACKBONE; kind <= SODET_KIND_LOSS; kind++) {
        const sd_instance *i = sd_model_part(f->model, kind);
        if (i && i->plugin)
            sd_text_printf(&t, "%s%s %s %u.%u", t.length ? "\n" : "", sd_kind_name(kind), i->plugin->desc.name, i->plugin->desc.abi_major,
                           i->plugin->desc.abi_minor);
    }
    char *out = t.failed ? NULL : sd_pool_strdup(pool, t.text ? t.text : "");
    sd_text_free(&t);
    return out;
}

/* Everything of the table of strings but the numbers. ini is the caller's to free, after writing. */
static void add_facts(table *t, const sd_run_facts *f, const char *kind, sd_text *ini)
{
    const sd_input_cfg *input = &sd_config_core(f->cfg)->input;
    static const char *const channels[] = {"rgb", "bgr", "grey"};
    sd_config_write(f->cfg, false, ini);
    add_meta(t, "kind", kind);
    add_meta(t, "config", ini->failed ? NULL : ini->text ? ini->text : "");
    add_meta(t, "classes", lines(&t->strings, f->classes, false));
    add_meta(t, "categories", lines(&t->strings, f->classes, true));
    add_meta(t, "input/channels", channels[input->channels]);
    add_meta(t, "input/mean", reals(&t->strings, &input->mean));
    add_meta(t, "input/std", reals(&t->strings, &input->std));
    add_meta(t, "plugins", plugin_list(f, &t->strings));
    add_meta(t, "dataset", sd_pool_printf(&t->strings, "%016" PRIx64, f->fingerprint));
}

static sodet_status save(const sd_run_facts *f, const sd_train_state *s, bool weights, const char *path, sodet_err *err)
{
    table t;
    sodet_status status = list_tensors(f, weights, &t, err);
    if (status != SODET_OK)
        return status;
    sd_text ini = {0};
    add_facts(&t, f, weights ? "weights" : "run", &ini);
    for (uint32_t i = 0; i < N_NUMBERS; i++)
        add_meta(&t, numbers[i].key, number_text(&t.strings, &numbers[i], s));
    status = t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the table of a checkpoint")
                      : sd_checkpoint_write(path, t.tensors, t.n, t.meta, t.n_meta, fetch, &t, err);
    sd_text_free(&ini);
    table_free(&t);
    return status;
}

sodet_status sd_state_write_weights(const sd_run_facts *f, const sd_tensor *tensors, uint64_t n, const char *path, sodet_err *err)
{
    table t = {.meta = sd_alloc(16, sizeof *t.meta)};
    sd_text ini = {0};
    if (!t.meta)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the table of a checkpoint");
    add_facts(&t, f, "weights", &ini);
    sodet_status s = t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the table of a checkpoint")
                              : sd_checkpoint_write(path, tensors, n, t.meta, t.n_meta, NULL, NULL, err);
    sd_text_free(&ini);
    table_free(&t);
    return s;
}

sodet_status sd_state_save(const sd_run_facts *f, const sd_train_state *s, const char *path, sodet_err *err)
{
    return save(f, s, false, path, err);
}

sodet_status sd_state_save_weights(const sd_run_facts *f, const sd_train_state *s, const char *path, sodet_err *err)
{
    return save(f, s, true, path, err);
}

uint64_t sd_state_bytes(const sd_run_facts *f)
{
    table t;
    if (list_tensors(f, false, &t, NULL) != SODET_OK)
        return 0;
    uint64_t bytes = sd_checkpoint_bytes(t.tensors, t.n, NULL, 0) + 65536; /* the INI and the rest of the table */
    table_free(&t);
    return bytes;
}

/* ---- loading ---- */
static sodet_status same_classes(const sd_run_facts *f, const sd_checkpoint *c, sodet_err *err)
{
    sd_pool pool = {0};
    const char *theirs = sd_checkpoint_meta(c, "classes");
    const char *ours = lines(&pool, f->classes, false);
    sodet_status s = SODET_OK;
    if (!ours)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the class list");
    else if (!theirs || strcmp(theirs, ours) != 0) {
        char a[160], b[160];
        snprintf(a, sizeof a, "%s", theirs ? theirs : "(none)");
        snprintf(b, sizeof b, "%s", ours);
        for (char *q = a; *q; q++)
            *q = *q == '\n' ? ',' : *q;
        for (char *q = b; *q; q++)
            *q = *q == '\n' ? ',' : *q;
        s = SODET_FAIL(err, SODET_E_INVALID,
                       "%s was trained with the classes %s; this run has %s; to start from its weights with other classes, use run.init",
                       sd_checkpoint_path(c), a, b);
    }
    sd_pool_clear(&pool);
    return s;
}

sodet_status sd_state_position(const sd_checkpoint *c, sd_train_state *s, sodet_err *err)
{
    const char *path = sd_checkpoint_path(c), *kind = sd_checkpoint_meta(c, "kind");
    sd_train_state_init(s);
    if (!kind || strcmp(kind, "run") != 0)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s holds weights alone, no optimizer or position, so it cannot be resumed; to start a new run from it, use run.init", path);
    sodet_status status = SODET_OK;
    for (uint32_t i = 0; status == SODET_OK && i < N_NUMBERS; i++)
        status = read_number(c, &numbers[i], s, err);
    return status;
}

sodet_status sd_state_load(const sd_run_facts *f, sd_checkpoint *c, sd_train_state *s, sodet_err *err)
{
    const char *path = sd_checkpoint_path(c);
    sodet_status status = sd_state_position(c, s, err);
    if (status == SODET_OK)
        status = same_classes(f, c, err);
    if (status != SODET_OK)
        return status;
    char mine[24];
    snprintf(mine, sizeof mine, "%016" PRIx64, f->fingerprint);
    const char *theirs = sd_checkpoint_meta(c, "dataset");
    if (!theirs || strcmp(mine, theirs) != 0)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s was trained on other data (fingerprint %s, now %s): the images, boxes or classes of [data] train changed; to "
                          "go on with new "
                          "data, start a run with run.init",
                          path, theirs ? theirs : "none", mine);
    table t;
    status = list_tensors(f, false, &t, err);
    if (status != SODET_OK)
        return status;
    status = sd_checkpoint_load(c, t.tensors, t.n, "", put, &t, err);
    table_free(&t);
    return status;
}

sodet_status sd_state_load_weights(sd_device_pool *pool, const sd_segments *segments, sd_checkpoint *c, sodet_err *err)
{
    sd_pool strings = {0};
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < segments->n; i++) {
        const sd_segment *g = &segments->segment[i];
        const char *averaged = sd_pool_printf(&strings, "ema/%s", g->name);
        const sd_tensor *t = averaged ? sd_checkpoint_find(c, averaged) : NULL;
        if (!t)
            t = sd_checkpoint_find(c, g->name);
        if (!t) {
            s = SODET_FAIL(err, SODET_E_INVALID, "%s has no tensor \"%s\", which this network needs", sd_checkpoint_path(c), g->name);
            break;
        }
        bool same = t->rank == g->shape.rank && (t->type == SD_F32 || t->type == SD_F64);
        for (uint32_t k = 0; same && k < t->rank; k++)
            same = t->dims[k] == (uint64_t)g->shape.dim[k];
        char text[64];
        if (!same) {
            s = SODET_FAIL(err, SODET_E_INVALID, "%s: \"%s\" has another shape or type than the %s of this network", sd_checkpoint_path(c),
                           g->name, sd_shape_text(&g->shape, text));
            break;
        }
        float *narrow = sd_alloc((size_t)g->n, sizeof(double));
        s = narrow ? sd_checkpoint_read(c, t, narrow, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: \"%s\"", g->name);
        if (s == SODET_OK && t->type == SD_F64)
            for (uint64_t k = 0; k < g->n; k++) {
                double v; /* in place: element k's double begins at or behind its float */
                memcpy(&v, (const char *)narrow + k * sizeof v, sizeof v);
                narrow[k] = (float)v;
            }
        for (uint64_t k = 0; s == SODET_OK && k < g->n; k++)
            if (!isfinite(narrow[k]))
                s = SODET_FAIL(err, SODET_E_INVALID,
                               "%s: \"%s\" holds numbers that are not finite: its training went wrong; take an earlier checkpoint",
                               sd_checkpoint_path(c), t->name);
        if (s == SODET_OK)
            s = sd_device_pool_write(pool, g->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, g->offset, g->n, narrow, err);
        sd_free(narrow);
    }
    sd_pool_clear(&strings);
    return s;
}

/* ---- run.init ---- */
typedef struct init_context {
    sd_device_pool *pool;
    const sd_segments *segments;
} init_context;

static sodet_status put_initial(void *context, uint64_t index, const void *from, sodet_err *err)
{
    const init_context *x = context;
    const sd_segment *g = &x->segments->segment[index];
    return sd_device_pool_write(x->pool, g->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, g->offset, g->n, from, err);
}

sodet_status sd_state_init_from(sd_device_pool *pool, const sd_segments *segments, sd_checkpoint *c, sd_load_report *report, sodet_err *err)
{
    sd_tensor *targets = sd_alloc(segments->n, sizeof *targets);
    if (!targets)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of parameters");
    for (uint32_t i = 0; i < segments->n; i++) {
        const sd_segment *g = &segments->segment[i];
        targets[i] = (sd_tensor){.name = g->name, .type = SD_F32, .rank = g->shape.rank};
        for (uint32_t k = 0; k < g->shape.rank; k++)
            targets[i].dims[k] = (uint64_t)g->shape.dim[k];
    }
    /* Averaged weights are what the run was kept for. */
    bool averaged = false;
    for (uint64_t i = 0; i < sd_checkpoint_count(c) && !averaged; i++)
        averaged = !strncmp(sd_checkpoint_tensor(c, i)->name, "ema/", 4);
    sd_load_rule rule = {0};
    init_context x = {pool, segments};
    sodet_status s = sd_checkpoint_load_partial(c, targets, segments->n, &rule, put_initial, &x, report, err);
    if (s == SODET_OK && averaged) {
        sd_load_report second = {0};
        rule.prefix = "ema/";
        s = sd_checkpoint_load_partial(c, targets, segments->n, &rule, put_initial, &x, &second, err);
        sd_load_report_free(&second);
    }
    sd_free(targets);
    return s;
}

/* ---- what a checkpoint is about ---- */
sodet_status sd_state_classes(const sd_checkpoint *c, sd_pool *pool, const char *const **names, const int64_t **categories, uint32_t *n,
                              sodet_err *err)
{
    *n = 0;
    const char *given = sd_checkpoint_meta(c, "classes"), *ids = sd_checkpoint_meta(c, "categories");
    if (!given || !*given)
        return SODET_FAIL(err, SODET_E_INVALID, "%s names no classes; was it written by sodet?", sd_checkpoint_path(c));
    char *text = sd_pool_strdup(pool, given), *id = sd_pool_strdup(pool, ids ? ids : "");
    size_t most = 1;
    for (const char *q = given; *q; q++)
        most += *q == '\n';
    const char **list = sd_pool_alloc(pool, most * sizeof *list);
    int64_t *category = sd_pool_alloc(pool, most * sizeof *category);
    if (!text || !id || !list || !category)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the class list");
    for (char *q = text, *next; q; q = next) {
        if ((next = strchr(q, '\n')))
            *next++ = '\0';
        list[*n] = q;
        category[*n] = (int64_t)*n + 1;
        char *end = id ? strchr(id, '\n') : NULL;
        if (end)
            *end++ = '\0';
        if (id)
            sd_parse_int64(id, &category[*n]);
        id = end;
        (*n)++;
    }
    *names = list;
    if (categories)
        *categories = category;
    return SODET_OK;
}

sodet_status sd_state_config(const sd_checkpoint *c, const sd_override *overrides, uint64_t n, sd_config **out, sodet_err *err)
{
    *out = NULL;
    const char *ini = sd_checkpoint_meta(c, "config");
    if (!ini)
        return SODET_FAIL(err, SODET_E_INVALID, "%s holds no configuration; was it written by sodet?", sd_checkpoint_path(c));
    return sd_config_open_foreign(ini, strlen(ini), sd_checkpoint_path(c), overrides, n, out, err);
}
