/* base/base.h: what every folder of core/ may use: memory, strings, files, hashing, random numbers, time, log. */
#ifndef SD_BASE_H
#define SD_BASE_H

#include <stdarg.h>
#include <stdbool.h>

#include "sodet/base.h"
#include "sodet/data.h"

/* ---- memory ---- */
/* Zeroed; NULL when memory ran out or n * size overflows. Freed by sd_free. */
void *sd_alloc(size_t n, size_t size);
/* n elements that are not cleared; many of them in huge pages, since the faults of small ones take longer than reading a file into them
 * (measured: 3 ns a byte against 0.5). */
void *sd_room(size_t n, size_t size);
void sd_free(void *p);
char *sd_strdup(const char *s);
/* Grows *items (elements of `size` bytes) so that `need` fit; new bytes are zero; capacity at least doubles. */
sodet_status sd_grow(void *items, uint64_t *capacity, uint64_t need, size_t size, sodet_err *err);

/* Many small things that die together: strings, attribute structs. Zero-initialise; NULL when memory ran out. */
typedef struct sd_pool {
    struct sd_pool_block *blocks;
} sd_pool;
void *sd_pool_alloc(sd_pool *pool, size_t bytes); /* zeroed, aligned to 16 */
char *sd_pool_strdup(sd_pool *pool, const char *s);
char *sd_pool_printf(sd_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sd_pool_clear(sd_pool *pool);

/* ---- text ---- */
/* A growing string. Zero-initialise; text is never NULL after the first append; out of memory sets `failed`. */
typedef struct sd_text {
    char *text;
    uint64_t length, capacity;
    bool failed;
} sd_text;
void sd_text_printf(sd_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sd_text_append(sd_text *t, const void *bytes, uint64_t n);
void sd_text_join(sd_text *t, const sd_text *part); /* a part that failed makes the whole fail */
/* A field of a CSV file (RFC 4180): quoted where a comma, a quote or a line's end would mislead, or where blanks at an end would be lost. */
void sd_text_csv(sd_text *t, const char *field);
void sd_text_free(sd_text *t);
/* Bytes of the UTF-8 character at `text` and its number; 0 if there is none (overlong, surrogate, above U+10FFFF, cut). */
uint32_t sd_utf8_character(const char *text, uint32_t *code);
/* The first byte that is no UTF-8; NULL if there is none. */
const char *sd_not_utf8(const char *text);
/* The candidate closest to `word` (edit distance at most a third of its length, case apart), or NULL. For "did you mean". */
const char *sd_nearest(const char *word, const char *const *candidates, uint64_t n);
/* Strict numbers: the whole text, base 10, finite, in range; no leading or trailing blanks. */
bool sd_parse_double(const char *text, double *out);
bool sd_parse_int64(const char *text, int64_t *out);
bool sd_parse_uint64(const char *text, uint64_t *out);

/* ---- errors ---- */
/* Puts "<format>: " in front of the text of an error that is on its way up, unless it begins so already; returns its code. */
sodet_status sd_fail_in(sodet_err *err, sodet_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- files ---- */
/* The whole file, with a NUL behind it; refuses directories, named pipes and more than `limit` bytes (0: no limit). */
sodet_status sd_file_read(const char *path, uint64_t limit, char **bytes, uint64_t *n, sodet_err *err);
/* What errno says about a file that is being written: full disks with what is needed and free and what to do. need: bytes of the file
 * that is written whole or not at all; 0: it is written bit by bit. */
sodet_status sd_fail_write(sodet_err *err, const char *path, const char *what, uint64_t need);
/* By another file and a rename: the path holds the old or the new file whole. A device is written into; pipes, sockets, disks are refused. */
sodet_status sd_file_write_atomic(const char *path, const void *bytes, uint64_t n, sodet_err *err);
/* The same without waiting for the disk: for the many small files of a folder that is made anew and is worthless in part. */
sodet_status sd_file_write(const char *path, const void *bytes, uint64_t n, sodet_err *err);
/* A rename is durable only when its folder is. Some file systems cannot sync a folder; that is not an error. */
void sd_sync_folder_of(const char *path);
sodet_status sd_make_folders(const char *path, sodet_err *err);          /* mkdir -p */
char *sd_path_join(sd_pool *pool, const char *folder, const char *name); /* name itself if it is absolute */
/* Where libsodet.so lies ("": unknown), and where the recipes were installed: seen from the library, so that an installation may lie
 * anywhere, else as it was configured. */
const char *sd_library_folder(void);
const char *sd_recipe_folder(void);
bool sd_path_exists(const char *path);

/* ---- hashing and random numbers ---- */
uint64_t sd_fnv1a64(const void *bytes, uint64_t n, uint64_t h); /* h: 0xcbf29ce484222325 to begin with */
#define SD_FNV_START 0xcbf29ce484222325ull
uint64_t sd_mix64(uint64_t x); /* splitmix64's output function, for state x */
/* Counter-based: value i of a stream is mix64(key ^ mix64(i)); streams of different (seed, epoch, sample, link) are independent. */
struct sodet_stream {
    uint64_t key, counter;
};
sodet_stream sd_stream(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t link);
uint64_t sd_stream_bits(sodet_stream *r);
double sd_stream_normal(sodet_stream *r);                      /* mean 0, deviation 1; uses two values */
void sd_shuffle(uint64_t *items, uint64_t n, sodet_stream *r); /* Fisher-Yates */

/* ---- time and log ---- */
double sd_now(void); /* seconds, monotonic */
enum { SD_LOG_ERROR, SD_LOG_WARN, SD_LOG_INFO, SD_LOG_DEBUG };
void sd_log_level(int level); /* messages above it are dropped; INFO to begin with */
void sd_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3))); /* one line on stderr */

#endif
