/* A library for LD_PRELOAD that makes one call of the system fail, or all from one on (scripts/check_injection).
 *   INJECT_KIND   memory: malloc, calloc, realloc, aligned_alloc, posix_memalign, strdup, pthread_create
 *                 file: open, openat, fopen, opendir, mkdir, read, pread, write, pwrite, fsync, ftruncate, rename; a write comes short at
 *                 every third place in the place of failing; standard input, output and error are left alone
 *   INJECT_AT     number of the call, from 1; 0: none
 *   INJECT_ON     1: and all that follow
 *   INJECT_COUNT  file that the number of calls is written to at the end */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY = 1, FILES };
static int kind; /* 0: not begun, or over */
static long at, on;
static atomic_long calls;

#define REAL(name) ((__typeof__(&name))find(#name))
static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int fails(int of)
{
    if (kind != of)
        return 0;
    long n = atomic_fetch_add(&calls, 1) + 1;
    return at > 0 && (n == at || (on && n > at));
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("INJECT_KIND");
    at = number("INJECT_AT");
    on = number("INJECT_ON");
    kind = wanted && !strcmp(wanted, "memory") ? MEMORY : wanted && !strcmp(wanted, "file") ? FILES : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("INJECT_COUNT");
    kind = 0;
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "%ld\n", (long)calls);
    fclose(f);
}

/* Each is found once; the compiler's cache of a local static is enough, since finding twice does no harm. */
#define WRAP(of, code, failed, type, name, parameters, arguments)                                                                          \
    type name parameters;                                                                                                                  \
    type name parameters                                                                                                                   \
    {                                                                                                                                      \
        static __typeof__(&name) real;                                                                                                     \
        if (fails(of)) {                                                                                                                   \
            errno = code;                                                                                                                  \
            return failed;                                                                                                                 \
        }                                                                                                                                  \
        if (!real)                                                                                                                         \
            real = REAL(name);                                                                                                             \
        return real arguments;                                                                                                             \
    }

WRAP(MEMORY, ENOMEM, NULL, void *, malloc, (size_t n), (n))
WRAP(MEMORY, ENOMEM, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(MEMORY, ENOMEM, NULL, void *, realloc, (void *p, size_t n), (p, n))
WRAP(MEMORY, ENOMEM, NULL, void *, aligned_alloc, (size_t to, size_t n), (to, n))
WRAP(MEMORY, ENOMEM, ENOMEM, int, posix_memalign, (void **p, size_t to, size_t n), (p, to, n))
WRAP(MEMORY, ENOMEM, NULL, char *, strdup, (const char *s), (s))
WRAP(MEMORY, EAGAIN, EAGAIN, int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *c), (t, a, run, c))

WRAP(FILES, EIO, NULL, FILE *, fopen, (const char *path, const char *mode), (path, mode))
WRAP(FILES, EACCES, NULL, DIR *, opendir, (const char *path), (path))
WRAP(FILES, ENOSPC, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FILES, EIO, -1, int, fsync, (int fd), (fd))
WRAP(FILES, ENOSPC, -1, int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(FILES, EIO, -1, int, rename, (const char *from, const char *to), (from, to))

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (fails(FILES)) {
        errno = EMFILE;
        return -1;
    }
    return REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (fails(FILES)) {
        errno = EMFILE;
        return -1;
    }
    return REAL(openat)(folder, path, flags, mode);
}

ssize_t read(int fd, void *to, size_t n)
{
    if (fd > 2 && fails(FILES)) {
        errno = EIO;
        return -1;
    }
    return REAL(read)(fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    if (fails(FILES)) {
        errno = EIO;
        return -1;
    }
    return REAL(pread)(fd, to, n, offset);
}

static size_t shortened(size_t n, int *failed)
{
    *failed = at % 3 != 0 || on;
    errno = ENOSPC;
    return n / 2;
}

ssize_t write(int fd, const void *from, size_t n)
{
    int failed = 0;
    if (fd > 2 && fails(FILES))
        n = shortened(n, &failed);
    return failed ? -1 : REAL(write)(fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t offset)
{
    int failed = 0;
    if (fails(FILES))
        n = shortened(n, &failed);
    return failed ? -1 : REAL(pwrite)(fd, from, n, offset);
}
