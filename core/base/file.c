#include "core/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static sodet_status fail_io(sodet_err *err, const char *path, const char *what)
{
    return SODET_FAIL(err, errno == ENOMEM ? SODET_E_MEMORY : SODET_E_IO, "%s: %s: %s", path, what, strerror(errno));
}

static void folder_of(const char *path, char folder[4096])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, 4096, "%.*s", slash ? (int)(slash - path + (slash == path)) : 1, slash ? path : ".");
}

sodet_status sd_fail_write(sodet_err *err, const char *path, const char *what, uint64_t need)
{
    int e = errno;
    char folder[4096], room[120] = "";
    struct statvfs fs;
    if (e != ENOSPC && e != EDQUOT && e != EFBIG)
        return SODET_FAIL(err, e == ENOMEM ? SODET_E_MEMORY : SODET_E_IO, "%s: %s: %s", path, what, strerror(e));
    struct rlimit most;
    if (e == EFBIG && getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        return SODET_FAIL(err, SODET_E_IO, "%s: %s: no file may have more than %llu bytes here; raise that limit (ulimit -f)%s", path, what,
                          (unsigned long long)most.rlim_cur, need ? "; the file that was there is untouched" : "");
    folder_of(path, folder);
    bool known = statvfs(folder, &fs) == 0;
    if (need && known)
        snprintf(room, sizeof room, "; %llu bytes are needed, %llu are free", (unsigned long long)need,
                 (unsigned long long)fs.f_bavail * fs.f_frsize);
    else if (need)
        snprintf(room, sizeof room, "; %llu bytes are needed", (unsigned long long)need);
    return SODET_FAIL(err, SODET_E_IO, "%s: %s: %s%s; make room or write elsewhere%s", path, what, strerror(e), room,
                      need ? "; the file that was there is untouched" : "");
}

/* Reads until the end, which need not be where stat said (pipes, files that grow). */
static sodet_status read_all(int fd, const char *path, uint64_t limit, uint64_t guess, char **bytes, uint64_t *n, sodet_err *err)
{
    uint64_t capacity = guess + 2, used = 0;
    char *p = sd_room(capacity, 1);
    if (!p)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu bytes", path, (unsigned long long)guess);
    for (;;) {
        if (used + 1 >= capacity && sd_grow(&p, &capacity, used + 65536 + 1, 1, err) != SODET_OK) {
            free(p);
            return sd_fail_in(err, SODET_E_MEMORY, "%s", path);
        }
        ssize_t got = read(fd, p + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            sodet_status s = fail_io(err, path, "reading");
            free(p);
            return s;
        }
        if (got == 0)
            break;
        used += (uint64_t)got;
        if (limit && used > limit) {
            free(p);
            return SODET_FAIL(err, SODET_E_INVALID, "%s: more than %llu bytes, which is the limit", path, (unsigned long long)limit);
        }
    }
    p[used] = '\0';
    *bytes = p;
    *n = used;
    return SODET_OK;
}

sodet_status sd_file_read(const char *path, uint64_t limit, char **bytes, uint64_t *n, sodet_err *err)
{
    *bytes = NULL;
    *n = 0;
    /* A named pipe that nobody writes into would be waited for without end; those of a shell's <(command) have their writer. */
    bool of_shell = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (of_shell ? 0 : O_NONBLOCK));
    if (fd < 0)
        return fail_io(err, path, "cannot open");
    struct stat st;
    sodet_status s;
    if (fstat(fd, &st) != 0)
        s = fail_io(err, path, "cannot open");
    else if (S_ISDIR(st.st_mode))
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: is a folder, a file is needed", path);
    else if (S_ISFIFO(st.st_mode) && !of_shell)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: is a named pipe, a file is needed (<(command) of a shell will do)", path);
    else if (limit && st.st_size > 0 && (uint64_t)st.st_size > limit)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: %llu bytes, the limit is %llu", path, (unsigned long long)st.st_size,
                       (unsigned long long)limit);
    else
        s = read_all(fd, path, limit, st.st_size > 0 ? (uint64_t)st.st_size : 0, bytes, n, err);
    close(fd);
    return s;
}

void sd_sync_folder_of(const char *path)
{
    char folder[4096];
    folder_of(path, folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static sodet_status put_all(int fd, const char *path, const char *p, uint64_t n, sodet_err *err)
{
    for (uint64_t done = 0; done < n;) {
        uint64_t part = n - done < (1u << 30) ? n - done : 1u << 30;
        ssize_t put = write(fd, p + done, part);
        if (put < 0 && errno != EINTR)
            return sd_fail_write(err, path, "writing", n);
        done += put > 0 ? (uint64_t)put : 0;
    }
    return SODET_OK;
}

/* What a rename would put a file in the place of: a terminal, /dev/null, /dev/stdout. */
static bool is_device(const char *path)
{
    struct stat st;
    return strncmp(path, "/proc/self/fd/", 14) == 0 || strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
           (stat(path, &st) == 0 && S_ISCHR(st.st_mode));
}

static sodet_status write_device(const char *path, const void *bytes, uint64_t n, sodet_err *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return sd_fail_write(err, path, "cannot open", 0);
    sodet_status s = put_all(fd, path, bytes, n, err);
    if (close(fd) != 0 && s == SODET_OK)
        s = sd_fail_write(err, path, "writing", n);
    return s;
}

static sodet_status write_whole(const char *path, const void *bytes, uint64_t n, bool durable, sodet_err *err)
{
    char temporary[4096];
    struct stat st;
    if (is_device(path))
        return write_device(path, bytes, n, err);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is a %s and would be replaced; name a file that is not there yet, or an ordinary one",
                          path,
                          S_ISFIFO(st.st_mode)  ? "named pipe"
                          : S_ISBLK(st.st_mode) ? "disk"
                                                : "socket");
    int length = snprintf(temporary, sizeof temporary, "%s.tmp.%ld", path, (long)getpid());
    if (length < 0 || length >= (int)sizeof temporary)
        return SODET_FAIL(err, SODET_E_INVALID, "%.200s...: path too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return sd_fail_write(err, path, "cannot create its temporary file", n ? n : 1);
    sodet_status s = put_all(fd, path, bytes, n, err);
    if (s == SODET_OK && durable && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        s = sd_fail_write(err, path, "writing", n ? n : 1);
    if (close(fd) != 0 && s == SODET_OK)
        s = sd_fail_write(err, path, "writing", n ? n : 1);
    if (s == SODET_OK && rename(temporary, path) != 0)
        s = sd_fail_write(err, path, "cannot rename into place", n ? n : 1);
    if (s != SODET_OK)
        unlink(temporary);
    else if (durable)
        sd_sync_folder_of(path);
    return s;
}

sodet_status sd_file_write_atomic(const char *path, const void *bytes, uint64_t n, sodet_err *err)
{
    return write_whole(path, bytes, n, true, err);
}

sodet_status sd_file_write(const char *path, const void *bytes, uint64_t n, sodet_err *err)
{
    return write_whole(path, bytes, n, false, err);
}

sodet_status sd_make_folders(const char *path, sodet_err *err)
{
    char part[4096];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return SODET_FAIL(err, SODET_E_INVALID, "\"%.200s\": not a usable path", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        struct stat st;
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || stat(part, &st) != 0 || !S_ISDIR(st.st_mode)))
            return errno == EEXIST ? SODET_FAIL(err, SODET_E_IO, "%s: is a file, a folder is needed", part)
                                   : sd_fail_write(err, part, "cannot make the folder", 0);
        if (i < n)
            part[i] = '/';
    }
    return SODET_OK;
}

char *sd_path_join(sd_pool *pool, const char *folder, const char *name)
{
    if (name[0] == '/' || !folder || !*folder)
        return sd_pool_strdup(pool, name);
    size_t n = strlen(folder);
    return sd_pool_printf(pool, "%s%s%s", folder, folder[n - 1] == '/' ? "" : "/", name);
}

bool sd_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

sodet_status sd_folder_next(DIR *d, const char *folder, struct dirent **entry, sodet_err *err)
{
    errno = 0;
    *entry = readdir(d);
    return *entry || !errno ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s: cannot be listed: %s", folder, strerror(errno));
}
