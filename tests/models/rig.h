/* rig.h: a model on one device, with weights that a test chooses: what the tests that run networks share. */
#ifndef SODET_TESTS_RIG_H
#define SODET_TESTS_RIG_H

#include "core/device/pool.h"
#include "core/device/program.h"
#include "golden.h"
#include "models.h"

typedef struct rig {
    test_model m;
    sd_device_pool *pool;
    sd_segments segments;
    sd_program *program;
    sodet_graph *graph; /* the program's, once it is made */
} rig;

typedef struct rig_io { /* an input to write or an output to read; name NULL ends a list */
    const char *name;
    const void *in;
    void *out;
    uint64_t n;
} rig_io;

static inline sodet_status rig_make_job(sd_replica *r, void *context, sodet_err *err)
{
    rig *t = context;
    sodet_graph *g = t->graph;
    t->graph = NULL; /* taken over */
    return sd_program_make(r, g, SD_ARENA_PARAM, &t->program, err);
}

static inline sodet_status rig_free_job(sd_replica *r, void *context, sodet_err *err)
{
    (void)r;
    (void)err;
    sd_program_free(((rig *)context)->program);
    ((rig *)context)->program = NULL;
    return SODET_OK;
}

typedef struct rig_run_context {
    rig *t;
    const rig_io *io;
} rig_run_context;

static inline sodet_status rig_run_job(sd_replica *r, void *context, sodet_err *err)
{
    (void)r;
    rig_run_context *c = context;
    sodet_status s = SODET_OK;
    for (const rig_io *io = c->io; io->name && s == SODET_OK; io++) {
        if (io->in && sd_program_has_input(c->t->program, io->name))
            s = sd_program_write(c->t->program, io->name, io->in, io->n, err);
    }
    if (s == SODET_OK)
        s = sd_program_run(c->t->program, 1, 0, NULL, err);
    for (const rig_io *io = c->io; io->name && s == SODET_OK; io++) {
        if (io->out)
            s = sd_program_read(c->t->program, io->name, io->out, io->n, err);
    }
    return s;
}

/* Segments, device and program of t->graph, which is taken over; parameters are zero. Training graphs are differentiated first. */
static inline sodet_status rig_start(rig *t, sodet_err *err)
{
    const bool training = sd_graph_get_options(t->graph)->training;
    sodet_status s = sd_graph_optimize(t->graph, err);
    if (s == SODET_OK && training)
        s = sd_graph_backward(t->graph, err);
    if (s == SODET_OK)
        s = sd_segments_make(t->graph, &t->segments, err);
    if (s == SODET_OK)
        s = sd_graph_bind(t->graph, &t->segments, err);
    if (s == SODET_OK)
        s = sd_device_pool_open(t->m.cfg, &t->pool, err);
    if (s == SODET_OK)
        s = sd_device_pool_arenas(t->pool, &t->segments, training, 0, err);
    if (s == SODET_OK)
        s = sd_device_pool_run_one(t->pool, 0, rig_make_job, t, err);
    return s;
}

/* The whole network. */
static inline sodet_status rig_open(rig *t, const char *base, const char *const *overrides, uint32_t classes,
                                    const sd_graph_options *options, const sd_model_shape *shape, sodet_err *err)
{
    *t = (rig){0};
    sodet_status s = test_model_open(&t->m, base, overrides, classes, err);
    if (s == SODET_OK)
        s = sd_model_build(t->m.model, options, shape, &t->graph, err);
    return s == SODET_OK ? rig_start(t, err) : s;
}

static inline void rig_close(rig *t)
{
    sodet_err err = SODET_ERR_INIT;
    if (t->program)
        sd_device_pool_run_one(t->pool, 0, rig_free_job, t, &err);
    sd_graph_free(t->graph);
    sd_device_pool_close(t->pool);
    sd_segments_free(&t->segments);
    test_model_close(&t->m);
}

static inline sodet_status rig_run(rig *t, const rig_io *io, sodet_err *err)
{
    rig_run_context c = {t, io};
    return sd_device_pool_run_one(t->pool, 0, rig_run_job, &c, err);
}

static inline sodet_status rig_set(rig *t, const sd_segment *s, const float *values, sodet_err *err)
{
    return sd_device_pool_write(t->pool, s->frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, s->offset, s->n, values, err);
}

/* ---- names ---- */
/* text = pattern with stars filled from `with` (in order). */
static inline void rig_fill_stars(const char *pattern, char with[][128], char *out, size_t room)
{
    size_t n = 0, star = 0;
    for (; *pattern && n + 1 < room; pattern++) {
        if (*pattern != '*') {
            out[n++] = *pattern;
            continue;
        }
        for (const char *p = with[star++]; *p && n + 1 < room; p++)
            out[n++] = *p;
    }
    out[n] = '\0';
}

/* Matches, a star being the shortest text; what each stood for goes to `stars`. */
static inline bool rig_match(const char *pattern, const char *text, char stars[][128], uint32_t star)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern != '*')
        return *pattern == *text && rig_match(pattern + 1, text + 1, stars, star);
    for (size_t n = 0; n < 127; n++) {
        memcpy(stars[star], text, n);
        stars[star][n] = '\0';
        if (rig_match(pattern + 1, text + n, stars, star + 1))
            return true;
        if (!text[n])
            return false;
    }
    return false;
}

/* The name that the file conf/maps/<map> gives ours on the other side (the map read backwards); false if no line has it. */
static inline bool rig_their_name(const char *map, const char *ours, char *out, size_t room)
{
    char line[512], left[256], right[256], stars[8][128], path[256];
    snprintf(path, sizeof path, "conf/maps/%s", map);
    FILE *f = fopen(check_source(path), "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || sscanf(line, "%255s -> %255s", left, right) != 2 || strcmp(right, "-") == 0)
            continue;
        found = rig_match(right, ours, stars, 0);
        if (found)
            rig_fill_stars(left, stars, out, room);
    }
    if (f)
        fclose(f);
    return found;
}

/* Every parameter and buffer by the golden formula, under the names of the map's other side. */
static inline void rig_fill_golden(rig *t, const char *map, double gain)
{
    sodet_err err = SODET_ERR_INIT;
    for (uint32_t i = 0; i < t->segments.n; i++) {
        const sd_segment *s = &t->segments.segment[i];
        char theirs[256], sibling[256];
        bool norm = false;
        size_t n = strlen(s->name);
        if (!rig_their_name(map, s->name, theirs, sizeof theirs)) {
            check_count();
            check_fail(__FILE__, __LINE__, "conf/maps/%s has no line for %s", map, s->name);
            continue;
        }
        if (n > 5 && strcmp(s->name + n - 5, "/bias") == 0) {
            snprintf(sibling, sizeof sibling, "%.*s/weight", (int)(n - 5), s->name);
            const sd_segment *weight = sd_segments_find(&t->segments, sibling);
            norm = weight && weight->shape.rank == 1;
        }
        uint64_t dims[SODET_MAX_RANK];
        for (uint32_t d = 0; d < s->shape.rank; d++)
            dims[d] = (uint64_t)s->shape.dim[d];
        float *values = malloc(s->n * sizeof *values);
        gold_fill_state(values, theirs, dims, s->shape.rank, gain, norm);
        CHECK_OK(rig_set(t, s, values, &err));
        free(values);
    }
}

#endif
