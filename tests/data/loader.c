/* labels: threads */
/* The stream of batches: the same bytes for any number of threads and from any starting point; O-23 of the field cases; what a batch holds;
 * broken pictures; the rules for the last batch; several canvases. */
#include "core/data/loader.h"

#include <unistd.h>

#include "core/data/decode.h"
#include "core/plugin/plugin.h"
#include "sodet/data.h"
#include "sodet/detection.h"

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

typedef struct bench { /* everything that a loader needs, from an INI text */
    sd_config *cfg;
    sd_instance instances[8];
    uint32_t n;
    sd_dataset *dataset;
    sd_link links[8];
    char labels[8][40];
    sd_loader_config config;
} bench;

/* What a head would do, in small: four anchors, the last object is assigned to the first. */
static sodet_status grid(void *context, uint32_t width, uint32_t height, const void **out, uint64_t *n, sodet_err *e)
{
    (void)context, (void)width, (void)height, (void)e;
    *out = NULL;
    *n = 4;
    return SODET_OK;
}

static sodet_status assign(void *context, const void *g, const sodet_boxes *truth, int32_t *index, sodet_err *e)
{
    (void)context, (void)g, (void)e;
    index[0] = (int32_t)truth->n - 1;
    index[1] = SODET_INDEX_BACKGROUND;
    index[2] = SODET_INDEX_IGNORE;
    index[3] = truth->n && truth->box[0].x1 > 30 ? 0 : -1;
    return SODET_OK;
}

static void open_bench(bench *b, const char *dataset, const char *const *chain)
{
    char text[3000];
    memset(b, 0, sizeof *b);
    int n = snprintf(text, sizeof text, "[run]\nname = x\n[dataset.d]\n%s\n", dataset);
    for (uint32_t i = 0; chain && chain[i]; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "[transform.t%u]\n%s\n", i, chain[i]);
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &b->cfg, &err));
    CHECK_OK(sd_instance_create(b->cfg, "dataset.d", &b->instances[b->n++], &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    const sd_dataset_part part = {"d", b->instances[0].ops, b->instances[0].self};
    CHECK_OK(sd_dataset_open(&part, 1, NULL, 0, &rules, &b->dataset, &err));
    for (uint32_t i = 0; chain && chain[i]; i++) {
        char *section = b->labels[i];
        snprintf(section, sizeof b->labels[i], "transform.t%u", i);
        CHECK_OK(sd_instance_create(b->cfg, section, &b->instances[b->n], &err));
        b->links[i] = (sd_link){section, b->instances[b->n].ops, b->instances[b->n].self};
        b->n++;
        b->config.n_links = i + 1;
    }
    b->config.dataset = b->dataset;
    b->config.links = b->links;
    b->config.input = (sd_input){.width = 96, .height = 64, .mean = {123, 117, 104}, .std = {58, 57, 56}};
    b->config.assigner = (sd_assigner){grid, assign, NULL};
    b->config.seed = 7;
    b->config.batch = 16;
    b->config.shuffle = 1;
}

static void close_bench(bench *b)
{
    sd_dataset_close(b->dataset);
    while (b->n)
        sd_instance_destroy(&b->instances[--b->n]);
    sd_config_close(b->cfg);
}

/* Of everything in a batch. */
static uint64_t hash_batch(const sd_batch *b)
{
    uint64_t h = SD_FNV_START;
    uint64_t numbers[] = {b->epoch, b->step, b->steps, b->consumed, b->n, b->width, b->height, b->n_anchors, b->max_objects};
    h = sd_fnv1a64(numbers, sizeof numbers, h);
    h = sd_fnv1a64(b->image, (uint64_t)b->n * b->channels * b->width * b->height * sizeof(float), h);
    h = sd_fnv1a64(b->index, (uint64_t)b->n * b->n_anchors * sizeof(int32_t), h);
    h = sd_fnv1a64(b->truth, (uint64_t)b->n * b->max_objects * 16, h);
    h = sd_fnv1a64(b->label, (uint64_t)b->n * b->max_objects * 4, h);
    h = sd_fnv1a64(b->flags, (uint64_t)b->n * b->max_objects * 4, h);
    for (uint32_t i = 0; i < b->n; i++) {
        const sd_batch_item *item = &b->items[i];
        uint64_t more[] = {item->sample, item->width, item->height, item->original_width, item->n_objects, item->positives, item->missing};
        h = sd_fnv1a64(more, sizeof more, h);
        h = sd_fnv1a64(item->inverse, sizeof item->inverse, h);
    }
    return h;
}

static void hashes(const sd_loader_config *config, uint64_t *out, uint32_t n)
{
    sd_loader *l = NULL;
    CHECK_OK(sd_loader_open(config, &l, &err));
    for (uint32_t i = 0; l && i < n; i++) {
        const sd_batch *b = NULL;
        CHECK_OK(sd_loader_next(l, &b, &err));
        out[i] = b ? hash_batch(b) : 0;
        sd_loader_recycle(l, b);
    }
    sd_loader_close(l);
}

static const char *const chain[] = {"plugin = hflip", "plugin = resize", NULL};

static void same_bytes(void)
{
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 100\nsize = 64", chain);
    enum { N = 16 }; /* more than two epochs of seven batches */
    uint64_t want[N], got[N];
    static const uint32_t threads[] = {1, 2, 7};
    for (uint32_t t = 0; t < 3; t++) {
        b.config.threads = threads[t];
        hashes(&b.config, t ? got : want, N);
        for (uint32_t i = 0; t && i < N; i++)
            CHECK(got[i] == want[i]);
    }
    for (uint32_t start = 1; start < N; start += 4) { /* resume inside and behind the first epoch */
        b.config.epoch = start / 7;
        b.config.step = start % 7;
        hashes(&b.config, got, N - start);
        for (uint32_t i = start; i < N; i++)
            CHECK(got[i - start] == want[i]);
    }
    b.config.epoch = b.config.step = 0;
    close_bench(&b);
}

/* O-23: the seed has an effect, epochs differ, and no two samples draw the same numbers. */
static void o_23(void)
{
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 32\nsize = 64", chain);
    uint64_t a[4], c[4];
    static const uint32_t threads[] = {1, 2, 8};
    for (uint32_t t = 0; t < 3; t++) {
        b.config.threads = threads[t];
        b.config.seed = 0;
        hashes(&b.config, t ? c : a, 4);
        for (uint32_t i = 0; t && i < 4; i++)
            CHECK(a[i] == c[i]);
        b.config.seed = 1;
        hashes(&b.config, c, 4);
        CHECK(a[0] != c[0] && a[1] != c[1] && a[2] != c[2]);
        CHECK(a[0] != a[2] && a[1] != a[3]); /* batches 0 and 1 of two epochs */
    }
    /* Half of the pictures are mirrored, not all or none of a thread's; each epoch has an order of its own, each seed its own mirrors. */
    uint8_t mirrors[2][32] = {{0}};
    uint32_t mirrored = 0, n = 0, moved = 0, other = 0;
    for (uint32_t seed = 0; seed < 2; seed++) {
        sd_loader *l = NULL;
        uint64_t order[2][32];
        b.config.threads = 2;
        b.config.seed = seed;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        for (uint32_t i = 0; i < 20; i++) {
            const sd_batch *batch = NULL;
            CHECK_OK(sd_loader_next(l, &batch, &err));
            for (uint32_t k = 0; batch && k < batch->n; k++, n++) {
                const sd_batch_item *item = &batch->items[k];
                mirrored += item->inverse[0] < 0;
                if (batch->epoch < 2)
                    order[batch->epoch][batch->step * 16 + k] = item->sample;
                if (batch->epoch == 0)
                    mirrors[seed][item->sample] = item->inverse[0] < 0;
            }
            sd_loader_recycle(l, batch);
        }
        for (uint32_t k = 0; k < 32; k++)
            moved += order[0][k] != order[1][k];
        sd_loader_close(l);
    }
    CHECK_EQ(n, 640);
    CHECK(mirrored > 260 && mirrored < 380);
    CHECK(moved > 40);
    for (uint32_t k = 0; k < 32; k++)
        other += mirrors[0][k] != mirrors[1][k];
    CHECK(other > 4 && other < 28);
    close_bench(&b);
}

static void contents(void)
{
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 10\nsize = 128", (const char *const[]){"plugin = resize\nsize = 96x64", NULL});
    b.config.shuffle = 0;
    b.config.batch = 4;
    b.config.threads = 3;
    sd_loader *l = NULL;
    CHECK_OK(sd_loader_open(&b.config, &l, &err));
    CHECK_EQ(sd_loader_steps(l), 3);
    CHECK_EQ(sd_loader_samples(l), 10);
    CHECK_EQ(sd_loader_max_objects(l), 8);
    uint32_t n_shapes, at = 0;
    const sd_loader_shape *shapes = sd_loader_shapes(l, &n_shapes);
    CHECK_EQ(n_shapes, 2);
    CHECK(shapes[0].n == 4 && shapes[0].per_epoch == 2 && shapes[0].width == 96 && shapes[0].height == 64 && shapes[0].n_anchors == 4);
    CHECK(shapes[1].n == 2 && shapes[1].per_epoch == 1);
    sodet_sample *s = NULL;
    CHECK_OK(sd_sample_new(b.dataset, &s, &err));
    for (;;) {
        const sd_batch *batch = NULL;
        CHECK_OK(sd_loader_next(l, &batch, &err));
        if (!batch)
            break;
        CHECK(batch->width == 96 && batch->height == 64 && batch->channels == 3 && batch->n_anchors == 4);
        for (uint32_t i = 0; i < batch->n; i++, at++) {
            const sd_batch_item *item = &batch->items[i];
            CHECK_EQ(item->sample, at);
            CHECK(item->width == 96 && item->original_width == 128 && item->original_height == 128 && !item->missing);
            CHECK_NEAR(item->inverse[0], 128.0 / 96, 1e-12, 0);
            CHECK_NEAR(item->inverse[4], 2, 1e-12, 0);
            CHECK_OK(sd_dataset_describe(b.dataset, at, s, &err));
            CHECK_EQ(item->n_objects, sodet_sample_object_count(s));
            for (uint32_t k = 0; k < item->n_objects; k++) {
                const sodet_object *o = sodet_sample_object(s, k);
                const float *t = batch->truth + ((size_t)i * batch->max_objects + k) * 4;
                CHECK_NEAR(t[0], o->box.x1 * 0.75f, 1e-5, 1e-4);
                CHECK_NEAR(t[3], o->box.y2 * 0.5f, 1e-5, 1e-4);
                CHECK_EQ(batch->label[i * batch->max_objects + k], o->label);
            }
            const int32_t *index = batch->index + (size_t)i * 4;
            CHECK_EQ(index[0], (int32_t)item->n_objects - 1);
            CHECK_EQ(item->positives, 1u + (index[3] == 0));
            CHECK_EQ(batch->truth[((size_t)i * batch->max_objects + item->n_objects) * 4], 0);
        }
        sd_loader_recycle(l, batch);
    }
    CHECK_EQ(at, 10);
    sd_sample_free(s);
    sd_loader_close(l);
    close_bench(&b);
}

/* O-25: red and blue pixels, mean 123 117 104: (132, -117, -104) and (-123, -117, 151) before division. */
static void o_25(void)
{
    const char *folder = check_scratch("loader_pixels");
    char path[600];
    snprintf(path, sizeof path, "%s/two.png", folder);
    static const uint8_t rgb[6] = {255, 0, 0, 0, 0, 255};
    CHECK_OK(sd_png_write(path, rgb, 2, 1, &err));
    const char *const paths[] = {path}, *const names[] = {"a"};
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    sd_dataset *d = NULL;
    CHECK_OK(sd_dataset_of_files(paths, 1, names, 1, &rules, &d, &err));
    for (uint32_t channels = 0; channels < 3; channels++) {
        sd_loader_config c = {
            .dataset = d, .batch = 1, .input = {.pad_to = 4, .channels = channels, .mean = {123, 117, 104}, .std = {1, 1, 2}}};
        sd_loader *l = NULL;
        const sd_batch *b = NULL;
        CHECK_OK(sd_loader_open(&c, &l, &err));
        CHECK_OK(sd_loader_next(l, &b, &err));
        CHECK(b && b->width == 4 && b->height == 4 && b->channels == (channels == SD_CHANNELS_GREY ? 1 : 3) && b->items[0].width == 2);
        if (b && channels == SD_CHANNELS_RGB)
            CHECK(b->image[0] == 132 && b->image[16] == -117 && b->image[32] == -52 && b->image[1] == -123 && b->image[17] == -117 &&
                  b->image[33] == 75.5f);
        if (b && channels == SD_CHANNELS_BGR)
            CHECK(b->image[0] == -123 && b->image[16] == -117 && b->image[32] == 75.5f);
        if (b && channels == SD_CHANNELS_GREY)
            CHECK_NEAR(b->image[0], 0.299 * 255 - 123, 1e-5, 0);
        CHECK(b && b->image[2] == 0 && b->image[4] == 0 && b->image[15] == 0);
        const sd_batch *end = NULL;
        CHECK_OK(sd_loader_next(l, &end, &err));
        CHECK(end == NULL);
        sd_loader_close(l);
    }
    sd_dataset_close(d);
}

static void last_batch(void)
{
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 21\nsize = 32", chain);
    b.config.batch = 8;
    static const uint32_t steps[] = {3, 2, 3}, samples[] = {21, 16, 24};
    for (uint32_t rule = 0; rule < 3; rule++) {
        b.config.last = rule;
        sd_loader *l = NULL;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        CHECK_EQ(sd_loader_steps(l), steps[rule]);
        CHECK_EQ(sd_loader_samples(l), samples[rule]);
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            uint8_t seen[21] = {0};
            uint32_t n = 0;
            for (uint32_t i = 0; i < steps[rule]; i++) {
                const sd_batch *batch = NULL;
                CHECK_OK(sd_loader_next(l, &batch, &err));
                CHECK(batch && batch->epoch == epoch && batch->step == i);
                CHECK_EQ(batch->n, rule == SD_LAST_KEEP && i == 2 ? 5 : 8);
                for (uint32_t k = 0; k < batch->n; k++, n++)
                    seen[batch->items[k].sample]++;
                CHECK_EQ(batch->consumed, n);
                sd_loader_recycle(l, batch);
            }
            for (uint32_t k = 0; k < 21; k++)
                CHECK(rule == SD_LAST_DROP ? seen[k] <= 1 : rule == SD_LAST_KEEP ? seen[k] == 1 : seen[k] >= 1 && seen[k] <= 2);
        }
        sd_loader_close(l);
    }
    b.config.last = SD_LAST_DROP;
    b.config.batch = 22;
    sd_loader *l = NULL;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_INVALID, "make no whole batch of 22");
    /* Parts together are the whole. */
    b.config.last = SD_LAST_KEEP;
    b.config.batch = 8;
    b.config.parts = 3;
    uint32_t rows = 0;
    for (b.config.part = 0; b.config.part < 3; b.config.part++) {
        const sd_batch *batch = NULL;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        for (uint32_t i = 0; i < 3; i++) {
            CHECK_OK(sd_loader_next(l, &batch, &err));
            CHECK(batch && batch->n <= 3 && batch->global_n == (i == 2 ? 5 : 8));
            rows += batch ? batch->n : 0;
            sd_loader_recycle(l, batch);
        }
        sd_loader_close(l);
    }
    CHECK_EQ(rows, 21);
    close_bench(&b);
}

/* O-13 and O-42: a broken picture among good ones, with several threads. */
static void broken(void)
{
    const char *folder = check_scratch("loader_broken");
    char paths[21][600];
    const char *list[21], *const names[] = {"a"};
    static uint8_t rgb[32 * 24 * 3];
    for (uint32_t i = 0; i < 21; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s%02u.png", folder, i == 13 ? "bad" : "good", i);
        list[i] = paths[i];
        CHECK_OK(sd_png_write(paths[i], rgb, 32, 24, &err));
    }
    FILE *f = fopen(paths[13], "r+");
    CHECK(f && ftruncate(fileno(f), 60) == 0);
    fclose(f);
    for (uint32_t skip = 0; skip < 2; skip++) {
        for (uint32_t shuffle = 0; shuffle < 2; shuffle++) {
            sd_data_rules rules;
            sd_data_rules_init(&rules);
            rules.bad_file = skip ? SD_SKIP : SD_STOP;
            sd_dataset *d = NULL;
            CHECK_OK(sd_dataset_of_files(list, 21, names, 1, &rules, &d, &err));
            bench b;
            open_bench(&b, "plugin = shapes\ncount = 1", (const char *const[]){"plugin = resize\nsize = 16", NULL});
            b.config.dataset = d;
            b.config.batch = 4;
            b.config.threads = 4;
            b.config.shuffle = shuffle;
            sd_loader *l = NULL;
            CHECK_OK(sd_loader_open(&b.config, &l, &err));
            sodet_status status = SODET_OK;
            uint32_t rows = 0, missing = 0, bad = 0, named = 0;
            for (uint32_t i = 0; i < 6 && status == SODET_OK; i++) {
                const sd_batch *batch = NULL;
                status = sd_loader_next(l, &batch, &err);
                for (uint32_t k = 0; batch && k < batch->n; k++, rows++) {
                    missing += batch->items[k].missing;
                    bad += batch->items[k].sample == 13;
                    named += batch->items[k].planned == 13;
                    CHECK(batch->items[k].planned == 13 || batch->items[k].planned == batch->items[k].sample);
                }
                sd_loader_recycle(l, batch);
            }
            sd_loader_stats stats;
            sd_loader_stats_get(l, &stats);
            if (skip) {
                CHECK(status == SODET_OK && rows == 21);
                CHECK(stats.skipped >= 1 && stats.first_skipped && strstr(stats.first_skipped, "bad13.png"));
                CHECK_EQ(missing, shuffle ? 0 : 1);
                CHECK_EQ(bad, shuffle ? 0 : 1);
                CHECK_EQ(named, 1);
            } else {
                CHECK(status == SODET_E_INVALID && strstr(err.text, "bad13.png"));
            }
            sd_loader_close(l);
            close_bench(&b);
            sd_dataset_close(d);
        }
    }
}

/* Pictures of several ratios: one canvas for each kind, all multiples, nothing lost. */
static void canvases(void)
{
    const char *folder = check_scratch("loader_canvases");
    static const uint32_t sizes[][2] = {{40, 30}, {30, 40}, {41, 30}, {60, 20}, {33, 33}};
    char paths[30][600];
    const char *list[30], *const names[] = {"a"};
    static uint8_t rgb[64 * 64 * 3];
    for (uint32_t i = 0; i < 30; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%02u.png", folder, i);
        list[i] = paths[i];
        CHECK_OK(sd_png_write(paths[i], rgb, sizes[i % 5][0], sizes[i % 5][1], &err));
    }
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    sd_dataset *d = NULL;
    CHECK_OK(sd_dataset_of_files(list, 30, names, 1, &rules, &d, &err));
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 1",
               (const char *const[]){"plugin = resize\nmode = sides\nshort_side = 60\nlong_side = 100\nmultiple = 16", NULL});
    b.config.dataset = d;
    b.config.batch = 4;
    for (uint32_t most = 2; most <= 8; most += 6) {
        b.config.max_shapes = most;
        sd_loader *l = NULL;
        uint64_t seen = 0, kinds = 0;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        uint32_t n;
        sd_loader_shapes(l, &n);
        CHECK(n <= 2 * most);
        for (uint64_t i = 0; i < sd_loader_steps(l); i++) {
            const sd_batch *batch = NULL;
            CHECK_OK(sd_loader_next(l, &batch, &err));
            CHECK(batch->width % 16 == 0 && batch->height % 16 == 0);
            kinds |= 1ull << (batch->width / 16 * 8 + batch->height / 16) % 64;
            for (uint32_t k = 0; k < batch->n; k++) {
                const sd_batch_item *item = &batch->items[k];
                uint32_t w = sizes[item->sample % 5][0], h = sizes[item->sample % 5][1];
                double scale = 60.0 / (w < h ? w : h);
                scale = scale * (w > h ? w : h) > 100 ? 100.0 / (w > h ? w : h) : scale;
                CHECK_EQ(item->width, floor(w * scale + 0.5));
                CHECK_EQ(item->height, floor(h * scale + 0.5));
                CHECK(item->width <= batch->width && item->height <= batch->height);
                seen |= 1ull << item->sample;
            }
            sd_loader_recycle(l, batch);
        }
        CHECK_EQ(seen, (1ull << 30) - 1);
        CHECK_EQ(__builtin_popcountll(kinds), most == 2 ? 2 : 5);
        sd_loader_close(l);
    }
    sd_dataset_close(d);
    close_bench(&b);
}

static void refusals(void)
{
    bench b;
    open_bench(&b, "plugin = shapes\ncount = 4\nsize = 32", chain);
    sd_loader *l = NULL;
    b.config.batch = 0;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_INVALID, "batch = 0");
    b.config.batch = 2;
    b.config.input.std[1] = 0;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_INVALID, "std");
    b.config.input.std[1] = 1;
    b.config.max_objects = 1;
    CHECK_OK(sd_loader_open(&b.config, &l, &err));
    sodet_status status = SODET_OK;
    for (uint32_t i = 0; i < 4 && status == SODET_OK; i++) {
        const sd_batch *batch = NULL;
        status = sd_loader_next(l, &batch, &err);
        sd_loader_recycle(l, batch);
    }
    CHECK(status == SODET_E_INVALID && strstr(err.text, "more than 1 objects"));
    sd_loader_close(l);
    /* A crop of any shape, and a canvas for each ratio. */
    bench c;
    open_bench(&c, "plugin = shapes\ncount = 4", (const char *const[]){"plugin = ssd_crop", "plugin = resize\nmode = sides", NULL});
    CHECK_FAILS(sd_loader_open(&c.config, &l, &err), SODET_E_INVALID, "transform.t0 makes pictures of any shape");
    close_bench(&c);
    open_bench(&c, "plugin = shapes\ncount = 4", (const char *const[]){"plugin = ssd_crop", "plugin = resize\nmode = fit", NULL});
    CHECK_OK(sd_loader_open(&c.config, &l, &err));
    sd_loader_close(l);
    close_bench(&c);
    /* All slots held. */
    b.config.max_objects = 0;
    b.config.depth = 2;
    CHECK_OK(sd_loader_open(&b.config, &l, &err));
    const sd_batch *held[3];
    CHECK_OK(sd_loader_next(l, &held[0], &err));
    CHECK_OK(sd_loader_next(l, &held[1], &err));
    CHECK_FAILS(sd_loader_next(l, &held[2], &err), SODET_E_INTERNAL, "recycle one");
    sd_loader_close(l);
    close_bench(&b);
}

int main(void)
{
    same_bytes();
    o_23();
    contents();
    o_25();
    last_batch();
    broken();
    canvases();
    refusals();
    return check_done(500);
}
