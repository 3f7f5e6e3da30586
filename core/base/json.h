/* base/json.h: a strict JSON pull parser for large files (COCO annotations, result lists). It makes no tree: the caller walks the text
 * and takes what it knows; everything else is skipped structurally, which costs a few instructions per 16 bytes.
 *
 *     sd_json j;
 *     sd_json_open(&j, "instances.json", text, n, err);
 *     for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
 *         if (sd_json_is(key, "score"))
 *             score = sd_json_double(&j);
 *         else
 *             sd_json_skip(&j);
 *     }
 *     status = sd_json_close(&j);
 *
 * Errors are sticky: the first one goes to *err with name, line and byte; afterwards every loop ends and every read gives zero.
 * RFC 8259 without extensions: no NaN, comments, trailing commas or control characters in strings; at most 64 levels below each other.
 * Inside skipped values brackets and strings are checked, numbers and words are not. Numbers are read exactly (correctly rounded). */
#ifndef SD_JSON_H
#define SD_JSON_H

#include <string.h>

#include "core/base/base.h"

#define SD_JSON_DEPTH 64

typedef struct sd_json {
    const char *name; /* of the file, for messages */
    const char *begin, *at, *end;
    sodet_err *err;
    sodet_status status;
    uint32_t depth;
    char open[SD_JSON_DEPTH]; /* '{' or '[' of each level */
    bool fresh;               /* nothing has been read since the last bracket was opened */
    sd_text unescaped;        /* the last string, where it held escapes */
} sd_json;

/* A string: not terminated; valid until the next string is read (or as long as the text, if it held no escape). */
typedef struct sd_json_string {
    const char *text;
    uint64_t n;
} sd_json_string;

/* text[n] must be 0, as sd_file_read leaves it. `text` and `name` stay the caller's and must outlive the parser. */
void sd_json_open(sd_json *j, const char *name, const char *text, uint64_t n, sodet_err *err);
/* Refuses anything but blanks behind the value, frees what the parser holds, returns the status. */
sodet_status sd_json_close(sd_json *j);

/* First character of the value that comes next: one of { [ " t f n, '0' for a number, 0 at the end or after an error. */
char sd_json_peek(sd_json *j);
void sd_json_enter(sd_json *j, char bracket);      /* '{' or '[' must come next */
bool sd_json_key(sd_json *j, sd_json_string *key); /* next member of the object that is open; false: it has been closed */
bool sd_json_item(sd_json *j);                     /* next element of the array that is open; false: it has been closed */
double sd_json_double(sd_json *j);
int64_t sd_json_int64(sd_json *j); /* 12, 12.0 and 1.2e1 are integers; 1.5 is an error */
bool sd_json_bool(sd_json *j);     /* true, false, and 1 and 0 as COCO's iscrowd has them */
sd_json_string sd_json_text(sd_json *j);
bool sd_json_null(sd_json *j); /* takes a null if one comes next */
void sd_json_skip(sd_json *j); /* any value */

static inline bool sd_json_is(sd_json_string s, const char *text)
{
    size_t n = strlen(text); /* known to the compiler, which then compares words */
    return n == s.n && memcmp(s.text, text, n) == 0;
}
/* Terminated; out of memory, and bytes that are no UTF-8, become the parser's error. */
char *sd_json_copy(sd_json *j, sd_pool *pool, sd_json_string s);
/* Raises the caller's own error at the present place ("..., line 3, byte 512: <text>"). */
void sd_json_fail(sd_json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- long arrays ---- */
/* The array that comes next, one element at a time into a row of row_size bytes that is zero before. A long one is cut into pieces that
 * several threads read; rows and errors are those that one thread would have found. `read` has the parser it is handed and its row to
 * itself, the context not. Pieces hold at least one row each and stand in the order of the text. */
typedef void sd_json_read_row(sd_json *j, void *context, void *row);
typedef struct sd_json_piece {
    void *rows;
    uint64_t n, first; /* rows, and how many the pieces before have */
} sd_json_piece;
typedef struct sd_json_rows { /* zero-initialise; several arrays append to one another */
    sd_json_piece *pieces;
    uint64_t n_pieces, capacity, n; /* n: rows in all */
} sd_json_rows;
void sd_json_read_rows(sd_json *j, uint32_t n_threads, size_t row_size, sd_json_read_row *read, void *context, sd_json_rows *out);
void sd_json_rows_free(sd_json_rows *r);

/* ---- writing ---- */
/* A JSON string with its quotes. A byte that is no UTF-8 (names of files may hold any) becomes the four characters \xNN. */
void sd_json_write_string(sd_text *out, const char *text);
/* A JSON number that reads back as the same double; null if it is not finite. */
void sd_json_write_double(sd_text *out, double value);

#endif
