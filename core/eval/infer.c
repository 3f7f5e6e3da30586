#include "core/eval/infer.h"

#include <math.h>
#include <string.h>

#include "core/data/send.h"

/* What a device hands back of its rows. */
typedef struct share {
    uint32_t first, rows; /* of the batch */
    uint32_t given;       /* rows of its program: at least one, so that every device runs the same collectives */
    int64_t most;         /* detections per row */
    float *boxes, *scores;
    int32_t *labels, *count;
    uint64_t box_capacity, score_capacity, label_capacity, count_capacity;
} share;

struct sd_infer {
    sd_infer_config config;
    sd_programs *programs;
    uint32_t n; /* devices */
    share *shares;
    sd_program **program;
    const sd_batch *batch;
};

void sd_deal(uint32_t rows, uint32_t n, uint32_t *first)
{
    first[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        first[i + 1] = first[i] + rows / n + (i < rows % n ? 1 : 0);
}

static sodet_status build(void *context, const sd_program_key *key, sodet_graph **out, sodet_err *err)
{
    sd_infer *f = context;
    sd_graph_options o = {.training = false, .world = 1};
    sd_model_shape shape = {
        .batch = key->batch, .height = key->height, .width = key->width, .boxes = 1, .picture_bytes = key->picture_bytes};
    sodet_status s = sd_model_build(f->config.model, &o, &shape, out, err);
    if (s == SODET_OK)
        s = sd_graph_optimize(*out, err);
    if (s == SODET_OK)
        s = sd_graph_bind(*out, f->config.segments, err);
    if (s != SODET_OK) {
        sd_graph_free(*out);
        *out = NULL;
    }
    return s;
}

sodet_status sd_infer_open(const sd_infer_config *config, sd_infer **out, sodet_err *err)
{
    *out = NULL;
    sd_infer *f = sd_alloc(1, sizeof *f);
    uint32_t n = sd_device_pool_count(config->pool);
    if (f) {
        f->config = *config;
        f->n = n;
        f->shares = sd_alloc(n, sizeof *f->shares);
        f->program = sd_alloc(n, sizeof(sd_program *));
    }
    if (!f || !f->shares || !f->program) {
        sd_infer_close(f);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: inference");
    }
    sd_programs_config p = {.pool = config->pool, .build = build, .context = f, .param_arena = config->param_arena};
    sodet_status s = sd_programs_create(&p, &f->programs, err);
    if (s != SODET_OK) {
        sd_infer_close(f);
        return s;
    }
    *out = f;
    return SODET_OK;
}

void sd_infer_close(sd_infer *f)
{
    if (!f)
        return;
    sd_programs_free(f->programs);
    for (uint32_t i = 0; i < f->n && f->shares; i++) {
        sd_free(f->shares[i].boxes);
        sd_free(f->shares[i].scores);
        sd_free(f->shares[i].labels);
        sd_free(f->shares[i].count);
    }
    sd_free(f->shares);
    sd_free(f->program);
    sd_free(f);
}

/* On the device's thread. A device without a row of its own runs the batch's first. */
static sodet_status run_share(sd_replica *r, void *context, sodet_err *err)
{
    sd_infer *f = context;
    share *h = &f->shares[r->index];
    sd_program *p = f->program[r->index];
    const sd_batch *b = f->batch;
    sodet_status s = sd_batch_send(b, h->rows ? h->first : 0, h->given, p, err);
    if (s == SODET_OK)
        s = sd_program_run(p, 0, 0, NULL, err);
    if (s != SODET_OK || !h->rows)
        return s;
    const sodet_graph *g = sd_program_graph(p);
    sodet_value scores = sd_graph_find_output(g, "detections/scores");
    h->most = sodet_dim(g, scores, 1);
    uint64_t n = h->given * (uint64_t)h->most;
    s = sd_grow(&h->boxes, &h->box_capacity, n * 4, sizeof *h->boxes, err);
    if (s == SODET_OK)
        s = sd_grow(&h->scores, &h->score_capacity, n, sizeof *h->scores, err);
    if (s == SODET_OK)
        s = sd_grow(&h->labels, &h->label_capacity, n, sizeof *h->labels, err);
    if (s == SODET_OK)
        s = sd_grow(&h->count, &h->count_capacity, h->given, sizeof *h->count, err);
    if (s == SODET_OK)
        s = sd_program_read(p, "detections/boxes", h->boxes, n * 4, err);
    if (s == SODET_OK)
        s = sd_program_read(p, "detections/scores", h->scores, n, err);
    if (s == SODET_OK)
        s = sd_program_read(p, "detections/labels", h->labels, n, err);
    return s == SODET_OK ? sd_program_read(p, "detections/count", h->count, h->given, err) : s;
}

static float clip(double v, uint32_t size)
{
    return (float)(v < 0 ? 0 : v > size ? size : v);
}

/* Canvas to original pixels: the rectangle around the mapped corners, which is exact for scaling, shifting and flipping. */
static sodet_box to_original(const sd_batch_item *item, const float *box)
{
    const double *m = item->inverse;
    double x[2] = {0, 0}, y[2] = {0, 0};
    for (int corner = 0; corner < 4; corner++) {
        double cx = (double)box[(corner & 1) ? 2 : 0], cy = (double)box[(corner & 2) ? 3 : 1];
        double px = m[0] * cx + m[1] * cy + m[2], py = m[3] * cx + m[4] * cy + m[5];
        x[0] = corner && x[0] < px ? x[0] : px;
        x[1] = corner && x[1] > px ? x[1] : px;
        y[0] = corner && y[0] < py ? y[0] : py;
        y[1] = corner && y[1] > py ? y[1] : py;
    }
    return (sodet_box){clip(x[0], item->original_width), clip(y[0], item->original_height), clip(x[1], item->original_width),
                       clip(y[1], item->original_height)};
}

sodet_status sd_infer_batch(sd_infer *f, const sd_batch *batch, uint64_t *first, sodet_detection **detections, uint64_t *capacity,
                            sodet_err *err)
{
    sd_program_key *keys = sd_alloc(f->n, sizeof *keys);
    uint32_t *dealt = sd_alloc(f->n + 1, sizeof *dealt);
    sodet_status s = keys && dealt ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: inference");
    if (s == SODET_OK) {
        sd_deal(batch->n, f->n, dealt);
        for (uint32_t i = 0; i < f->n; i++) {
            f->shares[i].first = dealt[i];
            f->shares[i].rows = dealt[i + 1] - dealt[i];
            f->shares[i].given = f->shares[i].rows ? f->shares[i].rows : 1;
            keys[i] = (sd_program_key){
                .height = batch->height, .width = batch->width, .batch = f->shares[i].given, .picture_bytes = batch->picture_bytes};
        }
        f->batch = batch;
        s = sd_programs_get(f->programs, keys, f->program, err);
    }
    sd_free(keys);
    sd_free(dealt);
    if (s == SODET_OK)
        s = sd_device_pool_run(f->config.pool, run_share, f, err);
    uint64_t n = 0;
    first[0] = 0;
    for (uint32_t i = 0; s == SODET_OK && i < f->n; i++) {
        const share *h = &f->shares[i];
        for (uint32_t row = 0; s == SODET_OK && row < h->rows; row++) {
            const sd_batch_item *item = &batch->items[h->first + row];
            int64_t count = item->missing ? 0 : h->count[row];
            if (count < 0 || count > h->most)
                return SODET_FAIL(err, SODET_E_INTERNAL, "detections/count is %lld of %lld", (long long)count, (long long)h->most);
            s = sd_grow(detections, capacity, n + (uint64_t)count, sizeof **detections, err);
            for (int64_t k = 0; s == SODET_OK && k < count; k++) {
                int64_t at = (int64_t)row * h->most + k;
                (*detections)[n++] =
                    (sodet_detection){.box = to_original(item, h->boxes + at * 4), .score = h->scores[at], .label = h->labels[at]};
            }
            first[h->first + row + 1] = n;
        }
    }
    return s;
}

typedef struct arrived { /* a batch's detections */
    sodet_detection *detections;
    uint64_t capacity, *first, first_capacity;
} arrived;

static sodet_status hand_on(sd_infer *f, const sd_batch *b, arrived *a, sd_infer_put *put, void *context, sd_infer_stats *stats,
                            sodet_err *err)
{
    sodet_status s = sd_grow(&a->first, &a->first_capacity, (uint64_t)b->n + 1, sizeof *a->first, err);
    if (s == SODET_OK)
        s = sd_infer_batch(f, b, a->first, &a->detections, &a->capacity, err);
    for (uint32_t i = 0; s == SODET_OK && i < b->n; i++) {
        stats->done++;
        if (!b->items[i].missing)
            s = put(context, &b->items[i], a->detections + a->first[i], a->first[i + 1] - a->first[i], err);
        else if (!stats->missing++)
            stats->first_missing = b->items[i].planned;
    }
    return s;
}

sodet_status sd_infer_run(sd_infer *f, const sd_loader_config *config, sd_infer_put *put, sd_infer_progress *progress, void *context,
                          sd_infer_stats *stats, sodet_err *err)
{
    double begin = sd_now();
    arrived a = {0};
    sd_loader *loader = NULL;
    sd_loader_config c = *config;
    c.shuffle = 0;
    c.last = SD_LAST_KEEP;
    c.assigner = (sd_assigner){NULL, NULL, NULL};
    c.epoch = c.step = 0;
    *stats = (sd_infer_stats){.of = sd_dataset_size(config->dataset)};
    sodet_status s = sd_send_ready(f->config.pool, c.device_jpegs, err);
    if (s == SODET_OK)
        s = sd_loader_open(&c, &loader, err);
    const sd_batch *b = NULL;
    while (s == SODET_OK && (s = sd_loader_next(loader, &b, err)) == SODET_OK && b) {
        s = hand_on(f, b, &a, put, context, stats, err);
        sd_loader_recycle(loader, b);
        sd_loader_stats l;
        sd_loader_stats_get(loader, &l);
        stats->wait = l.wait;
        stats->seconds = sd_now() - begin;
        if (progress && s == SODET_OK && !progress(context, stats))
            s = SODET_FAIL(err, SODET_E_INVALID, "stopped");
    }
    sd_loader_close(loader);
    sd_free(a.detections);
    sd_free(a.first);
    return s;
}
