#include "core/eval/made.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/coco_write.h"

enum { WIDTH = 640, HEIGHT = 480, KINDS = 4 };

typedef struct shape {
    double x, y, w, h;
    uint32_t label;
} shape;

typedef struct making {
    const sd_made *m;
    sodet_stream r;
    sd_coco_text truth;
    sd_text *results;
    uint64_t *objects; /* [pictures] of each */
    shape *shapes;     /* of the picture in hand */
    uint64_t capacity;
    uint32_t kinds[KINDS]; /* classes of the picture in hand */
} making;

static double between(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Low numbers are the frequent classes. */
static uint32_t some_class(making *k)
{
    double u = sodet_stream_uniform(&k->r, 0, 1);
    return (uint32_t)(u * u * k->m->classes->n);
}

static shape some_shape(making *k)
{
    double size = exp(sd_stream_normal(&k->r) - 2.2), side = exp(sd_stream_normal(&k->r) / 4);
    shape s = {.w = WIDTH * between(size * side, 0.005, 1), .h = HEIGHT * between(size / side, 0.005, 1)};
    s.x = sodet_stream_uniform(&k->r, 0, WIDTH - s.w + 1e-9);
    s.y = sodet_stream_uniform(&k->r, 0, HEIGHT - s.h + 1e-9);
    s.label = k->kinds[sodet_stream_below(&k->r, KINDS)];
    return s;
}

/* Picture i with probability proportional to a weight that is distributed exponentially. */
static sodet_status deal_objects(making *k, sodet_err *err)
{
    uint64_t n = k->m->pictures;
    double *upto = sd_alloc(n, sizeof *upto), sum = 0;
    if (!upto)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu pictures", (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++)
        upto[i] = sum -= log(1 - sodet_stream_uniform(&k->r, 0, 1));
    for (uint64_t o = 0; o < k->m->objects; o++) {
        double at = sodet_stream_uniform(&k->r, 0, sum);
        uint64_t lo = 0, hi = n - 1;
        while (lo < hi) {
            uint64_t middle = lo + (hi - lo) / 2;
            if (upto[middle] > at)
                hi = middle;
            else
                lo = middle + 1;
        }
        k->objects[lo]++;
    }
    sd_free(upto);
    return SODET_OK;
}

static void put_object(making *k, const shape *s)
{
    const double v[4] = {s->x, s->y, s->w, s->h};
    char text[4][32];
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], "%.2f", v[i]);
    const sodet_object o = {.label = (int32_t)s->label,
                            .flags = sodet_stream_chance(&k->r, 0.012) ? SODET_BOX_CROWD : 0u,
                            .area = floor(s->w * s->h * sodet_stream_uniform(&k->r, 0.4, 0.95) * 1e4) / 1e4};
    sd_coco_add_object(&k->truth, &o, (const char *const[4]){text[0], text[1], text[2], text[3]}, k->m->classes);
}

static void put_detection(making *k, uint64_t picture, const shape *s, double score)
{
    sd_text_printf(k->results, "%s\n{\"image_id\": %llu, \"category_id\": %lld, \"bbox\": [%.2f, %.2f, %.2f, %.2f], \"score\": %.3f}",
                   k->results->length ? "," : "[", (unsigned long long)picture + 1, (long long)k->m->classes->category_id[s->label], s->x,
                   s->y, between(s->w, 1, WIDTH), between(s->h, 1, HEIGHT), score);
}

static double moved(making *k, double v, double side)
{
    return v + 0.08 * side * sd_stream_normal(&k->r);
}

/* Either near an object, or anywhere. */
static void some_detection(making *k, uint64_t picture, const shape *near)
{
    if (!near) {
        shape s = some_shape(k);
        if (sodet_stream_chance(&k->r, 0.4))
            s.label = some_class(k);
        put_detection(k, picture, &s, pow(sodet_stream_uniform(&k->r, 0, 1), 3));
        return;
    }
    shape s = {moved(k, near->x, near->w), moved(k, near->y, near->h), moved(k, near->w, near->w), moved(k, near->h, near->h), near->label};
    if (sodet_stream_chance(&k->r, 0.08))
        s.label = some_class(k);
    double low = sodet_stream_uniform(&k->r, 0, 1);
    put_detection(k, picture, &s, 1 - low * low);
}

static sodet_status make_picture(making *k, uint64_t i, sodet_err *err)
{
    const sd_made *m = k->m;
    char name[32];
    uint64_t n = k->objects[i], found = m->detections / m->pictures + (i < m->detections % m->pictures), near = n + n / 3;
    sodet_status s = sd_grow(&k->shapes, &k->capacity, n + 1, sizeof *k->shapes, err);
    if (s != SODET_OK)
        return s;
    for (uint32_t c = 0; c < KINDS; c++)
        k->kinds[c] = some_class(k);
    snprintf(name, sizeof name, "%012llu.jpg", (unsigned long long)i + 1);
    sd_coco_add_image(&k->truth, name, WIDTH, HEIGHT, NULL);
    for (uint64_t o = 0; o < n; o++) {
        k->shapes[o] = some_shape(k);
        put_object(k, &k->shapes[o]);
    }
    for (uint64_t d = 0, used = 0; d < found; d++) { /* sooner or later each object, some of them twice, few not at all */
        bool take = used < near && sodet_stream_below(&k->r, (uint32_t)(found - d)) < near - used;
        const shape *at = take && !sodet_stream_chance(&k->r, 0.2) ? &k->shapes[used % n] : NULL;
        used += take;
        some_detection(k, i, at);
    }
    return SODET_OK;
}

sodet_status sd_make_results(const sd_made *m, sd_text *truth, sd_text *results, sodet_err *err)
{
    making k = {.m = m, .r = sd_stream(m->seed, 0, 0, 0), .results = results, .objects = sd_alloc(m->pictures, sizeof *k.objects)};
    sodet_status s = k.objects ? deal_objects(&k, err) : SODET_FAIL(err, SODET_E_MEMORY, "no memory for a list of pictures");
    for (uint64_t i = 0; i < m->pictures && s == SODET_OK; i++)
        s = make_picture(&k, i, err);
    sd_text_printf(results, "%s\n]\n", results->length ? "" : "[");
    sd_coco_whole(&k.truth, m->classes, truth);
    if (s == SODET_OK && (results->failed || truth->failed))
        s = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu detections", (unsigned long long)m->detections);
    sd_coco_text_free(&k.truth);
    sd_free(k.shapes);
    sd_free(k.objects);
    return s;
}
