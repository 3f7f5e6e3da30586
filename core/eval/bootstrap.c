#include "core/eval/bootstrap.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- drawing images ---- */
static void *copied(sd_resample *r, uint32_t slot, const void *from, size_t size, const uint64_t *first, const uint64_t *picks, uint64_t n,
                    uint64_t total)
{
    char *to = sd_alloc(total + 1, size);
    r->memory[slot] = to;
    for (uint64_t i = 0; to && i < n; i++) {
        uint64_t k = first[picks[i] + 1] - first[picks[i]];
        if (k)
            memcpy(to, (const char *)from + first[picks[i]] * size, k * size);
        to += k * size;
    }
    return r->memory[slot];
}

static uint64_t *starts(sd_resample *r, uint32_t slot, const uint64_t *first, const uint64_t *picks, uint64_t n)
{
    uint64_t *out = sd_alloc(n + 1, sizeof *out);
    r->memory[slot] = out;
    for (uint64_t i = 0; out && i < n; i++)
        out[i + 1] = out[i] + first[picks[i] + 1] - first[picks[i]];
    return out;
}

sodet_status sd_resample_make(const sodet_eval_input *in, const uint64_t *picks, uint64_t n, sd_resample *r, sodet_err *err)
{
    memset(r, 0, sizeof *r);
    r->in = *in;
    r->in.n_images = n;
    const uint64_t *o = starts(r, 0, in->object_first, picks, n), *d = starts(r, 1, in->detection_first, picks, n);
    bool good = o && d;
    if (good) {
        r->in.object_first = o;
        r->in.detection_first = d;
        r->in.objects = copied(r, 2, in->objects, sizeof *in->objects, in->object_first, picks, n, o[n]);
        r->in.detections = copied(r, 3, in->detections, sizeof *in->detections, in->detection_first, picks, n, d[n]);
        good = r->in.objects && r->in.detections;
    }
    if (good && in->object_xywh)
        good = (r->in.object_xywh = copied(r, 4, in->object_xywh, 4 * sizeof(double), in->object_first, picks, n, o[n])) != NULL;
    if (good && in->detection_xywh)
        good = (r->in.detection_xywh = copied(r, 5, in->detection_xywh, 4 * sizeof(double), in->detection_first, picks, n, d[n])) != NULL;
    if (good && in->detection_scores)
        good = (r->in.detection_scores = copied(r, 6, in->detection_scores, sizeof(double), in->detection_first, picks, n, d[n])) != NULL;
    if (good)
        return SODET_OK;
    sd_resample_free(r);
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: drawing %llu images", (unsigned long long)n);
}

void sd_resample_free(sd_resample *r)
{
    for (uint32_t i = 0; i < 7; i++)
        sd_free(r->memory[i]);
    memset(r, 0, sizeof *r);
}

/* ---- the differences ---- */
typedef struct draws {
    const sd_bootstrap *q;
    double *difference; /* [metrics][draws] */
    atomic_int failed;
    sodet_err err; /* of the first that failed */
} draws;

static bool defined(double v)
{
    return isfinite(v) && v >= 0;
}

static sodet_status judge(const sd_bootstrap *q, const sodet_eval_input *in, const uint64_t *picks, sodet_eval_sink *sink, sodet_err *err)
{
    sd_resample r;
    sodet_status s = sd_resample_make(in, picks, in->n_images, &r, err);
    if (s != SODET_OK)
        return s;
    r.in.n_threads = 1; /* the draws themselves run side by side */
    s = sd_evaluate(q->evaluator, &r.in, sink, err);
    sd_resample_free(&r);
    return s;
}

static void one_draw(void *context, uint64_t i)
{
    draws *x = context;
    const sd_bootstrap *q = x->q;
    sodet_stream stream = sd_stream(q->seed, 0, i, 0);
    sodet_eval_sink a = {.n = 0}, b = {.n = 0};
    sodet_err err = SODET_ERR_INIT;
    uint64_t n = q->a->n_images, *picks = sd_alloc(n + 1, sizeof *picks);
    sodet_status s = picks ? SODET_OK : SODET_FAIL(&err, SODET_E_MEMORY, "out of memory: drawing images");
    for (uint64_t k = 0; s == SODET_OK && k < n; k++)
        picks[k] = sodet_stream_below(&stream, (uint32_t)n);
    if (s == SODET_OK)
        s = judge(q, q->a, picks, &a, &err);
    if (s == SODET_OK)
        s = judge(q, q->b, picks, &b, &err);
    for (uint64_t k = 0; s == SODET_OK && k < q->n_metrics; k++) {
        bool both = k < a.n && k < b.n && defined(a.metrics[k].value) && defined(b.metrics[k].value);
        x->difference[k * q->draws + i] = both ? b.metrics[k].value - a.metrics[k].value : (double)NAN;
    }
    if (s != SODET_OK && !atomic_exchange(&x->failed, s))
        x->err = err;
    sd_eval_sink_clear(&a);
    sd_eval_sink_clear(&b);
    sd_free(picks);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Linear between the two nearest of n sorted values. */
static double quantile(const double *v, uint64_t n, double at)
{
    double place = at * (double)(n - 1);
    uint64_t k = (uint64_t)place;
    return k + 1 < n ? v[k] + (place - (double)k) * (v[k + 1] - v[k]) : v[n - 1];
}

sodet_status sd_bootstrap_run(const sd_bootstrap *q, sd_interval *intervals, sodet_err *err)
{
    draws x = {.q = q, .difference = sd_alloc(q->n_metrics * q->draws + 1, sizeof(double)), .err = SODET_ERR_INIT};
    if (!x.difference)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu draws", (unsigned long long)q->draws);
    sodet_status s = SODET_OK;
    if (q->a->n_images != q->b->n_images || q->a->n_images > UINT32_MAX || !q->a->n_images)
        s = SODET_FAIL(err, SODET_E_INVALID, "%llu and %llu images cannot be drawn from in pairs", (unsigned long long)q->a->n_images,
                       (unsigned long long)q->b->n_images);
    if (s == SODET_OK)
        sodet_eval_parallel(q->n_threads, q->draws, one_draw, &x);
    if (s == SODET_OK && atomic_load(&x.failed))
        s = SODET_FAIL(err, (sodet_status)atomic_load(&x.failed), "%s", x.err.text);
    for (uint64_t k = 0; s == SODET_OK && k < q->n_metrics; k++) {
        double *d = x.difference + k * q->draws;
        uint64_t n = 0;
        for (uint64_t i = 0; i < q->draws; i++)
            if (isfinite(d[i]))
                d[n++] = d[i];
        qsort(d, n, sizeof *d, rising);
        intervals[k] = (sd_interval){(double)NAN, (double)NAN, n};
        if (n) {
            intervals[k].low = quantile(d, n, (1 - q->share) / 2);
            intervals[k].high = quantile(d, n, (1 + q->share) / 2);
        }
    }
    sd_free(x.difference);
    return s;
}
