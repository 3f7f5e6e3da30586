#include "core/train/optimizer.h"

#include <string.h>

#include "core/store/checkpoint.h"

const sd_optimizer *sd_optimizer_of(const sd_optimizer_cfg *c)
{
    static const sd_optimizer *const rules[] = {
        [SD_OPTIMIZER_SGD] = &sd_sgd, [SD_OPTIMIZER_ADAM] = &sd_adam, [SD_OPTIMIZER_ADAMW] = &sd_adamw};
    return rules[c->type];
}

sodet_status sd_slots_of(const sd_optimizer_cfg *c, sd_slots *out, sodet_err *err)
{
    const sd_optimizer *rule = sd_optimizer_of(c);
    *out = (sd_slots){.accumulator = UINT32_MAX, .ema = UINT32_MAX};
    uint32_t n = rule->n_state(c);
    if (n + (c->accumulate > 1) + (c->ema > 0) > SODET_MAX_STATE)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s with accumulation and averaged weights needs more than %d arenas of state",
                          rule->name, SODET_MAX_STATE);
    for (; out->n < n; out->n++)
        out->name[out->n] = rule->state_names[out->n];
    if (c->ema > 0) {
        out->ema = out->n;
        out->name[out->n++] = "ema";
    }
    if (c->accumulate > 1) { /* last, because it holds nothing between steps and no checkpoint needs it */
        out->accumulator = out->n;
        out->name[out->n++] = "accumulator";
    }
    return SODET_OK;
}

void sd_optimizer_factors(const sd_optimizer_cfg *c, const sd_segment *s, float *lr, float *decay)
{
    double l = s->param.lr < 0 ? 0 : s->param.lr > 0 ? (double)s->param.lr : 1;
    double d = s->param.decay < 0 ? 0 : s->param.decay > 0 ? (double)s->param.decay : 1;
    if (s->param.group == SODET_GROUP_BIAS) {
        l *= c->bias_lr;
        d *= c->bias_decay ? 1 : 0;
    }
    if (s->param.group == SODET_GROUP_NORM)
        d *= c->norm_decay ? 1 : 0;
    double factor = 1;
    for (uint32_t i = 0; i < c->lr_factors.n; i++) {
        char pattern[512];
        const char *rule = c->lr_factors.v[i], *colon = strrchr(rule, ':');
        double v;
        size_t k = colon ? (size_t)(colon - rule) : 0;
        if (!k || k >= sizeof pattern || !sd_parse_double(colon + 1, &v))
            continue; /* [optimizer] was checked when it was read */
        memcpy(pattern, rule, k);
        pattern[k] = '\0';
        if (sd_glob(pattern, s->name))
            factor = v;
    }
    *lr = (float)(l * factor);
    *decay = (float)d;
}

/* first [S]: where each segment begins; factor [S, 2]: lr and decay. */
static sodet_status segment_table(sodet_graph *g, const sd_optimizer_cfg *c, const sd_segments *segments, sodet_value *start,
                                  sodet_value *factor, sodet_err *err)
{
    uint32_t n = segments->n_trainable;
    int32_t *first = sd_alloc(n, sizeof *first);
    float *factors = sd_alloc(n, 2 * sizeof *factors);
    sodet_status s = first && factors ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the update's table");
    for (uint32_t i = 0; s == SODET_OK && i < n; i++) {
        first[i] = (int32_t)segments->segment[i].offset;
        sd_optimizer_factors(c, &segments->segment[i], &factors[2 * i], &factors[2 * i + 1]);
    }
    if (s == SODET_OK) {
        sodet_shape shape = sodet_shape_make(SODET_I32, 1, n, 0, 0, 0);
        *start = sodet_constant(g, &shape, first);
        shape = sodet_shape_make(SODET_F32, 2, n, 2, 0, 0);
        *factor = sodet_constant(g, &shape, factors);
    }
    sd_free(first);
    sd_free(factors);
    return s;
}

/* Graphs on whole arenas name no parameter, so there is nothing to bind. */
static sodet_status finish(sodet_graph *g, sodet_status s, sodet_graph **out, sodet_err *err)
{
    if (s == SODET_OK)
        s = sodet_graph_status(g, err);
    if (s == SODET_OK)
        s = sd_graph_seal(g, err);
    if (s == SODET_OK)
        *out = g;
    else
        sd_graph_free(g);
    return s;
}

void sd_buffer_range(const sd_segments *segments, uint64_t *first, uint64_t *n)
{
    uint64_t last = 0;
    *first = UINT64_MAX;
    for (uint32_t i = 0; i < segments->n; i++) {
        const sd_segment *x = &segments->segment[i];
        if (!x->buffer)
            continue;
        *first = x->offset < *first ? x->offset : *first;
        last = x->offset + x->n > last ? x->offset + x->n : last;
    }
    *n = *first == UINT64_MAX ? 0 : last - *first;
}

/* 1 where every loss of every device is finite: x - x is 0 for no other number. */
static sodet_value losses_are_finite(sodet_graph *g, sodet_value loss, uint32_t world)
{
    sodet_value bad = sodet_reshape(g, sodet_sum(g, sodet_ne(g, sodet_sub(g, loss, loss), sodet_scalar(g, 0)), 0), 1, (const int64_t[]){1});
    if (world > 1)
        bad = sodet_all_reduce(g, bad);
    return sodet_eq(g, bad, sodet_scalar(g, 0));
}

/* The forward pass of a training graph moves running statistics: they are put back where the step is not made. */
static void put_back(sodet_graph *g, const sd_segments *segments, sodet_value ok, sodet_value none)
{
    uint64_t first, n;
    sd_buffer_range(segments, &first, &n);
    if (!n)
        return;
    const sodet_shape shape = sodet_shape_make(SODET_F32, 1, (int64_t)n, 0, 0, 0);
    const sodet_value kept = sodet_input(g, "kept", &shape), buffers = sd_graph_arena(g, SODET_STORE_FROZEN, 0, n);
    sd_graph_arena_at(g, buffers, first);
    sodet_ema_update(g, buffers, kept, none, sodet_sub(g, sodet_scalar(g, 1), ok));
}

sodet_status sd_update_build(const sd_optimizer_cfg *c, const sd_slots *slots, const sd_segments *segments, const sd_update_options *o,
                             sodet_graph **out, sodet_err *err)
{
    *out = NULL;
    if (!segments->n_trainable)
        return SODET_FAIL(err, SODET_E_INVALID, "nothing is left to train: every parameter is frozen");
    if (segments->param_elements > INT32_MAX)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%llu trainable elements; the update handles at most 2^31 - 1",
                          (unsigned long long)segments->param_elements);
    const sd_optimizer *rule = sd_optimizer_of(c);
    sodet_graph *g;
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = o->world}, &g, err);
    if (s != SODET_OK)
        return s;
    sodet_enter(g, "update");
    const sodet_shape losses = sodet_shape_make(SODET_F32, 1, o->losses, 0, 0, 0);
    sodet_shape one = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0), many = sodet_shape_make(SODET_F32, 1, rule->n_hyper, 0, 0, 0);
    sodet_update u = {.struct_size = sizeof u};
    s = segment_table(g, c, segments, &u.start, &u.factor, err);
    uint64_t n = segments->param_elements;
    u.p = sd_graph_arena(g, SODET_STORE_PARAM, 0, n);
    u.grad = slots->accumulator == UINT32_MAX ? sd_graph_arena(g, SODET_STORE_GRAD, 0, n)
                                              : sd_graph_arena(g, SODET_STORE_STATE, slots->accumulator, n);
    u.hyper = sodet_input(g, "hyper", &many);
    sodet_value finite, norm, loss = sodet_input(g, "loss", &losses), scale = SODET_NONE;
    const sodet_value loss_ok = losses_are_finite(g, loss, o->world);
    sodet_value squares = sodet_square_sum(g, u.grad, SODET_NONE, SODET_NONE, 1, &finite);
    u.ok = sodet_mul(g, sodet_mul(g, finite, loss_ok), sodet_input(g, "alive", &one));
    float count = (float)c->accumulate, limit = c->clip_norm > 0 ? (float)c->clip_norm : 3.4e38f;
    if (slots->accumulator != UINT32_MAX)
        scale = sodet_constant(g, &one, &count);
    if (o->scaled) {
        const sodet_value unscale = sodet_input(g, "unscale", &one);
        scale = scale.id ? sodet_mul(g, scale, unscale) : unscale;
    }
    sodet_value clip = sodet_clip_factor(g, squares, sodet_constant(g, &one, &limit), scale, &norm);
    u.scale = c->clip_norm > 0 ? clip : scale;
    sodet_value state[SODET_MAX_STATE];
    for (uint32_t i = 0; i < rule->n_state(c); i++)
        state[i] = sd_graph_arena(g, SODET_STORE_STATE, i, n);
    sodet_value p = rule->build(g, c, &u, state);
    if (slots->ema != UINT32_MAX) {
        float keep = (float)c->ema;
        sodet_ema_update(g, sd_graph_arena(g, SODET_STORE_STATE, slots->ema, n), p, sodet_constant(g, &one, &keep), u.ok);
    }
    const float zero = 0;
    put_back(g, segments, u.ok, sodet_constant(g, &one, &zero));
    sodet_output(g, "finite", u.ok);
    sodet_output(g, "told", sodet_concat(g, (const sodet_value[]){sodet_reshape(g, norm, 1, (const int64_t[]){1}), u.ok, loss}, 3, 0));
    sodet_leave(g);
    return finish(g, s, out, err);
}

sodet_status sd_accumulate_build(const sd_slots *slots, const sd_segments *segments, sodet_graph **out, sodet_err *err)
{
    *out = NULL;
    sodet_graph *g;
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = 1}, &g, err);
    if (s != SODET_OK)
        return s;
    sodet_shape one = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    uint64_t n = segments->param_elements;
    sodet_enter(g, "accumulate");
    sodet_ema_update(g, sd_graph_arena(g, SODET_STORE_STATE, slots->accumulator, n), sd_graph_arena(g, SODET_STORE_GRAD, 0, n),
                     sodet_input(g, "keep", &one), SODET_NONE);
    sodet_leave(g);
    return finish(g, s, out, err);
}
