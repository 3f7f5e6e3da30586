#include "core/train/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folder.h"
#include "core/report/events.h"

char *sd_run_folder_of(const char *path, sd_pool *pool)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return sd_pool_strdup(pool, path);
    const char *slash = strrchr(path, '/');
    return slash ? sd_pool_printf(pool, "%.*s", slash == path ? 1 : (int)(slash - path), path) : sd_pool_strdup(pool, ".");
}

char *sd_run_folder(const sd_config *cfg, sd_pool *pool)
{
    const sd_run_cfg *run = &sd_config_core(cfg)->run;
    if (run->output)
        return sd_pool_strdup(pool, run->output);
    if (run->resume)
        return sd_run_folder_of(run->resume, pool);
    return sd_pool_printf(pool, "runs/%s", run->name ? run->name : "sodet");
}

static bool ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), k = strlen(tail);
    return n >= k && !strcmp(name + n - k, tail);
}

/* step-000123.safetensors -> 123 */
static bool periodic(const char *name, uint64_t *step)
{
    char number[24];
    size_t n = strlen(name), k = strlen(".safetensors");
    if (strncmp(name, "step-", 5) != 0 || !ends_with(name, ".safetensors") || n <= 5 + k || n - 5 - k >= sizeof number)
        return false;
    memcpy(number, name + 5, n - 5 - k);
    number[n - 5 - k] = '\0';
    return sd_parse_uint64(number, step);
}

static bool of_a_run(const char *name)
{
    static const char *const names[] = {"config.ini",       "log.txt",   "metrics.jsonl", "last.safetensors",
                                        "best.safetensors", "curve.png", "report.html",   SD_EVENTS_NAME};
    uint64_t step;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return periodic(name, &step);
}

typedef sodet_status each_file(void *context, const char *folder, const char *name, sodet_err *err);
static sodet_status for_each(const char *folder, each_file *f, void *context, sodet_err *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s: %s", folder, strerror(errno));
    sodet_status s = SODET_OK;
    for (struct dirent *e; s == SODET_OK && (s = sd_folder_next(d, folder, &e, err)) == SODET_OK && e;)
        s = f(context, folder, e->d_name, err);
    closedir(d);
    return s;
}

static sodet_status refuse(void *context, const char *folder, const char *name, sodet_err *err)
{
    (void)context;
    if (!of_a_run(name))
        return SODET_OK;
    return SODET_FAIL(
        err, SODET_E_INVALID,
        "%s holds an earlier run (%s); go on with it by run.resume=%s, choose another folder by run.output=..., or replace it by "
        "run.overwrite=yes",
        folder, name, folder);
}

static sodet_status clear(void *context, const char *folder, const char *name, sodet_err *err)
{
    (void)context;
    if (!of_a_run(name))
        return SODET_OK;
    sd_pool pool = {0};
    char *path = sd_path_join(&pool, folder, name);
    sodet_status s = path && unlink(path) == 0 ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s/%s: %s", folder, name, strerror(errno));
    sd_pool_clear(&pool);
    return s;
}

bool sd_run_goes_on_in(const char *resume, const char *folder)
{
    sd_pool pool = {0};
    struct stat a, b;
    const char *from = sd_run_folder_of(resume, &pool);
    bool same = from && stat(from, &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    sd_pool_clear(&pool);
    return same;
}

/* The folder itself is what is locked: nothing is left behind by a process that is killed. */
static sodet_status lock_folder(const char *folder, int *lock, sodet_err *err)
{
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return errno == ENOENT ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s: %s", folder, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return SODET_OK;
    const int why = errno;
    close(*lock);
    *lock = -1;
    if (why == EWOULDBLOCK)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: another process trains into this folder; choose another one by run.output=..., or wait for it", folder);
    sd_log(SD_LOG_WARN, "%s: cannot be locked (%s): nothing hinders another training from writing there, too", folder, strerror(why));
    return SODET_OK;
}

sodet_status sd_run_folder_check(const sd_config *cfg, const char *folder, bool resumed, sodet_err *err)
{
    int lock;
    sodet_status s = lock_folder(folder, &lock, err);
    if (lock >= 0)
        close(lock);
    return s != SODET_OK || resumed || sd_config_core(cfg)->run.overwrite ? s : for_each(folder, refuse, NULL, err);
}

sodet_status sd_run_folder_take(const sd_config *cfg, const char *folder, bool resumed, int *lock, sodet_err *err)
{
    *lock = -1;
    sodet_status s = sd_make_folders(folder, err);
    if (s == SODET_OK)
        s = lock_folder(folder, lock, err);
    if (s == SODET_OK && !resumed)
        s = for_each(folder, sd_config_core(cfg)->run.overwrite ? clear : refuse, NULL, err);
    sd_pool pool = {0};
    sd_text ini = {0};
    char *path = sd_path_join(&pool, folder, "config.ini");
    if (s == SODET_OK && path) {
        sd_config_write(cfg, true, &ini);
        s = ini.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %s", path) : sd_file_write_atomic(path, ini.text, ini.length, err);
    }
    sd_text_free(&ini);
    sd_pool_clear(&pool);
    return s;
}

/* ---- checkpoints ---- */
typedef struct newest {
    sd_checkpoint *checkpoint;
    uint64_t step, seen;
    bool last;
} newest;

static sodet_status consider(void *context, const char *folder, const char *name, sodet_err *err)
{
    newest *x = context;
    if (!ends_with(name, ".safetensors") || !of_a_run(name))
        return SODET_OK;
    sd_pool pool = {0};
    char *path = sd_path_join(&pool, folder, name);
    sodet_err why = SODET_ERR_INIT;
    sd_checkpoint *c = NULL;
    x->seen++;
    if (!path) {
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %s", name);
    } else if (sd_checkpoint_open(path, SD_CHECKPOINT_OWN, &c, &why) != SODET_OK) {
        sd_log(SD_LOG_WARN, "skipped: %s", why.text);
    } else {
        const char *kind = sd_checkpoint_meta(c, "kind"), *text = sd_checkpoint_meta(c, "state/step");
        uint64_t step = 0;
        bool run = kind && !strcmp(kind, "run") && text && sd_parse_uint64(text, &step);
        /* last is what the run wrote last; a run that went on from an older checkpoint may have left others with more steps. */
        bool last = !strcmp(name, "last.safetensors");
        if (run && (!x->checkpoint || last || (step > x->step && !x->last))) {
            x->last = last;
            sd_checkpoint_close(x->checkpoint);
            x->checkpoint = c;
            x->step = step;
        } else {
            sd_checkpoint_close(c);
        }
    }
    sd_pool_clear(&pool);
    return SODET_OK;
}

sodet_status sd_run_find_checkpoint(const char *path, sd_checkpoint **out, sodet_err *err)
{
    *out = NULL;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return sd_checkpoint_open(path, SD_CHECKPOINT_OWN, out, err);
    newest x = {0};
    sodet_status s = for_each(path, consider, &x, err);
    if (s == SODET_OK && !x.checkpoint)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s holds no complete checkpoint (%llu files looked at)", path, (unsigned long long)x.seen);
    if (s == SODET_OK)
        *out = x.checkpoint;
    else
        sd_checkpoint_close(x.checkpoint);
    return s;
}

typedef struct numbered {
    uint64_t *steps, n, capacity;
    bool remove;
    uint64_t below;
} numbered;

static sodet_status number(void *context, const char *folder, const char *name, sodet_err *err)
{
    numbered *x = context;
    uint64_t step;
    if (!periodic(name, &step))
        return SODET_OK;
    if (x->remove)
        return step < x->below ? clear(NULL, folder, name, err) : SODET_OK;
    sodet_status s = sd_grow(&x->steps, &x->capacity, x->n + 1, sizeof *x->steps, err);
    if (s == SODET_OK)
        x->steps[x->n++] = step;
    return s;
}

static int rising(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void sd_run_prune(const char *folder, uint32_t keep)
{
    numbered x = {0};
    if (keep && for_each(folder, number, &x, NULL) == SODET_OK && x.n > keep) {
        qsort(x.steps, x.n, sizeof *x.steps, rising);
        x.below = x.steps[x.n - keep];
        x.remove = true;
        for_each(folder, number, &x, NULL);
    }
    sd_free(x.steps);
}
