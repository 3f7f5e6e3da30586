/* runs.h: whole training runs, each in a process of its own, so that one may be killed, may hang or may leak without hurting the test.
 *
 *     runs_begin("resume");                                         a scratch folder
 *     const runs_outcome *o = runs_train(runs_tiny, (const char *[]){"run.output=a", "train.max_steps=3", NULL});
 *     CHECK_OK(o->status);                                          (err is o->err)
 *
 * The process that calls runs_train never computes itself: a fork of one that has OpenMP threads could not. */
#ifndef SODET_TESTS_TRAIN_RUNS_H
#define SODET_TESTS_TRAIN_RUNS_H

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/plugin/plugin.h"
#include "core/store/checkpoint.h"
#include "core/train/train.h"

/* Ten drawn pictures in batches of four, so three batches an epoch, the last of two; every link of the chain is random. The steps of it
 * take milliseconds. */
static const char runs_tiny[] = "[run]\nseed = 5\nthreads = 1\n"
                                "[input]\nsize = 64x64\nmean = 127.5, 127.5, 127.5\nstd = 64, 64, 64\n"
                                "[backbone]\nplugin = tinyssd\nwidth = 0.1\n"
                                "[neck]\nplugin = none\n"
                                "[head]\nplugin = ssd\nsize_unit = fraction\nsizes = 0.2 0.37 0.54 0.71 0.88\n"
                                "second_sizes = 0.272 0.447 0.619 0.79 0.961\nratios = 2\nper_cell = 4\n"
                                "[loss]\nplugin = multibox\n"
                                "[data]\ntrain = drawn\nworkers = 2\n"
                                "[dataset.drawn]\nplugin = shapes\ncount = 10\nsize = 64\nseed = 7\n"
                                "[dataset.others]\nplugin = shapes\ncount = 4\nsize = 64\nseed = 8\n"
                                "[transform]\ntrain = photometric, expand, ssd_crop, hflip, resize\nval = resize\n"
                                "[eval]\nevaluators = voc\n"
                                "[optimizer]\ntype = sgd\nlr = 0.01\nmomentum = 0.9\nweight_decay = 5e-4\n"
                                "[schedule]\ntotal = 4\n"
                                "[train]\nbatch = 4\nlog_every = 1\n"
                                "[checkpoint]\nevery = 0\n";

enum { RUNS_PATIENCE = 300 /* seconds: whoever takes longer hangs */, RUNS_SAID = 8000, RUNS_SLOTS = 5 };
typedef struct runs_outcome {
    sodet_status status;
    sodet_err err;
    sd_train_result result;
    int exit_code, signal; /* of the process; signal 0: it ended by itself */
    char said[RUNS_SAID];  /* what it wrote on stderr, or the end of that */
} runs_outcome;

static runs_outcome *runs_shared; /* [RUNS_SLOTS] */
static char runs_folder[1024];

static inline void runs_begin(const char *name)
{
    const char *folder = check_scratch(name);
    CHECK(folder != NULL);
    snprintf(runs_folder, sizeof runs_folder, "%s", folder ? folder : "/nonexistent");
    void *memory = mmap(NULL, RUNS_SLOTS * sizeof *runs_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !folder || chdir(folder) != 0)
        exit(check_done(1000000));
    runs_shared = memory;
}

/* Removes the scratch folder, unless something failed: then it is for looking at. */
static inline int runs_done(int least)
{
    if (check_failures())
        printf("the runs are in %s\n", runs_folder);
    else if (chdir("/") == 0)
        CHECK(check_scratch_remove(runs_folder));
    return check_done(least);
}

static inline void runs_child(runs_outcome *o, const char *ini, const char *const *overrides, volatile sig_atomic_t *stop)
{
    sd_override list[40];
    uint64_t n = 0;
    for (; overrides && overrides[n] && n < 40; n++)
        list[n] = (sd_override){overrides[n], NULL};
    sd_config *cfg = NULL;
    sodet_err *err = &o->err;
    sodet_status s = sd_config_open_text(ini, strlen(ini), "test.ini", NULL, list, n, &cfg, err);
    if (s == SODET_OK)
        s = sd_plugin_check_all(cfg, err);
    if (s == SODET_OK)
        s = sd_train(cfg, &(sd_train_options){.stop = stop}, &o->result, err);
    sd_config_close(cfg);
    o->status = s;
}

typedef struct runs_job {
    void (*work)(void *context); /* in the place of a training run */
    void *context;
    void (*before)(void); /* in the run's process, before the run */
    volatile sig_atomic_t *stop;
} runs_job;
static pid_t runs_process[RUNS_SLOTS];

/* Starts a run beside others; runs_finish waits for it. */
static inline void runs_start(uint32_t slot, const char *ini, const char *const *overrides, const runs_job *job)
{
    static const runs_job plain;
    job = job ? job : &plain;
    runs_outcome *o = &runs_shared[slot];
    memset(o, 0, sizeof *o);
    o->err = (sodet_err)SODET_ERR_INIT;
    o->status = SODET_E_INTERNAL;
    fflush(NULL);
    const int failed_before = check_failures();
    pid_t child = fork();
    if (child == 0) {
        char name[20];
        snprintf(name, sizeof name, "said.%u", slot);
        alarm(RUNS_PATIENCE);
        if (!freopen(name, "w", stderr))
            _exit(99);
        if (job->before)
            job->before();
        if (job->work) {
            job->work(job->context);
            o->status = SODET_OK;
        } else {
            runs_child(o, ini, overrides, job->stop);
        }
        fflush(NULL);
        exit(check_failures() > failed_before ? 98 : 0); /* so that a leak checker has its turn */
    }
    runs_process[slot] = child;
}

static inline const runs_outcome *runs_finish(uint32_t slot)
{
    runs_outcome *o = &runs_shared[slot];
    char name[20];
    int status = 0;
    if (runs_process[slot] < 0 || waitpid(runs_process[slot], &status, 0) != runs_process[slot])
        check_fail(__FILE__, __LINE__, "no process for a run");
    o->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    snprintf(name, sizeof name, "said.%u", slot);
    FILE *f = fopen(name, "r");
    if (f && fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        fseek(f, size > RUNS_SAID - 1 ? size - (RUNS_SAID - 1) : 0, SEEK_SET);
        o->said[fread(o->said, 1, RUNS_SAID - 1, f)] = '\0';
    }
    if (f)
        fclose(f);
    if (o->exit_code > 0 || o->signal == SIGALRM)
        check_fail(__FILE__, __LINE__, "a run's process ended with %d, signal %d: %s", o->exit_code, o->signal, o->said);
    return o;
}

/* overrides: "section.key=value", NULL at the end. The result is valid until the next run in slot 0. */
static inline const runs_outcome *runs_train(const char *ini, const char *const *overrides)
{
    runs_start(0, ini, overrides, NULL);
    return runs_finish(0);
}
#define RUNS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The run must end well. */
#define CHECK_RUN_IN(slot, ini, ...)                                                                                                       \
    do {                                                                                                                                   \
        runs_start(slot, ini, RUNS(__VA_ARGS__), NULL);                                                                                    \
        const runs_outcome *check_o = runs_finish(slot);                                                                                   \
        check_count();                                                                                                                     \
        if (check_o->status != SODET_OK || check_o->signal)                                                                                \
            check_fail(__FILE__, __LINE__, "%s: status %d, signal %d: %s", #__VA_ARGS__, (int)check_o->status, check_o->signal,            \
                       check_o->err.text);                                                                                                 \
    } while (0)
#define CHECK_RUN(ini, ...) CHECK_RUN_IN(0, ini, __VA_ARGS__)
/* The run must be refused or fail with this text. */
#define CHECK_RUN_FAILS(part, ini, ...)                                                                                                    \
    do {                                                                                                                                   \
        const runs_outcome *check_o = runs_train(ini, RUNS(__VA_ARGS__));                                                                  \
        check_count();                                                                                                                     \
        if (check_o->status == SODET_OK || check_o->signal || !strstr(check_o->err.text, part))                                            \
            check_fail(__FILE__, __LINE__, "%s: status %d, signal %d: \"%s\"; expected a failure with \"%s\"", #__VA_ARGS__,               \
                       (int)check_o->status, check_o->signal, check_o->err.text, part);                                                    \
    } while (0)

/* ---- what a run left ---- */
static inline char *runs_read(const char *path, uint64_t *n)
{
    sodet_err err = SODET_ERR_INIT;
    char *bytes = NULL;
    *n = 0;
    sodet_status s = sd_file_read(path, 0, &bytes, n, &err);
    if (s != SODET_OK)
        check_fail(__FILE__, __LINE__, "%s", err.text);
    return s == SODET_OK ? bytes : NULL;
}

/* Byte for byte. */
static inline bool runs_same(const char *a, const char *b)
{
    uint64_t n, k;
    char *x = runs_read(a, &n), *y = runs_read(b, &k);
    bool same = x && y && n == k && n > 0 && memcmp(x, y, n) == 0;
    sd_free(x);
    sd_free(y);
    return same;
}

/* The same tensors and numbers, whatever the configuration in the table says. */
static inline bool runs_same_state(const char *a, const char *b)
{
    sodet_err err = SODET_ERR_INIT;
    sd_checkpoint *x = NULL, *y = NULL;
    bool same =
        sd_checkpoint_open(a, SD_CHECKPOINT_OWN, &x, &err) == SODET_OK && sd_checkpoint_open(b, SD_CHECKPOINT_OWN, &y, &err) == SODET_OK;
    if (!same)
        check_fail(__FILE__, __LINE__, "%s", err.text);
    same = same && sd_checkpoint_count(x) == sd_checkpoint_count(y) && sd_checkpoint_count(x) > 0;
    for (uint64_t i = 0; same && i < sd_checkpoint_count(x); i++) {
        const sd_tensor *t = sd_checkpoint_tensor(x, i), *u = sd_checkpoint_find(y, t->name);
        uint64_t n = sd_tensor_bytes(t);
        char *p = malloc(n + 1), *q = malloc(n + 1);
        same = u && sd_tensor_bytes(u) == n && sd_checkpoint_read(x, t, p, &err) == SODET_OK &&
               sd_checkpoint_read(y, u, q, &err) == SODET_OK && memcmp(p, q, n) == 0;
        free(p);
        free(q);
    }
    static const char *const keys[] = {"state/step", "state/epoch", "state/batch", "state/samples", "state/best", "state/stale"};
    for (size_t i = 0; same && i < sizeof keys / sizeof keys[0]; i++) {
        const char *v = sd_checkpoint_meta(x, keys[i]), *w = sd_checkpoint_meta(y, keys[i]);
        same = v && w && strcmp(v, w) == 0;
    }
    sd_checkpoint_close(x);
    sd_checkpoint_close(y);
    return same;
}

static inline bool runs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Value of a number in a line of metrics.jsonl; NaN: not there. */
static inline double runs_number(const char *line, const char *key)
{
    char quoted[64], *end;
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(line, quoted);
    if (!at)
        return (double)NAN;
    at += strlen(quoted);
    double v = strtod(at, &end);
    return end == at ? (double)NAN : v;
}

/* A number of every training line (or, with `evaluations`, of every evaluation) of a folder's metrics.jsonl; returns how many. */
static inline uint32_t runs_metrics(const char *folder, bool evaluations, const char *key, double *out, uint32_t most)
{
    char path[1200];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    char *text = runs_read(path, &bytes);
    uint32_t n = 0;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (!strstr(line, "\"devices\": ") && (strstr(line, "\"eval\": ") != NULL) == evaluations && n < most)
            out[n++] = runs_number(line, key);
    }
    sd_free(text);
    return n;
}

#endif
