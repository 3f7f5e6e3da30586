/* PyTorch's files as checkpoints: the zip archives of torch.save (1.6 and later), and what it wrote before, one pickle behind another and
 * then the values. Both keep the values as they are, so that tensors are read in place like those of a safetensors file.
 * Sources: torch/serialization.py (_save, _legacy_save), torch/_utils.py (_rebuild_tensor_v2), the ZIP application note (4.3, 4.5.3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/store/pickle.h"
#include "core/store/store.h"

enum { PICKLE_LIMIT = 16 << 20, NAME_LIMIT = 2000, LEVELS = 32, TAIL = 22 + 65535 };

/* A storage: where the values of one or several tensors lie. */
typedef struct part {
    const char *key;
    uint64_t offset, bytes;
} part;

typedef struct torch_file {
    sd_checkpoint *c;
    uint64_t size; /* of the file */
    sd_pool pool;
    part *parts;
    uint64_t n_parts, room;
    uint32_t walks;
    char name[NAME_LIMIT]; /* of the value that a walk has come to */
    sodet_err *err;
} torch_file;

static sodet_status damaged(const torch_file *t, const char *what)
{
    return SODET_FAIL(t->err, SODET_E_INVALID, "%s: damaged, or not what torch.save writes: %s", t->c->path, what);
}

static sodet_status no_memory(const torch_file *t)
{
    return SODET_FAIL(t->err, SODET_E_MEMORY, "%s: no memory to read it", t->c->path);
}

static uint64_t le(const unsigned char *p, uint32_t n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static sodet_status read_at(const torch_file *t, uint64_t offset, uint64_t n, unsigned char **out)
{
    if (offset > t->size || n > t->size - offset)
        return damaged(t, "a part of it lies behind its end");
    if (!*out && !(*out = sd_alloc(n + 1, 1)))
        return no_memory(t);
    return sd_store_pread(t->c, *out, n, offset, t->err);
}

static sodet_status add_part(torch_file *t, const char *key, uint64_t n_key, uint64_t offset, uint64_t bytes)
{
    char *copy = sd_pool_alloc(&t->pool, n_key + 1);
    if (!copy || sd_grow(&t->parts, &t->room, t->n_parts + 1, sizeof *t->parts, t->err) != SODET_OK)
        return no_memory(t);
    memcpy(copy, key, n_key);
    copy[n_key] = 0;
    t->parts[t->n_parts++] = (part){copy, offset, bytes};
    return SODET_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const part *)a)->key, ((const part *)b)->key);
}

static const part *find_part(const part *parts, uint64_t n, const char *key)
{
    const part wanted = {.key = key};
    return n ? bsearch(&wanted, parts, n, sizeof *parts, by_key) : NULL;
}

/* ---- tensors ---- */
static uint32_t type_of(const char *storage)
{
    static const struct {
        const char *name;
        uint32_t type;
    } types[] = {{"torch FloatStorage", SD_F32},     {"torch DoubleStorage", SD_F64}, {"torch HalfStorage", SD_F16},
                 {"torch BFloat16Storage", SD_BF16}, {"torch IntStorage", SD_I32},    {"torch LongStorage", SD_I64},
                 {"torch ByteStorage", SD_U8},       {"torch BoolStorage", SD_U8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, storage) == 0)
            return types[i].type;
    return 0;
}

static bool is_call(const sd_pickle *p, const char *of)
{
    return p->kind == SD_PICKLE_CALL && sd_pickle_is(p->items[0], SD_PICKLE_GLOBAL, of) && p->items[1]->kind == SD_PICKLE_LIST;
}

static bool is_count(const sd_pickle *p)
{
    return p->kind == SD_PICKLE_INT && p->number >= 0 && p->number < INT64_MAX / 16;
}

/* ("storage", type, key, place, number of values, ...) */
static const sd_pickle *storage_of(const sd_pickle *outer)
{
    if (outer->kind != SD_PICKLE_OUTER || outer->items[0]->kind != SD_PICKLE_LIST)
        return NULL;
    const sd_pickle *id = outer->items[0];
    return id->n >= 5 && sd_pickle_is(id->items[0], SD_PICKLE_TEXT, "storage") && id->items[1]->kind == SD_PICKLE_GLOBAL &&
                   id->items[2]->kind == SD_PICKLE_TEXT
               ? id
               : NULL;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, ...), all counted in values. */
static sodet_status add_tensor(torch_file *t, const sd_pickle *a)
{
    const sd_pickle *id = a->n >= 4 ? storage_of(a->items[0]) : NULL;
    if (!id || !is_count(a->items[1]) || a->items[2]->kind != SD_PICKLE_LIST || a->items[3]->kind != SD_PICKLE_LIST ||
        a->items[2]->n != a->items[3]->n)
        return damaged(t, "a tensor is described otherwise");
    const sd_pickle *size = a->items[2], *stride = a->items[3];
    sd_tensor out = {.name = t->name, .type = type_of(id->items[1]->text), .rank = (uint32_t)size->n};
    if (!out.type)
        return SODET_FAIL(t->err, SODET_E_UNSUPPORTED, "%s: tensor \"%.200s\" is a %.60s, which sodet does not read", t->c->path, t->name,
                          id->items[1]->text);
    if (size->n > SD_TENSOR_RANK)
        return damaged(t, "a tensor has more than 8 axes");
    uint64_t dense = 1;
    bool in_order = true;
    for (uint64_t i = size->n; i-- > 0;) {
        if (!is_count(size->items[i]) || !is_count(stride->items[i]))
            return damaged(t, "a tensor's size is no number");
        out.dims[i] = (uint64_t)size->items[i]->number;
        in_order = in_order && (out.dims[i] <= 1 || (uint64_t)stride->items[i]->number == dense);
        if (out.dims[i] && dense > (UINT64_MAX >> 8) / out.dims[i])
            return damaged(t, "a tensor is larger than any file");
        dense *= out.dims[i] ? out.dims[i] : 1;
    }
    if (!in_order && sd_tensor_count(&out) > 0)
        return SODET_FAIL(t->err, SODET_E_UNSUPPORTED,
                          "%s: the values of tensor \"%.200s\" are not in the order of its axes (channels_last, or a view); save its "
                          ".contiguous()",
                          t->c->path, t->name);
    const part *from = find_part(t->parts, t->n_parts, id->items[2]->text);
    uint64_t width = sd_tensor_type_size(out.type), offset = (uint64_t)a->items[1]->number * width, bytes = sd_tensor_bytes(&out);
    if (!from || offset > from->bytes || bytes > from->bytes - offset)
        return SODET_FAIL(t->err, SODET_E_INVALID, "%s: damaged: the values of tensor \"%.200s\" are not in it", t->c->path, t->name);
    return sd_store_add(t->c, &out, from->offset + offset, t->err);
}

/* Every tensor below p: its arguments are visited. Names are the keys on the way, joined by dots; a value is met once in a walk. */
typedef sodet_status (*visitor)(torch_file *t, const sd_pickle *arguments);
static sodet_status walk(torch_file *t, sd_pickle *p, visitor visit, size_t length, uint32_t level)
{
    if (is_call(p, "torch._utils _rebuild_parameter") && p->items[1]->n >= 1)
        p = p->items[1]->items[0];
    if (is_call(p, "torch._utils _rebuild_tensor_v2"))
        return visit(t, p->items[1]);
    bool dict = p->kind == SD_PICKLE_DICT;
    if ((!dict && p->kind != SD_PICKLE_LIST) || p->seen == t->walks || level == LEVELS)
        return SODET_OK;
    p->seen = t->walks;
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < p->n && s == SODET_OK; i += dict ? 2 : 1) {
        const sd_pickle *key = dict ? p->items[i] : NULL;
        const char *dot = length ? "." : "";
        int more;
        if (dict && key->kind == SD_PICKLE_TEXT)
            more = snprintf(t->name + length, sizeof t->name - length, "%s%s", dot, key->text);
        else
            more = snprintf(t->name + length, sizeof t->name - length, "%s%lld", dot,
                            dict && key->kind == SD_PICKLE_INT ? (long long)key->number : (long long)i);
        if (more < 0 || (size_t)more >= sizeof t->name - length)
            return damaged(t, "a name is longer than 2000 bytes");
        s = walk(t, p->items[dict ? i + 1 : i], visit, length + (size_t)more, level + 1);
    }
    return s;
}

static sodet_status add_tensors(torch_file *t, sd_pickle *root)
{
    if (t->n_parts > 1)
        qsort(t->parts, t->n_parts, sizeof *t->parts, by_key);
    t->walks++;
    sodet_status s = walk(t, root, add_tensor, 0, 0);
    if (s == SODET_OK && t->c->n == 0)
        s = SODET_FAIL(t->err, SODET_E_INVALID, "%s: holds no tensors under names; if it is a whole module, save its state_dict()",
                       t->c->path);
    return s;
}

/* ---- zip ---- */
typedef struct folder { /* the archive's own table */
    uint64_t entries, offset, bytes;
} folder;

static sodet_status find_folder(torch_file *t, folder *out)
{
    uint64_t n = t->size < TAIL ? t->size : TAIL, at = n;
    unsigned char *tail = NULL, locator[20 + 1], end[56 + 1], *p = locator, *q = end;
    sodet_status s = read_at(t, t->size - n, n, &tail);
    while (s == SODET_OK && at >= 22 && memcmp(tail + at - 22, "PK\5\6", 4) != 0)
        at--;
    if (s == SODET_OK && at < 22)
        s = damaged(t, "the archive's table is missing; the file may be cut off");
    if (s == SODET_OK)
        *out = (folder){le(tail + at - 12, 2), le(tail + at - 6, 4), le(tail + at - 10, 4)};
    sd_free(tail);
    if (s != SODET_OK || (out->entries != 0xffff && out->offset != UINT32_MAX && out->bytes != UINT32_MAX))
        return s;
    uint64_t place = t->size - n + at - 22; /* a large archive: its numbers stand in a record of their own */
    s = place < 20 ? damaged(t, "the archive's table is missing") : read_at(t, place - 20, 20, &p);
    if (s == SODET_OK && memcmp(locator, "PK\6\7", 4) != 0)
        s = damaged(t, "the archive's table is missing");
    if (s == SODET_OK)
        s = read_at(t, le(locator + 8, 8), 56, &q);
    if (s == SODET_OK && memcmp(end, "PK\6\6", 4) != 0)
        s = damaged(t, "the archive's table is missing");
    if (s == SODET_OK)
        *out = (folder){le(end + 32, 8), le(end + 48, 8), le(end + 40, 8)};
    return s;
}

/* The 64-bit value of an entry's extra fields that stands for one of 32 bits that is all ones. */
static uint64_t wide(const unsigned char *extra, uint64_t n, uint64_t narrow, uint32_t *index)
{
    if (narrow != UINT32_MAX)
        return narrow;
    for (uint64_t at = 0; at + 4 <= n; at += 4 + le(extra + at + 2, 2))
        if (le(extra + at, 2) == 1 && at + 4 + 8 * (uint64_t)(*index + 1) <= n)
            return le(extra + at + 4 + 8 * (*index)++, 8);
    return UINT64_MAX;
}

/* <name>/data.pkl and <name>/data/<key>; other entries do not matter here. */
static sodet_status add_entry(torch_file *t, const unsigned char *e, const char *name, uint64_t n_name, part *pickle)
{
    const unsigned char *extra = e + 46 + n_name;
    uint64_t n_extra = le(e + 30, 2);
    uint32_t index = 0;
    uint64_t bytes = wide(extra, n_extra, le(e + 24, 4), &index), packed = wide(extra, n_extra, le(e + 20, 4), &index),
             local = wide(extra, n_extra, le(e + 42, 4), &index);
    const char *slash = memchr(name, '/', n_name);
    uint64_t n = slash ? n_name - (uint64_t)(slash + 1 - name) : 0;
    bool is_pickle = n == 8 && memcmp(slash + 1, "data.pkl", 8) == 0, is_part = n > 5 && memcmp(slash + 1, "data/", 5) == 0;
    if (!is_pickle && !is_part)
        return SODET_OK;
    if (le(e + 10, 2) != 0 || packed != bytes)
        return damaged(t, "it is compressed, as a zip program does; unpack it and save it by torch.save");
    unsigned char head[30 + 1], *p = head;
    sodet_status s = read_at(t, local, 30, &p);
    if (s != SODET_OK)
        return s;
    uint64_t offset = local + 30 + le(head + 26, 2) + le(head + 28, 2);
    if (memcmp(head, "PK\3\4", 4) != 0 || offset > t->size || bytes > t->size - offset)
        return damaged(t, "an entry of the archive is not where its table says");
    if (is_part)
        return add_part(t, slash + 6, n - 5, offset, bytes);
    *pickle = (part){"data.pkl", offset, bytes};
    return SODET_OK;
}

static sodet_status read_zip(torch_file *t)
{
    folder f;
    part pickle = {0};
    unsigned char *table = NULL, *bytes = NULL;
    sodet_status s = find_folder(t, &f);
    if (s == SODET_OK)
        s = read_at(t, f.offset, f.bytes, &table);
    for (uint64_t i = 0, at = 0; i < f.entries && s == SODET_OK; i++) {
        uint64_t n_name = at + 46 <= f.bytes ? le(table + at + 28, 2) : 0, n = at + 46 <= f.bytes ? le(table + at + 30, 2) : 0;
        if (at + 46 + n_name + n > f.bytes || memcmp(table + at, "PK\1\2", 4) != 0)
            s = damaged(t, "the archive's table is cut off");
        else
            s = add_entry(t, table + at, (const char *)table + at + 46, n_name, &pickle);
        if (s == SODET_OK)
            at += 46 + n_name + n + le(table + at + 32, 2);
    }
    sd_free(table);
    if (s == SODET_OK && !pickle.key)
        s = damaged(t, "a zip archive without data.pkl");
    if (s == SODET_OK && pickle.bytes > PICKLE_LIMIT)
        s = damaged(t, "its data.pkl is larger than 16 MiB");
    if (s == SODET_OK)
        s = read_at(t, pickle.offset, pickle.bytes, &bytes);
    sd_pickle *root;
    uint64_t used;
    if (s == SODET_OK)
        s = sd_pickle_read(&t->pool, t->c->path, bytes, pickle.bytes, &used, &root, t->err);
    if (s == SODET_OK)
        s = add_tensors(t, root);
    sd_free(bytes);
    return s;
}

/* ---- before 1.6 ---- */
/* A number of 80 bits, alone in the first pickle. */
static const unsigned char old_magic[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

static sodet_status add_width(torch_file *t, const sd_pickle *a)
{
    const sd_pickle *id = a->n ? storage_of(a->items[0]) : NULL;
    return id ? add_part(t, id->items[2]->text, id->items[2]->n, 0, sd_tensor_type_size(type_of(id->items[1]->text)))
              : damaged(t, "a tensor is described otherwise");
}

/* The storages follow each other from `at` in the order of the keys, each behind the number of its values. */
static sodet_status place_storages(torch_file *t, const sd_pickle *keys, uint64_t at)
{
    part *widths = t->parts; /* add_width's: `bytes` is that of one value; the storages themselves take their place */
    uint64_t n_widths = t->n_parts;
    t->parts = NULL;
    t->n_parts = t->room = 0;
    if (n_widths > 1)
        qsort(widths, n_widths, sizeof *widths, by_key);
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < keys->n && s == SODET_OK; i++) {
        unsigned char count[8 + 1], *p = count;
        const part *width = find_part(widths, n_widths, keys->items[i]->text);
        if (!width || !width->bytes)
            s = SODET_FAIL(t->err, SODET_E_UNSUPPORTED, "%s: its storage \"%.60s\" is of a type that sodet does not read", t->c->path,
                           keys->items[i]->text);
        if (s == SODET_OK)
            s = read_at(t, at, 8, &p);
        uint64_t n = s == SODET_OK ? le(count, 8) : 0;
        at += 8;
        if (s == SODET_OK && n > (t->size - at) / width->bytes)
            s = damaged(t, "it is cut off");
        if (s == SODET_OK)
            s = add_part(t, keys->items[i]->text, keys->items[i]->n, at, n * width->bytes);
        at += s == SODET_OK ? n * width->bytes : 0;
    }
    sd_free(widths);
    return s;
}

/* Five pickles: the magic number, the protocol, the machine, what was saved, the storages' keys. Where they end is seen by reading. */
static sodet_status read_pickles(torch_file *t, uint64_t window, bool *more)
{
    unsigned char *bytes = NULL;
    sd_pickle *p[5] = {NULL};
    uint64_t at = 0, used;
    sodet_status s = read_at(t, 0, window, &bytes);
    *more = false;
    for (uint32_t i = 0; i < 5 && s == SODET_OK; i++, at += used) {
        s = sd_pickle_read(&t->pool, t->c->path, bytes + at, window - at, &used, &p[i], t->err);
        *more = s == SODET_E_INVALID && used == window - at;
    }
    sd_free(bytes);
    if (s == SODET_OK && p[4]->kind != SD_PICKLE_LIST)
        s = damaged(t, "the list of its storages is missing");
    t->walks++;
    if (s == SODET_OK)
        s = walk(t, p[3], add_width, 0, 0);
    if (s == SODET_OK)
        s = place_storages(t, p[4], at);
    return s == SODET_OK ? add_tensors(t, p[3]) : s;
}

static sodet_status read_old(torch_file *t)
{
    for (uint64_t window = 1 << 18;; window *= 4) {
        bool more;
        window = window < t->size ? window : t->size;
        sodet_status s = read_pickles(t, window, &more);
        if (s == SODET_OK || !more || window == t->size || window > PICKLE_LIMIT)
            return s;
        sd_pool_clear(&t->pool);
        t->n_parts = 0;
        *t->err = (sodet_err)SODET_ERR_INIT;
    }
}

bool sd_store_is_torch(const unsigned char *begin, uint64_t n)
{
    return (n >= 4 && memcmp(begin, "PK\3\4", 4) == 0) || (n >= sizeof old_magic && memcmp(begin, old_magic, sizeof old_magic) == 0);
}

sodet_status sd_store_read_torch(sd_checkpoint *c, uint64_t size, const unsigned char *begin, sodet_err *err)
{
    sodet_err local = SODET_ERR_INIT;
    torch_file *t = sd_alloc(1, sizeof *t);
    if (!t)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to open it", c->path);
    t->c = c;
    t->size = size;
    t->err = &local;
    sodet_status s = *begin == 'P' ? read_zip(t) : read_old(t);
    if (s == SODET_OK)
        s = sd_store_index(c, &local);
    sd_pool_clear(&t->pool);
    sd_free(t->parts);
    sd_free(t);
    return s == SODET_OK ? s : SODET_FAIL(err, s, "%s", local.text);
}
