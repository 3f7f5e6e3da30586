/* The server of scripts/check_injection: a program with this library preloaded stops before its main and forks itself for one place
 * after another, so that loading it (most of a short run's time under a sanitizer) is paid once. Each child runs in a folder of its own
 * with one fault, and is judged by how it ended, what it said, and what lies there.
 *   INJECT_PLAN    all | all KIND | sample COUNT SEED | one KIND PLACE ON (keeps the folder); KIND: memory or files
 *   INJECT_SHARE   WORKER/WORKERS: this process takes every WORKERS-th place
 *   INJECT_NAME    of the command, for what is printed
 *   INJECT_FOLDER  scratch; ends up empty
 * Prints a line for each place where something is wrong, and at the end "NAME memory N files N wrong N theirs N". */
#include "inject/inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/data/decode.h"
#include "core/store/checkpoint.h"

enum { LIMIT = 120 /* seconds for one place */, LEAK = 99 /* the sanitizer's exit code */, SAID = 1 << 16, PATH = 1200 };
static const char *const kind_names[INJECT_KINDS] = {"none", "memory", "files"};
static const char *name;
static char folder[PATH], reference[PATH];
static long done[INJECT_KINDS], wrong, theirs;
static int reference_code;
/* The core's, found once it is loaded: this library is linked against nothing. */
static __typeof__(&sd_checkpoint_open) checkpoint_open;
static __typeof__(&sd_checkpoint_close) checkpoint_close;
static __typeof__(&sd_file_read) file_read;
static __typeof__(&sd_free) give_back;
static __typeof__(&sd_json_open) json_open;
static __typeof__(&sd_json_skip) json_skip;
static __typeof__(&sd_json_close) json_close;
static __typeof__(&sd_decode) decode;
static __typeof__(&sd_pixels_free) pixels_free;
#define FIND(to, symbol) ((to = (__typeof__(to))dlsym(RTLD_DEFAULT, #symbol)) != NULL)

static void give_up(const char *what)
{
    fprintf(stderr, "inject: %s\n", what);
    exit(3);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static bool ends(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);
    return n >= k && !strcmp(text + n - k, tail);
}

/* ---- one place ---- */
typedef struct place {
    int kind, on;
    long at;
} place;

static void say(const place *p, const char *what, const char *text)
{
    wrong++;
    printf("%s %s %s %ld %d: %.300s\n", what, name, kind_names[p->kind], p->at, p->on, text);
    fflush(stdout);
}

/* The child goes on as the program; the parent gets how it ended. */
static bool in_child(const place *p, const char *where, int *status)
{
    char path[PATH];
    mkdir(where, 0777);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        give_up("no process");
    if (child > 0) {
        if (waitpid(child, status, 0) != child)
            give_up("a process was lost");
        return false;
    }
    if (chdir(where) != 0)
        _exit(98);
    static const char *const files[] = {"/dev/null", ".out", ".err"};
    for (int fd = 0; fd < 3; fd++) {
        snprintf(path, sizeof path, fd ? "%s%s" : "%.0s%s", where, files[fd]);
        int opened = open(path, fd ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
        if (opened < 0 || dup2(opened, fd) != fd)
            _exit(98);
        close(opened);
    }
    alarm(LIMIT);
    inject_begin(p->kind, p->at, p->on);
    return true;
}

static char *text_of(const char *where, const char *suffix, char text[SAID])
{
    char path[PATH];
    snprintf(path, sizeof path, "%s%s", where, suffix);
    FILE *f = fopen(path, "r");
    text[f ? fread(text, 1, SAID - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* A whole file of its kind: what lies under a final name. Logs are written line by line and may end anywhere. */
static bool whole(const char *path, char why[300])
{
    sodet_err err = SODET_ERR_INIT;
    sodet_status s = SODET_OK;
    char *bytes = NULL;
    uint64_t n = 0;
    if (ends(path, ".safetensors")) {
        sd_checkpoint *c = NULL;
        s = checkpoint_open(path, SD_CHECKPOINT_OWN, &c, &err);
        checkpoint_close(c);
    } else if (ends(path, ".json") || ends(path, ".png") || ends(path, ".html") || ends(path, ".ini")) {
        s = file_read(path, 0, &bytes, &n, &err);
        if (s == SODET_OK && ends(path, ".json")) {
            sd_json j;
            json_open(&j, path, bytes, n, &err);
            json_skip(&j);
            s = json_close(&j);
        } else if (s == SODET_OK && ends(path, ".png")) {
            sd_pixels out = {0}, turned = {0};
            s = decode(path, (const uint8_t *)bytes, n, &(sd_decode_options){0}, &out, &turned, &err);
            pixels_free(&out);
            pixels_free(&turned);
        } else if (s == SODET_OK && (n < 8 || bytes[n - 1] != '\n' || (ends(path, ".html") && !ends(bytes, "</html>\n")))) {
            s = SODET_E_IO;
            snprintf(err.text, sizeof err.text, "%s: ends early", path);
        }
        give_back(bytes);
    }
    snprintf(why, 300, "%.299s", err.text);
    return s == SODET_OK;
}

/* Walks what lies below `where` (nftw has no context). */
static struct {
    const place *p;
    const char *where, *other; /* other: NULL, or a folder whose files must be the same */
    long files;
} walk;

static int look(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    char why[300], other[PATH * 2];
    const char *below = path + strlen(walk.where);
    if (type != FTW_F)
        return 0;
    walk.files++;
    if (strstr(below, ".tmp") || strstr(below, "-probe"))
        say(walk.p, "LEFT", below);
    else if (!whole(path, why))
        say(walk.p, "HALF", why);
    else if (walk.other && !ends(path, ".txt") && !ends(path, ".jsonl") && !ends(path, ".html") && !ends(path, ".ini") &&
             !strstr(path, ".tfevents")) {
        char *a = NULL, *b = NULL;
        uint64_t n = 0, k = 0;
        sodet_err err = SODET_ERR_INIT;
        snprintf(other, sizeof other, "%s%s", walk.other, below);
        if (file_read(path, 0, &a, &n, &err) != SODET_OK || file_read(other, 0, &b, &k, &err) != SODET_OK || n != k || memcmp(a, b, n) != 0)
            say(walk.p, "OTHER", below);
        give_back(a);
        give_back(b);
    }
    return 0;
}

static long files_below(const place *p, const char *where, const char *other)
{
    walk.p = p;
    walk.where = where;
    walk.other = other;
    walk.files = 0;
    nftw(where, look, 16, FTW_PHYS);
    return walk.files;
}

/* Times differ from run to run: numbers before " s", " ms" and behind "seconds", and the line of "img/s". */
static void without_times(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "0123456789.");
        bool behind = to - text >= 11 && !memcmp(to - 11, "\"seconds\": ", 11);
        if (!strncmp(p, "\nimg/s", 6))
            p += 1 + strcspn(p + 1, "\n");
        else if (n && (behind || !strncmp(p + n, " s", 2) || !strncmp(p + n, " ms", 3)))
            p += n;
        else
            for (n = n ? n : 1; n; n--)
                *to++ = *p++;
    }
    *to = '\0';
}

static const char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *end = strrchr(text, '\n');
    return end ? end + 1 : text;
}

/* Not ours: where the sanitizer's own calls fail it gives up, and iniparser 4.1 uses what malloc has refused it. */
static bool is_theirs(const char *said)
{
    const char *at = strstr(said, "#0 ");
    const char *end = at ? strchr(at, '\n') : NULL;
    return strstr(said, "Sanitizer: CHECK failed") || strstr(said, "Sanitizer: failed to") ||
           strstr(said, "LeakSanitizer has encountered a fatal error") ||
           (at && end && memmem(at, (size_t)(end - at), " in dictionary_", 15));
}

static void judge(const place *p, const char *where, int status)
{
    static char said[SAID], out[SAID], out_then[SAID];
    text_of(where, ".err", said);
    if (WIFSIGNALED(status)) {
        say(p, WTERMSIG(status) == SIGALRM ? "HANG" : "CRASH", WTERMSIG(status) == SIGALRM ? "" : last_line(said));
        return;
    }
    int code = WEXITSTATUS(status);
    if (code == LEAK) {
        const char *at = strstr(said, "ERROR: ");
        if (!at)
            at = strstr(said, "runtime error");
        if (is_theirs(said))
            theirs++;
        else
            say(p, "FOUND", at ? at : said);
        return;
    }
    if (code > 2) {
        say(p, "CRASH", last_line(said));
        return;
    }
    long files = files_below(p, where, code == 0 && p->at ? reference : NULL);
    text_of(where, ".out", out);
    text_of(reference, ".out", out_then);
    without_times(out);
    without_times(out_then);
    const bool same = strcmp(out, out_then) == 0;
    if (code) {
        const char *line = last_line(said);
        if (code == 1 && p->kind == INJECT_FILES && !*said && *out && !same) /* told as a finding: sodet data check */
            return;
        if (strncmp(line, "sodet", 5) != 0 || ends(line, "without a message") || ends(line, ": "))
            say(p, "SILENT", line);
        return;
    }
    if (!p->at)
        return;
    if (files != files_below(&(place){0}, reference, NULL))
        say(p, "OTHER", "exit code 0, but not all files are there");
    if (!same)
        say(p, "OTHER", "exit code 0, but another output");
}

/* ---- all places ---- */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The child returns true, and goes on as the program. */
static bool attempt(const place *p, bool keep)
{
    char where[PATH + 80], side[PATH + 90];
    int status = 0;
    snprintf(where, sizeof where, "%s/%s.%ld.%d", folder, kind_names[p->kind], p->at, p->on);
    if (in_child(p, where, &status))
        return true;
    judge(p, where, status);
    done[p->kind]++;
    if (keep)
        return false;
    nftw(where, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < 2; i++) {
        snprintf(side, sizeof side, "%s%s", where, i ? ".err" : ".out");
        unlink(side);
    }
    return false;
}

static bool serve(void)
{
    const char *plan = getenv("INJECT_PLAN"), *share = getenv("INJECT_SHARE"), *scratch = getenv("INJECT_FOLDER");
    char of[20] = "";
    unsigned long sample = 0, seed = 0, worker = 0, workers = 1;
    place one = {0};
    int status = 0;
    name = getenv("INJECT_NAME");
    if (!name || !scratch || (share && sscanf(share, "%lu/%lu", &worker, &workers) != 2))
        give_up("INJECT_NAME and INJECT_FOLDER are needed, INJECT_SHARE is like 0/2");
    bool single = sscanf(plan, "one %19s %ld %d", of, &one.at, &one.on) == 3;
    const bool every = strcmp(plan, "all") == 0 || sscanf(plan, "all %19s", of) == 1;
    if (!single && !every && sscanf(plan, "sample %lu %lu", &sample, &seed) != 2)
        give_up("INJECT_PLAN: all, all KIND, sample COUNT SEED, or one KIND PLACE ON");
    if (!FIND(checkpoint_open, sd_checkpoint_open) || !FIND(checkpoint_close, sd_checkpoint_close) || !FIND(file_read, sd_file_read) ||
        !FIND(give_back, sd_free) || !FIND(json_open, sd_json_open) || !FIND(json_skip, sd_json_skip) || !FIND(json_close, sd_json_close) ||
        !FIND(decode, sd_decode) || !FIND(pixels_free, sd_pixels_free))
        give_up("libsodet is not there");
    snprintf(folder, sizeof folder, "%.1000s", scratch);
    snprintf(reference, sizeof reference, "%.1000s/none.0.0", scratch);
    nftw(reference, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* of the command before */
    inject_share();
    const place none = {INJECT_MEMORY, 0, 0};
    if (in_child(&none, reference, &status))
        return true;
    static char said[SAID];
    reference_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (reference_code != 0 && reference_code != 1)
        give_up(text_of(reference, ".err", said));
    judge(&none, reference, status);
    const long calls[INJECT_KINDS] = {0, inject_calls(INJECT_MEMORY), inject_calls(INJECT_FILES)};
    fprintf(stderr, "%s: %ld calls for memory, %ld for files\n", name, calls[INJECT_MEMORY], calls[INJECT_FILES]);
    if (single) {
        one.kind = !strcmp(of, kind_names[INJECT_MEMORY]) ? INJECT_MEMORY : INJECT_FILES;
        return attempt(&one, true);
    }
    unsigned long number = 0;
    for (int kind = INJECT_MEMORY; kind < INJECT_KINDS; kind++)
        for (int on = 0; on < 2; on++) {
            if (every && *of && strcmp(of, kind_names[kind]) != 0)
                continue;
            long all = calls[kind], n = sample && (long)sample / 4 < all ? (long)sample / 4 : all;
            for (long i = 0; i < n; i++, number++) {
                long from = i * all / n, to = (i + 1) * all / n;
                const place p = {kind, on, 1 + from + (long)(mix(seed << 40 ^ number) % (unsigned long)(to - from))};
                if (number % workers == worker && attempt(&p, false))
                    return true;
            }
        }
    return false;
}

static int (*program)(int, char **, char **);

static int serve_main(int argc, char **argv, char **environment)
{
    if (!getenv("INJECT_PLAN") || serve())
        return program(argc, argv, environment);
    printf("%s memory %ld files %ld wrong %ld theirs %ld\n", name, done[INJECT_MEMORY], done[INJECT_FILES], wrong, theirs);
    fflush(stdout);
    _exit(wrong != 0);
}

/* The last that runs before main: every constructor has. */
int __libc_start_main(int (*entry)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);
int __libc_start_main(int (*entry)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end)
{
    program = entry;
    __typeof__(&__libc_start_main) real = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    return real(serve_main, argc, argv, init, fini, loader_fini, stack_end);
}
