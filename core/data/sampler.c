#include "core/data/sampler.h"

#include <string.h>

#include "core/data/loader.h"
#include "sodet/data.h"

/* Streams of the sampler lie beside those of the samples: no sample has this number. */
#define ORDER_STREAM UINT64_MAX
#define BATCH_STREAM (UINT64_MAX - 1)

enum { MOST_DIFFERENT = 256 };

typedef struct shape {
    uint32_t width, height;
    uint64_t n;
    uint32_t into; /* index of the group it has been merged into */
    bool gone;
} shape;

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Pixels of padding that joining two shapes adds. */
static double cost(const shape *a, const shape *b)
{
    double area = (double)greater(a->width, b->width) * greater(a->height, b->height);
    return (area - (double)a->width * a->height) * (double)a->n + (area - (double)b->width * b->height) * (double)b->n;
}

static void merge_shapes(shape *shapes, uint32_t n, uint32_t most)
{
    for (uint32_t left = n; left > most; left--) {
        double best = 0;
        uint32_t a = 0, b = 0;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = i + 1; k < n && !shapes[i].gone; k++) {
                if (shapes[k].gone)
                    continue;
                double c = cost(&shapes[i], &shapes[k]);
                if (b == 0 || c < best) {
                    best = c;
                    a = i;
                    b = k;
                }
            }
        }
        shapes[a].width = greater(shapes[a].width, shapes[b].width);
        shapes[a].height = greater(shapes[a].height, shapes[b].height);
        shapes[a].n += shapes[b].n;
        shapes[b].gone = true;
        shapes[b].into = a;
    }
}

static uint64_t batches_of(const sd_sampler *s, uint64_t n)
{
    return s->last == SD_LAST_DROP ? n / s->batch : (n + s->batch - 1) / s->batch;
}

/* The shapes of all samples, at most MOST_DIFFERENT: sides are rounded up to 1, 2, 4 ... until that is so. shape_of: of each sample. */
static uint32_t find_shapes(const uint32_t *widths, const uint32_t *heights, uint64_t n, shape shapes[MOST_DIFFERENT], uint32_t *shape_of)
{
    for (uint64_t unit = 1;; unit *= 2) {
        uint32_t n_shapes = 0;
        uint64_t i = 0;
        for (; i < n; i++) {
            uint32_t w = (uint32_t)((widths[i] + unit - 1) / unit * unit), h = (uint32_t)((heights[i] + unit - 1) / unit * unit), k = 0;
            while (k < n_shapes && (shapes[k].width != w || shapes[k].height != h))
                k++;
            if (k == MOST_DIFFERENT)
                break;
            if (k == n_shapes)
                shapes[n_shapes++] = (shape){.width = w, .height = h};
            shapes[k].n++;
            shape_of[i] = k;
        }
        if (i == n)
            return n_shapes;
    }
}

sodet_status sd_sampler_open(sd_sampler *s, const uint32_t *widths, const uint32_t *heights, uint64_t n, uint32_t max_shapes, uint64_t seed,
                             uint32_t batch, uint32_t shuffle, uint32_t last, sodet_err *err)
{
    *s = (sd_sampler){.seed = seed, .batch = batch, .shuffle = shuffle, .last = last, .n_members = n};
    sodet_status status = SODET_OK;
    uint32_t group_of[MOST_DIFFERENT] = {0};
    uint64_t fill[MOST_DIFFERENT];
    shape *shapes = sd_alloc(MOST_DIFFERENT, sizeof *shapes);
    uint32_t *shape_of = sd_alloc(n, sizeof *shape_of), n_shapes = 0;
    s->members = sd_alloc(n, sizeof *s->members);
    if (shapes && shape_of && s->members) {
        n_shapes = find_shapes(widths, heights, n, shapes, shape_of);
        merge_shapes(shapes, n_shapes, max_shapes ? max_shapes : 8);
        s->groups = sd_alloc(n_shapes, sizeof *s->groups);
    }
    if (!s->groups) {
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for the order of %llu samples", (unsigned long long)n);
        goto done;
    }
    uint64_t first = 0;
    for (uint32_t k = 0; k < n_shapes; k++) {
        if (shapes[k].gone)
            continue;
        uint32_t g = s->n_groups++;
        group_of[k] = g;
        fill[g] = first;
        s->groups[g] = (sd_group){shapes[k].width, shapes[k].height, first, shapes[k].n, batches_of(s, shapes[k].n)};
        first += shapes[k].n;
        s->steps += s->groups[g].batches;
        s->samples += last == SD_LAST_KEEP ? shapes[k].n : s->groups[g].batches * batch;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = shape_of[i];
        while (shapes[k].gone)
            k = shapes[k].into;
        s->members[fill[group_of[k]]++] = i;
    }
    if (s->steps == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "%llu sample%s make no whole batch of %u; use a smaller batch, or keep the last one",
                            (unsigned long long)n, n == 1 ? "" : "s", batch);
done:
    sd_free(shapes);
    sd_free(shape_of);
    if (status != SODET_OK)
        sd_sampler_close(s);
    return status;
}

void sd_sampler_close(sd_sampler *s)
{
    sd_free(s->groups);
    sd_free(s->members);
    *s = (sd_sampler){0};
}

void sd_plan_free(sd_plan *p)
{
    sd_free(p->order);
    sd_free(p->repeat);
    sd_free(p->batches);
    sd_free(p->consumed);
    *p = (sd_plan){0};
}

sodet_status sd_sampler_plan(const sd_sampler *s, uint64_t epoch, sd_plan *p, sodet_err *err)
{
    uint64_t room = s->n_members + (uint64_t)s->n_groups * s->batch;
    if (!p->order) {
        p->order = sd_alloc(room, sizeof *p->order);
        p->repeat = sd_alloc(room, sizeof *p->repeat);
        p->batches = sd_alloc(s->steps, sizeof *p->batches);
        p->consumed = sd_alloc(s->steps, sizeof *p->consumed);
        if (!p->order || !p->repeat || !p->batches || !p->consumed)
            return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the order of %llu samples", (unsigned long long)s->n_members);
    }
    p->epoch = epoch;
    memset(p->repeat, 0, room * sizeof *p->repeat);
    uint64_t at = 0, step = 0;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        const sd_group *group = &s->groups[g];
        uint64_t *order = p->order + at, n = group->n;
        memcpy(order, s->members + group->first, n * sizeof *order);
        if (s->shuffle) {
            sodet_stream r = sd_stream(s->seed, epoch, ORDER_STREAM, g);
            sd_shuffle(order, n, &r);
        }
        for (uint64_t k = 0; s->last == SD_LAST_WRAP && n < group->batches * s->batch; k++, n++) {
            order[n] = order[k];
            p->repeat[at + n] = k / group->n + 1;
        }
        for (uint64_t b = 0; b < group->batches; b++, step++) {
            uint64_t rows = n - b * s->batch;
            p->batches[step] = (sd_planned){g, (uint32_t)(rows < s->batch ? rows : s->batch), at + b * s->batch};
        }
        at += n;
    }
    if (s->shuffle && s->n_groups > 1) {
        sodet_stream r = sd_stream(s->seed, epoch, BATCH_STREAM, 0);
        for (uint64_t i = s->steps; i > 1; i--) {
            uint64_t j = sodet_stream_below(&r, (uint32_t)i);
            sd_planned t = p->batches[i - 1];
            p->batches[i - 1] = p->batches[j];
            p->batches[j] = t;
        }
    }
    uint64_t consumed = 0;
    for (uint64_t i = 0; i < s->steps; i++)
        p->consumed[i] = consumed += p->batches[i].n;
    return SODET_OK;
}
