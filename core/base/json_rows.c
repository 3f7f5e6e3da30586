/* base/json_rows.c: a long array by several threads.
 *
 * Where an element begins cannot be told from the middle of a text: "},{" may stand in a string or in an element. So cuts are guessed there,
 * each piece is read as if its guess were right, and a guess is right if the piece before, which began rightly, comes to an element's
 * beginning exactly there. A piece behind a wrong guess, or behind the end of the array, is thrown away. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/parallel.h"

enum { LEAST_PIECE = 128 * 1024, PIECES_EACH = 4, MOST_PIECES = 64, TYPICAL_ROW = 64 };

typedef struct piece {
    sd_json json;     /* its places count from the piece's beginning, and it says nothing: what it meets may be an artefact of the guess */
    const char *stop; /* the next piece's beginning; NULL: this is the last one */
    char *rows;
    uint64_t n, capacity;
    bool stopped, no_memory; /* stopped: at an element's beginning, at or behind `stop` */
} piece;

typedef struct wave {
    piece pieces[MOST_PIECES];
    size_t row_size;
    sd_json_read_row *read;
    void *context;
} wave;

/* The first "{" from `from` on that stands behind "}" and ","; NULL: there is none. */
static const char *guess(const char *from, const char *end)
{
    for (const char *p = from; p < end && (p = memchr(p, '}', (size_t)(end - p)));) {
        p++;
        for (uint32_t commas = 0; p < end; p++) {
            if (*p == '{' && commas == 1)
                return p;
            if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t' && (*p != ',' || ++commas > 1))
                break;
        }
    }
    return NULL;
}

static bool make_room(piece *p, size_t row_size, uint64_t bytes)
{
    if (p->n < p->capacity)
        return true;
    uint64_t fresh = p->capacity ? 2 * p->capacity : bytes / TYPICAL_ROW + 16;
    size_t size;
    if (fresh > SIZE_MAX || __builtin_mul_overflow((size_t)fresh, row_size, &size))
        return false;
    char *rows = p->rows ? realloc(p->rows, size) : sd_room((size_t)fresh, row_size);
    if (!rows)
        return false;
    p->rows = rows;
    p->capacity = fresh;
    return true;
}

static void read_piece(void *context, uint32_t worker, uint64_t item)
{
    wave *w = context;
    piece *p = &w->pieces[item];
    uint64_t bytes = (uint64_t)((p->stop ? p->stop : p->json.end) - p->json.at);
    (void)worker;
    while (sd_json_item(&p->json)) {
        p->stopped = p->stop && p->json.at >= p->stop;
        p->no_memory = !p->stopped && !make_room(p, w->row_size, bytes);
        if (p->stopped || p->no_memory)
            return;
        char *row = p->rows + p->n++ * w->row_size;
        memset(row, 0, w->row_size);
        w->read(&p->json, w->context, row);
    }
}

/* Pieces from j->at, where an element begins or the array ends, over the next `bytes`. */
static uint32_t cut(const sd_json *j, wave *w, uint32_t most, uint64_t bytes)
{
    bool all = bytes >= (uint64_t)(j->end - j->at);
    bytes = all ? (uint64_t)(j->end - j->at) : bytes;
    most = bytes / LEAST_PIECE < most ? (uint32_t)(bytes / LEAST_PIECE) + (bytes < LEAST_PIECE) : most;
    uint32_t n = 0;
    for (const char *at = j->at; at && n < most; n++) {
        const char *wanted = j->at + bytes / most * (n + 1), *next = NULL;
        if (n + 1 < most || !all)
            next = guess(wanted > at ? wanted : at, j->end);
        piece *p = &w->pieces[n];
        *p = (piece){.json = *j, .stop = next};
        p->json.at = p->json.begin = at;
        p->json.err = NULL;
        p->json.fresh = true; /* no comma is wanted before its first element */
        p->json.unescaped = (sd_text){0};
        at = next;
    }
    return n;
}

static void no_memory(sd_json *j, uint64_t n)
{
    j->status = SODET_FAIL(j->err, SODET_E_MEMORY, "%s: no memory for %llu entries", j->name, (unsigned long long)n);
    j->at = j->end;
}

static void keep(sd_json *j, piece *p, sd_json_rows *out)
{
    if (p->no_memory || sd_grow(&out->pieces, &out->capacity, out->n_pieces + 1, sizeof *out->pieces, NULL) != SODET_OK) {
        no_memory(j, out->n + p->n);
        return;
    }
    out->pieces[out->n_pieces++] = (sd_json_piece){.rows = p->rows, .n = p->n, .first = out->n};
    out->n += p->n;
    p->rows = NULL;
}

/* From j->at, where a piece that failed begins rightly: the same error, in words and with its place in the text. */
static void fail_again(sd_json *j, const wave *w, uint64_t rows_before)
{
    void *row = sd_alloc(1, w->row_size);
    j->fresh = true;
    while (row && sd_json_item(j)) {
        memset(row, 0, w->row_size);
        w->read(j, w->context, row);
    }
    sd_free(row);
    if (j->status == SODET_OK)
        no_memory(j, rows_before);
}

/* Takes over what was read, as far as the guesses were right. True: the array goes on at j->at. */
static bool take(sd_json *j, wave *w, uint32_t n, sd_json_rows *out)
{
    for (uint32_t i = 0; i < n; i++) {
        piece *p = &w->pieces[i];
        if (p->json.status != SODET_OK)
            fail_again(j, w, out->n);
        else if (p->n || p->no_memory)
            keep(j, p, out);
        if (j->status != SODET_OK)
            return false;
        j->at = p->json.at;
        j->depth = p->json.depth;
        j->fresh = p->stopped;
        if (!p->stopped)
            return false;
        if (j->at != p->stop)
            return true;
    }
    return true;
}

void sd_json_read_rows(sd_json *j, uint32_t n_threads, size_t row_size, sd_json_read_row *read, void *context, sd_json_rows *out)
{
    wave w = {.row_size = row_size, .read = read, .context = context};
    uint32_t most = n_threads <= 1 ? 1 : n_threads < MOST_PIECES / PIECES_EACH ? n_threads * PIECES_EACH : MOST_PIECES;
    sd_json_enter(j, '[');
    /* Waves that grow: what lies behind the end of the array is read in vain, and that is at most as much as the array. */
    bool on = j->status == SODET_OK;
    for (uint64_t bytes = n_threads <= 1 ? UINT64_MAX : (uint64_t)LEAST_PIECE * most; on;
         bytes = bytes > UINT64_MAX / 2 ? bytes : 2 * bytes) {
        uint32_t n = cut(j, &w, most, bytes);
        sd_parallel(n_threads, n, read_piece, &w);
        on = take(j, &w, n, out);
        for (uint32_t i = 0; i < n; i++) {
            free(w.pieces[i].rows);
            sd_text_free(&w.pieces[i].json.unescaped);
        }
    }
}

void sd_json_rows_free(sd_json_rows *r)
{
    for (uint64_t i = 0; i < r->n_pieces; i++)
        free(r->pieces[i].rows);
    sd_free(r->pieces);
    *r = (sd_json_rows){.n = 0};
}
