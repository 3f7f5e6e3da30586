/* A run that is cut and resumed writes the very bytes of the run that was never cut: cut by max_steps inside epochs and at their ends,
 * by a stop between steps, and by SIGKILL at every stage of a save. And: equal runs are equal in every byte, whatever the loader's threads. */
#include "runs.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* ---- kills inside a save: the library's calls come here first ---- */
enum { NEVER, WRITE, DIGITS, SYNC, RENAME, RENAMED };
static struct {
    int where;
    uint32_t nth; /* the process ends at this call of that kind about last.safetensors; stop_at: the flag is set after that rename */
    uint32_t stop_at, renamed;
} plan;
static volatile sig_atomic_t *stop_flag;

static bool is_the_file(int fd)
{
    char link[64], path[4200];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    return strstr(path, "/last.safetensors.tmp") != NULL;
}

static void reached(int where, bool about)
{
    if (plan.where == where && about && --plan.nth == 0)
        kill(getpid(), SIGKILL);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (plan.where == WRITE && is_the_file(fd) && plan.nth == 1)
        n = (size_t)syscall(SYS_write, fd, bytes, n / 2); /* the half of it arrives */
    reached(WRITE, plan.where == WRITE && is_the_file(fd));
    return syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    reached(DIGITS, plan.where == DIGITS && is_the_file(fd));
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}

int fsync(int fd)
{
    reached(SYNC, plan.where == SYNC && is_the_file(fd));
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    const bool about = strstr(from, "/last.safetensors.tmp") != NULL;
    reached(RENAME, about);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    reached(RENAMED, about);
    if (about && plan.stop_at && ++plan.renamed == plan.stop_at)
        *stop_flag = SIGTERM;
    return result;
}

/* ---- cuts ---- */
typedef struct kind {
    const char *name, *options[8];
    uint32_t steps, cuts[6];
} kind;

static const kind kinds[] = {
    {"sgd", {"train.norm=sync"}, 12, {1, 3, 4, 8, 11}},
    {"adamw_ema",
     {"optimizer.type=adamw", "optimizer.lr=1e-3", "optimizer.ema=0.9", "optimizer.clip_norm=1", "data.val=others"},
     12,
     {2, 6, 7}},
    {"plateau",
     {"schedule.type=plateau", "schedule.plateau_on=loss", "schedule.patience=0", "schedule.threshold=0.5", "schedule.factor=0.5",
      "data.val=others"},
     12,
     {3, 5, 9}},
    {"accumulate",
     {"optimizer.accumulate=2", "loss.normaliser=ema", "schedule.type=cosine", "schedule.warmup=linear", "schedule.warmup_iterations=3",
      "data.val=others"},
     6,
     {1, 2, 3, 5}},
};

static uint32_t add(const char **list, uint32_t n, const char *const *more)
{
    while (*more)
        list[n++] = *more++;
    list[n] = NULL;
    return n;
}

static void cut_and_resumed(const kind *k)
{
    const char *whole[24] = {"run.output=whole", "run.overwrite=yes"}, *part[24];
    add(whole, 2, k->options);
    const runs_outcome *o = runs_train(runs_tiny, whole);
    if (o->status != SODET_OK || o->signal)
        check_fail(__FILE__, __LINE__, "%s: %s", k->name, o->err.text);
    CHECK_EQ(o->result.steps, k->steps);
    CHECK_STR(o->result.why, "total");
    double lr[2][64], loss[2][64];
    uint32_t n = runs_metrics("whole", false, "lr", lr[0], 64);
    CHECK_EQ(n, k->steps);
    runs_metrics("whole", false, "loss", loss[0], 64);
    for (uint32_t i = 0;; i++) {
        bool last = !k->cuts[i];
        char most[40];
        snprintf(most, sizeof most, "train.max_steps=%u", k->cuts[i]);
        uint32_t m = add(part, 0, k->options);
        m = add(part, m, RUNS("run.output=cut", i ? "run.resume=cut" : "run.overwrite=yes"));
        m = add(part, m, RUNS(last ? "train.max_steps=0" : most));
        o = runs_train(runs_tiny, part);
        if (o->status != SODET_OK || o->signal)
            check_fail(__FILE__, __LINE__, "%s, cut %u: %s", k->name, i, o->err.text);
        CHECK_EQ(o->result.steps, last ? k->steps : k->cuts[i]);
        CHECK_STR(o->result.why, last ? "total" : "max_steps");
        if (last)
            break;
    }
    CHECK_EQ(runs_metrics("cut", false, "lr", lr[1], 64), k->steps);
    runs_metrics("cut", false, "loss", loss[1], 64);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_NEAR(lr[1][i], lr[0][i], 0, 0);
        CHECK_NEAR(loss[1][i], loss[0][i], 0, 0);
    }
    check_count();
    if (!runs_same("whole/last.safetensors", "cut/last.safetensors"))
        check_fail(__FILE__, __LINE__, "%s: cut and resumed, and not cut, are not the same bytes", k->name);
}

/* ---- the other ends ---- */
static uint32_t stop_after;
static void stop_soon(void)
{
    plan.stop_at = stop_after;
}

/* A stop between steps, as signals ask for it; the evaluation that was due then is made by the run that goes on. */
static void stopped(void)
{
    static volatile sig_atomic_t flag;
    stop_flag = &flag;
#define SAVED "data.val=others", "checkpoint.every=1", "checkpoint.unit=iterations", "run.overwrite=yes"
    CHECK_RUN(runs_tiny, "run.output=whole", SAVED);
    for (stop_after = 1; stop_after < 12; stop_after += 2) {
        runs_start(0, runs_tiny, RUNS("run.output=cut", SAVED), &(runs_job){.before = stop_soon, .stop = stop_flag});
        const runs_outcome *o = runs_finish(0);
        CHECK(o->status == SODET_OK && o->result.stopped && o->result.steps > stop_after - 1 && o->result.steps <= 12);
        CHECK_STR(o->result.why, "signal");
        CHECK_RUN(runs_tiny, "run.output=cut", "run.resume=cut", SAVED);
        CHECK(runs_same("whole/last.safetensors", "cut/last.safetensors"));
        CHECK(runs_same("whole/best.safetensors", "cut/best.safetensors"));
    }
}

static int kill_where;
static uint32_t kill_nth;
static void kill_soon(void)
{
    plan.where = kill_where;
    plan.nth = kill_nth;
}

static void killed(void)
{
    /* Saves of one process: each is four or more writes (length, header, tensors), the digits of the checksum, a sync, a rename. */
    static const struct {
        int where;
        uint32_t nth;
        bool temporary; /* one is left */
    } at[] = {{WRITE, 2, true},  {WRITE, 40, true},   {DIGITS, 2, true}, {SYNC, 2, true},
              {RENAME, 1, true}, {RENAMED, 1, false}, {RENAME, 2, true}};
    CHECK_RUN(runs_tiny, "run.output=whole", SAVED);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        kill_where = at[i].where;
        kill_nth = at[i].nth;
        runs_start(0, runs_tiny, RUNS("run.output=cut", SAVED, i ? "run.resume=cut" : "run.resume="), &(runs_job){.before = kill_soon});
        const runs_outcome *o = runs_finish(0);
        CHECK_EQ(o->signal, SIGKILL);
        CHECK_EQ(runs_exists("cut/last.safetensors.tmp"), at[i].temporary);
        if (i == 0) { /* inside the first save of all: there is nothing yet, and it is said */
            CHECK_RUN_FAILS("holds no complete checkpoint", runs_tiny, "run.output=cut", "run.resume=cut", SAVED);
            CHECK_RUN(runs_tiny, "run.output=cut", "train.max_steps=1", SAVED);
        }
    }
    CHECK_RUN(runs_tiny, "run.output=cut", "run.resume=cut", SAVED);
    CHECK(runs_same("whole/last.safetensors", "cut/last.safetensors"));
    CHECK(!runs_exists("cut/last.safetensors.tmp"));
    double step[64];
    CHECK_EQ(runs_metrics("cut", false, "step", step, 64), 12);
    for (uint32_t i = 0; i < 12; i++)
        CHECK_NEAR(step[i], i + 1.0, 0, 0);
}

/* ---- equal runs ---- */
static void equal(void)
{
    CHECK_RUN(runs_tiny, "run.output=one", "data.workers=1", "data.queue=1");
    CHECK_RUN(runs_tiny, "run.output=again", "data.workers=1");
    CHECK_RUN(runs_tiny, "run.output=two", "data.workers=2");
    CHECK_RUN(runs_tiny, "run.output=seven", "data.workers=7", "data.queue=9");
    CHECK(runs_same("one/last.safetensors", "again/last.safetensors"));
    CHECK(runs_same("one/last.safetensors", "two/last.safetensors"));
    CHECK(runs_same("one/last.safetensors", "seven/last.safetensors"));
    CHECK_RUN(runs_tiny, "run.output=other", "run.seed=6");
    CHECK(!runs_same_state("one/last.safetensors", "other/last.safetensors"));
}

int main(void)
{
    runs_begin("resume");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        cut_and_resumed(&kinds[i]);
    stopped();
    killed();
    equal();
    return runs_done(200);
}
