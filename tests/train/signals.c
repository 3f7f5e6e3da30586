/* What a signal does to a run: its exit code, what is left, and that the run which goes on makes the bytes of one that was never asked to
 * stop; within a step of many batches, within an evaluation, and twice. */
#include "runs.h"

#include <fcntl.h>

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
#define MANY "run.threads=1", "schedule.unit=iterations", "schedule.total=1000000", "optimizer.accumulate=100"
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
#define SLOW "run.output=slow", "run.devices=ref", "run.threads=1", "backbone.width=1", "input.size=192x192", "train.batch=8"
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

int main(void)
{
    runs_begin("signals");
    FILE *f = fopen("tiny.ini", "w");
    CHECK(f && fputs(runs_tiny, f) >= 0 && fclose(f) == 0);
    signalled_twice();
    signalled_in_a_step();
    signalled_in_evaluation();
    signalled(SIGINT, 130);
    signalled(SIGTERM, 143);
    signalled(SIGUSR1, 75);
    return runs_done(80);
}
