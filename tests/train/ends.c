/* How a run ends and what it leaves: signals and their exit codes, patience, max_steps; when it evaluates; which checkpoints it keeps; and
 * that what another run left is not touched. */
#include "runs.h"

#include <fcntl.h>

/* ---- signals ---- */
static pid_t start_program(const char *const *arguments)
{
    const char *list[32] = {getenv("SODET_BIN"), "train", "tiny.ini"};
    uint32_t n = 3;
    while (*arguments && n < 31)
        list[n++] = *arguments++;
    fflush(NULL);
    unlink("err"); /* what is waited for is this program's */
    pid_t child = fork();
    if (child == 0) {
        int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int err = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        alarm(RUNS_PATIENCE);
        if (!list[0] || dup2(out, 1) < 0 || dup2(err, 2) < 0)
            _exit(99);
        execv(list[0], (char *const *)(uintptr_t)list);
        _exit(99);
    }
    return child;
}

static uint64_t steps_given(void)
{
    uint64_t n;
    unsigned long long steps = 0;
    char *text = runs_read("out", &n);
    CHECK(text && sscanf(text, "stopped after %llu steps", &steps) == 1);
    sd_free(text);
    return steps;
}

/* After its second step; then the run that goes on makes the bytes of one that was never asked to stop. */
static void signalled(int number, int wanted)
{
    char most[40], folder[20], output[40], resume[40], straight[40], path[60];
    snprintf(folder, sizeof folder, "signal%d", number);
    snprintf(output, sizeof output, "run.output=%s", folder);
    snprintf(resume, sizeof resume, "run.resume=%s", folder);
    snprintf(straight, sizeof straight, "run.output=straight%d", number);
#define ENDLESS "schedule.unit=iterations", "schedule.total=1000000", "run.threads=1"
    pid_t child = start_program(RUNS(ENDLESS, output));
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    uint32_t steps = 0;
    int status = 0;
    bool ended = false;
    for (int i = 0; i < RUNS_PATIENCE * 500 && steps < 2 && !ended; i++) {
        double step[4];
        usleep(2000);
        if (runs_exists(path))
            steps = runs_metrics(folder, false, "step", step, 4);
        ended = waitpid(child, &status, WNOHANG) != 0;
    }
    CHECK(!ended);
    if (!ended) {
        CHECK_EQ(kill(child, number), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
    }
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), wanted);
    const uint64_t made = steps_given();
    CHECK(made >= 2);
    snprintf(most, sizeof most, "train.max_steps=%llu", (unsigned long long)made + 2);
    CHECK_RUN(runs_tiny, ENDLESS, output, resume, most);
    CHECK_EQ(runs_shared->result.steps, made + 2);
    CHECK_RUN(runs_tiny, ENDLESS, straight, most);
    snprintf(path, sizeof path, "straight%d/last.safetensors", number);
    char other[60];
    snprintf(other, sizeof other, "%s/last.safetensors", folder);
    CHECK(runs_same(path, other));
}

/* What the program's end was: its exit code, or minus the signal that ended it. */
static int end_of(pid_t child)
{
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? -WTERMSIG(status) : 99;
}

static bool holds(const char *file, const char *word)
{
    uint64_t n;
    char *text = runs_exists(file) ? runs_read(file, &n) : NULL;
    const bool found = text && strstr(text, word);
    sd_free(text);
    return found;
}

static void wait_for(const char *file, const char *word)
{
    for (int i = 0; i < RUNS_PATIENCE * 500 && !holds(file, word); i++)
        usleep(2000);
    CHECK(holds(file, word));
}

/* A step of many batches is given up within, and what it did to running statistics with it: the state is that behind the last whole step. */
static void signalled_in_a_step(void)
{
#define MANY "run.threads=1", "schedule.unit=iterations", "schedule.total=1000000", "optimizer.accumulate=300"
    char most[40];
    uint64_t steps = 0;
    for (int i = 1; i <= 3; i++) {
        pid_t child = start_program(RUNS(MANY, "run.output=within", "run.overwrite=yes"));
        wait_for("err", "network:");
        const double began = sd_now();
        wait_for("err", "step 1/");
        usleep((useconds_t)((sd_now() - began) * 1e6 * i / 4));
        CHECK_EQ(kill(child, SIGTERM), 0);
        CHECK_EQ(end_of(child), 143);
        CHECK(holds("err", "stopping after the batch"));
        steps = steps_given();
        snprintf(most, sizeof most, "train.max_steps=%llu", (unsigned long long)steps);
        CHECK(steps >= 1);
        CHECK_RUN(runs_tiny, MANY, "run.output=straight", "run.overwrite=yes", most);
        CHECK(runs_same_state("within/last.safetensors", "straight/last.safetensors"));
    }
    snprintf(most, sizeof most, "train.max_steps=%llu", (unsigned long long)steps + 1);
    CHECK_RUN(runs_tiny, MANY, "run.output=within", "run.resume=within", most);
    CHECK_RUN(runs_tiny, MANY, "run.output=straight", "run.overwrite=yes", most);
    CHECK(runs_same_state("within/last.safetensors", "straight/last.safetensors"));
}

/* Twice the same wish in one breath is one; a second one ends the program whatever it is doing. */
static void signalled_twice(void)
{
#define SLOW "run.output=slow", "run.devices=ref", "run.threads=1", "backbone.width=1", "input.size=512x512", "train.batch=8"
    pid_t child = start_program(RUNS(SLOW));
    wait_for("err", "network:");
    usleep(1000000); /* the reference takes longer than that for a batch */
    CHECK_EQ(kill(child, SIGTERM), 0);
    CHECK_EQ(kill(child, SIGTERM), 0);
    wait_for("err", "stopping after the batch");
    usleep(100000);
    CHECK_EQ(waitpid(child, NULL, WNOHANG), 0);
    usleep(300000);
    CHECK_EQ(kill(child, SIGTERM), 0);
    CHECK_EQ(end_of(child), -SIGTERM);
    CHECK(!runs_exists("slow/last.safetensors"));
}

/* An evaluation that takes long is broken off, and made by the run that goes on. */
static void signalled_in_evaluation(void)
{
#define LATE "run.output=late", "run.threads=1", "schedule.total=1", "data.val=others"
    pid_t child = start_program(RUNS(LATE, "dataset.others.count=10000"));
    double step[8];
    int status = 0;
    bool ended = false;
    for (int i = 0; i < RUNS_PATIENCE * 500 && !ended; i++) {
        usleep(2000);
        if (runs_exists("late/metrics.jsonl") && runs_metrics("late", false, "step", step, 8) == 3)
            break;
        ended = waitpid(child, &status, WNOHANG) != 0;
    }
    CHECK(!ended);
    usleep(200000);
    if (!ended) {
        CHECK_EQ(kill(child, SIGTERM), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
    }
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 143);
    CHECK_EQ(runs_metrics("late", true, "voc/mAP", step, 8), 0);
    CHECK_RUN(runs_tiny, LATE, "run.resume=late");
    CHECK_EQ(runs_metrics("late", true, "voc/mAP", step, 8), 1);
}

static void signals(void)
{
    FILE *f = fopen("tiny.ini", "w");
    CHECK(f && fputs(runs_tiny, f) >= 0 && fclose(f) == 0);
    signalled(SIGINT, 130);
    signalled(SIGTERM, 143);
    signalled(SIGUSR1, 75);
    signalled_in_evaluation();
    signalled_in_a_step();
    signalled_twice();
}

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
    signals();
    ends();
    evaluations();
    checkpoints();
    folders();
    return runs_done(130);
}
