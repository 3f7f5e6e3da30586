/* How a run ends and what it leaves: patience, max_steps; when it evaluates; which checkpoints it keeps; and that what another run left is
 * not touched. */
#include "runs.h"

/* ---- ends ---- */
static void ends(void)
{
    /* A rate of 0 and frozen statistics change nothing, so the first evaluation stays the best one. */
    CHECK_RUN(runs_tiny, "run.output=patience", "data.val=others", "optimizer.lr=0", "train.norm=frozen", "train.patience=2",
              "schedule.total=9");
    CHECK_STR(runs_shared->result.why, "patience");
    CHECK_EQ(runs_shared->result.steps, 9);
    CHECK_EQ(runs_shared->result.best_epoch, 1);
    /* It is over, and stays so when it is resumed; with more patience it goes on. */
    CHECK_RUN(runs_tiny, "run.output=patience", "run.resume=patience", "data.val=others", "optimizer.lr=0", "train.norm=frozen",
              "train.patience=2", "schedule.total=9");
    CHECK_STR(runs_shared->result.why, "patience");
    CHECK_EQ(runs_shared->result.steps, 9);
    CHECK_RUN(runs_tiny, "run.output=patience", "run.resume=patience", "data.val=others", "optimizer.lr=0", "train.norm=frozen",
              "train.patience=3", "schedule.total=9");
    CHECK_STR(runs_shared->result.why, "patience");
    CHECK_EQ(runs_shared->result.steps, 12);

    CHECK_RUN(runs_tiny, "run.output=steps", "train.max_steps=5");
    CHECK_STR(runs_shared->result.why, "max_steps");
    CHECK_EQ(runs_shared->result.steps, 5);
    CHECK_EQ(runs_shared->result.epochs, 1);
    CHECK_EQ(runs_shared->result.images, 18);
    CHECK_STR(runs_shared->result.metric, "");

    /* A run that is over is not made longer by resuming it, but by a larger total; then it is the longer run. */
    CHECK_RUN(runs_tiny, "run.output=longer", "schedule.total=2");
    CHECK_EQ(runs_shared->result.steps, 6);
    CHECK_RUN(runs_tiny, "run.output=longer", "run.resume=longer", "schedule.total=2");
    CHECK_STR(runs_shared->result.why, "total");
    CHECK_EQ(runs_shared->result.steps, 6);
    CHECK_RUN(runs_tiny, "run.output=longer", "run.resume=longer");
    CHECK_EQ(runs_shared->result.steps, 12);
    CHECK_RUN(runs_tiny, "run.output=long");
    CHECK(runs_same("long/last.safetensors", "longer/last.safetensors"));
}

/* ---- evaluations ---- */
static void evaluated(int line, const char *const *options, uint32_t n, const double *epochs)
{
    const char *list[16] = {"run.output=evaluated", "run.overwrite=yes", "data.val=others"};
    for (uint32_t i = 0; options[i]; i++)
        list[3 + i] = options[i];
    double got[32];
    const runs_outcome *o = runs_train(runs_tiny, list);
    check_count();
    if (o->status != SODET_OK)
        check_fail(__FILE__, line, "%s", o->err.text);
    uint32_t k = runs_metrics("evaluated", true, "epoch", got, 32);
    check_count();
    if (k != n)
        check_fail(__FILE__, line, "%u evaluations, expected %u", k, n);
    for (uint32_t i = 0; i < n && i < k; i++) {
        check_count();
        if (!(fabs(got[i] - epochs[i]) < 1e-5))
            check_fail(__FILE__, line, "evaluation %u after epoch %g, expected %g", i, got[i], epochs[i]);
    }
    CHECK(runs_exists("evaluated/best.safetensors"));
    CHECK_STR(o->result.metric, "voc/mAP");
}
#define EVALUATED(epochs, ...) evaluated(__LINE__, RUNS(__VA_ARGS__), sizeof((double[])epochs) / sizeof(double), (double[])epochs)
#define AFTER(...)                                                                                                                         \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

static void evaluations(void)
{
    EVALUATED(AFTER(1, 2), "schedule.total=2");
    EVALUATED(AFTER(2, 4, 5), "schedule.total=5", "eval.every=2");
    EVALUATED(AFTER(1, 3, 5), "schedule.total=5", "eval.at=1, 3");
    EVALUATED(AFTER(1, 3), "schedule.total=3", "eval.at=1, 3, 8", "eval.every=1");
    EVALUATED(AFTER(3), "schedule.total=3", "eval.every=0");
    EVALUATED(AFTER(1, 5 / 3.0), "schedule.total=5", "schedule.unit=iterations");
    EVALUATED(AFTER(4 / 3.0), "train.max_steps=4", "eval.every=0");
    EVALUATED(AFTER(2), "train.max_steps=6", "eval.every=2");
    /* Steps of two batches go over the ends of epochs; an epoch's end counts when it has been passed. */
    EVALUATED(AFTER(4 / 3.0, 2, 10 / 3.0), "schedule.total=3", "optimizer.accumulate=2");
}

/* ---- checkpoints ---- */
static uint32_t periodic(const char *folder, uint64_t *steps, uint32_t most)
{
    uint32_t n = 0;
    DIR *d = opendir(folder);
    CHECK(d != NULL);
    for (struct dirent *e; d && (e = readdir(d));) {
        unsigned long long step;
        if (sscanf(e->d_name, "step-%llu.safetensors", &step) == 1 && n < most)
            steps[n++] = step;
        CHECK(!strstr(e->d_name, ".tmp") && !strstr(e->d_name, "probe"));
    }
    if (d)
        closedir(d);
    for (uint32_t i = 0; i < n; i++) /* ascending */
        for (uint32_t k = i + 1; k < n; k++)
            if (steps[k] < steps[i]) {
                uint64_t t = steps[i];
                steps[i] = steps[k];
                steps[k] = t;
            }
    return n;
}

static void checkpoints(void)
{
    uint64_t steps[16] = {0};
    CHECK_RUN(runs_tiny, "run.output=kept", "checkpoint.every=1", "checkpoint.keep=2", "data.val=others");
    CHECK_EQ(periodic("kept", steps, 16), 2);
    CHECK(steps[0] == 6 && steps[1] == 9); /* after epochs; what came at the end is last */
    CHECK(runs_exists("kept/last.safetensors") && runs_exists("kept/best.safetensors") && runs_exists("kept/config.ini") &&
          runs_exists("kept/log.txt"));
    CHECK_RUN(runs_tiny, "run.output=all", "checkpoint.every=1", "checkpoint.keep=0", "data.val=others");
    CHECK_EQ(periodic("all", steps, 16), 3);
    CHECK(steps[0] == 3 && steps[1] == 6 && steps[2] == 9);
    CHECK_RUN(runs_tiny, "run.output=fives", "checkpoint.every=5", "checkpoint.unit=iterations");
    CHECK_EQ(periodic("fives", steps, 16), 2);
    CHECK(steps[0] == 5 && steps[1] == 10);
    CHECK(!runs_exists("fives/best.safetensors"));
    CHECK_RUN(runs_tiny, "run.output=minutes", "checkpoint.every=5", "checkpoint.unit=minutes");
    CHECK_EQ(periodic("minutes", steps, 16), 0);

    /* A periodic one is the whole state of its moment: it is what a run to there leaves, and what goes on to the same end. */
    CHECK_RUN(runs_tiny, "run.output=to_five", "checkpoint.every=5", "checkpoint.unit=iterations", "train.max_steps=5");
    CHECK(runs_same_state("to_five/last.safetensors", "fives/step-000000005.safetensors"));
    CHECK_RUN(runs_tiny, "run.output=from_five", "run.resume=fives/step-000000005.safetensors", "checkpoint.every=5",
              "checkpoint.unit=iterations");
    CHECK(runs_same("fives/last.safetensors", "from_five/last.safetensors"));

    /* Who goes on from an older one goes on from there, and not from what the run had come to before. */
    CHECK_RUN(runs_tiny, "run.output=fives", "run.resume=fives/step-000000005.safetensors", "checkpoint.every=5",
              "checkpoint.unit=iterations", "train.max_steps=7");
    CHECK_RUN(runs_tiny, "run.output=fives", "run.resume=fives", "checkpoint.every=5", "checkpoint.unit=iterations");
    double step[32];
    CHECK_EQ(runs_metrics("fives", false, "step", step, 32), 12);
    for (uint32_t i = 0; i < 12; i++)
        CHECK_NEAR(step[i], i + 1.0, 0, 0);
    CHECK(runs_same("fives/last.safetensors", "from_five/last.safetensors"));

    /* The best one holds weights: to start from, not to go on from. */
    CHECK_RUN_FAILS("run.init", runs_tiny, "run.output=other", "run.resume=kept/best.safetensors");
    CHECK(!runs_exists("other"));
    CHECK_RUN(runs_tiny, "run.output=started", "run.init=kept/best.safetensors", "train.max_steps=1");
    CHECK_EQ(runs_shared->result.steps, 1);
    CHECK_RUN_FAILS("keep one of init and resume", runs_tiny, "run.output=other", "run.resume=kept", "run.init=kept/best.safetensors");
}

/* ---- folders ---- */
/* Going on with one run in the folder of another would overwrite that one. */
static void folders(void)
{
    CHECK_RUN(runs_tiny, "run.output=mine", "schedule.total=1");
    CHECK_RUN(runs_tiny, "run.output=yours", "schedule.total=1", "run.seed=9");
    uint64_t n, k;
    char *before = runs_read("yours/last.safetensors", &n);
    CHECK_RUN_FAILS("yours holds an earlier run", runs_tiny, "run.output=yours", "run.resume=mine", "schedule.total=2");
    CHECK_RUN_FAILS("yours holds an earlier run", runs_tiny, "run.output=yours", "run.resume=mine/last.safetensors", "schedule.total=2");
    char *after = runs_read("yours/last.safetensors", &k);
    CHECK(before && after && n == k && memcmp(before, after, n) == 0);
    sd_free(before);
    sd_free(after);
    /* The same folder by another name, a checkpoint of it, or a folder of its own: fine. */
    CHECK(symlink("mine", "by_another_name") == 0);
    CHECK_RUN(runs_tiny, "run.output=by_another_name", "run.resume=mine", "schedule.total=2");
    CHECK_RUN(runs_tiny, "run.output=mine", "run.resume=by_another_name/last.safetensors", "schedule.total=3");
    CHECK_RUN(runs_tiny, "run.output=new/one", "run.resume=mine", "schedule.total=4");
    CHECK_EQ(runs_shared->result.steps, 12);
    CHECK_RUN(runs_tiny, "run.output=yours", "run.resume=mine", "schedule.total=4", "run.overwrite=yes");
    CHECK_EQ(runs_shared->result.steps, 12);
    double step[32];
    CHECK_EQ(runs_metrics("yours", false, "step", step, 32), 3); /* nothing of the other is left */
    CHECK_NEAR(step[0], 10.0, 0, 0);
    /* With overwrite, its own folder is still what it goes on in. */
    CHECK_RUN(runs_tiny, "run.output=mine", "run.resume=mine", "schedule.total=4", "run.overwrite=yes");
    CHECK_EQ(runs_metrics("mine", false, "step", step, 32), 12);
    /* Without an output, a folder is where its run goes on; so is the one that holds a checkpoint. */
    CHECK_RUN(runs_tiny, "run.resume=mine", "schedule.total=5");
    CHECK_EQ(runs_metrics("mine", false, "step", step, 32), 15);
    CHECK_RUN(runs_tiny, "run.resume=mine/last.safetensors", "schedule.total=6");
    CHECK_EQ(runs_metrics("mine", false, "step", step, 32), 18);
}

int main(void)
{
    runs_begin("ends");
    ends();
    evaluations();
    checkpoints();
    folders();
    return runs_done(170);
}
