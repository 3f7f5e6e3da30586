#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/base.h"

/* Messages of the core would be most of the work. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    sd_log_level(SD_LOG_ERROR);
    return 0;
}

/* expat salts its hash tables by these: the same input must take the same way in every process. */
ssize_t getrandom(void *to, size_t n, unsigned flags)
{
    (void)flags;
    memset(to, 1, n);
    return (ssize_t)n;
}

void arc4random_buf(void *to, size_t n); /* new in glibc 2.36 */
void arc4random_buf(void *to, size_t n)
{
    memset(to, 1, n);
}

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(int fd, const uint8_t *bytes, size_t n)
{
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        give_up("the fuzzed file");
}

const char *fuzz_file(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("input", 0);
        if (fd < 0)
            give_up("memfd_create");
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    write_all(fd, bytes, n);
    return path;
}

static char own_folder[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(own_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (!*own_folder) {
        snprintf(own_folder, sizeof own_folder, "%s/sodet-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(own_folder))
            give_up(own_folder);
        atexit(remove_folder);
    }
    return own_folder;
}

void fuzz_write(const char *folder, const char *name, const uint8_t *bytes, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd < 0)
        give_up(path);
    write_all(fd, bytes, n);
    close(fd);
}

void fuzz_said(int status, const char *text)
{
    if (status != 0 && (!*text || !memchr(text, 0, sizeof((sodet_err *)0)->text)))
        abort();
}
