/* What a crash of the machine can leave of a run's folder. A short training is recorded call by call; then, for a crash behind every call,
 * folders are made in which any of the calls that no fsync has covered are missing, done, or done in part: writes dropped, torn or read
 * as zeros, names of files as before or after. In all of them what lies under a final name is whole, and last.safetensors is at least
 * as new as the last save that had returned.
 *
 * The model: a file's bytes are safe once an fsync of it has returned, names once an fsync of the folder has; until then each call may
 * or may not have reached the disk, whatever their order (Pillai et al., All File Systems Are Not Created Equal, OSDI 2014, section 2:
 * what ext4, btrfs and others do between syncs).
 * labels: big */
#include "runs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "core/train/folder.h"

enum { CREATE, CUT, ROOM, WRITE, SYNC, RENAME, LINK, UNLINK, SYNC_FOLDER };
enum { CALLS = 20000, FILES = 256, NAMES = 32, DESCRIPTORS = 1024, FOLDER = FILES };
typedef struct call {
    int what;
    uint32_t file; /* of CREATE, CUT, ROOM, WRITE, SYNC */
    uint64_t offset, n;
    char *bytes;           /* of WRITE */
    char name[64], to[64]; /* of those that change names */
    uint32_t safe;         /* number of the call behind which it is on the disk */
} call;
static call calls[CALLS];
static uint32_t n_calls, n_files;
static bool recording;
static char watched[1100]; /* the run's folder, with a slash behind it */

typedef struct names {
    uint32_t n, file[NAMES];
    char name[NAMES][64];
} names;
static names now;                       /* while it is recorded */
static uint32_t open_file[DESCRIPTORS]; /* 1 + the file behind a descriptor; FOLDER + 1: the folder */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int find(const names *x, const char *name)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (!strcmp(x->name[i], name))
            return (int)i;
    return -1;
}

static void put(names *x, const char *name, uint32_t file)
{
    int i = find(x, name);
    if (i < 0 && x->n == NAMES)
        abort();
    if (i < 0)
        snprintf(x->name[i = (int)x->n++], sizeof x->name[0], "%s", name);
    x->file[i] = file;
}

static void drop(names *x, const char *name)
{
    int i = find(x, name);
    if (i < 0)
        return;
    x->n--;
    x->file[i] = x->file[x->n];
    memmove(x->name[i], x->name[x->n], sizeof x->name[0]);
}

static void change(names *x, const call *c)
{
    int i = find(x, c->name);
    if (c->what == CREATE)
        put(x, c->name, c->file);
    else if (c->what == UNLINK)
        drop(x, c->name);
    else if (i >= 0 && c->what == LINK)
        put(x, c->to, x->file[i]);
    else if (i >= 0 && c->what == RENAME) {
        put(x, c->to, x->file[i]);
        drop(x, c->name);
    }
}

/* ---- recording ---- */
static const char *below(const char *path)
{
    char full[1300], cwd[1024];
    if (!recording || !path)
        return NULL;
    snprintf(full, sizeof full, "%s%s%s", *path == '/' ? "" : getcwd(cwd, sizeof cwd), *path == '/' ? "" : "/", path);
    size_t n = strlen(watched);
    return strncmp(full, watched, n) == 0 && !strchr(full + n, '/') ? path + strlen(path) - strlen(full + n) : NULL;
}

static call *add(int what)
{
    if (n_calls == CALLS)
        abort();
    calls[n_calls] = (call){.what = what, .safe = UINT32_MAX};
    return &calls[n_calls++];
}

static void note_names(int what, const char *name, const char *to)
{
    if (!name && !to)
        return;
    pthread_mutex_lock(&lock);
    call *c = add(what);
    snprintf(c->name, sizeof c->name, "%s", name ? name : "");
    snprintf(c->to, sizeof c->to, "%s", to ? to : "");
    change(&now, c);
    pthread_mutex_unlock(&lock);
}

static void note_bytes(int what, int fd, uint64_t offset, const void *bytes, uint64_t n)
{
    if (!recording || fd < 0 || fd >= DESCRIPTORS || !open_file[fd])
        return;
    pthread_mutex_lock(&lock);
    call *c = add(open_file[fd] - 1 == FOLDER ? SYNC_FOLDER : what);
    c->file = open_file[fd] - 1;
    c->offset = offset;
    c->n = n;
    if (what == WRITE && (c->bytes = malloc(n + 1)))
        memcpy(c->bytes, bytes, n);
    pthread_mutex_unlock(&lock);
}

static int note_open(int fd, const char *path, int flags, bool was_there)
{
    const char *name = below(path);
    size_t n = strlen(watched);
    if (fd < 0 || fd >= DESCRIPTORS || !recording)
        return fd;
    open_file[fd] = 0;
    if (flags & O_DIRECTORY) {
        char full[1300], cwd[1024];
        snprintf(full, sizeof full, "%s%s%s/", *path == '/' ? "" : getcwd(cwd, sizeof cwd), *path == '/' ? "" : "/", path);
        open_file[fd] = !strncmp(full, watched, n + 1) ? FOLDER + 1 : 0;
    } else if (name && (flags & O_ACCMODE) != O_RDONLY) {
        pthread_mutex_lock(&lock);
        if (!was_there) {
            call *c = add(CREATE);
            c->file = n_files++;
            snprintf(c->name, sizeof c->name, "%s", name);
            change(&now, c);
        }
        int i = find(&now, name);
        open_file[fd] = i < 0 || n_files >= FILES ? 0 : now.file[i] + 1;
        pthread_mutex_unlock(&lock);
        if (was_there && flags & O_TRUNC)
            note_bytes(CUT, fd, 0, NULL, 0);
    }
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    bool was_there = below(path) && access(path, F_OK) == 0;
    return note_open((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), path, flags, was_there);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    uint64_t at = recording && fd >= 0 && fd < DESCRIPTORS && open_file[fd] ? (uint64_t)lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = syscall(SYS_write, fd, bytes, n);
    if (done > 0)
        note_bytes(WRITE, fd, at, bytes, (uint64_t)done);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, n, at);
    if (done > 0)
        note_bytes(WRITE, fd, (uint64_t)at, bytes, (uint64_t)done);
    return done;
}

int ftruncate(int fd, off_t n)
{
    note_bytes(CUT, fd, 0, NULL, (uint64_t)n);
    return (int)syscall(SYS_ftruncate, fd, n);
}

int fallocate(int fd, int mode, off_t from, off_t n)
{
    note_bytes(ROOM, fd, 0, NULL, (uint64_t)(from + n));
    return (int)syscall(SYS_fallocate, fd, mode, from, n);
}

int fsync(int fd)
{
    note_bytes(SYNC, fd, 0, NULL, 0);
    return 0; /* the test's own folder need not reach a disk */
}

int rename(const char *from, const char *to)
{
    note_names(RENAME, below(from), below(to));
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
    note_names(LINK, below(from), below(to));
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    note_names(UNLINK, below(path), NULL);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- states ---- */
enum { DONE, DROPPED, FIRST_HALF, SECOND_HALF, ZEROS, WAYS };

static bool of_names(int what)
{
    return what == CREATE || what == RENAME || what == LINK || what == UNLINK;
}

static void find_safe(void)
{
    for (uint32_t k = 0; k < n_calls; k++)
        for (uint32_t i = 0; (calls[k].what == SYNC || calls[k].what == SYNC_FOLDER) && i < k; i++)
            if (calls[i].safe == UINT32_MAX &&
                (calls[k].what == SYNC_FOLDER ? of_names(calls[i].what) : !of_names(calls[i].what) && calls[i].file == calls[k].file))
                calls[i].safe = k;
}

/* A file as it lies there after the first `end` calls of it, each done in the way that ways[] says. */
static char *content(uint32_t file, uint32_t end, const uint8_t *ways, uint64_t *n)
{
    uint64_t most = 0;
    *n = 0;
    for (uint32_t i = 0; i < end; i++)
        if (!of_names(calls[i].what) && calls[i].file == file)
            most = calls[i].offset + calls[i].n > most ? calls[i].offset + calls[i].n : most;
    char *bytes = calloc(most + 1, 1);
    for (uint32_t i = 0; bytes && i < end; i++) {
        const call *c = &calls[i];
        if (of_names(c->what) || c->file != file || c->what == SYNC || ways[i] == DROPPED)
            continue;
        if (c->what == CUT || c->what == ROOM) {
            *n = c->what == CUT || c->n > *n ? c->n : *n;
            continue;
        }
        uint64_t from = ways[i] == SECOND_HALF ? c->n / 2 : 0, to = ways[i] == FIRST_HALF ? c->n / 2 : c->n;
        if (ways[i] == ZEROS)
            memset(bytes + c->offset, 0, c->n);
        else
            memcpy(bytes + c->offset + from, c->bytes + from, to - from);
        *n = c->offset + to > *n ? c->offset + to : *n;
    }
    return bytes;
}

static bool final_name(const char *name)
{
    return !strstr(name, ".tmp") && !strstr(name, "probe");
}

static uint64_t states, read_back;
static uint32_t whole_at[FILES]; /* 1 + calls up to which all of a file's were done when it was last seen whole */

/* What lies under a final name is what its writer meant, and, where it is a checkpoint, can be opened. */
static bool whole(const char *name, uint32_t file, uint32_t end, const uint8_t *ways)
{
    bool all = true;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n_calls; i++)
        if (!of_names(calls[i].what) && calls[i].file == file && calls[i].what != SYNC) {
            all = all && i < end && ways[i] == DONE;
            last = i + 1;
        }
    if (all && whole_at[file] == last)
        return true;
    uint64_t n, want;
    uint8_t *as_meant = calloc(n_calls + 1, 1);
    char *bytes = content(file, end, ways, &n), *meant = content(file, n_calls, as_meant, &want);
    bool same = n == want && memcmp(bytes, meant, n) == 0;
    if (same && strstr(name, ".safetensors")) {
        sodet_err err = SODET_ERR_INIT;
        sd_checkpoint *c = NULL;
        CHECK_OK(sd_file_write("state", bytes, n, &err));
        CHECK_OK(sd_checkpoint_open("state", SD_CHECKPOINT_OWN, &c, &err));
        same = c != NULL;
        sd_checkpoint_close(c);
        read_back++;
    }
    if (same && all)
        whole_at[file] = last;
    free(bytes);
    free(meant);
    free(as_meant);
    return same;
}

/* The state after a crash behind `end` calls; newest: the file that last.safetensors was when its save returned, or FILES. */
static void look(uint32_t end, const uint8_t *ways, uint32_t newest)
{
    names x = {0};
    for (uint32_t i = 0; i < end; i++)
        if (of_names(calls[i].what) && ways[i] == DONE)
            change(&x, &calls[i]);
    states++;
    for (uint32_t i = 0; i < x.n; i++)
        if (final_name(x.name[i]) && !whole(x.name[i], x.file[i], end, ways))
            check_fail(__FILE__, __LINE__, "a crash behind call %u leaves %s in part", end, x.name[i]);
    int last = find(&x, "last.safetensors");
    check_count();
    if (newest < FILES && (last < 0 || x.file[last] < newest))
        check_fail(__FILE__, __LINE__, "a crash behind call %u loses a checkpoint whose save had returned", end);
}

static void crash(uint32_t end, uint32_t newest, uint8_t *ways)
{
    uint32_t open_calls[2000], n = 0;
    memset(ways, DONE, n_calls);
    look(end, ways, newest);
    for (uint32_t i = 0; i < end && n < 2000; i++)
        if (calls[i].safe >= end && calls[i].what != SYNC && calls[i].what != SYNC_FOLDER)
            open_calls[n++] = i;
    for (uint32_t i = 0; i < n; i++)
        ways[open_calls[i]] = DROPPED;
    look(end, ways, newest);
    for (uint32_t one = 0; one < n; one++) { /* each alone is missing, or torn; each alone is there */
        const bool bytes = calls[open_calls[one]].what == WRITE;
        for (uint32_t way = DROPPED; way < (bytes ? (uint32_t)WAYS : (uint32_t)FIRST_HALF); way++) {
            for (uint32_t i = 0; i < n; i++)
                ways[open_calls[i]] = i == one ? (uint8_t)way : DONE;
            look(end, ways, newest);
        }
        for (uint32_t i = 0; i < n; i++)
            ways[open_calls[i]] = i == one ? DONE : DROPPED;
        look(end, ways, newest);
    }
    for (uint32_t draw = 0; draw < 24; draw++) {
        for (uint32_t i = 0; i < n; i++) {
            uint64_t bits = sd_mix64(((uint64_t)end << 32) + draw * 4096 + i);
            ways[open_calls[i]] = (uint8_t)(calls[open_calls[i]].what == WRITE ? bits % WAYS : bits % FIRST_HALF);
        }
        look(end, ways, newest);
    }
}

int main(void)
{
    runs_begin("crash");
    snprintf(watched, sizeof watched, "%s/run/", runs_folder);
    sodet_err err = SODET_ERR_INIT;
    static const char *const lines[] = {
        "run.output=run",    "data.val=others",  "schedule.total=2", "checkpoint.every=2", "checkpoint.unit=iterations",
        "checkpoint.keep=1", "optimizer.ema=0.9"};
    sd_override list[sizeof lines / sizeof lines[0]];
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        list[i] = (sd_override){lines[i], NULL};
    sd_config *cfg = NULL;
    static sd_train_result result;
    CHECK_OK(sd_config_open_text(runs_tiny, strlen(runs_tiny), "test.ini", NULL, list, sizeof list / sizeof list[0], &cfg, &err));
    CHECK_OK(sd_plugin_check_all(cfg, &err));
    recording = true;
    CHECK_OK(sd_train(cfg, &(sd_train_options){.quiet = true}, &result, &err));
    recording = false;
    sd_config_close(cfg);
    CHECK_EQ(result.steps, 6);

    find_safe();
    uint8_t *ways = malloc(n_calls);
    names x = {0};
    uint32_t newest = FILES, renamed = FILES, saves = 0, most = n_calls;
    for (uint32_t end = 0; end <= most; end++) {
        crash(end, newest, ways);
        if (end == most)
            break;
        const call *c = &calls[end];
        if (of_names(c->what))
            change(&x, c);
        if (c->what == RENAME && !strcmp(c->to, "last.safetensors"))
            renamed = x.file[find(&x, c->to)];
        if (renamed < FILES && c->what == SYNC_FOLDER) { /* what a save ends with */
            newest = renamed;
            renamed = FILES;
            saves++;
        }
    }
    printf("%u calls, %u saves, %llu states, %llu checkpoints opened\n", n_calls, saves, (unsigned long long)states,
           (unsigned long long)read_back);
    CHECK(saves >= 3 && states > 5000);
    CHECK(find(&x, "best.safetensors") >= 0 && find(&x, "config.ini") >= 0 && find(&x, "curve.png") >= 0);
    free(ways);
    for (uint32_t i = 0; i < n_calls; i++)
        free(calls[i].bytes);
    return runs_done(5000);
}
