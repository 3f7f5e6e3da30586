/* store/checkpoint.h: named tensors and a table of strings in one file.
 *
 * The file is a safetensors file (8 bytes little-endian header length, a JSON header, the tensors' bytes), so other tools read it.
 * Tensors lie in the order (wider element first, then name), the table is sorted by key; nothing else is in the file: no time, host or
 * path. Equal content therefore means equal bytes. The keys "format" = "sodet/1" and "checksum" belong to this module.
 * Source of the layout: the safetensors format description (github.com/huggingface/safetensors, README, "Format").
 *
 * Writing goes to a temporary file in the same folder, which is fsynced and renamed: at every moment the path holds the old or the new
 * file whole. Tensors are streamed; no second copy of the whole is made.
 *
 * Names are paths of parameters ("backbone/conv1/weight") or whatever the caller calls its other state ("optimizer/momentum/...").
 * All functions: one thread per object at a time. */
#ifndef SD_STORE_CHECKPOINT_H
#define SD_STORE_CHECKPOINT_H

#include "core/base/base.h"

enum {
    SD_F32 = 1,
    SD_F64,
    SD_I32,
    SD_I64,
    SD_U8,
    SD_F16,
    SD_BF16
}; /* the last two: read only, and turned into SD_F32 when loaded into one */
enum { SD_TENSOR_RANK = 8 };
const char *sd_tensor_type_name(uint32_t type); /* "f32" */
uint32_t sd_tensor_type_size(uint32_t type);    /* bytes of an element; 0: no such type */

/* One tensor: row-major, dense. A scalar has rank 0. */
typedef struct sd_tensor {
    const char *name;
    uint32_t type, rank;
    uint64_t dims[SD_TENSOR_RANK];
    void *data; /* see the calls; never written through when saving */
} sd_tensor;
uint64_t sd_tensor_count(const sd_tensor *t); /* elements */
uint64_t sd_tensor_bytes(const sd_tensor *t);

typedef struct sd_meta {
    const char *key, *value; /* UTF-8 */
} sd_meta;

/* ---- writing ---- */
/* Where data is NULL the writer calls fetch, which puts tensor `index` (of the caller's array) into `to`; the tensors come one after
 * another in the file's order. Two tensors of one name, or two keys, are SODET_E_INTERNAL. A full disk is SODET_E_IO with the
 * bytes needed and free; the old file is then still there and the temporary one is gone. */
typedef sodet_status (*sd_fetch)(void *context, uint64_t index, void *to, sodet_err *err);
sodet_status sd_checkpoint_write(const char *path, const sd_tensor *tensors, uint64_t n, const sd_meta *meta, uint64_t n_meta,
                                 sd_fetch fetch, void *context, sodet_err *err);
/* Bytes that sd_checkpoint_write would need for it, and a check of the folder before a long run begins: it exists or can be made, can
 * be written to, and has room for `bytes`. */
uint64_t sd_checkpoint_bytes(const sd_tensor *tensors, uint64_t n, const sd_meta *meta, uint64_t n_meta);
sodet_status sd_checkpoint_probe(const char *folder, uint64_t bytes, sodet_err *err);

/* ---- reading ---- */
typedef struct sd_checkpoint sd_checkpoint;
/* Opens and checks everything: length, header, offsets without gap or overlap, checksum. A safetensors file of another tool (no
 * "format" key) and PyTorch's own files (.pt, .pth; nothing of them is executed) are accepted with `foreign`, else refused with a sentence
 * that says what the file is instead. Names in PyTorch's: the dictionaries' keys, joined by dots. */
enum { SD_CHECKPOINT_OWN = 0, SD_CHECKPOINT_FOREIGN = 1 };
sodet_status sd_checkpoint_open(const char *path, uint32_t flags, sd_checkpoint **out, sodet_err *err);
/* Raw little-endian float32 values and an index: a text file with one line per tensor, `name shape offset count` separated by tabs,
 * shape like 16,3,3,3, offset and count in values; the first line may be the heading. */
sodet_status sd_checkpoint_open_raw(const char *values_path, const char *index_path, sd_checkpoint **out, sodet_err *err);
void sd_checkpoint_close(sd_checkpoint *c); /* accepts NULL */
const char *sd_checkpoint_path(const sd_checkpoint *c);
const char *sd_checkpoint_meta(const sd_checkpoint *c, const char *key); /* NULL: not there; valid until close */
uint64_t sd_checkpoint_meta_count(const sd_checkpoint *c);
const sd_meta *sd_checkpoint_meta_at(const sd_checkpoint *c, uint64_t i);
uint64_t sd_checkpoint_count(const sd_checkpoint *c);
const sd_tensor *sd_checkpoint_tensor(const sd_checkpoint *c, uint64_t i);     /* in the file's order; data is NULL */
const sd_tensor *sd_checkpoint_find(const sd_checkpoint *c, const char *name); /* NULL: not there */
/* The tensor's bytes as they are in the file into `to` (sd_tensor_bytes). t: from one of the two calls above. */
sodet_status sd_checkpoint_read(sd_checkpoint *c, const sd_tensor *t, void *to, sodet_err *err);

/* ---- loading ---- */
/* Where a target's data is NULL, put receives the values: `from` is valid for the call. */
typedef sodet_status (*sd_put)(void *context, uint64_t index, const void *from, sodet_err *err);

/* Every target is in the file with the same type and shape, and the file holds no other tensor whose name begins with `prefix` (NULL:
 * nothing is asked of the others; "": none at all). One sentence names the first that does not fit and how many more there are.
 * Nothing is written before everything is known to fit. */
sodet_status sd_checkpoint_load(sd_checkpoint *c, const sd_tensor *targets, uint64_t n, const char *prefix, sd_put put, void *context,
                                sodet_err *err);

/* A name map, from a text file: `their/name -> our/name`, one a line, `#` begins a comment. A `*` on the left matches any text
 * (shortest first); the stars on the right stand for those of the left, in order. The first line that matches a tensor counts. On
 * the right, after the name: `[transpose]` swaps the two axes of a matrix, `[transpose 3 2 0 1]` makes axis k of ours from that axis
 * of theirs, `[reshape]` takes the values in order into our shape of as many values. `-` as our name leaves a tensor out. */
typedef struct sd_name_map sd_name_map;
sodet_status sd_name_map_read(const char *path, sd_name_map **out, sodet_err *err);
sodet_status sd_name_map_parse(const char *text, const char *where, sd_name_map **out, sodet_err *err); /* where: for messages */
void sd_name_map_free(sd_name_map *map);

/* What a partial load did, line by line: what was taken, and what was not and why. */
enum {
    SD_TAKEN = 1,
    SD_SKIP_SHAPE,   /* both are there, the shapes differ: the target keeps its start */
    SD_SKIP_TYPE,    /* a type that cannot be turned into the target's */
    SD_SKIP_PATTERN, /* the patterns leave it out */
    SD_SKIP_MISSING, /* a target that the file does not have */
    SD_SKIP_UNUSED   /* a tensor of the file that no target wants */
};
typedef struct sd_load_entry {
    uint32_t state;     /* SD_TAKEN ... */
    const char *name;   /* ours; NULL with SD_SKIP_UNUSED */
    const char *source; /* the file's; NULL with SD_SKIP_MISSING */
    const char *why;    /* "[84, 512, 3, 3] in the file, [12, 512, 3, 3] here" */
} sd_load_entry;
typedef struct sd_load_report {
    uint64_t n, taken, skipped; /* skipped: targets that were not taken */
    sd_load_entry *entries;     /* targets in their order, then the file's unused tensors */
    sd_pool strings;
    uint64_t capacity;
} sd_load_report;
void sd_load_report_free(sd_load_report *r);
/* One line per entry (or only what was skipped) appended to t: "taken    head/box/0/weight <- loc.0.weight". */
void sd_load_report_print(const sd_load_report *r, bool only_skipped, sd_text *t);

typedef struct sd_load_rule {
    const char *const *include; /* globs on our names; NULL: all */
    uint64_t n_include;
    const char *const *exclude;
    uint64_t n_exclude;
    const sd_name_map *map; /* NULL: names are equal */
    const char *prefix;     /* tensors of the file that are looked at, and cut off before names are compared; NULL: all */
    bool exact;             /* import: a target that is not taken, patterns apart, is an error */
} sd_load_rule;
/* Takes what fits. If nothing at all fits, SODET_E_INVALID ("nothing in ... fits"): a start from scratch is never silent. The report
 * is filled in any case and freed by the caller. put as above. */
sodet_status sd_checkpoint_load_partial(sd_checkpoint *c, const sd_tensor *targets, uint64_t n, const sd_load_rule *rule, sd_put put,
                                        void *context, sd_load_report *report, sodet_err *err);

/* `*` matches any text, also separators; everything else itself. */
bool sd_glob(const char *pattern, const char *text);

#endif
