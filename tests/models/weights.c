/* labels: big */
/* A trained TinySSD (d2l's, bananas), imported by its name map, gives the outputs that PyTorch recorded for the same pictures, to 1e-4 of
 * the largest, and draws the boxes in the right place. */
#include "core/data/decode.h"
#include "core/store/checkpoint.h"
#include "rig.h"

static sodet_err err = SODET_ERR_INIT;

static sodet_status put(void *context, uint64_t index, const void *from, sodet_err *e)
{
    rig *t = context;
    return rig_set(t, &t->segments.segment[index], from, e);
}

static void import(rig *t, const char *values, const char *index, const char *map_path)
{
    sd_checkpoint *c = NULL;
    sd_name_map *map = NULL;
    sd_load_report report = {0};
    sd_tensor *targets = calloc(t->segments.n, sizeof *targets);
    for (uint32_t i = 0; i < t->segments.n; i++) {
        const sd_segment *s = &t->segments.segment[i];
        targets[i] = (sd_tensor){.name = s->name, .type = SD_F32, .rank = s->shape.rank};
        for (uint32_t d = 0; d < s->shape.rank; d++)
            targets[i].dims[d] = (uint64_t)s->shape.dim[d];
    }
    CHECK_OK(sd_checkpoint_open_raw(values, index, &c, &err));
    CHECK_OK(sd_name_map_read(map_path, &map, &err));
    const sd_load_rule rule = {.map = map};
    CHECK_OK(sd_checkpoint_load_partial(c, targets, t->segments.n, &rule, put, t, &report, &err));
    CHECK_EQ(report.taken, t->segments.n);
    sd_load_report_free(&report);
    sd_name_map_free(map);
    sd_checkpoint_close(c);
    free(targets);
}

static float *read_floats(const char *path, uint64_t n)
{
    char *bytes = NULL;
    uint64_t size = 0;
    CHECK_OK(sd_file_read(path, 0, &bytes, &size, &err));
    CHECK_EQ(size, n * sizeof(float));
    if (size != n * sizeof(float)) {
        sd_free(bytes);
        return NULL;
    }
    return (float *)(void *)bytes;
}

static void picture(rig *t, const char *folder, const char *name, const float *want_box, float want_score)
{
    char path[600];
    uint8_t *bytes = NULL;
    uint64_t capacity = 0;
    sd_pixels p = {0}, turned = {0};
    const sd_decode_options options = {0};
    snprintf(path, sizeof path, "%s/expected/%s.input256.png", folder, name);
    CHECK_OK(sd_decode_file(path, &options, &bytes, &capacity, &p, &turned, &err));
    CHECK_EQ(p.width, 256);
    CHECK_EQ(p.height, 256);
    float *image = malloc(3 * 65536 * sizeof *image), *logits = malloc(5444 * 2 * sizeof *logits),
          *codes = malloc(5444 * 4 * sizeof *codes);
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < 65536; i++)
            image[c * 65536 + i] = (float)p.rgb[3 * i + c];
    }
    float box[200][4], score[200];
    int32_t count = 0;
    const rig_io io[] = {{"image", image, NULL, 3 * 65536},
                         {"raw/logits", NULL, logits, 5444 * 2},
                         {"raw/codes", NULL, codes, 5444 * 4},
                         {"detections/boxes", NULL, box, 800},
                         {"detections/scores", NULL, score, 200},
                         {"detections/count", NULL, &count, 1},
                         {NULL, NULL, NULL, 0}};
    CHECK_OK(rig_run(t, io, &err));
    snprintf(path, sizeof path, "%s/expected/%s.cls_5444x2.f32", folder, name);
    float *want = read_floats(path, 5444 * 2);
    double worst = want ? check_worst(logits, want, 5444 * 2) : INFINITY;
    CHECK(worst < 1e-4);
    printf("%s: logits %.2g", name, worst);
    sd_free(want);
    snprintf(path, sizeof path, "%s/expected/%s.bbox_5444x4.f32", folder, name);
    want = read_floats(path, 5444 * 4);
    worst = want ? check_worst(codes, want, 5444 * 4) : INFINITY;
    CHECK(worst < 1e-4);
    printf(", codes %.2g of the largest\n", worst);
    sd_free(want);
    CHECK_EQ(count, 1);
    CHECK_NEAR(score[0], want_score, 0, 1e-4);
    for (uint32_t c = 0; c < 4; c++)
        CHECK_NEAR(box[0][c] / 256, want_box[c], 0, 1e-4);
    free(image);
    free(logits);
    free(codes);
    sd_free(bytes);
    sd_pixels_free(&p);
    sd_pixels_free(&turned);
}

static void on(const char *device, const char *folder)
{
    /* score, x1 y1 x2 y2 relative: what the recorded run found above 0.3 */
    static const struct {
        const char *name;
        float score, box[4];
    } pictures[] = {{"000012-16347456122a06", 0.991164f, {0.178114f, 0.501698f, 0.355181f, 0.676165f}},
                    {"000043-157305604379c0", 0.998833f, {0.129855f, 0.640391f, 0.341816f, 0.871786f}},
                    {"000055-16299072552135", 0.99929f, {0.504003f, 0.126872f, 0.937825f, 0.55465f}},
                    {"test1", 0.999226f, {0.299079f, 0.007073f, 0.703589f, 0.451051f}}};
    char devices[64], values[600], index[600], map[600];
    snprintf(devices, sizeof devices, "run.devices=%s", device);
    snprintf(values, sizeof values, "%s/raw/net_50.f32", folder);
    snprintf(index, sizeof index, "%s/raw/net_50.tsv", folder);
    snprintf(map, sizeof map, "%s", check_source("conf/maps/tinyssd_d2l.map"));
    const char *const overrides[] = {devices, "run.threads=2", "head.score_threshold=0.3", NULL};
    const sd_graph_options options = {.training = false};
    const sd_model_shape shape = {.batch = 1, .height = 256, .width = 256, .flags = SD_MODEL_RAW};
    rig t;
    CHECK_OK(rig_open(&t, "model/tinyssd_d2l.ini, model/dialect/ssd_d2l.ini", overrides, 1, &options, &shape, &err));
    if (t.program) {
        import(&t, values, index, map);
        for (uint32_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++)
            picture(&t, folder, pictures[i].name, pictures[i].box, pictures[i].score);
    }
    rig_close(&t);
}

int main(void)
{
    const char *shared = check_shared("data/weights/tinyssd-d2l");
    if (!shared) {
        check_skip("the trained weights are not there");
        return check_done(0);
    }
    char folder[500];
    snprintf(folder, sizeof folder, "%s", shared);
    on("cpu", folder);
    on("ref", folder);
    return check_done(60);
}
