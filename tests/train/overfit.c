/* labels: big */
/* Five detectors out of one configuration, by its lines for backbone, neck, head and loss; each learns eight pictures by heart. And a
 * RetinaNet on pictures of different shapes, whose ratio is kept: several plans in one run. */
#include "core/data/decode.h"
#include "core/train/run.h"
#include "runs.h"

static const char one_ini[] = "[run]\nseed = 3\nthreads = 1\n"
                              "[input]\nsize = 128x128\nmean = 127.5, 127.5, 127.5\nstd = 64, 64, 64\n"
                              "[backbone]\nplugin = resnet\ndepth = 18\nwidth = 0.25\n"
                              "[neck]\nplugin = fpn\nwidth = 0.125\n"
                              "[head]\nplugin = retinanet\ndepth = 1\nwidth = 0.125\n"
                              "[loss]\nplugin = focal\n"
                              "[data]\ntrain = eight\nval = eight\n"
                              "[dataset.eight]\nplugin = shapes\ncount = 8\nsize = 128\nseed = 15\n"
                              "[dataset.oblong]\nplugin = coco\nannotations = oblong.json\n"
                              "[transform]\ntrain = resize\nval = resize\n"
                              "[eval]\nevaluators = voc\nevery = 5\n"
                              "[optimizer]\ntype = adam\nlr = 0.002\n"
                              "[schedule]\ntotal = 200\n"
                              "[train]\nbatch = 4\ntarget = 0.999999\n"
                              "[checkpoint]\nevery = 0\n";

static const struct {
    const char *name, *lines[20];
} pairings[] = {
    {"vgg16 + ssd_extras + ssd + multibox",
     {"backbone.plugin=vgg16", "backbone.width=0.1", "neck.plugin=ssd_extras", "neck.width=0.1", "head.plugin=ssd", "loss.plugin=multibox",
      "input.size=272x272", "train.batch=2", "train.init=he"}},
    {"resnet50 up to C4 at stride 8 + ssd_extras + ssd + multibox, as NVIDIA",
     {"backbone.depth=50", "backbone.width=0.125", "backbone.first_level=4", "backbone.last_level=4", "backbone.last_stride=1",
      "neck.plugin=ssd_extras", "neck.lead=yes", "neck.norm=yes", "neck.extra_levels=3", "head.plugin=ssd", "loss.plugin=multibox",
      "head.order=shape", "head.clip=centre", "head.match_strict=yes", "head.claim=best", "loss.normaliser=image"}},
    {"resnet18 + fpn + retinanet + focal", {NULL}},
    {"resnet18 + fpn + ssd + focal", {"head.plugin=ssd", "backbone.width=0.125", "train.batch=2"}},
    {"tinyssd + none + ssd + multibox",
     {"backbone.plugin=tinyssd", "backbone.width=0.25", "neck.plugin=none", "head.plugin=ssd", "head.size_unit=fraction",
      "loss.plugin=multibox"}},
};
enum { PAIRINGS = sizeof pairings / sizeof pairings[0] };

static void start(uint32_t i)
{
    const char *lines[24];
    char output[40];
    uint32_t n = 0;
    while (pairings[i].lines[n])
        lines[n] = pairings[i].lines[n], n++;
    snprintf(output, sizeof output, "run.output=run%u", i);
    lines[n++] = output;
    lines[n] = NULL;
    runs_start(i, one_ini, lines, NULL);
}

static void finish(uint32_t i)
{
    const runs_outcome *o = runs_finish(i);
    printf("%s: mAP %.6f after %llu epochs, %.1f s\n", pairings[i].name, o->result.best, (unsigned long long)o->result.epochs,
           o->result.seconds);
    check_count();
    if (o->status != SODET_OK || strcmp(o->result.why, "target") != 0)
        check_fail(__FILE__, __LINE__, "%s: ended by \"%s\", mAP %.6f, expected 1: %s", pairings[i].name, o->result.why, o->result.best,
                   o->err.text);
    CHECK_NEAR(o->result.best, 1.0, 0, 1e-6);
    CHECK_STR(o->result.metric, "voc/mAP");
}

/* ---- pictures of several shapes ---- */
/* Two kinds of boxes on grey: filled and framed ones, one or two in a picture. */
static void draw(uint8_t *rgb, uint32_t width, const uint32_t box[4], bool framed, const uint8_t colour[3])
{
    for (uint32_t y = box[1]; y < box[3]; y++)
        for (uint32_t x = box[0]; x < box[2]; x++)
            if (!framed || x < box[0] + 6 || x >= box[2] - 6 || y < box[1] + 6 || y >= box[3] - 6)
                memcpy(rgb + (y * width + x) * 3, colour, 3);
}

static void make_oblong(void)
{
    sodet_err err = SODET_ERR_INIT;
    static const uint32_t sizes[8][2] = {{128, 96}, {96, 128}, {160, 80}, {100, 100}, {128, 96}, {96, 128}, {80, 160}, {192, 96}};
    FILE *f = fopen("oblong.json", "w");
    CHECK(f != NULL);
    if (!f)
        return;
    fprintf(f, "{\"categories\": [{\"id\": 1, \"name\": \"filled\"}, {\"id\": 2, \"name\": \"framed\"}],\n\"images\": [");
    for (int i = 0; i < 8; i++)
        fprintf(f, "%s\n{\"id\": %d, \"file_name\": \"%d.png\", \"width\": %u, \"height\": %u}", i ? "," : "", i + 1, i, sizes[i][0],
                sizes[i][1]);
    fprintf(f, "],\n\"annotations\": [");
    for (uint32_t i = 0, id = 1; i < 8; i++) {
        const uint32_t w = sizes[i][0], h = sizes[i][1];
        uint8_t *rgb = malloc(w * h * 3);
        memset(rgb, 128, w * h * 3);
        for (uint32_t k = 0; k < 1 + i % 2; k++) {
            uint32_t bw = 40 + 4 * i - 12 * k, bh = 36 + 3 * (7 - i), x = k ? w - bw - 3 : 4 + i, y = k ? h - bh - 2 : 3 + 2 * i;
            x = x + bw > w ? w - bw : x;
            y = y + bh > h ? h - bh : y;
            const bool framed = (i + k) % 2;
            const uint8_t colour[3] = {(uint8_t)(k ? 230 : 20), (uint8_t)(30 * i), (uint8_t)(250 - 30 * i)};
            draw(rgb, w, (const uint32_t[]){x, y, x + bw, y + bh}, framed, colour);
            fprintf(f, "%s\n{\"id\": %u, \"image_id\": %u, \"category_id\": %d, \"bbox\": [%u, %u, %u, %u], \"area\": %u, \"iscrowd\": 0}",
                    id > 1 ? "," : "", id, i + 1, framed ? 2 : 1, x, y, bw, bh, bw * bh);
            id++;
        }
        char name[20];
        snprintf(name, sizeof name, "%u.png", i);
        CHECK_OK(sd_png_write(name, rgb, w, h, &err));
        free(rgb);
    }
    fprintf(f, "]}\n");
    CHECK(fclose(f) == 0);
}

#define OBLONG                                                                                                                             \
    "data.train=oblong", "data.val=oblong", "transform.resize.mode=sides", "transform.resize.short_side=96",                               \
        "transform.resize.long_side=160"

/* An epoch of that run step by step: the shapes of its batches. */
static void look_at_shapes(void *context)
{
    (void)context;
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg = NULL;
    static const char *const texts[] = {OBLONG, "run.output=looked_at"};
    sd_override list[8];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        list[i] = (sd_override){texts[i], NULL};
    sd_run r;
    CHECK_OK(sd_config_open_text(one_ini, strlen(one_ini), "test.ini", NULL, list, sizeof texts / sizeof texts[0], &cfg, &err));
    sodet_status s = sd_run_open(&r, cfg, true, &err);
    CHECK_OK(s);
    if (s == SODET_OK) {
        uint32_t n = 0, sides[16][2];
        for (uint64_t step = 0; r.state.epoch == 0 && step < 100 && s == SODET_OK; step++) {
            sd_step x = {.step = step, .lr = 1e-4};
            CHECK_OK(s = sd_run_next(&r, r.flights[0].batches, &err));
            if (s != SODET_OK)
                break;
            const sd_batch *b = r.flights[0].batches[0];
            uint32_t k = 0;
            while (k < n && (sides[k][0] != b->width || sides[k][1] != b->height))
                k++;
            if (k == n && n < 16)
                sides[n][0] = b->width, sides[n++][1] = b->height;
            CHECK(b->width % 32 == 0 && b->height % 32 == 0);
            CHECK_OK(s = sd_stepper_step(r.stepper, r.flights[0].batches, &x, &err));
            CHECK(x.finite && x.loss > 0);
            sd_run_advance(&r, r.flights[0].batches);
            sd_run_recycle(&r, r.flights[0].batches);
        }
        for (uint32_t i = 0; i < n; i++)
            fprintf(stderr, "%ux%u ", sides[i][0], sides[i][1]);
        CHECK(n >= 3);
        sd_run_close(&r);
    }
    sd_config_close(cfg);
}

int main(void)
{
    runs_begin("overfit");
    make_oblong();
    start(0); /* takes the longest; the others go one by one beside it */
    for (uint32_t i = 1; i < PAIRINGS; i++) {
        start(i);
        finish(i);
    }
    runs_start(1, NULL, NULL, &(runs_job){.work = look_at_shapes});
    printf("shapes: %s\n", runs_finish(1)->said);
    CHECK_RUN_IN(2, one_ini, OBLONG, "run.output=oblong", "train.target=0.9"); /* batches of one picture learn less evenly */
    printf("ratio kept: mAP %.6f after %llu epochs, %.1f s\n", runs_shared[2].result.best, (unsigned long long)runs_shared[2].result.epochs,
           runs_shared[2].result.seconds);
    CHECK_STR(runs_shared[2].result.why, "target");
    finish(0);
    return runs_done(25);
}
