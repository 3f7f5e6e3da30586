/* [data] pixels = device: the same boxes to the last bit as with pixels of the host, and the same pixels within what kernels/pixels/pixels.h
 * says; for any number of threads, from any step, in shares of several devices; what is refused, and by which words.
 * --on cuda_host: the operator on the virtual GPUs of tests/hostcuda, and [data] decode = device. --files FOLDER: writes the pictures and
 * pictures.csv there, for whole runs. */
#include <unistd.h>

#include "check.h"
#include "core/data/decode.h"
#include "core/data/send.h"
#include "core/plugin/plugin.h"
#include "kernels/pixels/pixels.h"
#include "sodet/data.h"
#include "sodet/detection.h"

static sodet_err err = SODET_ERR_INIT;
static const char *const *backends;

enum { SAMPLES = 40, BATCH = 7, STEPS = 9 /* an epoch and a half */ };
static const double tolerance = 0.005; /* grey levels */
/* Between two decoders of JPEG: each of Y, Cb and Cr is rounded after the cosines, off by 1 at most (1 + 1.772), colours then once more (1);
 * and chroma, which changes by an eighth of a level from one pixel to the next here, may be taken from a pixel away. */
static const double of_decoders = 4.5;

/* ---- a data set of noise: every picture has a size of its own; annotations tell some of the sizes ---- */
typedef struct noise {
    uint32_t told; /* 1: every second size; 2: all of them, and too small; 3: far too large */
    bool jpegs;    /* pictures are JPEGs, but for some */
} noise;

static void size_of(uint64_t i, uint32_t *width, uint32_t *height)
{
    *width = 40 + (uint32_t)(i * 37 % 71);
    *height = 30 + (uint32_t)(i * 53 % 67);
}

static sodet_status noise_open(void *self, uint64_t *n, sodet_err *e)
{
    (void)self, (void)e;
    *n = SAMPLES;
    return SODET_OK;
}

static sodet_status noise_describe(const void *self, uint64_t i, sodet_sample *s, sodet_err *e)
{
    const noise *d = self;
    char id[20];
    uint32_t width, height;
    size_of(i, &width, &height);
    snprintf(id, sizeof id, "noise%02u", (unsigned)i);
    sodet_sample_set_id(s, id, (int64_t)i);
    if (d->told == 2)
        sodet_sample_set_size(s, width / 2, height / 2);
    else if (d->told == 3)
        sodet_sample_set_size(s, 60000, 60000);
    else if (d->told == 1 && i % 2)
        sodet_sample_set_size(s, width, height);
    sodet_status status = SODET_OK;
    for (uint32_t k = 0; k < 1 + i % 3 && status == SODET_OK; k++)
        status = sodet_sample_add_object(s, k % 2 ? "cat" : "dog", (sodet_box){2 + 5 * (float)k, 3, 20 + 5 * (float)k, 14 + 5 * (float)k},
                                         0, -1, (int64_t)k, e);
    return status;
}

enum { AS_JPEG, AS_TURNED, AS_PIXELS };
static uint32_t kind_of(uint64_t i)
{
    return i % 5 == 4 ? AS_PIXELS : i % 9 == 3 ? AS_TURNED : AS_JPEG;
}

/* Picture i as a JPEG: grey stripes and noise, under a slow change of colours; AS_TURNED: stored lying, with the EXIF tag 6. */
static sodet_status make_jpeg(uint64_t i, sd_text *out, sodet_err *e)
{
    static const char exif[] = "\xff\xe1\0\x22"
                               "Exif\0\0MM\0\x2a\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0\x6\0\0\0\0\0\0";
    uint32_t width, height;
    size_of(i, &width, &height);
    const bool turned = kind_of(i) == AS_TURNED;
    uint8_t *rgb = malloc((size_t)width * height * 3);
    if (!rgb)
        return SODET_FAIL(e, SODET_E_MEMORY, "no memory");
    for (size_t k = 0; k < (size_t)width * height; k++) {
        const size_t grey = 40 * (k / 7 % 5) + sd_mix64(k + i) % 30 + 10, across = k % (turned ? height : width);
        rgb[3 * k] = (uint8_t)(grey + across / 4);
        rgb[3 * k + 1] = (uint8_t)grey;
        rgb[3 * k + 2] = (uint8_t)(grey + 20);
    }
    sd_text jpeg = {0};
    const sodet_status status = sd_jpeg_encode("noise", rgb, turned ? height : width, turned ? width : height, 90, &jpeg, e);
    free(rgb);
    sd_text_append(out, jpeg.text, turned && jpeg.length > 2 ? 2 : jpeg.length);
    if (turned && jpeg.length > 2) {
        sd_text_append(out, exif, sizeof exif - 1);
        sd_text_append(out, jpeg.text + 2, jpeg.length - 2);
    }
    sd_text_free(&jpeg);
    return status;
}

static sodet_status noise_jpeg(uint64_t i, sodet_sample *s, sodet_err *e)
{
    sd_text t = {0};
    sodet_status status = make_jpeg(i, &t, e);
    if (status == SODET_OK)
        status = sodet_sample_set_bytes(s, t.text, t.length, e);
    sd_text_free(&t);
    return status;
}

static sodet_status noise_pixels(const void *self, uint64_t i, sodet_sample *s, sodet_err *e)
{
    uint8_t *p;
    uint32_t width, height;
    if (((const noise *)self)->jpegs && kind_of(i) != AS_PIXELS)
        return noise_jpeg(i, s, e);
    size_of(i, &width, &height);
    sodet_status status = sodet_sample_new_pixels(s, width, height, i % 5 == 4 ? 1 : 3, &p, e);
    for (size_t k = 0; status == SODET_OK && k < (size_t)width * height * (i % 5 == 4 ? 1 : 3); k++)
        p[k] = (uint8_t)sd_mix64(k + i * 1000003);
    return status;
}

static const sodet_dataset_ops noise_ops = {
    .struct_size = sizeof noise_ops, .open = noise_open, .describe = noise_describe, .pixels = noise_pixels};

static sodet_status assign(void *context, const void *g, const sodet_boxes *truth, int32_t *index, sodet_err *e)
{
    (void)context, (void)g, (void)e;
    for (int32_t i = 0; i < 4; i++)
        index[i] = truth->n > (uint32_t)i && truth->box[i].x1 > 5 ? i : -1;
    return SODET_OK;
}

static sodet_status grid(void *context, uint32_t width, uint32_t height, const void **out, uint64_t *n, sodet_err *e)
{
    (void)context, (void)width, (void)height, (void)e;
    *out = NULL;
    *n = 4;
    return SODET_OK;
}

typedef struct bench {
    noise from;
    sd_config *cfg;
    sd_instance instances[8];
    sd_dataset *dataset;
    char labels[8][40];
    sd_link links[8];
    sd_loader_config config;
} bench;

static void open_bench(bench *b, uint32_t told, const char *const *chain)
{
    char text[3000];
    memset(b, 0, sizeof *b);
    b->from.told = told;
    int n = snprintf(text, sizeof text, "[run]\nname = x\n");
    for (uint32_t i = 0; chain[i]; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "[transform.t%u]\n%s\n", i, chain[i]);
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &b->cfg, &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    static const char *const names[] = {"dog", "cat"};
    const sd_dataset_part part = {"noise", &noise_ops, &b->from};
    CHECK_OK(sd_dataset_open(&part, 1, names, 2, &rules, &b->dataset, &err));
    for (uint32_t i = 0; chain[i]; i++) {
        snprintf(b->labels[i], sizeof b->labels[i], "transform.t%u", i);
        CHECK_OK(sd_instance_create(b->cfg, b->labels[i], &b->instances[i], &err));
        b->links[i] = (sd_link){b->labels[i], b->instances[i].ops, b->instances[i].self};
        b->config.n_links = i + 1;
    }
    b->config.dataset = b->dataset;
    b->config.links = b->links;
    b->config.input = (sd_input){.width = 48, .height = 36, .mean = {123, 117, 104}, .std = {58, 57, 56}};
    b->config.assigner = (sd_assigner){grid, assign, NULL};
    b->config.seed = 7;
    b->config.batch = BATCH;
    b->config.shuffle = 1;
    b->config.threads = 2;
}

static void close_bench(bench *b)
{
    sd_dataset_close(b->dataset);
    for (uint32_t i = 0; i < b->config.n_links; i++)
        sd_instance_destroy(&b->instances[i]);
    sd_config_close(b->cfg);
}

/* ---- what a device makes of rows [first, first + n) of a batch ---- */
typedef struct job {
    const sd_batch *b;
    const sd_input *input;
    uint32_t first, n;
    float *to;
} job;

static sodet_status render(sd_replica *r, void *context, sodet_err *e)
{
    const job *j = context;
    const sd_batch *b = j->b;
    const int64_t n = j->n;
    const sodet_shape pictures = sodet_shape_make(SODET_I32, 1, n * (int64_t)(b->picture_bytes / 4), 0, 0, 0);
    const sodet_shape place = sodet_shape_make(SODET_I32, 2, n, SODET_PIXELS_PLACES, 0, 0);
    const sodet_shape value = sodet_shape_make(SODET_F32, 2, n, SODET_PIXELS_VALUES, 0, 0);
    sodet_pixels_attr a = {.channels = j->input->channels, .height = (int32_t)b->height, .width = (int32_t)b->width};
    memcpy(a.mean, j->input->mean, sizeof a.mean);
    memcpy(a.std, j->input->std, sizeof a.std);
    sodet_graph *g = NULL;
    sd_program *p = NULL;
    sd_segments none = {0};
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = 1}, &g, e);
    if (s != SODET_OK)
        return s;
    sodet_output(
        g, "y",
        sodet_pixels(g, sodet_input(g, "pictures", &pictures), sodet_input(g, "place", &place), sodet_input(g, "value", &value), &a));
    s = sd_graph_bind(g, &none, e);
    if (s != SODET_OK) {
        sd_graph_free(g);
        return s;
    }
    s = sd_program_make(r, g, SD_ARENA_PARAM, &p, e);
    if (s == SODET_OK)
        s = sd_batch_send(b, j->first, j->n, p, e);
    if (s == SODET_OK)
        s = sd_program_run(p, 0, 0, NULL, e);
    if (s == SODET_OK)
        s = sd_program_read(p, "y", j->to, (uint64_t)n * b->channels * b->height * b->width, e);
    sd_program_free(p);
    return s;
}

static uint64_t hash_truth(const sd_batch *b)
{
    uint64_t numbers[] = {b->epoch, b->step, b->consumed, b->n, b->width, b->height, b->channels, b->n_anchors, b->max_objects};
    uint64_t h = sd_fnv1a64(numbers, sizeof numbers, SD_FNV_START);
    h = sd_fnv1a64(b->index, (uint64_t)b->n * b->n_anchors * sizeof(int32_t), h);
    h = sd_fnv1a64(b->truth, (uint64_t)b->n * b->max_objects * 16, h);
    h = sd_fnv1a64(b->label, (uint64_t)b->n * b->max_objects * 4, h);
    h = sd_fnv1a64(b->flags, (uint64_t)b->n * b->max_objects * 4, h);
    for (uint32_t i = 0; i < b->n; i++) {
        const sd_batch_item *x = &b->items[i];
        uint64_t more[] = {x->sample, x->width, x->height, x->original_width, x->original_height, x->n_objects, x->positives, x->missing};
        h = sd_fnv1a64(more, sizeof more, h);
        h = sd_fnv1a64(x->inverse, sizeof x->inverse, h);
    }
    return h;
}

static double furthest(const sd_batch *host, const float *device, const sd_input *input)
{
    double worst = 0;
    const size_t plane = (size_t)host->width * host->height;
    for (size_t i = 0; i < plane * host->n * host->channels; i++) {
        const double d = fabs((double)device[i] - (double)host->image[i]) * (double)input->std[i / plane % host->channels];
        worst = d > worst || !isfinite(d) ? d : worst;
    }
    return worst;
}

static void compare(const char *name, sd_device_pool *pool, const sd_loader_config *config, bool jpegs, double most)
{
    sd_loader_config c = *config;
    sd_loader *on_host = NULL, *on_device = NULL;
    double worst = 0;
    CHECK_OK(sd_loader_open(&c, &on_host, &err));
    c.device_pixels = 1;
    c.device_jpegs = jpegs;
    CHECK_OK(sd_loader_open(&c, &on_device, &err));
    for (uint32_t step = 0; on_host && on_device && step < STEPS; step++) {
        const sd_batch *h = NULL, *d = NULL;
        CHECK_OK(sd_loader_next(on_host, &h, &err));
        CHECK_OK(sd_loader_next(on_device, &d, &err));
        if (!h || !d)
            break;
        CHECK(d->picture_bytes == sd_loader_picture_bytes(on_device) && h->picture_bytes == 0 && !d->image);
        CHECK(hash_truth(h) == hash_truth(d));
        float *made = malloc((size_t)d->n * d->channels * d->width * d->height * sizeof *made);
        /* Two devices' shares. */
        const uint32_t half = d->n / 2;
        for (uint32_t k = 0; made && k < 2; k++) {
            const uint32_t first = k ? half : 0, n = k ? d->n - half : half;
            job j = {d, &c.input, first, n, made + (size_t)first * d->channels * d->width * d->height};
            CHECK_OK(sd_device_pool_run_one(pool, 0, render, &j, &err));
        }
        const double far = made ? furthest(h, made, &c.input) : INFINITY;
        worst = far > worst || !isfinite(far) ? far : worst;
        free(made);
        sd_loader_recycle(on_host, h);
        sd_loader_recycle(on_device, d);
    }
    sd_loader_close(on_host);
    sd_loader_close(on_device);
    printf("%s: off by %.2g grey levels at most\n", name, worst);
    CHECK(worst <= most);
}

static const char *const ssd[] = {"plugin = photometric", "plugin = expand", "plugin = ssd_crop",
                                  "plugin = hflip",       "plugin = resize", NULL};
static const char *const chains[][7] = {
    {"plugin = resize", NULL},
    {"plugin = photometric", "plugin = expand", "plugin = ssd_crop", "plugin = hflip", "plugin = resize", NULL},
    {"plugin = ssd_crop", "plugin = hflip", "plugin = resize",
     "plugin = photometric\nbrightness = 0\ngain = 0.875, 1.125\ncentre = middle\nsaturation_in = luma\nhue = 0.5\nprobability = 1", NULL},
    {"plugin = photometric\nclamp = no\nhue = 18\nchannels = 0.5", "plugin = expand\nfill = 10, 200, 90", "plugin = vflip",
     "plugin = hflip", "plugin = ssd_crop", "plugin = resize\nmode = fit", NULL},
    {"plugin = expand", "plugin = photometric\nhue = 180\nclamp = no\nsaturation_in = luma", "plugin = resize", "plugin = vflip",
     "plugin = hflip", NULL},
    {"plugin = hflip", "plugin = vflip", "plugin = resize\nmode = sides\nshort_side = 30, 44\nlong_side = 70\nmultiple = 8",
     "plugin = vflip", "plugin = hflip", NULL},
};

static void same_pictures(void)
{
    for (uint32_t i = 0; backends[i]; i++) {
        char text[100], name[120];
        sd_config *cfg = NULL;
        sd_device_pool *pool = NULL;
        const bool rig = strcmp(backends[i], "cuda_host") == 0; /* its nvJPEG is libjpeg */
        const int n = snprintf(text, sizeof text, "[run]\nname = x\nthreads = 2\ndevices = %s\n", backends[i]);
        CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &cfg, &err));
        CHECK_OK(sd_device_pool_open(cfg, &pool, &err));
        for (uint32_t k = 0; pool && k < sizeof chains / sizeof *chains; k++) {
            bench b;
            open_bench(&b, k % 2, chains[k]);
            b.config.input.channels = k % 3 == 2 ? SD_CHANNELS_GREY : k % 3 == 1 ? SD_CHANNELS_BGR : SD_CHANNELS_RGB;
            snprintf(name, sizeof name, "%s, chain %u", backends[i], k);
            compare(name, pool, &b.config, false, tolerance);
            if (sd_device_pool_replica(pool, 0)->ops->decode && (rig || k == 0)) {
                if (sd_send_ready(pool, true, &err) == SODET_OK) {
                    b.from.jpegs = true;
                    snprintf(name, sizeof name, "%s, chain %u, JPEGs", backends[i], k);
                    compare(name, pool, &b.config, true, rig ? tolerance : of_decoders);
                } else {
                    check_skip(err.text);
                }
            }
            close_bench(&b);
        }
        sd_device_pool_close(pool);
        sd_config_close(cfg);
    }
}

/* Tables and pictures, as a batch holds them. */
static uint64_t hash_rows(const sd_batch *b)
{
    uint64_t h = hash_truth(b);
    h = sd_fnv1a64(b->place, (uint64_t)b->n * SODET_PIXELS_PLACES * sizeof *b->place, h);
    h = sd_fnv1a64(b->value, (uint64_t)b->n * SODET_PIXELS_VALUES * sizeof *b->value, h);
    for (uint32_t r = 0; r < b->n; r++)
        h = sd_fnv1a64(b->picture[r].rgb, b->picture[r].bytes, h);
    return h;
}

static void same_for_any_thread(void)
{
    static const uint32_t threads[] = {1, 2, 7, 1};
    uint64_t want[STEPS] = {0};
    bench b;
    open_bench(&b, 1, ssd);
    b.config.device_pixels = 1;
    for (uint32_t t = 0; t < 4; t++) {
        sd_loader *l = NULL;
        const uint32_t begin = t == 3 ? 4 : 0; /* in the middle */
        b.config.threads = threads[t];
        b.config.step = begin;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        for (uint32_t i = begin; l && i < STEPS; i++) {
            const sd_batch *batch = NULL;
            CHECK_OK(sd_loader_next(l, &batch, &err));
            const uint64_t h = batch ? hash_rows(batch) : 0;
            want[i] = t == 0 ? h : want[i];
            CHECK(h && h == want[i]);
            sd_loader_recycle(l, batch);
        }
        sd_loader_close(l);
    }
    CHECK(want[0] != want[6]);
    close_bench(&b);
}

/* ---- JPEGs that are left to the device ---- */
/* What was left is the file's bytes, at places that do not overlap; what was not is counted, with the reason. */
static void look_at_jpegs(const sd_batch *b, uint64_t *left, uint64_t *kept)
{
    static sd_pixels decoded, turned;
    const sd_decode_options options = {0};
    uint32_t at = 0;
    uint64_t end = 0;
    for (uint32_t r = 0; r < b->n; r++) {
        const sd_batch_picture *x = &b->picture[r];
        const int32_t *place = b->place + (size_t)r * SODET_PIXELS_PLACES;
        const uint64_t first = (uint64_t)place[SODET_PIXELS_FIRST] * SODET_PIXELS_UNIT;
        const uint32_t kind = kind_of(b->items[r].sample);
        CHECK(x->jpegs_before == at && first >= end);
        end = first + x->bytes;
        CHECK(x->by_host ? strstr(x->by_host, kind == AS_TURNED ? "EXIF" : "data set") != NULL : kind == AS_JPEG);
        *kept += x->by_host != NULL;
        if (kind != AS_JPEG)
            continue;
        const sodet_coded *j = &b->jpeg[at++];
        sd_text want = {0};
        CHECK_OK(make_jpeg(b->items[r].sample, &want, &err));
        CHECK(!x->rgb && j->coded == x->coded && j->n_coded == want.length && memcmp(j->coded, want.text, want.length) == 0);
        CHECK_OK(sd_decode("left", j->coded, j->n_coded, &options, &decoded, &turned, &err));
        CHECK(j->width == decoded.width && j->height == decoded.height && j->offset == first);
        CHECK(x->bytes == (uint64_t)j->width * j->height * 3 && place[SODET_PIXELS_ROWS] == (int32_t)j->height);
        sd_text_free(&want);
        (*left)++;
    }
    CHECK(at == b->n_jpegs);
    sd_pixels_free(&decoded);
    sd_pixels_free(&turned);
}

static void same_boxes_of_jpegs(void)
{
    bench b;
    open_bench(&b, 1, ssd);
    b.from.jpegs = true;
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        sd_loader *host = NULL, *device = NULL;
        uint64_t left = 0, kept = 0;
        b.config.threads = threads;
        b.config.device_pixels = b.config.device_jpegs = 0;
        CHECK_OK(sd_loader_open(&b.config, &host, &err));
        b.config.device_pixels = b.config.device_jpegs = 1;
        CHECK_OK(sd_loader_open(&b.config, &device, &err));
        for (uint32_t i = 0; host && device && i < STEPS; i++) {
            const sd_batch *h = NULL, *d = NULL;
            CHECK_OK(sd_loader_next(host, &h, &err));
            CHECK_OK(sd_loader_next(device, &d, &err));
            if (!h || !d)
                break;
            CHECK(hash_truth(h) == hash_truth(d) && h->n_jpegs == 0);
            look_at_jpegs(d, &left, &kept);
            sd_loader_recycle(host, h);
            sd_loader_recycle(device, d);
        }
        sd_loader_stats stats = {0};
        char told[700];
        if (device)
            sd_loader_stats_get(device, &stats);
        CHECK(left && kept && stats.by_device == left && stats.by_host == kept);
        CHECK(strstr(sd_send_told(&stats, told, sizeof told), "by the host, the first of them noise"));
        sd_loader_close(host);
        sd_loader_close(device);
    }
    close_bench(&b);
}

/* The picture of the bytes, and why it stays with the host. */
static void stays(const sd_text *jpeg, const char *why)
{
    uint32_t width = 0, height = 0;
    const char *said = sd_decode_by_host((const uint8_t *)jpeg->text, jpeg->length, false, &width, &height);
    CHECK(why ? said && strstr(said, why) : !said && width == 77 && height == 83);
    if (why ? !said || !strstr(said, why) : said != NULL)
        printf("expected: %s, said: %s\n", why ? why : "left to the device", said ? said : "left to the device");
}

/* A JPEG of which the byte `at` behind the first marker 0xff `marker` is another. */
static void changed(const sd_text *jpeg, int marker, size_t at, int byte, const char *why)
{
    sd_text t = {0};
    sd_text_append(&t, jpeg->text, jpeg->length);
    size_t i = 0;
    while (i + 1 < t.length && ((uint8_t)t.text[i] != 0xff || (uint8_t)t.text[i + 1] != marker))
        i++;
    CHECK(i + at < t.length);
    if (i + at < t.length)
        t.text[i + at] = (char)byte;
    stays(&t, why);
    sd_text_free(&t);
}

static void who_decodes(void)
{
    static const char adobe[] = "\xff\xee\0\xe"
                                "Adobe\0\x64\0\0\0\0\0";
    sd_text jpeg = {0}, t = {0};
    CHECK_OK(make_jpeg(1, &jpeg, &err)); /* baseline, 4:2:0 */
    stays(&jpeg, NULL);
    enum { FRAME = 0xc0, BITS = 4, HEIGHT = 6, COMPONENTS = 9, FIRST = 10, LUMA = 11, CHROMA = 14 };
    changed(&jpeg, FRAME, 1, 0xc2, NULL); /* progressive */
    changed(&jpeg, FRAME, 1, 0xc1, "neither baseline");
    changed(&jpeg, FRAME, 1, 0xc3, "neither baseline");
    changed(&jpeg, FRAME, 1, 0xc9, "neither baseline");
    changed(&jpeg, FRAME, BITS, 12, "neither baseline");
    changed(&jpeg, FRAME, HEIGHT, 0, "damaged");
    changed(&jpeg, FRAME, COMPONENTS, 4, "CMYK");
    changed(&jpeg, FRAME, COMPONENTS, 2, "other colours");
    changed(&jpeg, FRAME, LUMA, 0x21, NULL);
    changed(&jpeg, FRAME, LUMA, 0x14, "rare sampling");
    changed(&jpeg, FRAME, CHROMA, 0x21, "rare sampling");
    changed(&jpeg, 0xd8, 0, 0, "no JPEG");
    changed(&jpeg, 0xd9, 1, 0, "cut short");
    sd_text_append(&t, jpeg.text, 2);
    sd_text_append(&t, adobe, sizeof adobe - 1);
    sd_text_append(&t, jpeg.text + 2, jpeg.length - 2);
    stays(&t, "other colours");
    t.text[2 + 15] = 1;
    stays(&t, NULL);
    t.length = 0;
    for (size_t i = 0; i + 1 < jpeg.length; i++) { /* tables become comments */
        const bool table = (uint8_t)jpeg.text[i] == 0xff && (uint8_t)jpeg.text[i + 1] == 0xc4;
        sd_text_append(&t, jpeg.text + i, 1);
        if (table)
            sd_text_append(&t, "\xfe", 1);
        i += table;
    }
    sd_text_append(&t, "\xd9", 1);
    stays(&t, "without Huffman tables");
    t.length = 0;
    sd_text_append(&t, jpeg.text, jpeg.length - 2);
    for (uint32_t i = 0; i < 600; i++)
        sd_text_append(&t, "\xff\xda", 2);
    sd_text_append(&t, "\xff\xd9", 2);
    stays(&t, NULL); /* a baseline JPEG has one */
    changed(&t, FRAME, 1, 0xc2, "very many scans");
    sd_text_free(&t);
    sd_text_free(&jpeg);
}

/* For the runs of tests/hostcuda/backend/nvjpeg.sh: pictures as JPEGs, the others as PPM. */
static int write_files(const char *folder)
{
    char path[1000];
    bool ok = true;
    sd_text list = {0};
    for (uint64_t i = 0; ok && i < SAMPLES; i++) {
        sd_text t = {0};
        uint32_t width, height;
        const bool jpeg = kind_of(i) != AS_PIXELS;
        size_of(i, &width, &height);
        if (jpeg) {
            ok = make_jpeg(i, &t, &err) == SODET_OK;
        } else {
            sd_text_printf(&t, "P6 %u %u 255\n", width, height);
            for (size_t k = 0; k < (size_t)width * height * 3; k++)
                sd_text_append(&t, (const char[]){(char)sd_mix64(k + i)}, 1);
        }
        snprintf(path, sizeof path, "%s/noise%02u.%s", folder, (unsigned)i, jpeg ? "jpg" : "ppm");
        ok = ok && sd_file_write(path, t.text, t.length, &err) == SODET_OK;
        sd_text_free(&t);
        for (uint32_t k = 0; k < 1 + i % 3; k++)
            sd_text_printf(&list, "noise%02u.%s,%u,3,%u,28,%s\n", (unsigned)i, jpeg ? "jpg" : "ppm", 2 + 5 * k, 26 + 5 * k,
                           k % 2 ? "cat" : "dog");
    }
    snprintf(path, sizeof path, "%s/pictures.csv", folder);
    ok = ok && sd_file_write(path, list.text, list.length, &err) == SODET_OK;
    sd_text_free(&list);
    if (!ok)
        printf("%s\n", err.text);
    return ok ? 0 : 1;
}

/* ---- what is refused ---- */
static sodet_status looks(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *e)
{
    (void)self, (void)r;
    return sodet_sample_image(s) ? SODET_OK : SODET_FAIL(e, SODET_E_MEMORY, "no memory for the picture");
}

static void darken(const void *how, float *red, float *green, float *blue, uint32_t n)
{
    (void)how, (void)green, (void)blue;
    for (uint32_t i = 0; i < n; i++)
        red[i] *= 0.5f;
}

static sodet_status darkens(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *e)
{
    (void)self, (void)r;
    return sodet_sample_recolour(s, darken, NULL, 0, e);
}

static sodet_status seldom(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *e)
{
    return sodet_stream_chance(r, 0.03) ? looks(self, s, r, e) : SODET_OK;
}

static void refused(const char *const *chain, const sodet_transform_ops *own, const char *who, const char *what)
{
    bench b;
    sd_loader *l = NULL;
    open_bench(&b, 1, chain);
    if (own)
        b.links[b.config.n_links++] = (sd_link){"own", own, NULL};
    b.config.device_pixels = 1;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_UNSUPPORTED, who);
    CHECK(strstr(err.text, what) != NULL && strstr(err.text, "pixels = host") != NULL);
    if (!strstr(err.text, what))
        printf("said: %s\n", err.text);
    sd_loader_close(l);
    l = NULL;
    b.config.device_pixels = 0;
    if (!own) /* the host does it */
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
    sd_loader_close(l);
    b.config.n_links -= own != NULL;
    close_bench(&b);
}

static void refusals(void)
{
    static const sodet_transform_ops image = {.struct_size = sizeof image, .apply = looks};
    static const sodet_transform_ops recolours = {.struct_size = sizeof recolours, .apply = darkens};
    static const sodet_transform_ops rare = {.struct_size = sizeof rare, .apply = seldom};
    static const sodet_transform_ops mixes = {.struct_size = sizeof mixes, .apply = looks, .partners = 1};
    static const char *const resize[] = {"plugin = resize", NULL};
    refused((const char *const[]){"plugin = hflip", "plugin = photometric\ncentre = mean", "plugin = resize", NULL}, NULL, "transform.t1",
            "looks at the pixels");
    refused((const char *const[]){"plugin = resize\nsize = 80x60", "plugin = resize", NULL}, NULL, "transform.t1", "resizes a second time");
    refused((const char *const[]){"plugin = ssd_crop", "plugin = expand", "plugin = resize", NULL}, NULL, "transform.t1",
            "around what was cropped before");
    refused(
        (const char *const[]){"plugin = expand\nprobability = 1\nratio = 2, 3", "plugin = expand\nfill = 1, 2, 3", "plugin = resize", NULL},
        NULL, "transform.t1", "a canvas of another colour");
    refused((const char *const[]){"plugin = resize", "plugin = expand\nratio = 1, 1\nprobability = 1", NULL}, NULL, "transform.t1",
            "crops behind a resize");
    refused(resize, &image, "transform own", "looks at the pixels");
    refused(resize, &rare, "transform own", "looks at the pixels");
    refused(resize, &recolours, "transform own", "a function of its own");
    refused(resize, &mixes, "transform own", "looks at other pictures");
    const char *const many[] = {"plugin = photometric",
                                "plugin = photometric",
                                "plugin = photometric",
                                "plugin = photometric",
                                "plugin = photometric",
                                "plugin = resize",
                                NULL};
    refused(many, NULL, "transform.t4", "once more than is written down");
    refused((const char *const[]){"plugin = photometric\nprobability = 1\nchannels = 1", "plugin = photometric\nprobability = 1",
                                  "plugin = photometric\nprobability = 1", "plugin = photometric\nprobability = 1", "plugin = resize",
                                  NULL},
            NULL, "transform.t3", "more steps than are written down");
}

/* Room is made for the largest picture that the annotations tell of. */
static void told_too_small(void)
{
    bench b;
    sd_loader *l = NULL;
    const sd_batch *batch = NULL;
    open_bench(&b, 2, chains[0]);
    b.config.device_pixels = 1;
    CHECK_OK(sd_loader_open(&b.config, &l, &err));
    sodet_status status = SODET_OK;
    for (uint32_t i = 0; l && i < 6 && status == SODET_OK; i++) {
        status = sd_loader_next(l, &batch, &err);
        if (status == SODET_OK)
            sd_loader_recycle(l, batch);
    }
    CHECK(status == SODET_E_INVALID && strstr(err.text, "correct the annotation") && strncmp(err.text, "noise", 5) == 0);
    sd_loader_close(l);
    close_bench(&b);
    l = NULL;
    open_bench(&b, 3, chains[0]);
    b.config.device_pixels = 1;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_UNSUPPORTED, "7 pictures of up to 10299 MiB");
    close_bench(&b);
}

/* What the operator says of tables and attributes that do not go. */
static void descriptions(void)
{
    const sodet_pixels_attr good = {.channels = SODET_PIXELS_RGB, .height = 8, .width = 9, .std = {1, 1, 1}};
    for (uint32_t i = 0; i < 6; i++) {
        static const char *const said[] = {"pixels: place is 2x29 i32 and value 1x35 f32; [N, 29] and [N, 35]",
                                           "value 3x34",
                                           "place is 2x28",
                                           "std of channel 2 is 0",
                                           "channels 3 of 8x9",
                                           "of 0x9"};
        const sodet_shape bytes = sodet_shape_make(SODET_I32, 1, 16, 0, 0, 0);
        const sodet_shape place = sodet_shape_make(SODET_I32, 2, 2, SODET_PIXELS_PLACES - (i == 2), 0, 0);
        const sodet_shape value = sodet_shape_make(SODET_F32, 2, i == 0 ? 1 : i == 1 ? 3 : 2, SODET_PIXELS_VALUES - (i == 1), 0, 0);
        sodet_pixels_attr a = good;
        a.std[2] = i == 3 ? 0 : 1;
        a.channels = i == 4 ? 3 : a.channels;
        a.height = i == 5 ? 0 : a.height;
        sodet_graph *g = NULL;
        CHECK_OK(sd_graph_create(&(sd_graph_options){.world = 1}, &g, &err));
        sodet_pixels(g, sodet_input(g, "b", &bytes), sodet_input(g, "p", &place), sodet_input(g, "v", &value), &a);
        CHECK_FAILS(sodet_graph_status(g, &err), SODET_E_INVALID, said[i]);
        sd_graph_free(g);
    }
}

int main(int argc, char **argv)
{
    static const char *const here[] = {"ref", "cpu", NULL};
    const char *const named[] = {argc > 2 && strcmp(argv[1], "--on") == 0 ? argv[2] : NULL, NULL};
    if (argc > 2 && strcmp(argv[1], "--files") == 0)
        return write_files(argv[2]);
    backends = named[0] ? named : here;
    same_pictures();
    if (!named[0]) {
        same_for_any_thread();
        same_boxes_of_jpegs();
        who_decodes();
        refusals();
        told_too_small();
        descriptions();
    }
    return check_done(named[0] ? 100 : 250);
}
