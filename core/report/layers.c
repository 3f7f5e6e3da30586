#include "core/report/layers.h"

#include <string.h>

#include "sodet/backend.h"

typedef struct making {
    const sodet_graph *g;
    const sd_segments *segments;
    sd_layers *out;
    uint64_t capacity;
    uint8_t *counted; /* [values + 1] parameters that a layer has */
    uint64_t *most;   /* flops of the costliest node of each layer, + 1 */
    uint64_t most_capacity;
} making;

/* Scopes whose inside is nobody's layer. */
static size_t key_of(const char *path)
{
    static const char *const whole[] = {"detect", "loss"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(whole[i]);
        if (strncmp(path, whole[i], n) == 0 && (path[n] == '/' || !path[n]))
            return n;
    }
    return strlen(path);
}

static const char *name_of(sd_pool *pool, const sodet_node *n)
{
    if (strcmp(n->op->name, "conv2d") == 0 && n->part == 0 && n->n_in > 1 && n->in_shape[1].rank == 4)
        return sd_pool_printf(pool, "conv2d %lldx%lld", (long long)n->in_shape[1].dim[2], (long long)n->in_shape[1].dim[3]);
    return sd_pool_strdup(pool, n->op->name);
}

static sodet_status find(making *m, const sodet_node *n, uint32_t *at, sodet_err *err)
{
    sd_layers *l = m->out;
    const char *path = n->layer ? n->layer : "";
    size_t k = key_of(path);
    bool whole = k < strlen(path) || strcmp(path, "detect") == 0 || strcmp(path, "loss") == 0;
    for (*at = 0; *at < l->n; ++*at) {
        const sd_layer *x = &l->layer[*at];
        size_t o = strcspn(x->op, " ");
        if (strlen(x->path) == k && memcmp(x->path, path, k) == 0 &&
            (whole || (strlen(n->op->name) == o && !memcmp(x->op, n->op->name, o))))
            return SODET_OK;
    }
    sodet_status s = sd_grow(&l->layer, &m->capacity, (uint64_t)l->n + 1, sizeof *l->layer, err);
    if (s == SODET_OK)
        s = sd_grow(&m->most, &m->most_capacity, (uint64_t)l->n + 1, sizeof *m->most, err);
    if (s != SODET_OK)
        return s;
    sd_layer *x = &l->layer[l->n];
    *x = (sd_layer){.path = sd_pool_printf(&l->pool, "%.*s", (int)k, path), .op = name_of(&l->pool, n)};
    x->same = true;
    if (n->n_out)
        x->out = n->out_shape[0];
    if (!x->path || !x->op)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of layers");
    l->n++;
    return SODET_OK;
}

static void count_parameters(making *m, sd_layer *x, const sodet_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i].id || m->counted[n->in[i].id])
            continue;
        const sodet_value_info *v = sodet_graph_value(m->g, n->in[i]);
        if (v->store != SODET_STORE_PARAM && v->store != SODET_STORE_FROZEN)
            continue;
        const sd_segment *s = sd_segments_find(m->segments, v->name);
        m->counted[n->in[i].id] = 1;
        if (s && !s->buffer)
            x->parameters += s->n;
    }
}

static sodet_status add(making *m, uint32_t i, const double *seconds, sd_layers_said *said, const void *context, sodet_err *err)
{
    const sodet_node *n = sodet_graph_node(m->g, i);
    uint32_t at;
    sodet_status s = find(m, n, &at, err);
    if (s != SODET_OK)
        return s;
    sd_layer *x = &m->out->layer[at];
    sodet_cost cost = sd_node_cost(n);
    count_parameters(m, x, n);
    size_t k = strcspn(x->op, " ");
    if (n->part == 0 && strncmp(n->op->name, x->op, k) == 0 && !n->op->name[k]) {
        x->uses++;
        x->same = x->same && n->n_out && memcmp(&n->out_shape[0], &x->out, sizeof x->out) == 0;
    }
    if (!n->prologue) {
        x->cost.macs += cost.macs;
        x->cost.flops += cost.flops;
        x->cost.bytes += cost.bytes;
    }
    if (seconds)
        *(n->part == 0 ? &x->forward : &x->backward) += seconds[i];
    const char *how = said ? said(context, i) : NULL;
    if (how && cost.flops >= m->most[at]) {
        m->most[at] = cost.flops + 1;
        x->how = sd_pool_strdup(&m->out->pool, how);
    }
    return SODET_OK;
}

sodet_status sd_layers_make(const sodet_graph *g, const sd_segments *segments, const double *seconds, sd_layers_said *said,
                            const void *context, sd_layers *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    making m = {.g = g, .segments = segments, .out = out};
    m.counted = sd_alloc((size_t)sodet_graph_value_count(g) + 1, 1);
    sodet_status s = m.counted ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the list of layers");
    for (uint32_t i = 0; s == SODET_OK && i < sodet_graph_node_count(g); i++)
        s = add(&m, i, seconds, said, context, err);
    sd_free(m.counted);
    sd_free(m.most);
    if (s != SODET_OK)
        sd_layers_free(out);
    return s;
}

void sd_layers_free(sd_layers *l)
{
    sd_free(l->layer);
    sd_pool_clear(&l->pool);
    memset(l, 0, sizeof *l);
}

const sd_layer *sd_layers_find(const sd_layers *l, const char *path)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->layer[i].path, path) == 0)
            return &l->layer[i];
    return NULL;
}

sodet_status sd_inference_cost(const sd_model *m, uint32_t height, uint32_t width, sodet_cost *out, sodet_err *err)
{
    const sd_graph_options options = {.training = false, .world = 1};
    const sd_model_shape shape = {.batch = 1, .height = height, .width = width, .boxes = 1};
    sodet_graph *g = NULL;
    sodet_status s = sd_model_build(m, &options, &shape, &g, err);
    *out = (sodet_cost){.macs = 0};
    for (uint32_t i = 0; s == SODET_OK && i < sodet_graph_node_count(g); i++) {
        const sodet_node *n = sodet_graph_node(g, i);
        sodet_cost cost = sd_node_cost(n);
        if (n->prologue)
            continue;
        out->macs += cost.macs;
        out->flops += cost.flops;
        out->bytes += cost.bytes;
    }
    sd_graph_free(g);
    return s;
}
