/* The segment table: where each parameter lies in the flat arenas, and its first value. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/internal.h"

typedef struct place {
    uint32_t value, at; /* node that finishes the gradient, or makes the first use */
} place;

static int earlier_first(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->value < y->value ? -1 : x->value > y->value);
}

static bool fill(const sd_value *v, bool frozen, uint64_t *arena, sd_segments *out)
{
    sd_segment *s = &out->segment[out->n++];
    *s = (sd_segment){.name = sd_pool_strdup(&out->pool, v->info.name),
                      .shape = v->info.shape,
                      .param = v->param,
                      .frozen = frozen,
                      .buffer = v->buffer,
                      .initial = v->initial,
                      .offset = *arena,
                      .n = (uint64_t)sodet_elements(&v->info.shape)};
    *arena += sd_segment_room(s->n);
    if (!v->buffer)
        out->parameter_count += s->n;
    return s->name != NULL;
}

sodet_status sd_segments_make(const sodet_graph *g, sd_segments *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status status = sodet_graph_status(g, err);
    if (status != SODET_OK)
        return status;
    place *order = sd_alloc(g->n_named + 1, sizeof *order);
    out->segment = sd_alloc(g->n_named + 1, sizeof *out->segment);
    bool ok = order && out->segment;
    uint64_t n = 0;
    for (uint32_t v = 1; ok && v < g->n_values; v++) {
        const sd_value *value = &g->values[v];
        if (!value->parameter || value->info.store != SODET_STORE_PARAM)
            continue;
        const sd_value *gradient = sd_value_at(g, value->gradient);
        order[n++] = (place){v, gradient ? gradient->producer : SD_NOWHERE};
    }
    if (ok && g->differentiated)
        qsort(order, n, sizeof *order, earlier_first);
    for (uint64_t i = 0; ok && i < n; i++)
        ok = fill(&g->values[order[i].value], false, &out->param_elements, out);
    out->n_trainable = out->n;
    for (uint32_t v = 1; ok && v < g->n_values; v++)
        if ((g->values[v].parameter || g->values[v].buffer) && g->values[v].info.store == SODET_STORE_FROZEN)
            ok = fill(&g->values[v], true, &out->frozen_elements, out);
    sd_free(order);
    if (!ok) {
        sd_segments_free(out);
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the table of %llu parameters", (unsigned long long)g->n_named);
    }
    return SODET_OK;
}

void sd_segments_free(sd_segments *s)
{
    sd_free(s->segment);
    sd_pool_clear(&s->pool);
    memset(s, 0, sizeof *s);
}

const sd_segment *sd_segments_find(const sd_segments *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->segment[i].name, name) == 0)
            return &s->segment[i];
    return NULL;
}

void sd_segment_init(const sd_segment *s, uint64_t seed, uint32_t default_init, float *out)
{
    double out_channels = s->shape.rank ? (double)s->shape.dim[0] : 1, fan_in = (double)s->n / out_channels;
    double area = 1;
    for (uint32_t i = 2; i < s->shape.rank; i++)
        area *= (double)s->shape.dim[i];
    double fan_out = out_channels * area;
    uint32_t init = s->buffer ? SODET_INIT_CONSTANT : s->param.init;
    double value = s->buffer ? (double)s->initial : (double)s->param.value;
    if (init == SODET_INIT_DEFAULT)
        init = s->param.group == SODET_GROUP_WEIGHT ? (default_init ? default_init : SODET_INIT_XAVIER) : SODET_INIT_ZEROS;
    if (s->param.fan_in > 0)
        fan_in = (double)s->param.fan_in;

    double spread = 0, constant = 0, deviation = 0;
    switch (init) {
    case SODET_INIT_CONSTANT:
        constant = value;
        break;
    case SODET_INIT_NORMAL:
        deviation = value;
        break;
    case SODET_INIT_XAVIER:
        spread = sqrt(6 / (fan_in + fan_out));
        break;
    case SODET_INIT_HE:
        deviation = sqrt(2 / fan_out);
        break;
    case SODET_INIT_HE_FAN_IN:
        deviation = sqrt(2 / fan_in);
        break;
    case SODET_INIT_TORCH:
        spread = 1 / sqrt(fan_in);
        break;
    case SODET_INIT_PRIOR:
        constant = -log((1 - value) / value);
        break;
    default:
        break;
    }
    sodet_stream r = sd_stream(seed, 0, sd_fnv1a64(s->name, strlen(s->name), SD_FNV_START), 0);
    for (uint64_t i = 0; i < s->n; i++) {
        double x = constant;
        if (spread > 0)
            x = sodet_stream_uniform(&r, -spread, spread);
        else if (deviation > 0)
            x = deviation * sd_stream_normal(&r);
        out[i] = (float)x;
    }
}

sodet_status sd_graph_bind(sodet_graph *g, const sd_segments *segments, sodet_err *err)
{
    sodet_status status = sodet_graph_status(g, err);
    if (status == SODET_OK && g->differentiated && g->options.world > 1 && !g->sealed)
        status = sd_add_buckets(g, segments, err);
    if (status == SODET_OK)
        status = sd_graph_seal(g, err);
    if (status != SODET_OK)
        return status;
    uint64_t bound = 0;
    for (uint64_t v = 1; v < g->n_values; v++) {
        sd_value *value = &g->values[v];
        if (!value->parameter && !value->buffer)
            continue;
        const sd_segment *s = sd_segments_find(segments, value->info.name);
        char have[64], want[64];
        if (!s)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "the network has a parameter %s that the first build did not have: a build must give the same parameters for "
                              "every input shape",
                              value->info.name);
        if (memcmp(&s->shape, &value->info.shape, sizeof s->shape) != 0)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "parameter %s is %s here and was %s in the first build: its shape must not depend on the input's",
                              value->info.name, sd_shape_text(&value->info.shape, have), sd_shape_text(&s->shape, want));
        value->info.store = s->frozen ? SODET_STORE_FROZEN : SODET_STORE_PARAM;
        value->info.offset = s->offset;
        bound++;
        if (value->gradient.id) {
            sd_value *gradient = &g->values[value->gradient.id];
            gradient->info.store = SODET_STORE_GRAD;
            gradient->info.offset = s->offset;
            for (;;) { /* partial sums lie in the same place */
                const sodet_node *n = gradient->producer == SD_NOWHERE ? NULL : g->nodes[gradient->producer];
                if (!n || !n->base || !n->base[gradient->output].id)
                    break;
                gradient = &g->values[n->base[gradient->output].id];
                gradient->info.store = SODET_STORE_GRAD;
                gradient->info.offset = s->offset;
            }
        }
    }
    for (uint64_t i = 0; i < g->n_nodes; i++) { /* new values of states lie where the states were put */
        const sodet_node *n = g->nodes[i];
        for (uint32_t o = 0; n->op->shares && o < n->n_out; o++) {
            uint32_t shared = n->op->shares(n, o);
            if (shared) {
                g->values[n->out[o].id].info.store = g->values[n->in[shared - 1].id].info.store;
                g->values[n->out[o].id].info.slot = g->values[n->in[shared - 1].id].info.slot;
                g->values[n->out[o].id].info.offset = g->values[n->in[shared - 1].id].info.offset;
            }
        }
    }
    if (bound && bound != segments->n) { /* a graph without parameters of its own (an update) works on whole arenas */
        for (uint32_t i = 0; i < segments->n; i++) {
            bool found = false;
            for (uint64_t v = 1; v < g->n_values && !found; v++)
                found = (g->values[v].parameter || g->values[v].buffer) && strcmp(g->values[v].info.name, segments->segment[i].name) == 0;
            if (!found)
                return SODET_FAIL(
                    err, SODET_E_INVALID,
                    "the network lacks parameter %s that the first build had: a build must give the same parameters for every input shape",
                    segments->segment[i].name);
        }
    }
    return SODET_OK;
}
