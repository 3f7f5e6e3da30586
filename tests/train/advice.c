/* What a run that goes wrong is told: batches made by hand, so that each sentence has its cause. */
#include "core/train/advice.h"

#include "check.h"

static const char ini[] =
    "[input]\nsize = 64x64\n[backbone]\nplugin = tinyssd\nwidth = 0.1\n[neck]\nplugin = none\n"
    "[head]\nplugin = ssd\nsize_unit = fraction\nsizes = 0.13 0.26 0.37 0.54 0.71\nsecond_sizes = 0.2 0.3 0.44 0.6 0.8\n"
    "ratios = 2\nper_cell = 4\n[loss]\nplugin = multibox\n"
    "[schedule]\ntotal = 1\n[optimizer]\nlr = 0.02\n";
enum { SIDE = 64, OBJECTS = 2, STEPS = 12 };

typedef struct scene {
    sd_config *cfg;
    sd_model *model;
    const sd_model_grid *grid;
    sd_batch batch;
    sd_batch_item item;
    float truth[OBJECTS * 4];
    uint32_t flags[OBJECTS];
    int32_t label[OBJECTS];
} scene;

static void open_scene(scene *s, const sd_override *more, uint64_t n_more)
{
    sodet_err err = SODET_ERR_INIT;
    memset(s, 0, sizeof *s);
    CHECK_OK(sd_config_open_text(ini, sizeof ini - 1, "test.ini", NULL, more, n_more, &s->cfg, &err));
    CHECK_OK(sd_model_open(s->cfg, 3, &s->model, &err));
    CHECK_OK(sd_model_grid_of(s->model, SIDE, SIDE, &s->grid, &err));
    if (!s->grid)
        exit(check_done(1000));
    s->batch = (sd_batch){.steps = STEPS,
                          .n = 1,
                          .global_n = 1,
                          .width = SIDE,
                          .height = SIDE,
                          .channels = 3,
                          .n_anchors = (uint32_t)s->grid->anchors->n,
                          .max_objects = OBJECTS,
                          .index = sd_alloc(s->grid->anchors->n, sizeof(int32_t)),
                          .truth = s->truth,
                          .label = s->label,
                          .flags = s->flags,
                          .items = &s->item};
    for (uint64_t i = 0; i < s->grid->anchors->n; i++)
        s->batch.index[i] = SODET_INDEX_BACKGROUND;
}

static void close_scene(scene *s)
{
    sd_free(s->batch.index);
    sd_model_close(s->model);
    sd_config_close(s->cfg);
}

/* Two objects of 16 x 16 and 20 x 20. */
static void put_objects(scene *s)
{
    const float boxes[] = {0, 0, 16, 16, 30, 30, 50, 50};
    memcpy(s->truth, boxes, sizeof boxes);
    s->item.n_objects = OBJECTS;
}

/* All steps of an epoch (and a few of the next) with losses from `first` to `last`; what was said, the caller's to free. */
static sd_text run(const scene *s, uint64_t steps, double first, double last, uint64_t *when)
{
    sodet_err err = SODET_ERR_INIT;
    sd_advice *a = NULL;
    sd_text said = {0};
    const sd_batch *batch = &s->batch;
    *when = 0;
    CHECK_OK(sd_advice_new(s->cfg, s->model, steps, &a, &err));
    for (uint64_t i = 0; a && i < steps + 3; i++) {
        CHECK_OK(sd_advice_step(a, &batch, 1, first + (last - first) * (double)i / (double)(steps - 1), &err));
        sd_advice_say(a, &said);
        if (said.length && !*when)
            *when = i + 1;
    }
    sd_advice_free(a);
    sd_text_append(&said, "", 0);
    return said;
}

static void says(const scene *s, uint64_t steps, double first, double last, uint64_t when, const char *want)
{
    uint64_t at;
    sd_text said = run(s, steps, first, last, &at);
    CHECK_EQ(at, when);
    check_count();
    if (*want ? !strstr(said.text, want) : said.length > 0)
        check_fail(__FILE__, __LINE__, "said \"%s\", expected \"%s\"", said.text, want);
    sd_text_free(&said);
}

int main(void)
{
    scene s;
    open_scene(&s, NULL, 0);
    says(
        &s, STEPS, 4, 1, STEPS,
        "12 steps without an object: are there annotations (sodet data check), or do the transforms and [data] min_side = 1 leave none?\n");
    says(&s, 400, 4, 1, 50, "50 steps without an object");
    put_objects(&s);
    s.flags[0] = s.flags[1] = SODET_BOX_CROWD;
    says(&s, STEPS, 4, 1, STEPS, "all 24 objects of 12 steps are ignored");
    s.flags[1] = 0;
    /* One of 20 x 20: between 2^4 and 2^4.5. The smallest anchor is 0.13 * 64 = 8.3 large, the largest 51.2. */
    says(&s, STEPS, 4, 1, STEPS,
         "no anchor was matched in 12 steps, so the network sees background alone: objects are 16 to 23 pixels large in the network's "
         "input, anchors 8 to 64;");
    s.flags[0] = 0;

    /* Anchors of one size are matched; the others are named, once, at the end, if there were objects enough. */
    s.item.positives = 1;
    for (uint64_t i = 0; i < s.grid->anchors->n; i++) {
        const float *b = &s.grid->anchors->box[4 * i];
        s.batch.index[i] = b[2] * b[3] < 16 * 16 ? 0 : SODET_INDEX_BACKGROUND;
    }
    says(&s, STEPS, 4, 1, 0, "");
    says(&s, 60, 4, 1, 60, "anchors have matched nothing in the first epoch, those of 16 to 64 pixels: objects are 16 to 23 pixels large");
    for (uint64_t i = 0; i < s.grid->anchors->n; i++)
        s.batch.index[i] = 1;
    says(&s, 60, 4, 1, 0, "");

    /* A loss that does not fall. */
    says(&s, STEPS, 3, 3, STEPS,
         "the loss has not fallen in the first epoch: 3 in its first third, 3 in its last; [optimizer] lr = 0.02 is too high or too low");
    says(&s, STEPS, 3, 3.5, STEPS, "--overfit 8 --epochs 200");
    says(&s, STEPS, 3, 2.8, 0, "");
    says(&s, 8, 3, 3, 0, ""); /* too short to tell */
    close_scene(&s);
    open_scene(&s, (const sd_override[]){{"schedule.warmup=linear", NULL}, {"schedule.warmup_iterations=100", NULL}}, 2);
    put_objects(&s);
    s.item.positives = 1;
    s.batch.index[0] = 0;
    says(&s, STEPS, 3, 3, STEPS, "the warm-up is not over yet");

    sd_text t = {0};
    sd_advice_not_finite(s.cfg, 10, &t);
    CHECK_STR(t.text, "a lower rate (optimizer.lr=0.002), optimizer.clip_norm=10");
    sd_text_free(&t);
    close_scene(&s);
    open_scene(&s, (const sd_override[]){{"optimizer.clip_norm=1", NULL}}, 1);
    sd_advice_not_finite(s.cfg, 10, &t);
    CHECK_STR(t.text, "a lower rate (optimizer.lr=0.002), a warm-up (schedule.warmup=linear schedule.warmup_iterations=500)");
    sd_text_free(&t);
    sd_advice_not_finite(s.cfg, 1000, &t);
    CHECK_STR(t.text, "a lower rate (optimizer.lr=0.002)");
    sd_text_free(&t);
    close_scene(&s);
    return check_done(100);
}
