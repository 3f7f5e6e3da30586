#include "sodet/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folder.h"
#include "core/data/sample.h"

struct sodet_lines {
    char *text; /* of a file: the lines lie in it */
    char **line;
    uint64_t n, capacity;
    sd_pool pool; /* of a folder: the names */
};

static sodet_status add(sodet_lines *l, char *line, sodet_err *err)
{
    sodet_status status = line ? sd_grow(&l->line, &l->capacity, l->n + 1, sizeof *l->line, err)
                               : SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu lines", (unsigned long long)l->n);
    if (status == SODET_OK)
        l->line[l->n++] = line;
    return status;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

sodet_status sodet_lines_read(const char *path, sodet_lines **out, sodet_err *err)
{
    *out = NULL;
    sodet_lines *l = sd_alloc(1, sizeof *l);
    uint64_t n = 0;
    if (!l)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path);
    sodet_status status = sd_file_read(path, (uint64_t)1 << 32, &l->text, &n, err);
    if (status == SODET_OK && memchr(l->text, 0, n))
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: holds a NUL byte, so it is no text", path);
    char *at = l->text, *end = l->text ? l->text + n : NULL;
    if (status == SODET_OK && n >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (status == SODET_OK && at < end) {
        char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end, *begin = at;
        while (stop > begin && blank(stop[-1]))
            stop--;
        while (begin < stop && blank(*begin))
            begin++;
        *stop = 0;
        status = add(l, begin, err);
        at = newline ? newline + 1 : end;
    }
    if (status != SODET_OK) {
        sodet_lines_free(l);
        return status;
    }
    *out = l;
    return SODET_OK;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n > k && strcasecmp(name + n - k, ending) == 0;
}

uint32_t sodet_is_utf8(const char *text)
{
    return !sd_not_utf8(text);
}

uint32_t sodet_is_picture(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tga"};
    for (uint32_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_in(name, endings[i]))
            return 1;
    }
    return 0;
}

static sodet_status walk(sodet_lines *l, const char *folder, const char *below, const char *ending, uint32_t depth, sodet_err *err)
{
    enum { DEEPEST = 32 };
    char *path = sd_path_join(&l->pool, folder, below);
    DIR *dir = path ? opendir(path) : NULL;
    sodet_status status = SODET_OK;
    if (!path)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the names of its files", folder);
    if (!dir)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be listed: %s", path, strerror(errno));
    for (struct dirent *d; status == SODET_OK && (status = sd_folder_next(dir, path, &d, err)) == SODET_OK && d;) {
        if (d->d_name[0] == '.')
            continue;
        char *name = sd_pool_printf(&l->pool, "%s%s%s", below, *below ? "/" : "", d->d_name), *whole = NULL;
        struct stat st;
        if (name)
            whole = sd_path_join(&l->pool, folder, name);
        if (!whole)
            status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the names of its files", folder);
        else if (ending ? ends_in(name, ending) : sodet_is_picture(name)) /* a link whose file is gone is listed: opening it tells */
            status = lstat(whole, &st) == 0 && S_ISDIR(st.st_mode) ? SODET_OK : add(l, name, err);
        else if (lstat(whole, &st) == 0 && S_ISDIR(st.st_mode) && depth < DEEPEST)
            status = walk(l, folder, name, ending, depth + 1, err);
    }
    closedir(dir);
    return status;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

sodet_status sodet_lines_of_folder(const char *folder, const char *ending, sodet_lines **out, sodet_err *err)
{
    *out = NULL;
    sodet_lines *l = sd_alloc(1, sizeof *l);
    if (!l)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", folder);
    sodet_status status = walk(l, folder, "", ending, 0, err);
    if (status != SODET_OK) {
        sodet_lines_free(l);
        return status;
    }
    if (l->n)
        qsort(l->line, l->n, sizeof *l->line, by_bytes);
    *out = l;
    return SODET_OK;
}

uint64_t sodet_lines_count(const sodet_lines *l)
{
    return l ? l->n : 0;
}

char *sodet_lines_at(const sodet_lines *l, uint64_t i)
{
    return l && i < l->n ? l->line[i] : NULL;
}

void sodet_lines_free(sodet_lines *l)
{
    if (!l)
        return;
    sd_free(l->text);
    sd_free(l->line);
    sd_pool_clear(&l->pool);
    sd_free(l);
}

uint32_t sodet_parse_number(const char *text, double *out)
{
    return sd_parse_double(text, out);
}

uint32_t sodet_path_exists(const char *path)
{
    return sd_path_exists(path);
}

uint32_t sodet_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Most headers stand in the first bytes; a large EXIF block or colour profile pushes them back, and then the whole file is read. */
sodet_status sodet_picture_size(const char *path, uint32_t *width, uint32_t *height, uint32_t *orientation, sodet_err *err)
{
    enum { FIRST = 1 << 16 };
    *width = *height = 0;
    *orientation = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f && fd >= 0)
        close(fd);
    if (!f)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    uint8_t *bytes = sd_alloc(FIRST, 1);
    struct stat st;
    sodet_status status = SODET_OK;
    size_t n = 0;
    if (!bytes)
        status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path);
    else if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode))
        status = SODET_FAIL(err, SODET_E_IO, "%s: not a regular file; a picture is expected here", path);
    else
        n = fread(bytes, 1, FIRST, f);
    fclose(f);
    if (status == SODET_OK) {
        status = sd_decode_size(path, bytes, n, width, height, orientation, err);
        if (status != SODET_OK && n == FIRST && (uint64_t)st.st_size > n) {
            char *all = NULL;
            uint64_t length;
            status = sd_file_read(path, 0, &all, &length, err);
            if (status == SODET_OK)
                status = sd_decode_size(path, (const uint8_t *)all, length, width, height, orientation, err);
            sd_free(all);
        }
    }
    sd_free(bytes);
    return status;
}

uint32_t sodet_sample_turns(const sodet_sample *s, uint32_t orientation)
{
    return orientation >= 5 && orientation <= 8 && !s->rules->ignore_orientation;
}
