/* Opening a checkpoint: header and checksum are checked before anything is handed out. Also raw float32 values with an index. */
#include "core/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.h"

enum { HEADER_LIMIT = 100 << 20 }; /* the format's own limit */
#define DAMAGED "; use another checkpoint, or copy or fetch this one again"

static const struct {
    const char *name, *file;
    uint32_t size;
} types[] = {[SD_F32] = {"f32", "F32", 4}, [SD_F64] = {"f64", "F64", 8}, [SD_I32] = {"i32", "I32", 4},   [SD_I64] = {"i64", "I64", 8},
             [SD_U8] = {"u8", "U8", 1},    [SD_F16] = {"f16", "F16", 2}, [SD_BF16] = {"bf16", "BF16", 2}};
enum { N_TYPES = sizeof types / sizeof *types };

const char *sd_tensor_type_name(uint32_t type)
{
    return type && type < N_TYPES ? types[type].name : "unknown type";
}

uint32_t sd_tensor_type_size(uint32_t type)
{
    return type < N_TYPES ? types[type].size : 0;
}

uint64_t sd_tensor_count(const sd_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

uint64_t sd_tensor_bytes(const sd_tensor *t)
{
    return sd_tensor_count(t) * sd_tensor_type_size(t->type);
}

const char *sd_store_shape(char text[200], uint32_t rank, const uint64_t *dims)
{
    int at = snprintf(text, 200, "[");
    for (uint32_t i = 0; i < rank && at < 170; i++)
        at += snprintf(text + at, 200 - (size_t)at, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    snprintf(text + at, 200 - (size_t)at, "]");
    return text;
}

sodet_status sd_store_open_file(const char *path, sd_checkpoint **out, uint64_t *size, sodet_err *err)
{
    sd_checkpoint *c = sd_alloc(1, sizeof *c);
    *out = c;
    if (c)
        c->fd = -1;
    if (!c || !(c->path = sd_strdup(path)))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to open it", path);
    struct stat st;
    c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (c->fd < 0 || fstat(c->fd, &st) != 0)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is %s, a checkpoint is needed; name a file that ends in .safetensors", path,
                          S_ISDIR(st.st_mode) ? "a folder" : "not a file");
    *size = (uint64_t)st.st_size;
    return SODET_OK;
}

sodet_status sd_store_pread(const sd_checkpoint *c, void *to, uint64_t n, uint64_t offset, sodet_err *err)
{
    char *p = to;
    for (uint64_t done = 0; done < n;) {
        ssize_t k = pread(c->fd, p + done, n - done < (1u << 30) ? n - done : 1u << 30, (off_t)(offset + done));
        if (k == 0)
            return SODET_FAIL(err, SODET_E_IO, "%s: became shorter while it was read; is it still being copied?", c->path);
        if (k < 0 && errno != EINTR)
            return SODET_FAIL(err, SODET_E_IO, "%s: reading: %s", c->path, strerror(errno));
        done += k > 0 ? (uint64_t)k : 0;
    }
    return SODET_OK;
}

sodet_status sd_store_add(sd_checkpoint *c, const sd_tensor *t, uint64_t offset, sodet_err *err)
{
    sodet_status s = sd_grow(&c->tensors, &c->capacity, c->n + 1, sizeof *c->tensors, err);
    if (s == SODET_OK)
        s = sd_grow(&c->offsets, &c->offsets_capacity, c->n + 1, sizeof *c->offsets, err);
    if (s != SODET_OK)
        return s;
    c->tensors[c->n] = *t;
    c->offsets[c->n] = offset;
    c->tensors[c->n].name = sd_pool_strdup(&c->pool, t->name);
    if (!c->tensors[c->n].name)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for its tensors' names", c->path);
    c->n++;
    return SODET_OK;
}

static int by_name(const void *a, const void *b, void *tensors)
{
    const sd_tensor *t = tensors;
    return strcmp(t[*(const uint64_t *)a].name, t[*(const uint64_t *)b].name);
}

sodet_status sd_store_index(sd_checkpoint *c, sodet_err *err)
{
    c->by_name = sd_alloc(c->n + 1, sizeof *c->by_name);
    if (!c->by_name)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for its index", c->path);
    for (uint64_t i = 0; i < c->n; i++)
        c->by_name[i] = i;
    if (c->n > 1)
        qsort_r(c->by_name, c->n, sizeof *c->by_name, by_name, c->tensors);
    for (uint64_t i = 1; i < c->n; i++) {
        const char *name = c->tensors[c->by_name[i]].name;
        if (strcmp(c->tensors[c->by_name[i - 1]].name, name) == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: damaged: two tensors are called \"%s\"", c->path, name);
    }
    return SODET_OK;
}

/* ---- header ---- */
typedef struct header {
    sd_checkpoint *c;
    sd_json json;
    const char *text;
    uint64_t length, data; /* bytes of the header and of the tensors */

    const char *checksum; /* its digits, inside text */
} header;

static void read_meta(header *h)
{
    sd_checkpoint *c = h->c;
    sd_json_string key;
    for (sd_json_enter(&h->json, '{'); sd_json_key(&h->json, &key);) {
        sd_meta m = {.key = sd_json_copy(&h->json, &c->pool, key)};
        sd_json_string value = sd_json_text(&h->json);
        if (m.key && strcmp(m.key, "checksum") == 0 && value.n == SD_SUM_DIGITS && value.text >= h->text &&
            value.text < h->text + h->length)
            h->checksum = value.text;
        m.value = sd_json_copy(&h->json, &c->pool, value);
        if (h->json.status != SODET_OK)
            return;
        if (sd_checkpoint_meta(c, m.key)) {
            sd_json_fail(&h->json, "key \"%s\" twice", m.key);
            return;
        }
        if (sd_grow(&c->meta, &c->meta_capacity, c->n_meta + 1, sizeof *c->meta, h->json.err) != SODET_OK) {
            sd_json_fail(&h->json, "no memory");
            return;
        }
        c->meta[c->n_meta++] = m;
    }
}

static uint32_t type_of(sd_json_string s)
{
    for (uint32_t i = 1; i < N_TYPES; i++)
        if (sd_json_is(s, types[i].file))
            return i;
    return 0;
}

static uint64_t read_size(header *h)
{
    int64_t v = sd_json_int64(&h->json);
    if (v < 0)
        sd_json_fail(&h->json, "negative size");
    return v < 0 ? 0 : (uint64_t)v;
}

static void read_shape(header *h, sd_tensor *t)
{
    uint64_t count = 1;
    for (sd_json_enter(&h->json, '['); sd_json_item(&h->json);) {
        uint64_t d = read_size(h);
        if (t->rank == SD_TENSOR_RANK || (d && count > (UINT64_MAX >> 8) / d)) {
            sd_json_fail(&h->json, "shape of more than %d axes or too many values", SD_TENSOR_RANK);
            return;
        }
        t->dims[t->rank++] = d;
        count *= d ? d : 1;
    }
}

static void read_tensor(header *h, const char *name)
{
    sd_tensor t = {.name = name};
    uint64_t offset[2] = {0, 0};
    unsigned seen = 0, n_offsets = 0;
    sd_json_string key;
    for (sd_json_enter(&h->json, '{'); sd_json_key(&h->json, &key);) {
        if (sd_json_is(key, "dtype")) {
            seen |= 1;
            sd_json_string s = sd_json_text(&h->json);
            t.type = type_of(s);
            if (!t.type && h->json.status == SODET_OK)
                sd_json_fail(&h->json, "tensor \"%.100s\" has type %.*s, which sodet does not read", name, s.n > 20 ? 20 : (int)s.n,
                             s.text);
        } else if (sd_json_is(key, "shape")) {
            seen |= 2;
            t.rank = 0;
            read_shape(h, &t);
        } else if (sd_json_is(key, "data_offsets")) {
            seen |= 4;
            for (sd_json_enter(&h->json, '['); sd_json_item(&h->json); n_offsets++)
                if (n_offsets < 2)
                    offset[n_offsets] = read_size(h);
                else
                    sd_json_skip(&h->json);
        } else
            sd_json_fail(&h->json, "unknown member of a tensor");
    }
    if (h->json.status != SODET_OK)
        return;
    if (seen != 7 || n_offsets != 2)
        sd_json_fail(&h->json, "tensor \"%.100s\" needs dtype, shape and two data_offsets", name);
    else if (offset[1] < offset[0] || offset[1] - offset[0] != sd_tensor_bytes(&t))
        sd_json_fail(&h->json, "tensor \"%.100s\": data_offsets and shape disagree", name);
    else if (sd_store_add(h->c, &t, offset[0], h->json.err) != SODET_OK)
        sd_json_fail(&h->json, "no memory");
}

static sodet_status read_header(header *h, sodet_err *err)
{
    sd_json_string key;
    sd_pool names = {0};
    sd_json_open(&h->json, h->c->path, h->text, h->length, err);
    for (sd_json_enter(&h->json, '{'); sd_json_key(&h->json, &key);) {
        const char *name = sd_json_copy(&h->json, &names, key);
        if (name && strcmp(name, "__metadata__") == 0)
            read_meta(h);
        else if (name)
            read_tensor(h, name);
    }
    sodet_status s = sd_json_close(&h->json);
    sd_pool_clear(&names);
    return s;
}

static int by_offset(const void *a, const void *b, void *offsets)
{
    const uint64_t *o = offsets, i = *(const uint64_t *)a, k = *(const uint64_t *)b;
    return o[i] != o[k] ? (o[i] < o[k] ? -1 : 1) : (i > k) - (i < k);
}

/* Tensors must follow each other without gap or overlap, and fill the file. Empty ones may stand anywhere between. */
static sodet_status check_offsets(header *h, sodet_err *err)
{
    sd_checkpoint *c = h->c;
    uint64_t *order = sd_alloc(c->n + 1, sizeof *order), end = 0;
    if (!order)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for its index", c->path);
    for (uint64_t i = 0; i < c->n; i++)
        order[i] = i;
    if (c->n > 1)
        qsort_r(order, c->n, sizeof *order, by_offset, c->offsets);
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < c->n && s == SODET_OK; i++) {
        const sd_tensor *t = &c->tensors[order[i]];
        if (sd_tensor_bytes(t) && c->offsets[order[i]] != end)
            s = SODET_FAIL(err, SODET_E_INVALID, "%s: damaged: tensor \"%s\" begins at byte %llu, the one before it ends at %llu", c->path,
                           t->name, (unsigned long long)c->offsets[order[i]], (unsigned long long)end);
        end += sd_tensor_bytes(t);
    }
    sd_free(order);
    if (s == SODET_OK && h->data < end)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: cut off: %llu bytes, its header speaks of %llu", c->path,
                       (unsigned long long)(8 + h->length + h->data), (unsigned long long)(8 + h->length + end));
    if (s == SODET_OK && h->data > end)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: damaged: %llu bytes follow the last tensor", c->path,
                       (unsigned long long)(h->data - end));
    for (uint64_t i = 0; i < c->n; i++)
        c->offsets[i] += 8 + h->length;
    return s;
}

static sodet_status check_sum(header *h, sodet_err *err)
{
    enum { PART = 1 << 20 };
    sd_checkpoint *c = h->c;
    char *buffer = sd_alloc(PART, 1);
    if (!buffer)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to check it", c->path);
    sd_sum sum;
    sd_sum_begin(&sum);
    sodet_status s = SODET_OK;
    for (uint64_t at = 0; at < h->data && s == SODET_OK; at += PART) {
        uint64_t n = h->data - at < PART ? h->data - at : PART;
        s = sd_store_pread(c, buffer, n, 8 + h->length + at, err);
        sd_sum_add(&sum, buffer, n);
    }
    sd_free(buffer);
    if (s != SODET_OK)
        return s;
    uint64_t at = (uint64_t)(h->checksum - h->text);
    sd_sum_add(&sum, h->text, at);
    sd_sum_add(&sum, "0000000000000000", SD_SUM_DIGITS);
    sd_sum_add(&sum, h->checksum + SD_SUM_DIGITS, h->length - at - SD_SUM_DIGITS);
    char digits[SD_SUM_DIGITS + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sd_sum_end(&sum));
    if (memcmp(digits, h->checksum, SD_SUM_DIGITS) != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: damaged: checksum %s, its header says %.16s" DAMAGED, c->path, digits, h->checksum);
    return SODET_OK;
}

/* Files that people mistake for a checkpoint, by how they begin. */
static const char *what_it_is(const unsigned char *b, uint64_t n)
{
    static const struct {
        const char *magic;
        uint64_t n;
        const char *what;
    } known[] = {
        {"PK\x03\x04", 4, "a zip archive, as PyTorch's .pt and .pth are; weights of another system come in by `sodet import`"},
        {"\x80\x02", 2, "a Python pickle, as old PyTorch files are; weights of another system come in by `sodet import`"},
        {"\x80\x04", 2, "a Python pickle; save its tensors with safetensors"},
        {"\x89HDF", 4, "an HDF5 file; save its tensors with safetensors"},
        {"\x7f"
         "ELF",
         4, "an ELF file; a plugin is named in the INI"},
        {"\x1f\x8b", 2, "compressed with gzip; unpack it first"},
        {"\x93NUMPY", 6, "a NumPy file; save its arrays with safetensors"},
        {"GGUF", 4, "a GGUF file; save its tensors with safetensors"},
        {"version https://git-lfs", 23, "a Git LFS pointer; the file itself has not been fetched"},
        {"{", 1, "a text file; an INI comes before the weights"},
        {"[", 1, "a text file; an INI comes before the weights"},
        {"<", 1, "a text file; an INI comes before the weights"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= known[i].n && memcmp(b, known[i].magic, known[i].n) == 0)
            return known[i].what;
    return "neither a checkpoint nor another safetensors file; name a run's folder, or a file that ends in .safetensors";
}

/* Puts what can be done behind the text of an error about a damaged file. */
static sodet_status with_remedy(sodet_status s, sodet_err *err)
{
    size_t n = err ? strlen(err->text) : 0;
    if (err && s == SODET_E_INVALID)
        snprintf(err->text + n, sizeof err->text - n, DAMAGED);
    return s;
}

static sodet_status open_content(sd_checkpoint *c, uint64_t size, uint32_t flags, char **text, sodet_err *err)
{
    unsigned char begin[64] = {0};
    header h = {.c = c};
    uint64_t n = size < sizeof begin ? size : sizeof begin;
    sodet_status s = sd_store_pread(c, begin, n, 0, err);
    if (s != SODET_OK)
        return s;
    memcpy(&h.length, begin, 8);
    if (size == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is empty, a checkpoint is needed" DAMAGED, c->path);
    if (sd_store_is_torch(begin, n) && flags & SD_CHECKPOINT_FOREIGN)
        return sd_store_read_torch(c, size, begin, err);
    if (size < 10 || h.length < 2 || h.length > HEADER_LIMIT || begin[8] != '{')
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is not a checkpoint: it is %s", c->path, what_it_is(begin, n));
    if (h.length > size - 8)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: cut off: %llu bytes, its header alone has %llu" DAMAGED, c->path,
                          (unsigned long long)size, (unsigned long long)(h.length + 8));
    h.data = size - 8 - h.length;
    *text = sd_alloc(h.length + 1, 1);
    if (!*text)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for its header", c->path);
    h.text = *text;
    s = sd_store_pread(c, *text, h.length, 8, err);
    if (s != SODET_OK)
        return s;
    s = read_header(&h, err);
    if (s == SODET_OK)
        s = sd_store_index(c, err);
    if (s == SODET_OK)
        s = check_offsets(&h, err);
    if (s != SODET_OK)
        return with_remedy(s, err);
    const char *format = sd_checkpoint_meta(c, "format");
    bool own = format && strncmp(format, "sodet/", 6) == 0;
    if (own && strcmp(format, SD_FORMAT) != 0)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: is of format %s, this sodet reads %s; use a newer one", c->path, format,
                          SD_FORMAT);
    if (!own && !(flags & SD_CHECKPOINT_FOREIGN))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: is a safetensors file of another tool, not a checkpoint of sodet; its weights come in by `sodet import`",
                          c->path);
    if (own && !h.checksum)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: damaged: it has no checksum" DAMAGED, c->path);
    return own ? check_sum(&h, err) : SODET_OK;
}

sodet_status sd_checkpoint_open(const char *path, uint32_t flags, sd_checkpoint **out, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    char *text = NULL;
    uint64_t size;
    *out = NULL;
    sodet_status s = sd_store_open_file(path, &c, &size, err);
    if (s == SODET_OK)
        s = open_content(c, size, flags, &text, err);
    sd_free(text);
    if (s == SODET_OK)
        *out = c;
    else
        sd_checkpoint_close(c);
    return s;
}

/* ---- raw values ---- */
static sodet_status add_row(sd_checkpoint *c, const char *index_path, unsigned line, char *row, uint64_t values, sodet_err *err)
{
    char *field[4], *rest = row;
    for (int i = 0; i < 4; i++)
        if (!(field[i] = strsep(&rest, "\t")))
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%u: %d fields, name, shape, offset and count are needed, separated by tabs",
                              index_path, line, i);
    if (line == 1 && strcmp(field[0], "name") == 0 && strcmp(field[1], "shape") == 0)
        return SODET_OK;
    sd_tensor t = {.name = field[0], .type = SD_F32};
    uint64_t offset, count;
    if (rest || !*field[0] || !sd_parse_uint64(field[2], &offset) || !sd_parse_uint64(field[3], &count))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%u: is not `name shape offset count`", index_path, line);
    for (char *shape = field[1], *d; *field[1] && (d = strsep(&shape, ","));)
        if (t.rank == SD_TENSOR_RANK || !sd_parse_uint64(d, &t.dims[t.rank++]) || t.dims[t.rank - 1] > UINT32_MAX)
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%u: \"%s\" is not a shape like 16,3,3,3", index_path, line, d);
    char text[200];
    if (sd_tensor_count(&t) != count)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%u: %s has shape %s and count %llu", index_path, line, t.name,
                          sd_store_shape(text, t.rank, t.dims), (unsigned long long)count);
    if (offset > values || count > values - offset)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%u: %s ends at value %llu, %s has %llu", index_path, line, t.name,
                          (unsigned long long)(offset + count), c->path, (unsigned long long)values);
    return sd_store_add(c, &t, offset * 4, err);
}

static sodet_status add_rows(sd_checkpoint *c, const char *index_path, uint64_t values, sodet_err *err)
{
    char *text;
    uint64_t n;
    unsigned line = 0;
    sodet_status s = sd_file_read(index_path, 64 << 20, &text, &n, err);
    for (char *rest = text, *row; s == SODET_OK && (row = strsep(&rest, "\n"));) {
        line++;
        size_t length = strlen(row);
        if (length && row[length - 1] == '\r')
            row[--length] = '\0';
        if (length)
            s = add_row(c, index_path, line, row, values, err);
    }
    sd_free(text);
    if (s == SODET_OK && c->n == 0)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: names no tensor", index_path);
    return s;
}

sodet_status sd_checkpoint_open_raw(const char *values_path, const char *index_path, sd_checkpoint **out, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    uint64_t size;
    *out = NULL;
    sodet_status s = sd_store_open_file(values_path, &c, &size, err);
    if (s == SODET_OK && size % 4)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: %llu bytes are not whole float32 values", values_path, (unsigned long long)size);
    if (s == SODET_OK)
        s = add_rows(c, index_path, size / 4, err);
    if (s == SODET_OK)
        s = sd_store_index(c, err);
    if (s == SODET_OK)
        *out = c;
    else
        sd_checkpoint_close(c);
    return s;
}

/* ---- access ---- */
void sd_checkpoint_close(sd_checkpoint *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    sd_free(c->path);
    sd_free(c->tensors);
    sd_free(c->offsets);
    sd_free(c->by_name);
    sd_free(c->meta);
    sd_pool_clear(&c->pool);
    sd_free(c);
}

const char *sd_checkpoint_path(const sd_checkpoint *c)
{
    return c->path;
}

const char *sd_checkpoint_meta(const sd_checkpoint *c, const char *key)
{
    for (uint64_t i = 0; i < c->n_meta; i++)
        if (strcmp(c->meta[i].key, key) == 0)
            return c->meta[i].value;
    return NULL;
}

uint64_t sd_checkpoint_meta_count(const sd_checkpoint *c)
{
    return c->n_meta;
}

const sd_meta *sd_checkpoint_meta_at(const sd_checkpoint *c, uint64_t i)
{
    return i < c->n_meta ? &c->meta[i] : NULL;
}

uint64_t sd_checkpoint_count(const sd_checkpoint *c)
{
    return c->n;
}

const sd_tensor *sd_checkpoint_tensor(const sd_checkpoint *c, uint64_t i)
{
    return i < c->n ? &c->tensors[i] : NULL;
}

const sd_tensor *sd_checkpoint_find(const sd_checkpoint *c, const char *name)
{
    uint64_t lo = 0, hi = c->n;
    while (lo < hi) {
        uint64_t mid = (lo + hi) / 2;
        int order = strcmp(c->tensors[c->by_name[mid]].name, name);
        if (order == 0)
            return &c->tensors[c->by_name[mid]];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

sodet_status sd_checkpoint_read(sd_checkpoint *c, const sd_tensor *t, void *to, sodet_err *err)
{
    uint64_t bytes = sd_tensor_bytes(t);
    return bytes ? sd_store_pread(c, to, bytes, c->offsets[t - c->tensors], err) : SODET_OK;
}
