/* labels: threads
 * A trained detector inside a program: the three forms of a picture, batches, threads, broken pictures, options, wrong requests.
 * The checkpoint is made by two steps of training, so its detections are poor but many (threshold 0); it says devices = ref, which is what the thread sanitizer can look through. */
#include "sodet/detector.h"

#include <pthread.h>

#include "check.h"
#include "core/data/decode.h"

static sodet_err err = SODET_ERR_INIT;
static char folder[900], checkpoint[1000], picture[3][1000];

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...)
{
    char line[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return system(line);
}

static int make_files(void)
{
    const char *sodet = getenv("SODET_BIN");
    char conf[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("detector"));
    snprintf(conf, sizeof conf, "%s", check_source("conf/tinyssd_shapes.ini"));
    snprintf(checkpoint, sizeof checkpoint, "%s/run/last.safetensors", folder);
    for (int i = 0; i < 3; i++)
        snprintf(picture[i], sizeof picture[i], "%s/pictures/00000%d.png", folder, i + 1);
    return shell("%s train %s backbone.width=0.1 run.devices=ref data.workers=1 train.max_steps=2 train.batch=4 data.train_limit=8 "
                 "data.val_limit=2 run.output=%s/run >%s/log 2>&1 || { cat %s/log; exit 1; }",
                 sodet, conf, folder, folder, folder) ||
           shell("%s data export %s --output %s/pictures --count 3 >/dev/null", sodet, conf, folder);
}

static void check_same(const sodet_result *a, const sodet_result *b)
{
    if (!a || !b) {
        CHECK(a && b);
        return;
    }
    CHECK_EQ(a->n, b->n);
    CHECK_EQ(a->width, b->width);
    CHECK_EQ(a->height, b->height);
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        CHECK_EQ(a->found[i].label, b->found[i].label);
        CHECK_NEAR(a->found[i].score, b->found[i].score, 1e-5, 1e-6);
        CHECK_NEAR(a->found[i].box.x1, b->found[i].box.x1, 1e-5, 1e-3);
        CHECK_NEAR(a->found[i].box.y2, b->found[i].box.y2, 1e-5, 1e-3);
    }
}

/* Path, bytes and pixels are the same picture. */
static void test_forms(sodet_detector *d)
{
    sodet_result *path, *bytes, *rgb;
    CHECK_OK(sodet_detect_file(d, picture[0], &path, &err));
    if (!path)
        return;
    CHECK_EQ(path->width, 128);
    CHECK(path->n > 0);
    for (uint32_t i = 0; i < path->n; i++) {
        const sodet_found *f = &path->found[i];
        CHECK(f->box.x1 >= 0 && f->box.x1 <= f->box.x2 && f->box.x2 <= 128 && f->box.y1 >= 0 && f->box.y1 <= f->box.y2 && f->box.y2 <= 128);
        CHECK(f->score > 0 && f->score <= 1);
        CHECK(i == 0 || f->score <= path->found[i - 1].score);
        CHECK_STR(f->name, sodet_detector_class(d, (uint32_t)f->label));
    }

    char *file;
    uint64_t n;
    CHECK_OK(sd_file_read(picture[0], 0, &file, &n, &err));
    sodet_picture p = SODET_PICTURE_INIT;
    p.bytes = file;
    p.n_bytes = n;
    CHECK_OK(sodet_detect(d, &p, &bytes, &err));
    check_same(bytes, path);

    /* rows further apart than they are long, with something in between */
    sd_pixels pixels = {0}, turned = {0};
    CHECK_OK(sd_decode(picture[0], (const uint8_t *)file, n, &(sd_decode_options){0}, &pixels, &turned, &err));
    size_t stride = 128 * 3 + 5;
    uint8_t *rows = malloc(stride * 128);
    memset(rows, 77, stride * 128);
    for (size_t y = 0; y < 128; y++)
        memcpy(rows + y * stride, pixels.rgb + y * 128 * 3, 128 * 3);
    p = (sodet_picture)SODET_PICTURE_INIT;
    p.rgb = rows;
    p.width = p.height = 128;
    p.stride = stride;
    CHECK_OK(sodet_detect(d, &p, &rgb, &err));
    check_same(rgb, path);

    /* What may be wrong with a picture. */
    sodet_result *none = path;
    p.stride = 100;
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "a stride of 100 bytes is too short for 128 pixels");
    CHECK(!none);
    p.stride = 0;
    p.width = 0;
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "0x128");
    p.width = 128;
    p.path = picture[0];
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "exactly one of path, bytes and rgb");
    p = (sodet_picture)SODET_PICTURE_INIT;
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "exactly one of path, bytes and rgb");
    CHECK_FAILS(sodet_detect(d, NULL, &none, &err), SODET_E_INVALID, "no picture");
    p.bytes = file;
    p.n_bytes = n / 2;
    p.name = "half.png";
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "half.png");
    p.n_bytes = 0;
    CHECK_FAILS(sodet_detect(d, &p, &none, &err), SODET_E_INVALID, "half.png");
    CHECK_FAILS(sodet_detect_file(d, "/nowhere/x.png", &none, &err), SODET_E_IO, "/nowhere/x.png");

    /* A struct of an older header ends earlier; of a newer one, it may have a tail of zeros, but not of other things. */
    struct {
        sodet_picture p;
        uint64_t more;
    } newer = {{0}, 0};
    newer.p.path = picture[0];
    newer.p.struct_size = sizeof newer;
    CHECK_OK(sodet_detect(d, &newer.p, &none, &err));
    check_same(none, path);
    sodet_result_free(none);
    newer.more = 1;
    CHECK_FAILS(sodet_detect(d, &newer.p, &none, &err), SODET_E_UNSUPPORTED, "older than the header");
    newer.p.struct_size = offsetof(sodet_picture, rgb);
    newer.p.width = 9; /* behind its end */
    CHECK_OK(sodet_detect(d, &newer.p, &none, &err));
    check_same(none, path);
    sodet_result_free(none);
    newer.p.struct_size = 0;
    CHECK_FAILS(sodet_detect(d, &newer.p, &none, &err), SODET_E_INVALID, "SODET_PICTURE_INIT");

    sd_pixels_free(&pixels);
    sd_pixels_free(&turned);
    sd_free(file);
    free(rows);
    sodet_result_free(bytes);
    sodet_result_free(rgb);
    sodet_result_free(path);
}

/* Several at once equal one by one; a broken one leaves the others alone. */
static void test_many(sodet_detector *d)
{
    sodet_picture p[4];
    const sodet_picture *list[4];
    sodet_result *one[3], *many[4];
    for (int i = 0; i < 4; i++) {
        p[i] = (sodet_picture)SODET_PICTURE_INIT;
        p[i].path = i == 1 ? check_source("README.md") : picture[i ? i - 1 : 0];
        list[i] = &p[i];
    }
    char broken[1000];
    snprintf(broken, sizeof broken, "%s/broken.png", folder);
    CHECK_OK(sd_file_write_atomic(broken, "no picture", 10, &err));
    p[1].path = broken;
    for (int i = 0; i < 3; i++)
        CHECK_OK(sodet_detect_file(d, picture[i], &one[i], &err));
    CHECK_FAILS(sodet_detect_many(d, list, 4, many, &err), SODET_E_INVALID, "broken.png");
    CHECK(!many[1]);
    check_same(many[0], one[0]);
    check_same(many[2], one[1]);
    check_same(many[3], one[2]);
    CHECK_OK(sodet_detect_many(d, list, 0, many + 1, &err));
    for (int i = 0; i < 4; i++)
        sodet_result_free(many[i]);
    for (int i = 0; i < 3; i++)
        sodet_result_free(one[i]);
}

/* Pictures of several shapes, resized with their ratio kept: each goes through the network in its own shape, boxes come back in its own
 * pixels, and together they are what they are one by one. */
static void test_shapes(void)
{
    enum { N = 4 };
    static const uint32_t size[N][2] = {{400, 200}, {100, 190}, {320, 160}, {60, 60}};
    const char *overrides[] = {"transform.resize.mode=sides", "transform.resize.short_side=96", "transform.resize.long_side=192"};
    sodet_detector_options o = SODET_DETECTOR_OPTIONS_INIT;
    sodet_detector *d;
    sodet_picture p[N];
    const sodet_picture *list[N];
    sodet_result *many[N], *one;
    o.threads = 1;
    o.overrides = overrides;
    o.n_overrides = 3;
    CHECK_OK(sodet_detector_open(checkpoint, &o, &d, &err));
    if (!d)
        return;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t w = size[i][0], h = size[i][1];
        uint8_t *rgb = malloc((size_t)w * h * 3);
        for (uint32_t k = 0; k < w * h * 3; k++)
            rgb[k] = (uint8_t)(k * 2654435761u >> 24);
        p[i] = (sodet_picture)SODET_PICTURE_INIT;
        p[i].rgb = rgb;
        p[i].width = w;
        p[i].height = h;
        list[i] = &p[i];
    }
    CHECK_OK(sodet_detect_many(d, list, N, many, &err));
    for (uint32_t i = 0; i < N; i++) {
        CHECK(many[i] && many[i]->n > 0);
        float right = 0, low = 0;
        for (uint32_t k = 0; many[i] && k < many[i]->n; k++) {
            right = many[i]->found[k].box.x2 > right ? many[i]->found[k].box.x2 : right;
            low = many[i]->found[k].box.y2 > low ? many[i]->found[k].box.y2 : low;
        }
        CHECK(right > 0.8f * (float)size[i][0] && right <= (float)size[i][0]);
        CHECK(low > 0.8f * (float)size[i][1] && low <= (float)size[i][1]);
        CHECK_OK(sodet_detect(d, &p[i], &one, &err));
        check_same(many[i], one);
        sodet_result_free(one);
        sodet_result_free(many[i]);
        free((void *)(uintptr_t)p[i].rgb);
    }
    sodet_detector_close(d);
}

typedef struct job {
    sodet_detector *d;
    const char *path;
    sodet_result *r;
    sodet_status status;
} job;

static void *detect_often(void *context)
{
    job *j = context;
    for (int i = 0; i < 3 && j->status == SODET_OK; i++) {
        sodet_result_free(j->r);
        j->status = sodet_detect_file(j->d, j->path, &j->r, NULL);
    }
    return NULL;
}

static void test_threads(sodet_detector *d)
{
    job jobs[3] = {{0}};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = (job){.d = d, .path = picture[i]};
        pthread_create(&thread[i], NULL, detect_often, &jobs[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        CHECK_EQ(jobs[i].status, SODET_OK);
    }
    for (int i = 0; i < 3; i++) {
        sodet_result *r;
        CHECK_OK(sodet_detect_file(d, picture[i], &r, &err));
        check_same(jobs[i].r, r);
        sodet_result_free(r);
        sodet_result_free(jobs[i].r);
    }
}

static void test_options(void)
{
    sodet_detector *d;
    sodet_result *r;
    sodet_detector_options o = SODET_DETECTOR_OPTIONS_INIT;
    const char *overrides[] = {"head.max_detections=3"};
    o.threads = 1;
    o.devices = "ref:x2";
    o.overrides = overrides;
    o.n_overrides = 1;
    CHECK_OK(sodet_detector_open(checkpoint, &o, &d, &err));
    CHECK_OK(sodet_detect_file(d, picture[0], &r, &err));
    CHECK(r && r->n == 3);
    float second = r && r->n > 1 ? r->found[1].score : 0;
    sodet_result_free(r);
    sodet_detector_close(d);
    o.threshold = second;
    CHECK_OK(sodet_detector_open(checkpoint, &o, &d, &err));
    CHECK_OK(sodet_detect_file(d, picture[0], &r, &err));
    sodet_detector_close(d);
    CHECK(r && r->n == 2); /* the result outlives the detector, names apart */
    sodet_result_free(r);

    overrides[0] = "head.max_detection=3";
    CHECK_FAILS(sodet_detector_open(checkpoint, &o, &d, &err), SODET_E_INVALID, "did you mean max_detections");
    CHECK(!d);
    o.n_overrides = 0;
    o.devices = "rev";
    CHECK_FAILS(sodet_detector_open(checkpoint, &o, &d, &err), SODET_E_INVALID, "rev");
    o.devices = NULL;
    o.threshold = NAN;
    CHECK_FAILS(sodet_detector_open(checkpoint, &o, &d, &err), SODET_E_INVALID, "0 to 1 is wanted");
    o.threshold = 1.5f;
    CHECK_FAILS(sodet_detector_open(checkpoint, &o, &d, &err), SODET_E_INVALID, "threshold = 1.5");
    CHECK_FAILS(sodet_detector_open(picture[0], NULL, &d, &err), SODET_E_INVALID, "000001.png");
    CHECK_FAILS(sodet_detector_open("/nowhere/w.safetensors", NULL, &d, &err), SODET_E_IO, "/nowhere/w.safetensors");
    CHECK_FAILS(sodet_detector_open(NULL, NULL, &d, &err), SODET_E_INVALID, "no checkpoint");
    sodet_detector_close(NULL);
    sodet_result_free(NULL);
}

/* After warming up the same pictures give the same answers; what cannot be a picture is refused. */
static void test_warm(void)
{
    sodet_detector *d;
    sodet_result *cold, *warm;
    CHECK_OK(sodet_detector_open(checkpoint, NULL, &d, &err));
    if (!d)
        return;
    CHECK_OK(sodet_detect_file(d, picture[0], &cold, &err));
    CHECK_OK(sodet_detector_warm_up(d, 0, 0, 0, &err));
    CHECK_OK(sodet_detector_warm_up(d, 640, 480, 3, &err));
    CHECK_OK(sodet_detect_file(d, picture[0], &warm, &err));
    check_same(warm, cold);
    CHECK_FAILS(sodet_detector_warm_up(d, 640, 0, 1, &err), SODET_E_INVALID, "640x0; give both sides");
    CHECK_FAILS(sodet_detector_warm_up(d, 4000000000u, 4000000000u, 1, &err), SODET_E_INVALID, "more than the limit");
    sodet_result_free(cold);
    sodet_result_free(warm);
    sodet_detector_close(d);
}

int main(void)
{
    CHECK_EQ(make_files(), 0);
    sodet_detector *d;
    CHECK_OK(sodet_detector_open(checkpoint, NULL, &d, &err));
    if (!d)
        return check_done(1);
    CHECK_EQ(sodet_detector_class_count(d), 6);
    CHECK_STR(sodet_detector_class(d, 0), "circle");
    CHECK(!sodet_detector_class(d, 6));
    test_forms(d);
    test_many(d);
    test_threads(d);
    sodet_detector_close(d);
    test_shapes();
    test_options();
    test_warm();
    return check_done(70);
}
