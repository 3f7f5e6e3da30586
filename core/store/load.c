/* From the tensors of a file to those of a caller: all of them or an error, or those that fit and a list of the rest. */
#include "core/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_shape(const sd_tensor *a, const sd_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- all or nothing ---- */
/* Where a file does not fit: the first reason, and how many. */
typedef struct misfit {
    char first[400];
    uint64_t n;
} misfit;

static void add_misfit(misfit *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_misfit(misfit *m, const char *format, ...)
{
    if (m->n++)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(m->first, sizeof m->first, format, list);
    va_end(list);
}

static void check_target(const sd_checkpoint *c, const sd_tensor *t, bool *wanted, misfit *m)
{
    char a[200], b[200];
    const sd_tensor *f = sd_checkpoint_find(c, t->name);
    if (!f) {
        add_misfit(m, "\"%s\" is not in it", t->name);
        return;
    }
    wanted[f - c->tensors] = true;
    if (f->type != t->type)
        add_misfit(m, "\"%s\" is %s in it, %s here", t->name, sd_tensor_type_name(f->type), sd_tensor_type_name(t->type));
    else if (!same_shape(f, t))
        add_misfit(m, "\"%s\" is %s in it, %s here", t->name, sd_store_shape(a, f->rank, f->dims), sd_store_shape(b, t->rank, t->dims));
}

static sodet_status check_targets(const sd_checkpoint *c, const sd_tensor *targets, uint64_t n, const char *prefix, sodet_err *err)
{
    misfit m = {.n = 0};
    bool *wanted = sd_alloc(c->n + 1, sizeof *wanted);
    if (!wanted)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to load it", c->path);
    for (uint64_t i = 0; i < n; i++)
        check_target(c, &targets[i], wanted, &m);
    for (uint64_t i = 0; prefix && i < c->n; i++)
        if (!wanted[i] && begins(c->tensors[i].name, prefix))
            add_misfit(&m, "\"%s\" of it has no place here", c->tensors[i].name);
    sd_free(wanted);
    if (m.n == 0)
        return SODET_OK;
    if (m.n == 1)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: does not fit: %s", c->path, m.first);
    return SODET_FAIL(err, SODET_E_INVALID, "%s: does not fit: %s, and %llu more", c->path, m.first, (unsigned long long)(m.n - 1));
}

static uint64_t largest_of(const sd_tensor *t, uint64_t n)
{
    uint64_t largest = 0;
    for (uint64_t i = 0; i < n; i++)
        largest = sd_tensor_bytes(&t[i]) > largest ? sd_tensor_bytes(&t[i]) : largest;
    return largest;
}

sodet_status sd_checkpoint_load(sd_checkpoint *c, const sd_tensor *targets, uint64_t n, const char *prefix, sd_put put, void *context,
                                sodet_err *err)
{
    sodet_status s = check_targets(c, targets, n, prefix, err);
    if (s != SODET_OK)
        return s;
    void *buffer = NULL;
    for (uint64_t i = 0; i < n && s == SODET_OK; i++) {
        const sd_tensor *t = &targets[i], *f = sd_checkpoint_find(c, t->name);
        if (!t->data && !buffer && !(buffer = sd_alloc(largest_of(targets, n) + 1, 1)))
            s = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to load it", c->path);
        if (s == SODET_OK)
            s = sd_checkpoint_read(c, f, t->data ? t->data : buffer, err);
        if (s == SODET_OK && !t->data)
            s = put(context, i, buffer, err);
    }
    sd_free(buffer);
    return s;
}

/* ---- what fits ---- */
static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu, bits;
    float f;
    if (exponent == 0) { /* zero and the subnormals: fraction * 2^-24 */
        f = (float)fraction / 16777216.0f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    } else
        bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    memcpy(&f, &bits, 4);
    return f;
}

/* In place: 16-bit values at the buffer's beginning become float32, from the back; doubles from the front. */
static void to_float(void *buffer, uint64_t n, uint32_t type)
{
    unsigned char *p = buffer;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t i = type == SD_F64 ? k : n - 1 - k;
        uint16_t h;
        float f;
        double d;
        memcpy(&h, p + 2 * i, 2);
        if (type == SD_F64) {
            memcpy(&d, p + 8 * i, 8);
            f = (float)d;
        } else if (type == SD_BF16) {
            uint32_t bits = (uint32_t)h << 16;
            memcpy(&f, &bits, 4);
        } else
            f = from_half(h);
        memcpy(p + 4 * i, &f, 4);
    }
}

/* to's axis k is from's axis axes[k]; to->dims are the new sizes. */
static void permute(const sd_tensor *to_shape, const uint64_t *from_dims, const uint8_t *axes, uint32_t size, const unsigned char *from,
                    unsigned char *to)
{
    uint32_t rank = to_shape->rank;
    uint64_t stride[SD_TENSOR_RANK], of[SD_TENSOR_RANK], at[SD_TENSOR_RANK] = {0}, place = 0, n = sd_tensor_count(to_shape);
    for (uint32_t k = rank; k-- > 0;)
        of[k] = k + 1 == rank ? size : of[k + 1] * from_dims[k + 1];
    for (uint32_t k = 0; k < rank; k++)
        stride[k] = of[axes[k]];
    for (uint64_t i = 0; i < n; i++, to += size) {
        memcpy(to, from + place, size);
        for (uint32_t k = rank; k-- > 0;) {
            place += stride[k];
            if (++at[k] < to_shape->dims[k])
                break;
            place -= stride[k] * to_shape->dims[k];
            at[k] = 0;
        }
    }
}

/* A tensor of the file under the name that it has here. */
typedef struct source {
    const char *ours; /* NULL: not offered, and why says why */
    const char *why;
    sd_map_hit hit;
    bool used;
} source;

typedef struct partial {
    sd_checkpoint *c;
    const sd_tensor *targets;
    uint64_t n;
    const sd_load_rule *rule;
    sd_load_report *report;
    source *sources;
    uint64_t *order, n_offered; /* sources that have a name here, sorted by it */
    void *buffer, *turned;
    sodet_err *err;
} partial;

static int by_ours(const void *a, const void *b, void *sources)
{
    const source *s = sources;
    return strcmp(s[*(const uint64_t *)a].ours, s[*(const uint64_t *)b].ours);
}

static sodet_status no_memory(const partial *p)
{
    return SODET_FAIL(p->err, SODET_E_MEMORY, "%s: no memory to load it", p->c->path);
}

static sodet_status name_sources(partial *p)
{
    const sd_load_rule *rule = p->rule;
    sd_pool *pool = &p->report->strings;
    for (uint64_t i = 0; i < p->c->n; i++) {
        source *s = &p->sources[i];
        const char *name = p->c->tensors[i].name;
        if (rule->prefix && !begins(name, rule->prefix)) {
            s->why = sd_pool_printf(pool, "does not begin with \"%s\"", rule->prefix);
            continue;
        }
        name += rule->prefix ? strlen(rule->prefix) : 0;
        int found = rule->map ? sd_name_map_find(rule->map, name, pool, &s->hit) : SD_MAP_HIT;
        if (found == SD_MAP_NO_MEMORY)
            return no_memory(p);
        if (found == SD_MAP_LEFT_OUT)
            s->why = sd_pool_printf(pool, "left out by %s:%llu", sd_name_map_where(rule->map), (unsigned long long)s->hit.line);
        else if (found == SD_MAP_NO_LINE)
            s->why = sd_pool_printf(pool, "no line of %s names it", sd_name_map_where(rule->map));
        else {
            s->ours = rule->map ? s->hit.ours : name;
            p->order[p->n_offered++] = i;
        }
    }
    if (p->n_offered > 1)
        qsort_r(p->order, p->n_offered, sizeof *p->order, by_ours, p->sources);
    for (uint64_t i = 1; i < p->n_offered; i++) {
        uint64_t a = p->order[i - 1], b = p->order[i];
        if (strcmp(p->sources[a].ours, p->sources[b].ours) == 0)
            return SODET_FAIL(p->err, SODET_E_INVALID, "%s: both \"%s\" and \"%s\" of it would become \"%s\"; correct the name map",
                              p->c->path, p->c->tensors[a].name, p->c->tensors[b].name, p->sources[a].ours);
    }
    return SODET_OK;
}

static source *find_source(const partial *p, const char *ours)
{
    uint64_t lo = 0, hi = p->n_offered;
    while (lo < hi) {
        uint64_t mid = (lo + hi) / 2;
        source *s = &p->sources[p->order[mid]];
        int order = strcmp(s->ours, ours);
        if (order == 0)
            return s;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool chosen(const sd_load_rule *rule, const char *name)
{
    bool in = !rule->include;
    for (uint64_t i = 0; i < rule->n_include && !in; i++)
        in = sd_glob(rule->include[i], name);
    for (uint64_t i = 0; i < rule->n_exclude && in; i++)
        in = !sd_glob(rule->exclude[i], name);
    return in;
}

static sodet_status add_entry(partial *p, uint32_t state, const char *name, const char *from, const char *why)
{
    sd_load_report *r = p->report;
    sodet_status s = sd_grow(&r->entries, &r->capacity, r->n + 1, sizeof *r->entries, p->err);
    if (s != SODET_OK)
        return s;
    sd_load_entry *e = &r->entries[r->n++];
    *e = (sd_load_entry){.state = state,
                         .name = name ? sd_pool_strdup(&r->strings, name) : NULL,
                         .source = from ? sd_pool_strdup(&r->strings, from) : NULL,
                         .why = why ? sd_pool_strdup(&r->strings, why) : ""};
    r->taken += state == SD_TAKEN;
    r->skipped += state != SD_TAKEN && state != SD_SKIP_UNUSED;
    return (name && !e->name) || (from && !e->source) || (why && !e->why) ? no_memory(p) : SODET_OK;
}

/* The shape that the source has after the map's changes; false: a change that it cannot undergo. axes: as permute takes them. */
static bool shape_after(const sd_tensor *f, const source *s, const sd_tensor *target, sd_tensor *shape, uint8_t axes[SD_TENSOR_RANK])
{
    *shape = *f;
    if (s->hit.flags & SD_MAP_RESHAPE && sd_tensor_count(f) == sd_tensor_count(target)) {
        shape->rank = target->rank;
        memcpy(shape->dims, target->dims, sizeof shape->dims);
    }
    if (!(s->hit.flags & SD_MAP_TRANSPOSE))
        return true;
    if (f->rank != (s->hit.n_axes ? s->hit.n_axes : 2))
        return false;
    for (uint32_t k = 0; k < f->rank; k++) {
        axes[k] = s->hit.n_axes ? s->hit.axes[k] : (uint8_t)(1 - k);
        shape->dims[k] = f->dims[axes[k]];
    }
    return true;
}

/* Reads source i as the target wants it; result in *values. */
static sodet_status read_source(partial *p, const sd_tensor *f, const sd_tensor *shape, const source *s, const uint8_t *axes,
                                const sd_tensor *target, const void **values)
{
    sodet_status status = sd_checkpoint_read(p->c, f, p->buffer, p->err);
    if (status != SODET_OK)
        return status;
    if (f->type != target->type)
        to_float(p->buffer, sd_tensor_count(f), f->type);
    *values = p->buffer;
    if (s->hit.flags & SD_MAP_TRANSPOSE) {
        permute(shape, f->dims, axes, sd_tensor_type_size(target->type), p->buffer, p->turned);
        *values = p->turned;
    }
    return SODET_OK;
}

static sodet_status take(partial *p, uint64_t i, sd_put put, void *context)
{
    const sd_tensor *t = &p->targets[i];
    char why[500], a[200], b[200];
    if (!chosen(p->rule, t->name))
        return add_entry(p, SD_SKIP_PATTERN, t->name, NULL, "left out by the patterns");
    source *s = find_source(p, t->name);
    if (!s)
        return add_entry(p, SD_SKIP_MISSING, t->name, NULL, "not in the file");
    const sd_tensor *f = &p->c->tensors[s - p->sources];
    sd_tensor shape;
    uint8_t axes[SD_TENSOR_RANK];
    s->used = true;
    if (f->type != t->type && !(t->type == SD_F32 && (f->type == SD_F16 || f->type == SD_BF16 || f->type == SD_F64))) {
        snprintf(why, sizeof why, "%s in the file, %s here", sd_tensor_type_name(f->type), sd_tensor_type_name(t->type));
        return add_entry(p, SD_SKIP_TYPE, t->name, f->name, why);
    }
    if (!shape_after(f, s, t, &shape, axes)) {
        snprintf(why, sizeof why, "%s in the file cannot be transposed as the map says", sd_store_shape(a, f->rank, f->dims));
        return add_entry(p, SD_SKIP_SHAPE, t->name, f->name, why);
    }
    if (!same_shape(&shape, t)) {
        snprintf(why, sizeof why, "%s in the file%s, %s here", sd_store_shape(a, shape.rank, shape.dims),
                 s->hit.flags & SD_MAP_TRANSPOSE ? " (transposed)" : "", sd_store_shape(b, t->rank, t->dims));
        return add_entry(p, SD_SKIP_SHAPE, t->name, f->name, why);
    }
    const void *values;
    sodet_status status = read_source(p, f, &shape, s, axes, t, &values);
    if (status == SODET_OK && t->data)
        memcpy(t->data, values, sd_tensor_bytes(t));
    else if (status == SODET_OK)
        status = put(context, i, values, p->err);
    return status == SODET_OK ? add_entry(p, SD_TAKEN, t->name, f->name, NULL) : status;
}

static sodet_status list_unused(partial *p)
{
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < p->c->n && s == SODET_OK; i++) {
        const source *x = &p->sources[i];
        if (x->used)
            continue;
        const char *why = x->why;
        if (!why)
            why = chosen(p->rule, x->ours) ? "nothing here has this name" : "left out by the patterns";
        s = add_entry(p, SD_SKIP_UNUSED, NULL, p->c->tensors[i].name, why);
    }
    return s;
}

static sodet_status judge(const partial *p)
{
    const sd_load_report *r = p->report;
    const sd_load_entry *first = NULL;
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->n; i++)
        if (r->entries[i].state != SD_TAKEN && r->entries[i].state != SD_SKIP_UNUSED && r->entries[i].state != SD_SKIP_PATTERN && n++ == 0)
            first = &r->entries[i];
    if (r->taken == 0)
        return SODET_FAIL(p->err, SODET_E_INVALID,
                          "%s: nothing in it fits%s%s%s%s; see its names by `sodet import --list`, or give a name map", p->c->path,
                          first ? ": \"" : "", first ? first->name : "", first ? "\": " : "", first ? first->why : "");
    if (!p->rule->exact)
        return SODET_OK;
    if (n)
        return SODET_FAIL(p->err, SODET_E_INVALID, "%s: \"%s\": %s; %llu of %llu tensors are missing or differ", p->c->path, first->name,
                          first->why, (unsigned long long)n, (unsigned long long)p->n);
    return SODET_OK;
}

sodet_status sd_checkpoint_load_partial(sd_checkpoint *c, const sd_tensor *targets, uint64_t n, const sd_load_rule *rule, sd_put put,
                                        void *context, sd_load_report *report, sodet_err *err)
{
    *report = (sd_load_report){.n = 0};
    partial p = {.c = c, .targets = targets, .n = n, .rule = rule, .report = report, .err = err};
    uint64_t largest = 2 * largest_of(targets, n) + 8; /* a double for a float */
    p.sources = sd_alloc(c->n + 1, sizeof *p.sources);
    p.order = sd_alloc(c->n + 1, sizeof *p.order);
    p.buffer = sd_alloc(largest, 1);
    p.turned = sd_alloc(largest, 1);
    sodet_status s = p.sources && p.order && p.buffer && p.turned ? SODET_OK : no_memory(&p);
    if (s == SODET_OK)
        s = name_sources(&p);
    for (uint64_t i = 0; i < n && s == SODET_OK; i++)
        s = take(&p, i, put, context);
    if (s == SODET_OK)
        s = list_unused(&p);
    if (s == SODET_OK)
        s = judge(&p);
    sd_free(p.sources);
    sd_free(p.order);
    sd_free(p.buffer);
    sd_free(p.turned);
    return s;
}

void sd_load_report_free(sd_load_report *r)
{
    sd_free(r->entries);
    sd_pool_clear(&r->strings);
    *r = (sd_load_report){.n = 0};
}

void sd_load_report_print(const sd_load_report *r, bool only_skipped, sd_text *t)
{
    for (uint64_t i = 0; i < r->n; i++) {
        const sd_load_entry *e = &r->entries[i];
        if (e->state == SD_TAKEN && only_skipped)
            continue;
        if (e->state == SD_TAKEN)
            sd_text_printf(t, "taken    %s <- %s\n", e->name, e->source);
        else if (e->state == SD_SKIP_UNUSED)
            sd_text_printf(t, "unused   %s: %s\n", e->source, e->why);
        else
            sd_text_printf(t, "skipped  %s: %s\n", e->name, e->why);
    }
}
