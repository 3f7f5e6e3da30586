/* A library for LD_PRELOAD that makes one call of the system fail, or all from one on; which, serve.c decides.
 *   memory: malloc, calloc, realloc, aligned_alloc, posix_memalign, strdup, pthread_create
 *   files:  open, openat, fopen, fclose, fflush, close, opendir, readdir, mkdir, fstat, read, pread, write, pwrite, fsync,
 *           ftruncate, fallocate, rename, link; a write comes short at every third place in the place of failing; standard input, output
 *           and error are left alone */
#include "inject/inject.h"

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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int kind; /* INJECT_NONE: not begun, or over */
static long at, on;
static atomic_long own[INJECT_KINDS], *calls = own;

void inject_share(void)
{
    void *shared = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    calls = shared;
}

void inject_begin(int of, long place, int and_on)
{
    at = place;
    on = and_on;
    for (int k = 0; k < INJECT_KINDS; k++)
        calls[k] = 0;
    kind = of;
}

__attribute__((destructor)) void inject_end(void)
{
    kind = INJECT_NONE;
}

long inject_calls(int of)
{
    return calls[of];
}

#define REAL(name) ((__typeof__(&name))find(#name))
static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int fails(int of)
{
    if (!kind)
        return 0;
    long n = atomic_fetch_add(&calls[of], 1) + 1;
    return kind == of && at > 0 && (n == at || (on && n > at));
}

/* Each is found once; a local static is enough, since finding twice does no harm. */
#define CALL(name, ...)                                                                                                                    \
    ({                                                                                                                                     \
        static __typeof__(&name) real;                                                                                                     \
        if (!real)                                                                                                                         \
            real = REAL(name);                                                                                                             \
        real(__VA_ARGS__);                                                                                                                 \
    })
#define WRAP(of, when, code, failed, type, name, parameters, ...)                                                                          \
    type name parameters;                                                                                                                  \
    type name parameters                                                                                                                   \
    {                                                                                                                                      \
        if ((when) && fails(of)) {                                                                                                         \
            errno = code;                                                                                                                  \
            return failed;                                                                                                                 \
        }                                                                                                                                  \
        return CALL(name, __VA_ARGS__);                                                                                                    \
    }
#define MEMORY(failed, type, name, parameters, ...)            WRAP(INJECT_MEMORY, 1, ENOMEM, failed, type, name, parameters, __VA_ARGS__)
#define FILES(when, code, failed, type, name, parameters, ...) WRAP(INJECT_FILES, when, code, failed, type, name, parameters, __VA_ARGS__)

MEMORY(NULL, void *, malloc, (size_t n), n)
MEMORY(NULL, void *, calloc, (size_t n, size_t size), n, size)
MEMORY(NULL, void *, realloc, (void *p, size_t n), p, n)
MEMORY(NULL, void *, aligned_alloc, (size_t to, size_t n), to, n)
MEMORY(ENOMEM, int, posix_memalign, (void **p, size_t to, size_t n), p, to, n)
MEMORY(NULL, char *, strdup, (const char *s), s)
WRAP(INJECT_MEMORY, 1, EAGAIN, EAGAIN, int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *c), t, a,
     run, c)

FILES(1, EIO, NULL, FILE *, fopen, (const char *path, const char *mode), path, mode)
FILES(f &&f != stdout && f != stderr, ENOSPC, EOF, int, fflush, (FILE * f), f)
FILES(1, EACCES, NULL, DIR *, opendir, (const char *path), path)
FILES(1, EIO, NULL, struct dirent *, readdir, (DIR * d), d)
FILES(1, ENOSPC, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
FILES(fd > 2, EIO, -1, int, fstat, (int fd, struct stat *out), fd, out)
FILES(fd > 2, EIO, -1, ssize_t, read, (int fd, void *to, size_t n), fd, to, n)
FILES(1, EIO, -1, ssize_t, pread, (int fd, void *to, size_t n, off_t offset), fd, to, n, offset)
FILES(1, EIO, -1, int, fsync, (int fd), fd)
FILES(1, ENOSPC, -1, int, ftruncate, (int fd, off_t n), fd, n)
FILES(1, ENOSPC, -1, int, fallocate, (int fd, int mode, off_t from, off_t n), fd, mode, from, n)
FILES(1, EIO, -1, int, rename, (const char *from, const char *to), from, to)
FILES(1, EPERM, -1, int, link, (const char *from, const char *to), from, to)

/* Those that close do so even where they fail, as the system's do. */
int fclose(FILE *f)
{
    int failed = f != stdout && f != stderr && fails(INJECT_FILES), result = CALL(fclose, f);
    errno = failed ? EIO : errno;
    return failed ? EOF : result;
}

int close(int fd)
{
    int failed = fd > 2 && fails(INJECT_FILES), result = CALL(close, fd);
    errno = failed ? EIO : errno;
    return failed ? -1 : result;
}

static mode_t mode_of(int flags, va_list more)
{
    return flags & O_CREAT ? va_arg(more, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    if (fails(INJECT_FILES)) {
        errno = EMFILE;
        return -1;
    }
    return CALL(open, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    if (fails(INJECT_FILES)) {
        errno = EMFILE;
        return -1;
    }
    return CALL(openat, folder, path, flags, mode);
}

static size_t shortened(size_t n, int *failed)
{
    *failed = at % 3 != 0 || on || n < 2;
    errno = ENOSPC;
    return n / 2;
}

ssize_t write(int fd, const void *from, size_t n)
{
    int failed = 0;
    if (fd > 2 && fails(INJECT_FILES))
        n = shortened(n, &failed);
    return failed ? -1 : CALL(write, fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t offset)
{
    int failed = 0;
    if (fails(INJECT_FILES))
        n = shortened(n, &failed);
    return failed ? -1 : CALL(pwrite, fd, from, n, offset);
}
