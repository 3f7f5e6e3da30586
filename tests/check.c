#include "check.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int checks, failures, skips;

void check_fail(const char *file, int line, const char *format, ...)
{
    char text[2000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    atomic_fetch_add(&failures, 1);
    if (getenv("SODET_STOP_AT_FAILURE")) /* scripts/check_faults: only whether counts */
        _exit(1);
}

void check_count(void)
{
    atomic_fetch_add(&checks, 1);
}

int check_failures(void)
{
    return atomic_load(&failures);
}

int check_done(int least)
{
    int n = atomic_load(&checks), bad = atomic_load(&failures);
    printf("%d checks, %d failed, %d skipped\n", n, bad, atomic_load(&skips));
    if (n < least)
        fprintf(stderr, "only %d checks ran, at least %d were expected\n", n, least);
    return bad || n < least || n == 0;
}

void check_skip(const char *why)
{
    printf("SKIPPED: %s\n", why);
    atomic_fetch_add(&skips, 1);
}

int check_close(double got, double want, double relative, double absolute)
{
    return isfinite(got) && isfinite(want) && fabs(got - want) <= absolute + relative * fabs(want);
}

double check_worst(const float *got, const float *want, int64_t n)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i]))
            return (double)INFINITY;
        double d = fabs((double)got[i] - (double)want[i]), w = fabs((double)want[i]);
        worst = d > worst ? d : worst;
        largest = w > largest ? w : largest;
    }
    return largest > 0 ? worst / largest : worst;
}

static const char *below(const char *variable, const char *relative)
{
    static char path[4][4096];
    static int next;
    const char *root = getenv(variable);
    if (!root)
        return NULL;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", root, relative);
    return access(out, F_OK) == 0 ? out : NULL;
}

const char *check_shared(const char *relative)
{
    return below("SODET_SHARED", relative);
}

const char *check_source(const char *relative)
{
    return below("SODET_SOURCE", relative);
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        unlink(path);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char inner[4096];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%.3000s/%.1000s", path, e->d_name);
        struct stat st;
        if (lstat(inner, &st) == 0 && S_ISDIR(st.st_mode))
            remove_tree(inner);
        else
            unlink(inner);
    }
    closedir(dir);
    rmdir(path);
}

const char *check_scratch(const char *name)
{
    static char path[1024];
    const char *root = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/sodet_%s_%ld", root ? root : "/tmp", name, (long)getpid());
    remove_tree(path);
    if (mkdir(path, 0700) != 0)
        return NULL;
    return path;
}

int check_scratch_remove(const char *path)
{
    remove_tree(path);
    return access(path, F_OK) != 0;
}
