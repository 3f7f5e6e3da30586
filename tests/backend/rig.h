/* rig.h: runs one graph on a backend, with nothing of the device pool between: random parameters and inputs that depend on names alone,
 * outputs and gradients read back. For tests/backend. */
#ifndef TESTS_BACKEND_RIG_H
#define TESTS_BACKEND_RIG_H

#include "check.h"
#include "core/graph/graph.h"
#include "core/plugin/plugin.h"
#include "kernels/narrow.h"

typedef struct rig {
    sd_config *cfg;
    sd_instance backend;
    const sodet_backend_ops *ops;
    void *device;
    bool coarse; /* parameters and inputs are rounded to what bf16 holds */
} rig;

/* more: further lines of the INI, e.g. "[backend.cpu]\nwinograd = never\n"; or "". The status is open's. */
static inline sodet_status rig_open_as(rig *r, const char *name, uint32_t threads, const char *more, uint32_t precision, sodet_err *err)
{
    char text[512], section[64];
    *r = (rig){.coarse = precision != SODET_PRECISION_FP32};
    int n = snprintf(text, sizeof text, "[run]\ndevices = %s\n%s", name, more);
    snprintf(section, sizeof section, "backend.%s", name);
    sodet_status s = sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &r->cfg, err);
    if (s == SODET_OK)
        s = sd_instance_create(r->cfg, section, &r->backend, err);
    if (s != SODET_OK)
        return s;
    r->ops = r->backend.ops;
    const sodet_device_options o = {.struct_size = sizeof o, .threads = threads, .world = 1, .precision = precision};
    return r->ops->open(r->backend.self, 0, &o, &r->device, err);
}

static inline sodet_status rig_open_more(rig *r, const char *name, uint32_t threads, const char *more, sodet_err *err)
{
    return rig_open_as(r, name, threads, more, SODET_PRECISION_FP32, err);
}

static inline void rig_open(rig *r, const char *name, uint32_t threads)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_status s = rig_open_more(r, name, threads, "", &err);
    CHECK_OK(s);
    if (s != SODET_OK)
        exit(check_done(1));
}

static inline void rig_close(rig *r)
{
    if (r->device)
        r->ops->close(r->device);
    sd_instance_destroy(&r->backend);
    if (r->cfg)
        sd_config_close(r->cfg);
}

typedef struct rig_program {
    rig *r;
    const sodet_graph *g;
    sd_segments segments;
    sodet_plan plan;
    void *param, *frozen, *grad, *work, *own, *handle;
    uint64_t work_bytes, own_bytes;
} rig_program;

/* Values in (-1, 1) by position, of a stream that the name chooses. */
static inline void rig_fill(float *v, int64_t n, const char *name)
{
    uint64_t key = sd_fnv1a64(name, strlen(name), SD_FNV_START);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(sd_mix64(key + (uint64_t)i) >> 40) * 0x1p-23f - 1.0f;
}

static inline void rig_round(const rig *r, float *v, uint64_t n)
{
    for (uint64_t i = 0; r->coarse && i < n; i++)
        v[i] = narrow_value(narrow_bits(v[i]));
}

/* The graph is sealed by the first call. Parameters: random, of size 1/sqrt(fan in); buffers: running means 0.1 * random, others in [0.5, 1.5). */
static inline sodet_status rig_make(rig *r, sodet_graph *g, rig_program *p, sodet_err *err)
{
    *p = (rig_program){.r = r, .g = g};
    sodet_status s = sd_segments_make(g, &p->segments, err);
    if (s == SODET_OK)
        s = sd_graph_bind(g, &p->segments, err);
    if (s == SODET_OK)
        s = r->ops->prepare(r->device, g, &p->plan, err);
    if (s == SODET_OK)
        s = sd_plan_memory(&p->plan, &p->work_bytes, &p->own_bytes, err);
    if (s != SODET_OK)
        return s;
    uint64_t np = p->segments.param_elements, nf = p->segments.frozen_elements;
    s = r->ops->alloc(r->device, np * 4 + 64, &p->param, err);
    s = s ? s : r->ops->alloc(r->device, np * 4 + 64, &p->grad, err);
    s = s ? s : r->ops->alloc(r->device, nf * 4 + 64, &p->frozen, err);
    s = s ? s : r->ops->alloc(r->device, p->work_bytes + 64, &p->work, err);
    s = s ? s : r->ops->alloc(r->device, p->own_bytes + 64, &p->own, err);
    if (s != SODET_OK)
        return s;
    for (uint32_t i = 0; i < p->segments.n; i++) {
        const sd_segment *segment = &p->segments.segment[i];
        float *v = malloc((size_t)segment->n * sizeof *v + 4);
        rig_fill(v, (int64_t)segment->n, segment->name);
        int64_t fan = segment->shape.rank > 1 ? (int64_t)segment->n / segment->shape.dim[0] : 1;
        bool mean = strstr(segment->name, "mean") != NULL;
        for (uint64_t k = 0; k < segment->n; k++)
            v[k] = segment->buffer            ? mean ? 0.1f * v[k] : 1 + 0.5f * v[k]
                              : segment->shape.rank == 1 ? 0.5f + 0.4f * v[k]
                                              : v[k] / sqrtf((float)fan);
        rig_round(r, v, segment->n);
        s = r->ops->upload(r->device, segment->frozen ? p->frozen : p->param, segment->offset * 4, v, segment->n * 4, err);
        free(v);
        if (s != SODET_OK)
            return s;
    }
    sodet_binding b = {.struct_size = sizeof b, .param = p->param, .frozen = p->frozen, .grad = p->grad, .work = p->work, .own = p->own};
    s = r->ops->bind(r->device, &p->plan, &b, &p->handle, err);
    if (s != SODET_OK)
        return s;
    for (uint32_t v = 1; v <= sodet_graph_value_count(g); v++) {
        const sodet_value_info *info = sodet_graph_value(g, (sodet_value){v});
        if (info->store != SODET_STORE_INPUT)
            continue;
        int64_t n = sodet_elements(&info->shape);
        float *data = malloc((size_t)n * 4 + 4);
        rig_fill(data, n, info->name);
        rig_round(r, data, (uint64_t)n);
        s = r->ops->upload(r->device, r->ops->address(p->handle, (sodet_value){v}), 0, data, (uint64_t)n * 4, err);
        free(data);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static inline sodet_status rig_run(rig_program *p, sodet_err *err)
{
    const sodet_run run = {.struct_size = sizeof run, .flags = SODET_RUN_WEIGHTS_CHANGED, .seed = 1, .step = 1};
    return p->r->ops->run(p->handle, &run, err);
}

static inline void rig_free(rig_program *p)
{
    rig *r = p->r;
    if (p->handle)
        r->ops->unbind(p->handle);
    if (p->plan.handle)
        r->ops->discard(r->device, &p->plan);
    uint64_t np = p->segments.param_elements * 4 + 64;
    r->ops->release(r->device, p->param, np);
    r->ops->release(r->device, p->grad, np);
    r->ops->release(r->device, p->frozen, p->segments.frozen_elements * 4 + 64);
    r->ops->release(r->device, p->work, p->work_bytes + 64);
    r->ops->release(r->device, p->own, p->own_bytes + 64);
    sd_segments_free(&p->segments);
}

static inline float *rig_read(rig_program *p, const void *from, uint64_t offset, int64_t n)
{
    float *v = calloc((size_t)n + 1, sizeof *v);
    sodet_err err = SODET_ERR_INIT;
    CHECK_OK(p->r->ops->download(p->r->device, from, offset * 4, v, (uint64_t)n * 4, &err));
    return v;
}

/* Runs the graph on both, and compares every F32 output, gradient and buffer: the largest error over the largest value. */
static inline double rig_compare(rig *got, rig *want, sodet_graph *g, double tolerance, const char *what)
{
    sodet_err err = SODET_ERR_INIT;
    rig_program a, b;
    double worst = 0;
    sodet_status s = rig_make(want, g, &b, &err);
    if (s == SODET_OK)
        s = rig_run(&b, &err);
    sodet_status s2 = s == SODET_OK ? rig_make(got, g, &a, &err) : s;
    if (s == SODET_OK && s2 == SODET_OK)
        s2 = rig_run(&a, &err);
    check_count();
    if (s != SODET_OK || s2 != SODET_OK) {
        check_fail(__FILE__, __LINE__, "%s: status %d/%d: %s", what, (int)s, (int)s2, err.text);
        return INFINITY;
    }
    for (uint32_t i = 0; i < sd_graph_output_count(g); i++) {
        sodet_value v;
        const char *name = sd_graph_output_name(g, i, &v);
        const sodet_shape *shape = &sodet_graph_value(g, v)->shape;
        int64_t n = sodet_elements(shape);
        if (shape->dtype != SODET_F32 || n == 0)
            continue;
        float *x = rig_read(&a, a.r->ops->address(a.handle, v), 0, n), *y = rig_read(&b, b.r->ops->address(b.handle, v), 0, n);
        double off = check_worst(x, y, n);
        check_count();
        if (!(off <= tolerance))
            check_fail(__FILE__, __LINE__, "%s: output %s is off by %.3g, %.3g allowed", what, name, off, tolerance);
        worst = off > worst ? off : worst;
        free(x);
        free(y);
    }
    for (uint32_t i = 0; i < a.segments.n; i++) {
        const sd_segment *segment = &a.segments.segment[i];
        if (segment->frozen && !segment->buffer)
            continue;
        float *x = rig_read(&a, segment->frozen ? a.frozen : a.grad, segment->offset, (int64_t)segment->n);
        float *y = rig_read(&b, segment->frozen ? b.frozen : b.grad, segment->offset, (int64_t)segment->n);
        double off = check_worst(x, y, (int64_t)segment->n);
        check_count();
        if (!(off <= tolerance))
            check_fail(__FILE__, __LINE__, "%s: %s of %s is off by %.3g, %.3g allowed", what,
                       segment->buffer ? "the new value" : "the gradient", segment->name, off, tolerance);
        worst = off > worst ? off : worst;
        free(x);
        free(y);
    }
    rig_free(&a);
    rig_free(&b);
    return worst;
}

static inline sodet_graph *rig_graph(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(&(sd_graph_options){.training = training}, &g, &err));
    return g;
}

static inline sodet_value rig_input(sodet_graph *g, const char *name, int64_t n, int64_t c, int64_t h, int64_t w)
{
    sodet_shape shape = sodet_shape_make(SODET_F32, 4, n, c, h, w);
    return sodet_input(g, name, &shape);
}

#endif
