#include "core/train/stepper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/send.h"
#include "core/store/checkpoint.h"
#include "core/train/scale.h"

/* One device's part of a step. */
typedef struct share {
    uint32_t first, rows; /* of the batch; 0: it has no image and runs a program of none */
    sd_program *gradient, *update, *accumulate;
    float *weight, *shared; /* [rows] */
    uint64_t weight_capacity, shared_capacity;
    double term[SD_TERMS_MOST]; /* of the micro-batch that was run last, if they are read at once */
    float *told;                /* [2 + losses] of the update: norm, finite, losses */
    uint64_t images;            /* of the step */
} share;

struct sd_stepper {
    sd_stepper_config config;
    uint32_t n; /* devices */
    sd_graph_options options;
    sd_segments segments;
    sd_slots slots;
    sd_programs *gradients;
    share *shares;
    sd_program **programs; /* [n] of sd_programs_get */
    sd_program_key *keys;
    uint32_t *dealt; /* [n + 1] */
    uint32_t n_terms;
    char term_name[SD_TERMS_MOST][48], term_output[SD_TERMS_MOST][56];
    uint64_t buffers_first, buffers_n; /* elements of the frozen arena that hold running statistics */
    double *node_seconds;
    uint64_t node_capacity;
    /* what the jobs are about */
    const sd_batch *batch;
    uint64_t step;
    uint32_t micro; /* batch of the step, from 0 */
    float hyper[SD_HYPER_MOST], scale;
    bool now, alive; /* losses are read at once; nothing was begun before this step that is not known to be good */
    uint32_t slot, losses;
    uint64_t begun; /* steps */
    const volatile sig_atomic_t *stop;
};

/* ---- graphs ---- */
static bool is_frozen(const void *context, const char *path)
{
    const sodet_string_list *freeze = context;
    for (uint32_t i = 0; i < freeze->n; i++)
        if (sd_glob(freeze->v[i], path))
            return true;
    return false;
}

/* A pattern that matches nothing is a mistake of spelling. */
static sodet_status check_patterns(const sd_stepper *s, const sodet_string_list *list, const char *key, char end, sodet_err *err)
{
    for (uint32_t i = 0; i < list->n; i++) {
        char pattern[512];
        snprintf(pattern, sizeof pattern, "%s", list->v[i]);
        char *colon = end ? strrchr(pattern, end) : NULL;
        if (colon)
            *colon = '\0';
        bool found = false;
        for (uint32_t k = 0; k < s->segments.n && !found; k++)
            found = !s->segments.segment[k].buffer && sd_glob(pattern, s->segments.segment[k].name);
        if (!found)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "[optimizer] %s: no parameter is called \"%s\"; `sodet summary` lists the layers, as %s", key, pattern,
                              s->segments.n ? s->segments.segment[0].name : "backbone/conv1/weight");
    }
    return SODET_OK;
}

static sodet_status build_training(sd_stepper *s, const sd_program_key *key, sodet_graph **out, sodet_err *err)
{
    sd_model_shape shape = {.batch = key->batch,
                            .height = key->height,
                            .width = key->width,
                            .boxes = s->config.boxes ? s->config.boxes : 1,
                            .picture_bytes = s->config.picture_bytes};
    sodet_status status = sd_model_build(s->config.model, &s->options, &shape, out, err);
    if (status == SODET_OK)
        status = sd_graph_optimize(*out, err);
    if (status == SODET_OK)
        status = sd_graph_backward(*out, err);
    if (status != SODET_OK) {
        sd_graph_free(*out);
        *out = NULL;
    }
    return status;
}

static sodet_status build_bound(void *context, const sd_program_key *key, sodet_graph **out, sodet_err *err)
{
    sd_stepper *s = context;
    sodet_status status = build_training(s, key, out, err);
    if (status == SODET_OK && (status = sd_graph_bind(*out, &s->segments, err)) != SODET_OK) {
        sd_graph_free(*out);
        *out = NULL;
    }
    return status;
}

static sodet_status learn_segments(sd_stepper *s, sodet_err *err)
{
    sd_program_key key = {.batch = (s->config.batch + s->n - 1) / s->n, .height = s->config.height, .width = s->config.width};
    sodet_graph *g;
    sodet_status status = build_training(s, &key, &g, err);
    if (status != SODET_OK)
        return status;
    status = sd_segments_make(g, &s->segments, err);
    s->n_terms = sd_graph_loss_count(g);
    if (status == SODET_OK && s->n_terms > SD_TERMS_MOST)
        status = SODET_FAIL(err, SODET_E_UNSUPPORTED, "the loss has %u terms; at most %d are handled", s->n_terms, SD_TERMS_MOST);
    for (uint32_t i = 0; status == SODET_OK && i < s->n_terms; i++) {
        const char *name = sd_graph_loss(g, i)->name;
        snprintf(s->term_name[i], sizeof s->term_name[i], "%.47s", name);
        snprintf(s->term_output[i], sizeof s->term_output[i], "loss/%.47s", name);
    }
    sd_graph_free(g);
    if (status == SODET_OK)
        status = check_patterns(s, &s->config.core->optimizer.freeze, "freeze", 0, err);
    if (status == SODET_OK)
        status = check_patterns(s, &s->config.core->optimizer.lr_factors, "lr_factors", ':', err);
    if (status == SODET_OK)
        sd_buffer_range(&s->segments, &s->buffers_first, &s->buffers_n);
    s->losses = s->n_terms * s->config.core->optimizer.accumulate;
    return status;
}

static sodet_status make_update(sd_replica *r, void *context, sodet_err *err)
{
    sd_stepper *s = context;
    share *h = &s->shares[r->index];
    h->told = sd_alloc(2 + s->losses, sizeof *h->told);
    if (!h->told)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the losses of a step");
    const sd_update_options o = {.scaled = s->options.scaled, .world = s->n, .losses = s->losses};
    /* Graphs of the update need no plugin, so each device's thread makes its own. */
    sodet_graph *g;
    sodet_status status = sd_update_build(&s->config.core->optimizer, &s->slots, &s->segments, &o, &g, err);
    if (status == SODET_OK)
        status = sd_program_make(r, g, SD_ARENA_PARAM, &h->update, err);
    if (status == SODET_OK && s->slots.accumulator != UINT32_MAX) {
        status = sd_accumulate_build(&s->slots, &s->segments, &g, err);
        if (status == SODET_OK)
            status = sd_program_make(r, g, SD_ARENA_PARAM, &h->accumulate, err);
    }
    return status;
}

static sodet_status free_update(sd_replica *r, void *context, sodet_err *err)
{
    (void)err;
    share *h = &((sd_stepper *)context)->shares[r->index];
    sd_program_free(h->update);
    sd_program_free(h->accumulate);
    h->update = h->accumulate = NULL;
    return SODET_OK;
}

sodet_status sd_stepper_open(const sd_stepper_config *config, sd_stepper **out, sodet_err *err)
{
    *out = NULL;
    uint32_t n = sd_device_pool_count(config->pool);
    sd_stepper *s = sd_alloc(1, sizeof *s);
    if (s) {
        s->config = *config;
        s->n = n;
        s->shares = sd_alloc(n, sizeof *s->shares);
        s->programs = sd_alloc(n, sizeof(sd_program *));
        s->keys = sd_alloc(n, sizeof *s->keys);
        s->dealt = sd_alloc(n + 1, sizeof *s->dealt);
    }
    if (!s || !s->shares || !s->programs || !s->keys || !s->dealt) {
        sd_stepper_close(s);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: training");
    }
    static const uint32_t norms[] = {
        [SD_TRAIN_NORM_SYNC] = SD_NORM_SYNC, [SD_TRAIN_NORM_LOCAL] = SD_NORM_TRAIN, [SD_TRAIN_NORM_FROZEN] = SD_NORM_FROZEN};
    s->options = (sd_graph_options){.training = true,
                                    .norm = norms[config->core->train.norm],
                                    .world = n,
                                    .scaled = sd_loss_scaled(config->core),
                                    .default_init = SODET_INIT_XAVIER + config->core->train.init,
                                    .freeze = config->core->optimizer.freeze.n ? is_frozen : NULL,
                                    .freeze_context = &config->core->optimizer.freeze};
    if (n == 1 && s->options.norm == SD_NORM_SYNC)
        s->options.norm = SD_NORM_TRAIN;
    sodet_status status = sd_slots_of(&config->core->optimizer, &s->slots, err);
    if (status == SODET_OK)
        status = learn_segments(s, err);
    if (status == SODET_OK)
        status = sd_device_pool_arenas(config->pool, &s->segments, true, s->slots.n, err);
    sd_programs_config p = {.pool = config->pool, .build = build_bound, .context = s};
    if (status == SODET_OK)
        status = sd_programs_create(&p, &s->gradients, err);
    if (status == SODET_OK)
        status = sd_device_pool_run(config->pool, make_update, s, err);
    if (status != SODET_OK) {
        sd_stepper_close(s);
        return status;
    }
    *out = s;
    return SODET_OK;
}

void sd_stepper_close(sd_stepper *s)
{
    if (!s)
        return;
    sd_programs_free(s->gradients);
    if (s->shares && sd_device_pool_run(s->config.pool, free_update, s, NULL) != SODET_OK)
        for (uint32_t i = 0; i < s->n; i++) /* the pool is broken, its threads are idle */
            free_update(sd_device_pool_replica(s->config.pool, i), s, NULL);
    for (uint32_t i = 0; s->shares && i < s->n; i++) {
        sd_free(s->shares[i].weight);
        sd_free(s->shares[i].shared);
        sd_free(s->shares[i].told);
    }
    sd_segments_free(&s->segments);
    sd_free(s->shares);
    sd_free(s->programs);
    sd_free(s->keys);
    sd_free(s->dealt);
    sd_free(s);
}

const sd_segments *sd_stepper_segments(const sd_stepper *s)
{
    return &s->segments;
}

const sd_slots *sd_stepper_slots(const sd_stepper *s)
{
    return &s->slots;
}

uint32_t sd_stepper_terms(const sd_stepper *s)
{
    return s->n_terms;
}

const char *sd_stepper_term(const sd_stepper *s, uint32_t i)
{
    return s->term_name[i];
}

uint64_t sd_stepper_dealt(const sd_stepper *s, uint32_t i)
{
    return s->shares[i].images;
}

const sd_program *sd_stepper_program(const sd_stepper *s)
{
    return s->shares[0].gradient;
}

const sd_program *sd_stepper_update_program(const sd_stepper *s)
{
    return s->shares[0].update;
}

void sd_stepper_time_nodes(sd_stepper *s, double *seconds, uint64_t capacity)
{
    s->node_seconds = seconds;
    s->node_capacity = capacity;
}

sodet_status sd_stepper_begin(sd_stepper *s, sodet_err *err)
{
    if (s->slots.ema == UINT32_MAX)
        return SODET_OK;
    uint64_t most = 1;
    for (uint32_t i = 0; i < s->segments.n_trainable; i++)
        most = s->segments.segment[i].n > most ? s->segments.segment[i].n : most;
    void *values = sd_alloc((size_t)most, sizeof(double));
    sodet_status status = values ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a parameter");
    for (uint32_t i = 0; status == SODET_OK && i < s->segments.n_trainable; i++) {
        const sd_segment *x = &s->segments.segment[i];
        status = sd_device_pool_read_raw(s->config.pool, SD_ARENA_PARAM, x->offset, x->n, values, err);
        if (status == SODET_OK)
            status = sd_device_pool_write_raw(s->config.pool, SD_ARENA_STATE + s->slots.ema, x->offset, x->n, values, err);
    }
    sd_free(values);
    return status;
}

/* ---- dealing ---- */
static sodet_status deal(sd_stepper *s, uint32_t rows, uint32_t height, uint32_t width, sodet_err *err)
{
    s->dealt[0] = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        share *h = &s->shares[i];
        s->dealt[i + 1] = s->dealt[i] + rows / s->n + (i < rows % s->n ? 1 : 0);
        h->first = s->dealt[i];
        h->rows = s->dealt[i + 1] - h->first;
        s->keys[i] = (sd_program_key){.height = height, .width = width, .batch = h->rows};
    }
    sodet_status status = sd_programs_get(s->gradients, s->keys, s->programs, err);
    for (uint32_t i = 0; status == SODET_OK && i < s->n; i++)
        s->shares[i].gradient = s->programs[i];
    return status;
}

/* Bytes that device 0 needs in all for steps of `images` pictures on it; 0: it cannot be told. */
static uint64_t planned_bytes(sd_stepper *s, uint32_t images, uint32_t height, uint32_t width)
{
    const sd_program_key key = {.batch = images, .height = height, .width = width};
    sd_replica *r = sd_device_pool_replica(s->config.pool, 0);
    sd_device_bytes now = sd_device_pool_bytes(s->config.pool, 0);
    uint64_t work = 0, own = 0;
    sodet_graph *g = NULL;
    sodet_status status = build_bound(s, &key, &g, NULL);
    if (status == SODET_OK)
        status = sd_program_plan(r, g, &work, &own, NULL, NULL, NULL);
    sd_graph_free(g);
    return status == SODET_OK ? now.total - now.work + work + own : 0;
}

/* After memory ran out: says which batch would fit. Memory grows by the picture, so two plans tell it, and a third one is the proof. */
static void say_what_fits(sd_stepper *s, uint32_t batch, uint32_t height, uint32_t width, sodet_err *err)
{
    const uint64_t memory = sd_device_pool_replica(s->config.pool, 0)->memory, room = memory - memory / 32;
    uint32_t most = (batch + s->n - 1) / s->n;
    if (!memory || !err)
        return;
    const uint64_t one = planned_bytes(s, 1, height, width), all = most > 1 ? planned_bytes(s, most, height, width) : one;
    char said[128] = "";
    if (one > room) {
        snprintf(said, sizeof said, "; one picture alone needs %.0f MiB: use a smaller input.size", (double)one / 1048576);
    } else if (one && all > room) { /* else it is not the batch: somebody else has the memory */
        uint32_t fits = 1 + (uint32_t)((double)(room - one) / ((double)(all - one) / (most - 1)));
        for (fits = fits < most ? fits : most - 1; fits > 1 && planned_bytes(s, fits, height, width) > room;)
            fits--;
        snprintf(said, sizeof said, "; a batch of %u needs %.0f MiB, train.batch = %u fits", batch, (double)all / 1048576, fits * s->n);
    }
    const size_t length = strlen(err->text);
    snprintf(err->text + length, sizeof err->text - length, "%s", said);
}

sodet_status sd_stepper_prepare(sd_stepper *s, uint32_t batch, uint32_t height, uint32_t width, sodet_err *err)
{
    sodet_status status = deal(s, batch, height, width, err);
    if (status == SODET_E_MEMORY)
        say_what_fits(s, batch, height, width, err);
    return status;
}

static uint64_t positives_of(const sd_batch *b, uint32_t first, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = first; i < first + n; i++)
        sum += b->items[i].positives;
    return sum;
}

static double at_least_one(uint64_t n)
{
    return n ? (double)n : 1;
}

/* Counts of the whole step, and the running mean. */
static void count(const sd_stepper *s, const sd_batch *const *batches, sd_step *step, uint64_t *shares)
{
    uint32_t k = s->config.core->optimizer.accumulate;
    const sd_loss_cfg *c = &s->config.core->loss;
    step->images = step->positives = *shares = 0;
    for (uint32_t i = 0; i < k; i++) {
        step->images += batches[i]->n;
        step->positives += positives_of(batches[i], 0, batches[i]->n);
        *shares += batches[i]->n < s->n ? batches[i]->n : s->n;
    }
    if (c->normaliser == SD_NORMALISER_EMA) {
        double before = step->normaliser > 0 ? step->normaliser : c->normaliser_start;
        step->normaliser = c->normaliser_momentum * before + (1 - c->normaliser_momentum) * at_least_one(step->positives);
    }
}

static sodet_status weigh(sd_stepper *s, const sd_batch *b, const sd_step *step, uint64_t shares, sodet_err *err)
{
    uint32_t rule = s->config.core->loss.normaliser;
    for (uint32_t d = 0; d < s->n; d++) {
        share *h = &s->shares[d];
        sodet_status status = sd_grow(&h->weight, &h->weight_capacity, h->rows, sizeof *h->weight, err);
        if (status == SODET_OK)
            status = sd_grow(&h->shared, &h->shared_capacity, h->rows, sizeof *h->shared, err);
        if (status != SODET_OK)
            return status;
        double device = at_least_one(positives_of(b, h->first, h->rows)) * (double)shares;
        for (uint32_t i = 0; i < h->rows; i++) {
            double by = rule == SD_NORMALISER_GLOBAL   ? at_least_one(step->positives)
                        : rule == SD_NORMALISER_IMAGE  ? at_least_one(b->items[h->first + i].positives) * (double)step->images
                        : rule == SD_NORMALISER_DEVICE ? device
                                                       : step->normaliser;
            h->weight[i] = (float)(1 / by);
            h->shared[i] = (float)(1 / (double)step->images);
        }
    }
    return SODET_OK;
}

/* ---- what a device's thread does ---- */
static sodet_status write_input(sd_program *p, const char *name, const void *data, uint64_t n, sodet_err *err)
{
    /* A loss that does not look at an input has none of that name. */
    return sd_program_has_input(p, name) ? sd_program_write(p, name, data, n, err) : SODET_OK;
}

static sodet_status write_batch(const sd_stepper *s, const share *h, sd_program *p, sodet_err *err)
{
    const sd_batch *b = s->batch;
    uint64_t first = h->first, n = h->rows;
    sodet_status status = sd_batch_send(b, h->first, h->rows, p, err);
    if (status == SODET_OK)
        status = write_input(p, "index", b->index + first * b->n_anchors, n * b->n_anchors, err);
    if (status == SODET_OK)
        status = write_input(p, "truth", b->truth + first * b->max_objects * 4, n * b->max_objects * 4, err);
    if (status == SODET_OK)
        status = write_input(p, "label", b->label + first * b->max_objects, n * b->max_objects, err);
    if (status == SODET_OK)
        status = write_input(p, "weight", h->weight, n, err);
    return status == SODET_OK ? write_input(p, "share", h->shared, n, err) : status;
}

static sodet_status gradient_job(sd_replica *r, void *context, sodet_err *err)
{
    sd_stepper *s = context;
    share *h = &s->shares[r->index];
    sd_program *p = h->gradient;
    sodet_status status = SODET_OK;
    if (!s->micro && s->buffers_n)
        status = sd_program_take(h->update, "kept", 0, r->arena[SD_ARENA_FROZEN].memory, s->buffers_first, s->buffers_n, err);
    if (status == SODET_OK)
        status = write_batch(s, h, p, err);
    if (status == SODET_OK && s->options.scaled)
        status = sd_program_write(p, "loss_scale", &s->scale, 1, err);
    double *seconds =
        r->index == 0 && s->node_seconds && sodet_graph_node_count(sd_program_graph(p)) <= s->node_capacity ? s->node_seconds : NULL;
    uint64_t k = s->config.core->optimizer.accumulate;
    if (status == SODET_OK)
        status = sd_program_run(p, (uint64_t)s->config.core->run.seed + ((uint64_t)r->index << 40), s->step * k + s->micro, seconds, err);
    for (uint32_t i = 0; status == SODET_OK && i < s->n_terms; i++) {
        float v = 0;
        status = sd_program_pass(p, s->term_output[i], h->update, "loss", (uint64_t)s->micro * s->n_terms + i, 1, err);
        if (status == SODET_OK && s->now)
            status = sd_program_read(p, s->term_output[i], &v, 1, err);
        h->term[i] = (double)v;
    }
    if (status == SODET_OK && h->accumulate) {
        float keep = (float)(1 - 1 / (double)(s->micro + 1));
        status = sd_program_write(h->accumulate, "keep", &keep, 1, err);
        if (status == SODET_OK)
            status = sd_program_run(h->accumulate, 0, 0, NULL, err);
    }
    return status;
}

static sodet_status update_job(sd_replica *r, void *context, sodet_err *err)
{
    sd_stepper *s = context;
    share *h = &s->shares[r->index];
    uint32_t n = sd_optimizer_of(&s->config.core->optimizer)->n_hyper;
    const float unscale = 1 / s->scale, one = 1;
    sodet_status status = sd_program_write(h->update, "hyper", s->hyper, n, err);
    if (status == SODET_OK)
        status = s->alive ? sd_program_write(h->update, "alive", &one, 1, err)
                          : sd_program_pass(h->update, "finite", h->update, "alive", 0, 1, err);
    if (status == SODET_OK && s->options.scaled)
        status = sd_program_write(h->update, "unscale", &unscale, 1, err);
    if (status == SODET_OK)
        status = sd_program_run(h->update, 0, s->step, NULL, err);
    if (status == SODET_OK)
        status = sd_program_fetch(h->update, "told", s->slot, 2 + s->losses, err);
    r->weights++;
    return status;
}

static sodet_status undo_job(sd_replica *r, void *context, sodet_err *err)
{
    const sd_stepper *s = context;
    return sd_program_give(s->shares[r->index].update, "kept", r->arena[SD_ARENA_FROZEN].memory, s->buffers_first, s->buffers_n, err);
}

static sodet_status told_job(sd_replica *r, void *context, sodet_err *err)
{
    const sd_stepper *s = context;
    const share *h = &s->shares[r->index];
    return sd_program_fetched(h->update, "told", s->slot, h->told, 2 + s->losses, err);
}

/* ---- steps ---- */
static void add_loss(const sd_stepper *s, sd_step *step)
{
    step->loss = 0;
    for (uint32_t i = 0; i < s->n_terms; i++)
        step->loss += step->term[i];
    step->finite = isfinite(step->loss);
    if (!step->finite)
        step->normaliser = step->normaliser_before;
}

/* now: losses are read, which waits for every device. */
static sodet_status begin_gradients(sd_stepper *s, const sd_batch *const *batches, sd_step *step, bool now, sodet_err *err)
{
    uint64_t shares;
    step->normaliser_before = step->normaliser;
    count(s, batches, step, &shares);
    memset(step->term, 0, sizeof step->term);
    s->step = step->step;
    s->scale = step->loss_scale > 0 ? (float)step->loss_scale : 1;
    s->now = now;
    sodet_status status = SODET_OK;
    step->given_up = false;
    for (s->micro = 0; status == SODET_OK && s->micro < s->config.core->optimizer.accumulate; s->micro++) {
        if (!now && s->stop && *s->stop) { /* gradients are nobody's yet; the running statistics have moved with every batch */
            step->given_up = true;
            step->normaliser = step->normaliser_before;
            return s->micro && s->buffers_n ? sd_device_pool_run(s->config.pool, undo_job, s, err) : SODET_OK;
        }
        s->batch = batches[s->micro];
        status = deal(s, s->batch->n, s->batch->height, s->batch->width, err);
        if (status == SODET_OK)
            status = weigh(s, s->batch, step, shares, err);
        if (status == SODET_OK)
            status = sd_device_pool_run(s->config.pool, gradient_job, s, err);
        for (uint32_t d = 0; status == SODET_OK && d < s->n; d++) {
            s->shares[d].images = s->shares[d].rows + (s->micro ? s->shares[d].images : 0);
            for (uint32_t i = 0; i < s->n_terms; i++)
                step->term[i] += s->shares[d].term[i];
        }
    }
    return status;
}

sodet_status sd_stepper_gradients(sd_stepper *s, const sd_batch *const *batches, sd_step *step, sodet_err *err)
{
    sodet_status status = begin_gradients(s, batches, step, true, err);
    add_loss(s, step);
    return status;
}

static sodet_status begin_update(sd_stepper *s, sd_step *step, bool alive, sodet_err *err)
{
    const sd_optimizer_cfg *c = &s->config.core->optimizer;
    sd_optimizer_of(c)->hyper(c, step->lr, step->step + 1, s->hyper);
    s->step = step->step;
    s->alive = alive;
    s->slot = step->slot = (uint32_t)(s->begun++ % SODET_FETCHES);
    return sd_device_pool_run(s->config.pool, update_job, s, err);
}

sodet_status sd_stepper_finish(sd_stepper *s, sd_step *step, sodet_err *err)
{
    s->slot = step->slot;
    sodet_status status = sd_device_pool_run(s->config.pool, told_job, s, err);
    if (status != SODET_OK)
        return status;
    memset(step->term, 0, sizeof step->term);
    for (uint32_t k = 0; k < s->losses; k++)
        for (uint32_t d = 0; d < s->n; d++) {
            /* In the order in which they were made: by micro-batch, device, term. */
            const uint32_t micro = k / s->n_terms, i = k % s->n_terms;
            step->term[i] += (double)s->shares[d].told[2 + micro * s->n_terms + i];
        }
    add_loss(s, step);
    step->norm = (double)s->shares[0].told[0];
    for (uint32_t d = 0; d < s->n; d++)
        step->finite = step->finite && s->shares[d].told[1] > 0;
    if (!step->finite)
        step->normaliser = step->normaliser_before;
    return SODET_OK;
}

sodet_status sd_stepper_update(sd_stepper *s, sd_step *step, sodet_err *err)
{
    sodet_status status = begin_update(s, step, true, err);
    return status == SODET_OK ? sd_stepper_finish(s, step, err) : status;
}

sodet_status sd_stepper_begin_step(sd_stepper *s, const sd_batch *const *batches, sd_step *step, bool alone, sodet_err *err)
{
    sodet_status status = begin_gradients(s, batches, step, false, err);
    return status == SODET_OK && !step->given_up ? begin_update(s, step, alone, err) : status;
}

sodet_status sd_stepper_step(sd_stepper *s, const sd_batch *const *batches, sd_step *step, sodet_err *err)
{
    sodet_status status = sd_stepper_begin_step(s, batches, step, true, err);
    return status == SODET_OK && !step->given_up ? sd_stepper_finish(s, step, err) : status;
}

bool sd_stepper_runs_ahead(const sd_stepper *s)
{
    return sd_replica_fetches(sd_device_pool_replica(s->config.pool, 0), 2 + s->losses);
}

sodet_status sd_stepper_share_statistics(sd_stepper *s, sodet_err *err)
{
    if (s->n == 1 || !s->buffers_n || s->options.norm != SD_NORM_TRAIN)
        return SODET_OK;
    void *values = sd_alloc((size_t)s->buffers_n, sizeof(double));
    if (!values)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the running statistics");
    sodet_status status = sd_device_pool_read_raw(s->config.pool, SD_ARENA_FROZEN, s->buffers_first, s->buffers_n, values, err);
    if (status == SODET_OK)
        status = sd_device_pool_write_raw(s->config.pool, SD_ARENA_FROZEN, s->buffers_first, s->buffers_n, values, err);
    sd_free(values);
    return status;
}

void sd_stepper_stop_by(sd_stepper *s, const volatile sig_atomic_t *stop)
{
    s->stop = stop;
}

/* ---- who is to blame ---- */
typedef struct blame {
    sd_stepper *s;
    sodet_graph *graph;
    char layer[256];
} blame;

/* Gradients in the order in which backward finishes them: the first that is not finite is nearest to where it began. */
static void blame_gradient(sd_stepper *s, sd_replica *r, char *name, size_t room, sodet_err *err)
{
    uint32_t arena = s->slots.accumulator == UINT32_MAX ? (uint32_t)SD_ARENA_GRAD : SD_ARENA_STATE + s->slots.accumulator;
    for (uint32_t i = 0; i < s->segments.n_trainable && !name[0]; i++) {
        const sd_segment *x = &s->segments.segment[i];
        float *values = sd_alloc((size_t)x->n, sizeof *values);
        if (!values || sd_replica_read(r, arena, x->offset, x->n, values, err) != SODET_OK)
            i = s->segments.n_trainable;
        for (uint64_t k = 0; i < s->segments.n_trainable && k < x->n && !name[0]; k++)
            if (!isfinite(values[k]))
                snprintf(name, room, "the gradient of %.200s", x->name);
        sd_free(values);
    }
}

static sodet_status blame_job(sd_replica *r, void *context, sodet_err *err)
{
    blame *b = context;
    sd_program *p = NULL;
    sodet_graph *g = b->graph;
    b->graph = NULL;
    sodet_status status = sd_program_make(r, g, SD_ARENA_PARAM, &p, err);
    if (status == SODET_OK)
        status = write_batch(b->s, &b->s->shares[0], p, err);
    if (status == SODET_OK)
        status = sd_program_run(p, (uint64_t)b->s->config.core->run.seed, b->s->step, NULL, err);
    for (uint32_t i = 0; status == SODET_OK && !b->layer[0] && i < sd_graph_output_count(g); i++) {
        sodet_value v;
        const char *name = sd_graph_output_name(g, i, &v);
        sodet_shape shape = sodet_shape_of(g, v);
        uint64_t n = (uint64_t)sodet_elements(&shape);
        if (shape.dtype != SODET_F32 || strncmp(name, "blame/", 6) != 0)
            continue;
        float *values = sd_alloc((size_t)n, sizeof *values);
        status = values ? sd_program_read(p, name, values, n, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
        for (uint64_t k = 0; status == SODET_OK && k < n && !b->layer[0]; k++)
            if (!isfinite(values[k]))
                snprintf(b->layer, sizeof b->layer, "the output of %.200s", strchr(name + 6, '/') + 1);
        sd_free(values);
    }
    sd_program_free(p);
    if (!b->layer[0])
        blame_gradient(b->s, r, b->layer, sizeof b->layer, err);
    /* A diagnosis that fails must not break the pool. What was before the step is still in the update's input. */
    return b->s->buffers_n ? sd_program_give(b->s->shares[0].update, "kept", r->arena[SD_ARENA_FROZEN].memory, b->s->buffers_first,
                                             b->s->buffers_n, err)
                           : SODET_OK;
}

static void name_pictures(const sd_batch *const *batches, uint32_t n, const sd_dataset *dataset, sd_text *out)
{
    sd_text_printf(out, "pictures of the batch:");
    uint32_t shown = 0, all = 0;
    for (uint32_t k = 0; k < n; k++) {
        const sd_batch *b = batches[k];
        uint64_t row = b->picture_bytes ? 0 : (uint64_t)b->channels * b->height * b->width; /* bytes are finite */
        for (uint32_t i = 0; i < b->n; i++, all++) {
            bool bad = false;
            for (uint64_t e = 0; e < row && !bad; e++)
                bad = !isfinite(b->image[i * row + e]);
            if (shown < 8 || bad)
                sd_text_printf(out, "%s %s%s", shown ? "," : "", sd_dataset_item(dataset, b->items[i].sample)->id,
                               bad ? " (its pixels are not finite)" : "");
            shown++;
        }
    }
    if (all > 8)
        sd_text_printf(out, " and %u more", all - 8);
}

static void name_layer(sd_stepper *s, const sd_batch *const *batches, uint32_t n, sd_text *out)
{
    if (s->n > 1) /* the other devices would not join its collectives */
        return;
    blame b = {.s = s};
    sd_graph_options options = s->options;
    sd_model_shape shape = {.batch = s->shares[0].rows,
                            .height = batches[n - 1]->height,
                            .width = batches[n - 1]->width,
                            .boxes = s->config.boxes ? s->config.boxes : 1,
                            .picture_bytes = s->config.picture_bytes};
    if (sd_model_build(s->config.model, &options, &shape, &b.graph, NULL) != SODET_OK)
        return;
    uint32_t nodes = sodet_graph_node_count(b.graph);
    for (uint32_t i = 0; i < nodes; i++) {
        const sodet_node *node = sodet_graph_node(b.graph, i);
        char name[280];
        snprintf(name, sizeof name, "blame/%u/%.250s", i, node->layer && node->layer[0] ? node->layer : node->op->name);
        if (node->n_out && node->out[0].id && node->out_shape[0].dtype == SODET_F32)
            sodet_output(b.graph, name, node->out[0]);
    }
    if (sd_graph_bind(b.graph, &s->segments, NULL) != SODET_OK) {
        sd_graph_free(b.graph);
        return;
    }
    sd_device_pool_run_one(s->config.pool, 0, blame_job, &b, NULL);
    if (b.layer[0])
        sd_text_printf(out, "the first that is not finite is %s; ", b.layer);
}

void sd_stepper_blame(sd_stepper *s, const sd_batch *const *batches, uint32_t n, const sd_dataset *dataset, sd_text *out)
{
    name_layer(s, batches, n, out); /* first: there may be room for some of the pictures only */
    name_pictures(batches, n, dataset, out);
}
