/* Transforms: field cases O-16 (slivers after a crop) and O-22 (mirrored boxes); resampling and colour against plain references; views
 * against pictures; the map of a whole chain; partner samples; speed of SSD's chain. */
#include "core/data/loader.h"
#include "core/data/pipeline.h"
#include "core/data/resize.h"
#include "core/plugin/plugin.h"

#include <time.h>

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

/* ---- samples without a data set plugin: pictures of noise, objects as given ---- */

typedef struct source {
    uint32_t width, height, n_objects;
    sodet_box objects[8];
} source;

static sodet_status source_open(void *self, uint64_t *n, sodet_err *e)
{
    (void)self, (void)e;
    *n = 64;
    return SODET_OK;
}

static sodet_status source_describe(const void *self, uint64_t i, sodet_sample *s, sodet_err *e)
{
    const source *from = self;
    char id[20];
    snprintf(id, sizeof id, "noise%02u", (unsigned)i);
    sodet_sample_set_id(s, id, (int64_t)i);
    sodet_sample_set_size(s, from->width, from->height);
    sodet_status status = SODET_OK;
    for (uint32_t k = 0; k < from->n_objects && status == SODET_OK; k++)
        status = sodet_sample_add_object(s, k % 2 ? "cat" : "dog", from->objects[k], 0, -1, (int64_t)k, e);
    return status;
}

static sodet_status source_pixels(const void *self, uint64_t i, sodet_sample *s, sodet_err *e)
{
    const source *from = self;
    uint8_t *p;
    sodet_status status = sodet_sample_new_pixels(s, from->width, from->height, 3, &p, e);
    for (size_t k = 0; status == SODET_OK && k < (size_t)from->width * from->height * 3; k++)
        p[k] = (uint8_t)sd_mix64(k + i * 1000003);
    return status;
}

static const sodet_dataset_ops source_ops = {
    .struct_size = sizeof source_ops, .open = source_open, .describe = source_describe, .pixels = source_pixels};

typedef struct bench {
    source from;
    sd_config *cfg;
    sd_instance instances[8];
    sd_dataset *d;
    sd_link links[8];
    sd_loader_config config;
    sd_worker worker;
} bench;

static void open_bench(bench *b, source from, const char *const *chain)
{
    char text[3000];
    memset(b, 0, sizeof *b);
    b->from = from;
    int n = snprintf(text, sizeof text, "[run]\nname = x\n");
    for (uint32_t i = 0; chain && chain[i]; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "[transform.t%u]\n%s\n", i, chain[i]);
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &b->cfg, &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    static const char *const names[] = {"dog", "cat"};
    const sd_dataset_part part = {"noise", &source_ops, &b->from};
    CHECK_OK(sd_dataset_open(&part, 1, names, 2, &rules, &b->d, &err));
    for (uint32_t i = 0; chain && chain[i]; i++) {
        char section[40];
        snprintf(section, sizeof section, "transform.t%u", i);
        CHECK_OK(sd_instance_create(b->cfg, section, &b->instances[i], &err));
        b->links[i] = (sd_link){"t", b->instances[i].ops, b->instances[i].self};
        b->config.n_links = i + 1;
    }
    b->config.dataset = b->d;
    b->config.links = b->links;
    b->config.input = (sd_input){.width = 96, .height = 64, .mean = {123, 117, 104}, .std = {1, 1, 1}};
    CHECK_OK(sd_worker_open(&b->worker, &b->config, &err));
}

static void close_bench(bench *b)
{
    sd_worker_close(&b->worker);
    sd_dataset_close(b->d);
    for (uint32_t i = 0; i < b->config.n_links; i++)
        sd_instance_destroy(&b->instances[i]);
    sd_config_close(b->cfg);
}

static sodet_sample *prepare(bench *b, uint64_t epoch, uint64_t i)
{
    CHECK_OK(sd_worker_prepare(&b->worker, epoch, i, 0, &err));
    return b->worker.sample;
}

static bool box_is(const sodet_sample *s, uint32_t i, double x1, double y1, double x2, double y2)
{
    const sodet_object *o = sodet_sample_object(s, i);
    return o && o->box.x1 == (float)x1 && o->box.y1 == (float)y1 && o->box.x2 == (float)x2 && o->box.y2 == (float)y2;
}

static void o_22_mirror(void)
{
    static const char *const once[] = {"plugin = hflip\nprobability = 1", NULL}, *const twice[] = {"plugin = hflip\nprobability = 1",
                                                                                                   "plugin = hflip\nprobability = 1", NULL};
    bench b;
    open_bench(&b, (source){640, 120, 1, {{20, 0, 120, 100}}}, once);
    CHECK(box_is(prepare(&b, 0, 0), 0, 520, 0, 620, 100));
    close_bench(&b);
    open_bench(&b, (source){512, 120, 1, {{100.5f, 40, 180.25f, 90}}}, once);
    CHECK(box_is(prepare(&b, 0, 0), 0, 331.75, 40, 411.5, 90));
    close_bench(&b);
    open_bench(&b, (source){512, 120, 1, {{100.5f, 40, 180.25f, 90}}}, twice);
    CHECK(box_is(prepare(&b, 0, 0), 0, 100.5, 40, 180.25, 90));
    const sodet_image *image = sodet_sample_image(b.worker.sample);
    for (size_t k = 0; k < 512 * 120 * 3; k += 101)
        CHECK_EQ(image->pixels[k], (uint8_t)sd_mix64(k));
    close_bench(&b);
    /* The pixels go with the box: column 7 of a picture 33 wide becomes column 25. */
    open_bench(&b, (source){33, 9, 1, {{7, 0, 8, 9}}}, once);
    sodet_sample *s = prepare(&b, 0, 3);
    CHECK(box_is(s, 0, 25, 0, 26, 9));
    image = sodet_sample_image(s);
    for (size_t y = 0; y < 9; y++)
        CHECK_EQ(image->pixels[(y * 33 + 25) * 3 + 1], (uint8_t)sd_mix64(((y * 33 + 7) * 3 + 1) + 3 * 1000003));
    close_bench(&b);
}

/* Top and bottom: boxes and pixels, for odd and even heights; twice is nothing; behind hflip, which is only a view until then. */
static void vertical(void)
{
    enum { W = 13, H = 9 };
#define VFLIP "plugin = vflip\nprobability = 1"
    static const char *const once[] = {VFLIP, NULL}, *const twice[] = {VFLIP, VFLIP, NULL},
                             *const both[] = {"plugin = hflip\nprobability = 1", VFLIP, NULL},
                             *const never[] = {"plugin = vflip\nprobability = 0", NULL};
    static const struct {
        const char *const *chain;
        uint32_t height;
        sodet_box want;
        int x, y; /* mirrored */
    } rows[] = {{once, H, {2.5f, 1, 7, 3.25f}, 0, 1},      {once, H - 1, {2.5f, 0, 7, 2.25f}, 0, 1}, {twice, H, {2.5f, 5.75f, 7, 8}, 0, 0},
                {twice, H - 1, {2.5f, 5.75f, 7, 8}, 0, 0}, {both, H, {6, 1, 10.5f, 3.25f}, 1, 1},    {never, H, {2.5f, 5.75f, 7, 8}, 0, 0}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench b;
        const uint32_t h = rows[i].height;
        open_bench(&b, (source){W, h, 1, {{2.5f, 5.75f, 7, 8}}}, rows[i].chain);
        sodet_sample *s = prepare(&b, 0, 5);
        const sodet_box w = rows[i].want;
        CHECK(box_is(s, 0, (double)w.x1, (double)w.y1, (double)w.x2, (double)w.y2));
        const sodet_image *image = sodet_sample_image(s);
        CHECK(image->width == W && image->height == h);
        uint32_t differ = 0;
        for (size_t y = 0; y < h; y++)
            for (size_t x = 0; x < W; x++)
                for (size_t c = 0; c < 3; c++) {
                    const size_t from = ((rows[i].y ? h - 1 - y : y) * W + (rows[i].x ? W - 1 - x : x)) * 3 + c;
                    differ += image->pixels[(y * W + x) * 3 + c] != (float)(uint8_t)sd_mix64(from + 5 * 1000003);
                }
        CHECK_EQ(differ, 0);
        close_bench(&b);
    }
}

/* Half-pixel centres, edges repeated, in double. */
static double plain_bilinear(const sd_source *f, const sd_view *v, uint32_t to_w, uint32_t to_h, uint32_t x, uint32_t y, uint32_t c)
{
    double sx = ((double)x + 0.5) * v->width / to_w - 0.5, sy = ((double)y + 0.5) * v->height / to_h - 0.5, sum = 0;
    for (int k = 0; k < 4; k++) {
        double fx = floor(sx) + (k & 1), fy = floor(sy) + (k >> 1), w = (1 - fabs(sx - fx)) * (1 - fabs(sy - fy));
        double cx = fmin(fmax(fx, 0), v->width - 1.0), cy = fmin(fmax(fy, 0), v->height - 1.0);
        int64_t px = v->x + (v->mirror ? (int64_t)v->width - 1 - (int64_t)cx : (int64_t)cx),
                py = v->y + (v->flip ? (int64_t)v->height - 1 - (int64_t)cy : (int64_t)cy);
        bool inside = px >= 0 && py >= 0 && px < (int64_t)f->width && py < (int64_t)f->height;
        size_t at = inside ? ((size_t)py * f->width + (size_t)px) * 3 + c : 0;
        sum += w * (!inside ? (double)v->fill[c] : f->bytes ? (double)f->bytes[at] : (double)f->floats[at]);
    }
    return sum;
}

static void resampling(void)
{
    enum { W = 23, H = 17 };
    static uint8_t bytes[W * H * 3];
    static float floats[W * H * 3];
    for (size_t i = 0; i < W * H * 3; i++) {
        bytes[i] = (uint8_t)sd_mix64(i);
        floats[i] = (float)(sd_mix64(i + 999) % 100000) / 300 - 50;
    }
    static const sd_view views[] = {
        {0, 0, W, H, false, false, {0}},         {3, 2, 11, 9, false, true, {0}},         {-5, -3, 40, 30, false, false, {1, 200, 33}},
        {-5, -3, 40, 30, true, true, {9, 9, 9}}, {10, 9, 30, 30, true, false, {7, 8, 9}}, {-40, 0, 30, 10, false, false, {5, 6, 7}},
        {22, 16, 1, 1, false, false, {0}},       {0, 0, W, H, true, false, {0}},          {2, -9, 8, 20, false, true, {50, 6, 7}}};
    static const uint32_t sizes[][2] = {{23, 17}, {10, 7}, {64, 48}, {1, 1}, {23, 5}, {7, 40}};
    static float out[64 * 48 * 3], rows[64 * 7 + W * 3 + 20];
    static int32_t taps[128];
    double worst = 0;
    for (uint32_t v = 0; v < sizeof views / sizeof *views; v++) {
        for (uint32_t k = 0; k < 2; k++) {
            const sd_source from = {.bytes = k ? NULL : bytes, .floats = k ? floats : NULL, .width = W, .height = H};
            for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                uint32_t w = sizes[i][0], h = sizes[i][1];
                CHECK(sd_resize_rows(&from, w) <= sizeof rows / sizeof *rows);
                sd_resize(&from, &views[v], out, w, h, rows, taps);
                for (uint32_t y = 0; y < h; y++) {
                    for (uint32_t x = 0; x < w; x++) {
                        for (uint32_t c = 0; c < 3; c++) {
                            double d = fabs((double)out[(y * w + x) * 3 + c] - plain_bilinear(&from, &views[v], w, h, x, y, c));
                            worst = d > worst || !(d == d) ? d : worst;
                        }
                    }
                }
            }
            sd_view_copy(&from, &views[v], out);
            for (uint32_t y = 0; y < views[v].height; y++) {
                for (uint32_t x = 0; x < views[v].width; x++) {
                    for (uint32_t c = 0; c < 3; c++) {
                        double d = fabs((double)out[(y * views[v].width + x) * 3 + c] -
                                        plain_bilinear(&from, &views[v], views[v].width, views[v].height, x, y, c));
                        worst = d > worst || !(d == d) ? d : worst;
                    }
                }
            }
        }
    }
    printf("bilinear: at most %.2g grey levels from the plain formula\n", worst);
    CHECK(worst < 2e-4);
}

/* Crops, mirrors and changes of colour in a row give the same picture, whether it is looked at after each or not. */
static void twist(const void *how, float *red, float *green, float *blue, uint32_t n)
{
    const float *factor = how;
    for (uint32_t i = 0; i < n; i++) {
        float r = red[i];
        red[i] = green[i] * factor[0];
        green[i] = blue[i] + factor[1];
        blue[i] = r;
    }
}

static sodet_status zoom(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *e)
{
    (void)self;
    uint32_t w, h;
    sodet_sample_size(s, &w, &h);
    static const float green[3] = {0, 255, 0};
    int32_t x = (int32_t)sodet_stream_below(r, 40) - 20, y = (int32_t)sodet_stream_below(r, 40) - 20;
    if (sodet_stream_chance(r, 0.5))
        sodet_sample_mirror(s);
    if (sodet_stream_chance(r, 0.5))
        sodet_sample_flip(s);
    for (uint32_t k = sodet_stream_below(r, 4); k > 0; k--) {
        const float factors[2] = {(float)sodet_stream_uniform(r, 0.5, 1.5), (float)sodet_stream_uniform(r, -20, 20)};
        sodet_status status = sodet_sample_recolour(s, twist, factors, sizeof factors, e);
        if (status != SODET_OK)
            return status;
    }
    return sodet_sample_crop(s, x, y, w / 2 + sodet_stream_below(r, w), h / 2 + sodet_stream_below(r, h),
                             sodet_stream_chance(r, 0.3) ? green : NULL, e);
}

static void views(void)
{
    bench a, b;
    const source from = {31, 27, 1, {{5, 6, 20, 21}}};
    open_bench(&a, from, NULL);
    open_bench(&b, from, NULL);
    uint32_t differ = 0;
    for (uint64_t i = 0; i < 300; i++) {
        CHECK_OK(sd_dataset_load(a.d, i % 64, a.worker.sample, &err));
        CHECK_OK(sd_dataset_load(b.d, i % 64, b.worker.sample, &err));
        for (uint64_t k = 0; k < 3; k++) {
            sodet_stream ra = sd_stream(1, i, k, 0), rb = ra;
            CHECK_OK(zoom(NULL, a.worker.sample, &ra, &err));
            CHECK_OK(zoom(NULL, b.worker.sample, &rb, &err));
            CHECK(sodet_sample_image(b.worker.sample) != NULL);
        }
        const sodet_image *x = sodet_sample_image(a.worker.sample), *y = sodet_sample_image(b.worker.sample);
        CHECK(x->width == y->width && x->height == y->height);
        differ += x->width == y->width && x->height == y->height && memcmp(x->pixels, y->pixels, (size_t)x->width * x->height * 12) != 0;
        differ += memcmp(a.worker.sample->objects, b.worker.sample->objects, sizeof(sodet_object)) != 0;
    }
    CHECK_EQ(differ, 0);
    CHECK_FAILS(sodet_sample_recolour(a.worker.sample, twist, &differ, SODET_RECOLOUR_BYTES + 1, &err), SODET_E_INVALID,
                "in 129 bytes; at most 128 are kept");
    /* A resized one, too; and where the fill is, it has the colour that it had when the colours changed. */
    for (uint32_t k = 0; k < 2; k++) {
        bench *x = k ? &b : &a;
        const float half[2] = {0.5f, 8}, fill[3] = {200, 100, 50};
        CHECK_OK(sd_dataset_load(x->d, 3, x->worker.sample, &err));
        CHECK_OK(sodet_sample_crop(x->worker.sample, -40, -40, 100, 100, fill, &err));
        CHECK_OK(sodet_sample_recolour(x->worker.sample, twist, half, sizeof half, &err));
        CHECK(k == 0 || sodet_sample_image(x->worker.sample) != NULL);
        CHECK_OK(sodet_sample_resize(x->worker.sample, 41, 37, &err));
    }
    const float *p = sodet_sample_image(a.worker.sample)->pixels;
    CHECK(memcmp(p, sodet_sample_image(b.worker.sample)->pixels, sizeof(float) * 41 * 37 * 3) == 0);
    CHECK(p[0] == 50 && p[1] == 58 && p[2] == 200);
    close_bench(&a);
    close_bench(&b);
}

static void resize_modes(void)
{
    static const struct {
        const char *options;
        uint32_t w, h, to_w, to_h, canvas_w, canvas_h;
    } rows[] = {{"", 50, 40, 96, 64, 96, 64}, /* [input] size */
                {"size = 300x200", 50, 40, 300, 200, 300, 200},
                {"mode = fit\nsize = 100", 50, 40, 100, 80, 100, 100},
                {"mode = fit", 30, 64, 30, 64, 96, 64},
                {"mode = fit\nsize = 600\nrounding = down", 640, 427, 600, 400, 600, 600}, /* 427 * 600 / 640 = 400.3 */
                {"mode = sides", 640, 480, 1067, 800, 1088, 800},
                {"mode = sides", 480, 640, 800, 1067, 800, 1088},
                {"mode = sides", 1000, 500, 1333, 667, 1344, 672},
                {"mode = sides\nshort_side = 608\nlong_side = 1024\nmultiple = 1\nrounding = down", 500, 333, 912, 608, 912, 608}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char chain[200];
        snprintf(chain, sizeof chain, "plugin = resize\n%s", rows[i].options);
        bench b;
        open_bench(&b, (source){rows[i].w, rows[i].h, 1, {{10, 5, 20, 30}}}, (const char *const[]){chain, NULL});
        sodet_sample *s = prepare(&b, 0, 0);
        uint32_t w, h, cw = rows[i].w, ch = rows[i].h;
        sodet_sample_size(s, &w, &h);
        sd_links_canvas(b.links, 1, &b.config.input, &cw, &ch);
        CHECK_EQ(w, rows[i].to_w);
        CHECK_EQ(h, rows[i].to_h);
        CHECK_EQ(cw, rows[i].canvas_w);
        CHECK_EQ(ch, rows[i].canvas_h);
        CHECK_NEAR(sodet_sample_object(s, 0)->box.x2, 20.0 * w / rows[i].w, 1e-6, 0);
        CHECK_NEAR(sodet_sample_object(s, 0)->box.y1, 5.0 * h / rows[i].h, 1e-6, 0);
        double inverse[6];
        sd_affine_inverse(s->map, inverse);
        CHECK_NEAR(inverse[0] * w, rows[i].w, 1e-12, 0);
        close_bench(&b);
    }
}

/* Through everything: the inverse map brings each box back to where the file has it. */
static void maps(void)
{
    static const char *const chain[] = {"plugin = expand\nprobability = 1", "plugin = hflip", "plugin = vflip",
                                        "plugin = resize\nsize = 70x90",    "plugin = hflip", NULL};
    bench b;
    const source from = {120, 80, 2, {{10, 20, 40, 50}, {60, 1, 119, 79}}};
    open_bench(&b, from, chain);
    for (uint64_t i = 0; i < 64; i++) {
        sodet_sample *s = prepare(&b, 3, i);
        double m[6];
        sd_affine_inverse(s->map, m);
        CHECK_EQ(sodet_sample_object_count(s), 2);
        for (uint32_t k = 0; k < 2; k++) {
            sodet_box o = sodet_sample_object(s, k)->box, want = from.objects[k];
            double x1 = m[0] * (double)o.x1 + m[2], x2 = m[0] * (double)o.x2 + m[2];
            double y1 = m[4] * (double)o.y1 + m[5], y2 = m[4] * (double)o.y2 + m[5];
            CHECK_NEAR(fmin(x1, x2), want.x1, 0, 1e-3);
            CHECK_NEAR(fmax(x1, x2), want.x2, 0, 1e-3);
            CHECK_NEAR(fmin(y1, y2), want.y1, 0, 1e-3);
            CHECK_NEAR(fmax(y1, y2), want.y2, 0, 1e-3);
            CHECK(o.x1 >= 0 && o.x2 <= 70 && o.y1 >= 0 && o.y2 <= 90);
        }
    }
    close_bench(&b);
    open_bench(&b, from, (const char *const[]){"plugin = expand\nprobability = 1\nratio = 3, 3", NULL});
    sodet_sample *s = prepare(&b, 0, 0);
    const sodet_image *image = sodet_sample_image(s);
    CHECK(image->width == 360 && image->height == 240);
    uint32_t mean = 0;
    for (size_t i = 0; i < 360 * 240; i++)
        mean += image->pixels[3 * i] == 123 && image->pixels[3 * i + 1] == 117 && image->pixels[3 * i + 2] == 104;
    CHECK(mean >= 360 * 240 - 120 * 80);
    close_bench(&b);
}

/* O-16: no crop leaves a sliver, whatever is drawn; and what is too small in the end is dropped and counted by the loader. */
static void o_16_crop(void)
{
    static const char *const ways[] = {"",
                                       "choice = draw\nsides = free\ntrials = 40",
                                       "choice = draw\nsides = free\naccept = all\ntrials = 1",
                                       "accept = all",
                                       "iou = 0.9\nwhole = no\nunbounded = no\nsides = free",
                                       "choice = draw\niou = 0\nsides = free\nwhole = no"};
    for (uint32_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        char chain[200];
        snprintf(chain, sizeof chain, "plugin = ssd_crop\n%s", ways[w]);
        bench b;
        const source from = {
            200, 150, 5, {{10, 20, 140, 130}, {100, 10, 199.5f, 149}, {0, 0, 3, 150}, {50, 50, 51, 52}, {150, 100, 200, 150}}};
        open_bench(&b, from, (const char *const[]){chain, NULL});
        uint32_t cropped = 0, met = 0, kept = 0;
        for (uint64_t i = 0; i < 64 * 8; i++) {
            sodet_sample *s = prepare(&b, i / 64, i % 64);
            uint32_t width, height, n = sodet_sample_object_count(s);
            sodet_sample_size(s, &width, &height);
            cropped += width < 200 || height < 150;
            kept += n;
            CHECK(n >= 1 && width >= 1 && height >= 1 && width <= 200 && height <= 150);
            double most = 0;
            for (uint32_t k = 0; k < n; k++) {
                const sodet_object *o = sodet_sample_object(s, k);
                CHECK(o->box.x1 >= 0 && o->box.y1 >= 0 && o->box.x2 <= (float)width && o->box.y2 <= (float)height &&
                      o->box.x2 > o->box.x1 && o->box.y2 > o->box.y1);
                /* The centre of the object as it was is inside. */
                sodet_box was = from.objects[o->id];
                double cx = ((double)was.x1 + (double)was.x2) / 2 + s->map[2], cy = ((double)was.y1 + (double)was.y2) / 2 + s->map[5];
                CHECK(cx > 0 && cy > 0 && cx < width && cy < height);
                double area = ((double)o->box.x2 - (double)o->box.x1) * ((double)o->box.y2 - (double)o->box.y1);
                double whole = ((double)was.x2 - (double)was.x1) * ((double)was.y2 - (double)was.y1);
                most = fmax(most, area / (whole + (double)width * height - area));
            }
            met += most >= 0.899;
        }
        printf("ssd_crop %u: %u of 512 cropped, %.2f of 5 objects kept\n", w, cropped, kept / 512.0);
        CHECK(cropped > (w == 4 ? 10 : 200));
        if (w == 4)
            CHECK(met + (512 - cropped) >= 512);
        close_bench(&b);
    }
    bench b;
    open_bench(&b, (source){400, 300, 3, {{10, 10, 200, 200}, {50, 50, 52, 280}, {300, 100, 310, 101.5f}}},
               (const char *const[]){"plugin = resize\nsize = 100", NULL});
    b.config.min_side = 1;
    b.config.batch = 8;
    sd_loader *l = NULL;
    const sd_batch *batch = NULL;
    CHECK_OK(sd_loader_open(&b.config, &l, &err));
    CHECK_OK(sd_loader_next(l, &batch, &err));
    CHECK(batch && batch->items[0].n_objects == 1); /* half a pixel wide, half a pixel high */
    sd_loader_stats stats;
    sd_loader_stats_get(l, &stats);
    CHECK(stats.small >= 16);
    sd_loader_close(l);
    close_bench(&b);
}

/* ---- colour ---- */

static void plain_hsv(double rgb[3], double turn, double factor)
{
    double v = fmax(rgb[0], fmax(rgb[1], rgb[2])), d = v - fmin(rgb[0], fmin(rgb[1], rgb[2]));
    double s = v > 0 ? d / v : 0, h = d == 0        ? 0
                                      : v == rgb[0] ? 60 * (rgb[1] - rgb[2]) / d
                                      : v == rgb[1] ? 120 + 60 * (rgb[2] - rgb[0]) / d
                                                    : 240 + 60 * (rgb[0] - rgb[1]) / d;
    s = fmin(s * factor, 1);
    h = fmod(h + turn + 720, 360);
    double c = v * s, x = c * (1 - fabs(fmod(h / 60, 2) - 1)), m = v - c;
    int k = (int)(h / 60);
    rgb[0] = m + (k == 0 || k == 5 ? c : k == 1 || k == 4 ? x : 0);
    rgb[1] = m + (k == 1 || k == 2 ? c : k == 0 || k == 3 ? x : 0);
    rgb[2] = m + (k == 3 || k == 4 ? c : k == 2 || k == 5 ? x : 0);
}

static void colour(void)
{
    /* One step at a time; what was drawn is found from the first pixel, and must then explain all. */
    bench b;
    static const char *const only_hue[] = {
        "plugin = photometric\nprobability = 1\nbrightness = 0\ncontrast = 1, 1\nsaturation = 1, 1\nhue = 120", NULL};
    open_bench(&b, (source){.width = 16, .height = 8}, only_hue);
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_OK(sd_dataset_load(b.d, i, b.worker.sample, &err));
        float before[16 * 8 * 3];
        memcpy(before, sodet_sample_image(b.worker.sample)->pixels, sizeof before);
        sodet_stream r = sd_stream(5, 0, i, 0), same = r;
        CHECK_OK(((const sodet_transform_ops *)b.instances[0].ops)->apply(b.instances[0].self, b.worker.sample, &r, &err));
        sodet_stream_chance(&same, 1);
        sodet_stream_uniform(&same, 0, 1), sodet_stream_uniform(&same, 1, 1);
        if (sodet_stream_chance(&same, 0.5))
            sodet_stream_chance(&same, 1), sodet_stream_uniform(&same, 1, 1);
        sodet_stream_chance(&same, 1), sodet_stream_uniform(&same, 1, 1), sodet_stream_chance(&same, 1);
        double turn = sodet_stream_uniform(&same, -120, 120), worst = 0;
        const float *after = sodet_sample_image(b.worker.sample)->pixels;
        for (size_t p = 0; p < 16 * 8; p++) {
            double want[3] = {before[3 * p], before[3 * p + 1], before[3 * p + 2]};
            plain_hsv(want, turn, 1);
            for (int c = 0; c < 3; c++)
                worst = fmax(worst, fabs(want[c] - (double)after[3 * p + (size_t)c]));
        }
        CHECK(worst < 2e-3);
    }
    close_bench(&b);
    static const char *const only_saturation[] = {
        "plugin = photometric\nprobability = 1\nbrightness = 0\ncontrast = 1, 1\nsaturation = 1.4, 1.4\nhue = 0", NULL};
    open_bench(&b, (source){.width = 16, .height = 8}, only_saturation);
    sodet_sample *s = prepare(&b, 0, 5);
    double worst = 0;
    for (size_t p = 0; p < 16 * 8; p++) {
        double want[3];
        for (size_t c = 0; c < 3; c++)
            want[c] = (uint8_t)sd_mix64((3 * p + c) + 5 * 1000003);
        plain_hsv(want, 0, 1.4);
        for (size_t c = 0; c < 3; c++)
            worst = fmax(worst, fabs(want[c] - (double)sodet_sample_image(s)->pixels[3 * p + c]));
    }
    CHECK(worst < 2e-3);
    close_bench(&b);
    /* Contrast around the mean grey, saturation from the pixel's own grey; the order of channels. */
    static const char *const only_contrast[] = {"plugin = photometric\nprobability = 1\nbrightness = 0\ngain = 0.7, 0.7\ncontrast = 0.5, "
                                                "0.5\nsaturation = 1, 1\nhue = 0\ncentre = mean",
                                                NULL};
    static const char *const only_luma[] = {"plugin = photometric\nprobability = 1\nbrightness = 0\ncontrast = 1, 1\nsaturation = 0.25, "
                                            "0.25\nsaturation_in = luma\nhue = 0",
                                            NULL};
    for (uint32_t k = 0; k < 2; k++) {
        open_bench(&b, (source){.width = 17, .height = 9}, k ? only_luma : only_contrast);
        s = prepare(&b, 0, 5);
        double mean = 0, from[17 * 9 * 3];
        worst = 0;
        for (size_t p = 0; p < 17 * 9 * 3; p++)
            from[p] = (uint8_t)sd_mix64(p + 5 * 1000003) * (k ? 1 : 0.7);
        for (size_t p = 0; p < 17 * 9; p++)
            mean += (0.299 * from[3 * p] + 0.587 * from[3 * p + 1] + 0.114 * from[3 * p + 2]) / (17 * 9);
        for (size_t p = 0; p < 17 * 9; p++)
            for (size_t c = 0; c < 3; c++) {
                double own = 0.299 * from[3 * p] + 0.587 * from[3 * p + 1] + 0.114 * from[3 * p + 2];
                double want = k ? own + 0.25 * (from[3 * p + c] - own) : mean + 0.5 * (from[3 * p + c] - mean);
                worst = fmax(worst, fabs(want - (double)sodet_sample_image(s)->pixels[3 * p + c]));
            }
        CHECK(worst < 1e-4);
        close_bench(&b);
    }
    open_bench(&b, (source){.width = 17, .height = 9}, (const char *const[]){"plugin = photometric\nprobability = 0\nchannels = 1", NULL});
    uint32_t orders = 0;
    for (uint64_t i = 0; i < 64; i++) {
        const float *p = sodet_sample_image(prepare(&b, 0, i))->pixels;
        uint32_t fits = 0, same = 0;
        for (uint32_t order = 0; order < 27; order++) {
            const size_t from[3] = {order % 3, order / 3 % 3, order / 9};
            same = 0;
            for (size_t k = 0; k < 17 * 9 * 3; k++)
                same += p[k] == (uint8_t)sd_mix64(k / 3 * 3 + from[k % 3] + i * 1000003);
            fits = same == 17 * 9 * 3 ? order + 1 : fits;
        }
        CHECK(fits > 0 && (fits - 1) % 3 + (fits - 1) / 3 % 3 + (fits - 1) / 9 == 3);
        orders |= 1u << fits;
    }
    CHECK_EQ(__builtin_popcount(orders), 6);
    close_bench(&b);
    /* Everything on: within range, different for every sample, and half of the steps are taken with the default. */
    open_bench(&b, (source){.width = 16, .height = 8}, (const char *const[]){"plugin = photometric\nchannels = 0.5", NULL});
    uint32_t untouched = 0;
    for (uint64_t i = 0; i < 6400; i++) {
        s = prepare(&b, i / 64, i % 64);
        const sodet_image *image = sodet_sample_image(s);
        bool same = true, bounded = true;
        for (size_t k = 0; k < 16 * 8 * 3; k++) {
            bounded = bounded && image->pixels[k] >= 0 && image->pixels[k] <= 255;
            same = same && image->pixels[k] == (uint8_t)sd_mix64(k + i % 64 * 1000003);
        }
        CHECK(bounded);
        untouched += same;
    }
    printf("photometric: %u of 6400 untouched\n", untouched); /* all five coins tails, or an order of channels that is none: about 233 */
    CHECK(untouched > 180 && untouched < 290);
    close_bench(&b);
    static const char *const wrong[] = {"contrast = 2, 1", "gain = 1", "hue = 200", "saturation_in = hsl"};
    for (uint32_t i = 0; i < 4; i++) {
        char text[200];
        int n = snprintf(text, sizeof text, "[run]\nname = x\n[transform.p]\nplugin = photometric\n%s\n", wrong[i]);
        sd_config *cfg = NULL;
        sd_instance in = {0};
        CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &cfg, &err));
        CHECK_FAILS(sd_instance_create(cfg, "transform.p", &in, &err), SODET_E_INVALID, "test.ini:5: [transform.p]");
        sd_config_close(cfg);
    }
}

/* ---- partners ---- */

static sodet_status mix(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *e)
{
    (void)self, (void)r;
    sodet_image *mine = sodet_sample_image(s);
    sodet_sample *other = sodet_sample_partner(s, 0);
    const sodet_image *theirs = other ? sodet_sample_image(other) : NULL;
    if (!mine || !theirs || sodet_sample_partner(s, 1))
        return SODET_E_INTERNAL;
    for (size_t i = 0; i < (size_t)mine->width * mine->height * 3; i++)
        mine->pixels[i] = (mine->pixels[i] + theirs->pixels[i]) / 2;
    for (uint32_t i = 0; i < sodet_sample_object_count(other); i++) {
        sodet_status status = sodet_sample_append_object(s, sodet_sample_object(other, i), e);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

static void partners(void)
{
    static const sodet_transform_ops mix_ops = {.struct_size = sizeof mix_ops, .apply = mix, .partners = 1};
    bench b;
    open_bench(&b, (source){40, 30, 2, {{1, 2, 20, 20}, {10, 10, 30, 29}}},
               (const char *const[]){"plugin = resize\nsize = 32", "plugin = hflip", NULL});
    b.links[b.config.n_links++] = (sd_link){"mix", &mix_ops, NULL};
    b.config.batch = 8;
    b.config.shuffle = 1;
    uint64_t want[12] = {0};
    for (uint32_t threads = 1; threads <= 5; threads += 4) {
        b.config.threads = threads;
        sd_loader *l = NULL;
        CHECK_OK(sd_loader_open(&b.config, &l, &err));
        CHECK_EQ(sd_loader_max_objects(l), 8);
        for (uint32_t i = 0; i < 12; i++) {
            const sd_batch *batch = NULL;
            CHECK_OK(sd_loader_next(l, &batch, &err));
            uint64_t h = sd_fnv1a64(batch->image, (uint64_t)batch->n * 3 * 32 * 32 * 4, SD_FNV_START);
            CHECK_EQ(batch->items[0].n_objects, 4);
            want[i] = threads == 1 ? h : want[i];
            CHECK(h == want[i]);
            sd_loader_recycle(l, batch);
        }
        CHECK(want[0] != want[8]); /* another epoch, other partners */
        sd_loader_close(l);
    }
    sd_worker w;
    uint32_t changed = 0;
    CHECK_OK(sd_worker_open(&w, &b.config, &err));
    for (uint64_t i = 0; i < 8; i++) { /* the same sample in two epochs: its partner is known by the identity of what is appended */
        double sum[2] = {0};
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            CHECK_OK(sd_worker_prepare(&w, epoch, i, 0, &err));
            sum[epoch] = (double)w.partners[0]->number;
        }
        changed += sum[0] != sum[1];
    }
    CHECK(changed >= 6);
    sd_worker_close(&w);
    b.links[b.config.n_links++] = (sd_link){"mix2", &mix_ops, NULL};
    sd_loader *l = NULL;
    CHECK_FAILS(sd_loader_open(&b.config, &l, &err), SODET_E_UNSUPPORTED, "transforms mix and mix2 both want partner samples");
    b.config.n_links = 2;
    close_bench(&b);
}

/* In a picture of 400x100 the bound on the aspect holds in pixels, or for the fractions of the two sides, which are four times apart. */
static void crop_aspect(void)
{
    static const struct {
        const char *sides;
        double least, most; /* of width / height in pixels */
    } ways[] = {{"free", 1.2 /* 0.3 of 400 by 100 */, 2}, {"fractions", 2, 8}, {"ratio", 2, 8}};
    for (uint32_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        char chain[120];
        snprintf(chain, sizeof chain, "plugin = ssd_crop\nchoice = draw\niou = 0\nwhole = no\nneed_centre = no\nsides = %s", ways[w].sides);
        bench b;
        open_bench(&b, (source){400, 100, 1, {{190, 40, 210, 60}}}, (const char *const[]){chain, NULL});
        double least = INFINITY, most = 0;
        for (uint64_t i = 0; i < 64 * 4; i++) {
            uint32_t width, height;
            sodet_sample_size(prepare(&b, i / 64, i % 64), &width, &height);
            least = fmin(least, (width + 1) / (double)height); /* the sides lost their fractions */
            most = fmax(most, width / (height + 1.0));
        }
        printf("sides = %s: width / height %.2f to %.2f\n", ways[w].sides, least, most);
        CHECK(least >= ways[w].least && most <= ways[w].most);
        CHECK(least <= ways[w].least * 1.4 && most >= ways[w].most / 1.4); /* the whole range is used */
        close_bench(&b);
    }
}

static double spent_here(void) /* processor seconds of this thread */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void speed(void)
{
    static const char *const chains[][6] = {
        {"plugin = resize\nsize = 300", NULL},
        {"plugin = photometric", "plugin = expand", "plugin = ssd_crop", "plugin = hflip", "plugin = resize\nsize = 300", NULL},
        {"plugin = expand", "plugin = ssd_crop", "plugin = hflip", "plugin = resize\nsize = 300", "plugin = photometric", NULL}};
    static const char *const names[] = {"resize to 300x300", "SSD's chain, 300x300", "the same, colours last"};
    for (uint32_t i = 0; i < 3; i++) {
        bench b;
        open_bench(&b, (source){500, 375, 3, {{30, 40, 200, 300}, {250, 100, 400, 350}, {10, 10, 60, 70}}}, chains[i]);
        double spent = 0;
        for (uint64_t k = 0; k < 100; k++) {
            CHECK_OK(sd_dataset_load(b.d, k % 64, b.worker.sample, &err));
            double start = spent_here();
            for (uint32_t t = 0; t < b.config.n_links; t++) {
                sodet_stream r = sd_stream(1, 2, k, t);
                CHECK_OK(((const sodet_transform_ops *)b.instances[t].ops)->apply(b.instances[t].self, b.worker.sample, &r, &err));
            }
            CHECK(sodet_sample_image(b.worker.sample) != NULL);
            spent += spent_here() - start;
        }
        printf("%s from 500x375: %.2f ms a picture\n", names[i], spent * 10);
        close_bench(&b);
    }
}

int main(void)
{
    o_22_mirror();
    vertical();
    resampling();
    views();
    resize_modes();
    maps();
    o_16_crop();
    crop_aspect();
    colour();
    partners();
    speed();
    return check_done(1000);
}
