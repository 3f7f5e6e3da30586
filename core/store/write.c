/* Writing a checkpoint: header, then tensors one after another, then the checksum into the header, fsync, rename. */
#include "core/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef struct writer {
    const char *path;
    char *temporary;
    int fd;
    const sd_tensor *tensors;
    uint64_t n, *order;
    const sd_meta **meta;
    uint64_t n_meta;
    sd_text header;
    uint64_t digits; /* where the checksum stands in the header */
    uint64_t need;   /* bytes of the whole file */
    sd_sum sum;
} writer;

static const char *const file_type[] = {
    [SD_F32] = "F32", [SD_F64] = "F64", [SD_I32] = "I32", [SD_I64] = "I64", [SD_U8] = "U8", [SD_F16] = "F16", [SD_BF16] = "BF16"};

static sodet_status fail_io(const writer *w, const char *what, sodet_err *err)
{
    return sd_fail_write(err, w->path, what, w->need);
}

static void put_json_string(sd_text *t, const char *s)
{
    sd_text_append(t, "\"", 1);
    for (const char *from = s;; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        sd_text_append(t, from, (uint64_t)(s - from));
        if (!c)
            break;
        if (c == '\n')
            sd_text_append(t, "\\n", 2);
        else if (c < 0x20)
            sd_text_printf(t, "\\u%04x", c);
        else
            sd_text_printf(t, "\\%c", c);
        from = s + 1;
    }
    sd_text_append(t, "\"", 1);
}

/* Wider elements first, so that every tensor is aligned; then by name. */
static int by_place(const void *a, const void *b, void *tensors)
{
    const sd_tensor *t = tensors, *x = &t[*(const uint64_t *)a], *y = &t[*(const uint64_t *)b];
    uint32_t p = sd_tensor_type_size(x->type), q = sd_tensor_type_size(y->type);
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const sd_meta *const *)a)->key, (*(const sd_meta *const *)b)->key);
}

static const sd_meta format_meta = {"format", SD_FORMAT}, checksum_meta = {"checksum", "0000000000000000"};

static sodet_status check_tensors(const writer *w, sodet_err *err)
{
    const char **names = sd_alloc(w->n + 1, sizeof *names);
    if (!names)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu names", w->path, (unsigned long long)w->n);
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < w->n && s == SODET_OK; i++) {
        const sd_tensor *t = &w->tensors[i];
        names[i] = t->name;
        if (!sd_tensor_type_size(t->type) || t->rank > SD_TENSOR_RANK || strcmp(t->name, "__metadata__") == 0)
            s = SODET_FAIL(err, SODET_E_INTERNAL, "%s: tensor \"%s\" of type %u and rank %u cannot be stored", w->path, t->name, t->type,
                           t->rank);
    }
    if (s == SODET_OK && w->n > 1)
        qsort(names, w->n, sizeof *names, by_text);
    for (uint64_t i = 1; i < w->n && s == SODET_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            s = SODET_FAIL(err, SODET_E_INTERNAL, "%s: two tensors are called \"%s\"", w->path, names[i]);
    for (uint64_t i = 1; i < w->n_meta && s == SODET_OK; i++)
        if (strcmp(w->meta[i - 1]->key, w->meta[i]->key) == 0)
            s = SODET_FAIL(err, SODET_E_INTERNAL, "%s: two entries of the table are called \"%s\"", w->path, w->meta[i]->key);
    sd_free(names);
    return s;
}

static void put_header(writer *w)
{
    sd_text *t = &w->header;
    sd_text_printf(t, "{\"__metadata__\":{");
    for (uint64_t i = 0; i < w->n_meta; i++) {
        if (i)
            sd_text_append(t, ",", 1);
        put_json_string(t, w->meta[i]->key);
        sd_text_append(t, ":", 1);
        if (w->meta[i] == &checksum_meta)
            w->digits = 8 + t->length + 1;
        put_json_string(t, w->meta[i]->value);
    }
    sd_text_append(t, "}", 1);
    uint64_t offset = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        const sd_tensor *x = &w->tensors[w->order[i]];
        sd_text_append(t, ",", 1);
        put_json_string(t, x->name);
        sd_text_printf(t, ":{\"dtype\":\"%s\",\"shape\":[", file_type[x->type]);
        for (uint32_t k = 0; k < x->rank; k++)
            sd_text_printf(t, "%s%llu", k ? "," : "", (unsigned long long)x->dims[k]);
        sd_text_printf(t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset, (unsigned long long)(offset + sd_tensor_bytes(x)));
        offset += sd_tensor_bytes(x);
    }
    sd_text_append(t, "}", 1);
    while (t->length % 8 && !t->failed)
        sd_text_append(t, " ", 1);
    w->need = 8 + t->length + offset;
}

static sodet_status prepare(writer *w, const sd_tensor *tensors, uint64_t n, const sd_meta *meta, uint64_t n_meta, sodet_err *err)
{
    w->tensors = tensors;
    w->n = n;
    w->n_meta = n_meta + 2;
    w->order = sd_alloc(n + 1, sizeof *w->order);
    w->meta = sd_alloc(w->n_meta, sizeof *w->meta);
    if (!w->order || !w->meta)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the header", w->path);
    for (uint64_t i = 0; i < n; i++)
        w->order[i] = i;
    for (uint64_t i = 0; i < n_meta; i++)
        w->meta[i] = &meta[i];
    w->meta[n_meta] = &format_meta;
    w->meta[n_meta + 1] = &checksum_meta;
    qsort(w->meta, w->n_meta, sizeof *w->meta, by_key);
    sodet_status s = check_tensors(w, err);
    if (s != SODET_OK)
        return s;
    if (n > 1)
        qsort_r(w->order, n, sizeof *w->order, by_place, (void *)(uintptr_t)tensors);
    put_header(w);
    return w->header.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the header", w->path) : SODET_OK;
}

static void release(writer *w)
{
    sd_free(w->order);
    sd_free(w->meta);
    sd_free(w->temporary);
    sd_text_free(&w->header);
}

static sodet_status put(writer *w, const void *bytes, uint64_t n, sodet_err *err)
{
    const char *p = bytes;
    for (uint64_t done = 0; done < n;) {
        ssize_t k = write(w->fd, p + done, n - done < (1u << 30) ? n - done : 1u << 30);
        if (k < 0 && errno != EINTR)
            return fail_io(w, "writing", err);
        done += k > 0 ? (uint64_t)k : 0;
    }
    return SODET_OK;
}

/* One fixed name, so that what a killed process left is used again and does not pile up. The lock keeps a second process out; a file
 * that was renamed away between open and lock is not the one that the name means any more. */
static sodet_status open_temporary(writer *w, sodet_err *err)
{
    size_t n = strlen(w->path) + 5;
    w->temporary = sd_alloc(n, 1);
    if (!w->temporary)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for its name", w->path);
    snprintf(w->temporary, n, "%s.tmp", w->path);
    for (;;) {
        struct stat a, b;
        w->fd = open(w->temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (w->fd < 0)
            return fail_io(w, "cannot create its temporary file", err);
        if (flock(w->fd, LOCK_EX | LOCK_NB) != 0) {
            close(w->fd);
            w->fd = -1;
            return SODET_FAIL(err, SODET_E_IO, "%s: another process is writing it", w->path);
        }
        if (fstat(w->fd, &a) != 0)
            return fail_io(w, "cannot look at its temporary file", err);
        if (stat(w->temporary, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev)
            break;
        close(w->fd);
    }
    if (ftruncate(w->fd, 0) != 0)
        return fail_io(w, "cannot write its temporary file", err);
    /* Room for all of it now, or an error now. A file system that cannot promise is asked again by every write. */
    if (fallocate(w->fd, 0, 0, (off_t)w->need) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return fail_io(w, "no room for it", err);
    return SODET_OK;
}

static sodet_status put_tensors(writer *w, sd_fetch fetch, void *context, sodet_err *err)
{
    uint64_t largest = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        uint64_t bytes = sd_tensor_bytes(&w->tensors[i]);
        if (!w->tensors[i].data && bytes) {
            if (!fetch)
                return SODET_FAIL(err, SODET_E_INTERNAL, "%s: tensor \"%s\" has no data", w->path, w->tensors[i].name);
            largest = bytes > largest ? bytes : largest;
        }
    }
    void *buffer = largest ? sd_alloc(largest, 1) : NULL;
    if (largest && !buffer)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %llu bytes of a tensor", w->path, (unsigned long long)largest);
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < w->n && s == SODET_OK; i++) {
        const sd_tensor *t = &w->tensors[w->order[i]];
        uint64_t bytes = sd_tensor_bytes(t);
        if (bytes == 0)
            continue;
        if (!t->data)
            s = fetch(context, w->order[i], buffer, err);
        const void *data = t->data ? t->data : buffer;
        if (s == SODET_OK) {
            sd_sum_add(&w->sum, data, bytes);
            s = put(w, data, bytes, err);
        }
    }
    sd_free(buffer);
    return s;
}

static sodet_status put_all(writer *w, sd_fetch fetch, void *context, sodet_err *err)
{
    uint64_t length = w->header.length;
    sd_sum_begin(&w->sum);
    sodet_status s = put(w, &length, sizeof length, err);
    if (s == SODET_OK)
        s = put(w, w->header.text, length, err);
    if (s == SODET_OK)
        s = put_tensors(w, fetch, context, err);
    if (s != SODET_OK)
        return s;
    char digits[SD_SUM_DIGITS + 1];
    sd_sum_add(&w->sum, w->header.text, length);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sd_sum_end(&w->sum));
    if (pwrite(w->fd, digits, SD_SUM_DIGITS, (off_t)w->digits) != SD_SUM_DIGITS)
        return fail_io(w, "writing", err);
    if (fsync(w->fd) != 0 && errno != EINVAL && errno != EROFS)
        return fail_io(w, "writing", err);
    if (rename(w->temporary, w->path) != 0)
        return fail_io(w, "cannot rename into place", err);
    sd_sync_folder_of(w->path);
    return SODET_OK;
}

sodet_status sd_checkpoint_write(const char *path, const sd_tensor *tensors, uint64_t n, const sd_meta *meta, uint64_t n_meta,
                                 sd_fetch fetch, void *context, sodet_err *err)
{
    writer w = {.path = path, .fd = -1};
    sodet_status s = prepare(&w, tensors, n, meta, n_meta, err);
    if (s == SODET_OK)
        s = open_temporary(&w, err);
    if (s == SODET_OK)
        s = put_all(&w, fetch, context, err);
    if (s != SODET_OK && w.fd >= 0)
        unlink(w.temporary);
    if (w.fd >= 0)
        close(w.fd);
    release(&w);
    return s;
}

uint64_t sd_checkpoint_bytes(const sd_tensor *tensors, uint64_t n, const sd_meta *meta, uint64_t n_meta)
{
    writer w = {.path = "", .fd = -1};
    uint64_t need = prepare(&w, tensors, n, meta, n_meta, NULL) == SODET_OK ? w.need : 0;
    release(&w);
    return need;
}

sodet_status sd_checkpoint_probe(const char *folder, uint64_t bytes, sodet_err *err)
{
    sodet_status s = sd_make_folders(folder, err);
    if (s != SODET_OK)
        return s;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/.sodet-probe.%ld", folder, (long)getpid());
    if (length < 0 || length >= (int)sizeof path)
        return SODET_FAIL(err, SODET_E_INVALID, "%.200s...: path too long", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot write in this folder: %s; choose another by [run] output", folder, strerror(errno));
    bool full = write(fd, "x", 1) != 1;
    close(fd);
    unlink(path);
    struct statvfs fs;
    if (!full && statvfs(folder, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= bytes)
        return SODET_OK;
    if (statvfs(folder, &fs) != 0)
        return SODET_OK;
    return SODET_FAIL(err, SODET_E_IO,
                      "%s: a checkpoint needs %llu bytes, %llu are free; make room or choose another folder by [run] output", folder,
                      (unsigned long long)bytes, (unsigned long long)fs.f_bavail * fs.f_frsize);
}
