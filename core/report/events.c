#include "core/report/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct sd_events {
    FILE *file;
    char *path;
};

enum { HEAD = 12, TAIL = 4 }; /* bytes around a record's */

uint32_t sd_crc32c(const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* A CRC of bytes that hold CRCs is weak; so the stored ones are turned and shifted. */
static uint32_t masked(const void *bytes, uint64_t n)
{
    uint32_t crc = sd_crc32c(bytes, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(sd_text *t, uint64_t v, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        sd_text_append(t, &(unsigned char){(unsigned char)(v >> 8 * i)}, 1);
}

static uint64_t get_little(const unsigned char *p, uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* ---- protobuf ---- */
enum { VARINT = 0, EIGHT = 1, BYTES = 2, FOUR = 5 }; /* wire types */

static void put_varint(sd_text *t, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        sd_text_append(t, &(unsigned char){(unsigned char)(v | 0x80)}, 1);
    sd_text_append(t, &(unsigned char){(unsigned char)v}, 1);
}

static void put_key(sd_text *t, uint32_t field, uint32_t type)
{
    put_varint(t, field << 3 | type);
}

static void put_bytes(sd_text *t, uint32_t field, const void *bytes, uint64_t n)
{
    put_key(t, field, BYTES);
    put_varint(t, n);
    sd_text_append(t, bytes, n);
}

static void put_double(sd_text *t, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_key(t, field, EIGHT);
    put_little(t, bits, 8);
}

static void put_float(sd_text *t, uint32_t field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_key(t, field, FOUR);
    put_little(t, bits, 4);
}

static bool get_varint(const unsigned char **p, const unsigned char *end, uint64_t *v)
{
    *v = 0;
    for (uint32_t shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char b = *(*p)++;
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

/* The step of an event; 0 where it has none, as the first. false: it is no event. */
static bool step_of(const unsigned char *p, uint64_t n, uint64_t *step)
{
    const unsigned char *end = p + n;
    *step = 0;
    while (p < end) {
        uint64_t key, v;
        if (!get_varint(&p, end, &key))
            return false;
        uint64_t skip = (key & 7) == EIGHT ? 8 : (key & 7) == FOUR ? 4 : 0;
        if ((key & 7) == VARINT || (key & 7) == BYTES) {
            if (!get_varint(&p, end, &v))
                return false;
            if (key == (2 << 3 | VARINT))
                *step = v;
            skip = (key & 7) == BYTES ? v : 0;
        } else if (!skip) {
            return false;
        }
        if (skip > (uint64_t)(end - p))
            return false;
        p += skip;
    }
    return true;
}

/* ---- records ---- */
static void put_record(sd_text *t, const sd_text *event)
{
    sd_text head = {0};
    put_little(&head, event->length, 8);
    put_little(&head, masked(head.text ? head.text : "", head.text ? 8 : 0), 4);
    t->failed = t->failed || head.failed || event->failed;
    if (!t->failed) {
        sd_text_append(t, head.text, head.length);
        sd_text_append(t, event->text, event->length);
        put_little(t, masked(event->text, event->length), 4);
    }
    sd_text_free(&head);
}

static void begin_event(sd_text *event)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    put_double(event, 1, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
}

/* The records of bytes[n] that are to stay, as one piece. */
static void keep(const unsigned char *bytes, uint64_t n, uint64_t last, sd_text *kept)
{
    for (uint64_t at = 0; n - at >= HEAD + TAIL;) {
        const unsigned char *p = bytes + at;
        uint64_t size = get_little(p, 8), step;
        if (get_little(p + 8, 4) != masked(p, 8) || size > n - at - HEAD - TAIL ||
            get_little(p + HEAD + size, 4) != masked(p + HEAD, size) || !step_of(p + HEAD, size, &step))
            return; /* what follows a damaged record cannot be found */
        if (step <= last)
            sd_text_append(kept, p, HEAD + size + TAIL);
        at += HEAD + size + TAIL;
    }
}

static sodet_status no_memory(const char *path, sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %s", path);
}

static sodet_status prepare(const char *path, uint64_t last, sodet_err *err)
{
    sd_text kept = {0}, event = {0};
    char *bytes = NULL;
    uint64_t n = 0;
    sodet_status s = sd_path_exists(path) ? sd_file_read(path, 0, &bytes, &n, err) : SODET_OK;
    if (s == SODET_OK && bytes)
        keep((const unsigned char *)bytes, n, last, &kept);
    if (s == SODET_OK && !kept.length) {
        begin_event(&event);
        put_bytes(&event, 3, "brain.Event:2", 13);
        put_record(&kept, &event);
    }
    if (s == SODET_OK)
        s = kept.failed ? no_memory(path, err) : sd_file_write_atomic(path, kept.text, kept.length, err);
    sd_text_free(&event);
    sd_text_free(&kept);
    sd_free(bytes);
    return s;
}

sodet_status sd_events_open(const char *path, uint64_t last, sd_events **out, sodet_err *err)
{
    *out = NULL;
    sd_events *e = sd_alloc(1, sizeof *e);
    sodet_status s = e && (e->path = sd_strdup(path)) ? prepare(path, last, err) : no_memory(path, err);
    if (s == SODET_OK && !(e->file = fopen(path, "abe")))
        s = SODET_FAIL(err, SODET_E_IO, "%s: %s", path, strerror(errno));
    if (s == SODET_OK)
        *out = e;
    else
        sd_events_close(e);
    return s;
}

sodet_status sd_events_add(sd_events *e, uint64_t step, const sd_scalar *scalars, uint64_t n, sodet_err *err)
{
    sd_text event = {0}, summary = {0}, record = {0};
    begin_event(&event);
    put_key(&event, 2, VARINT);
    put_varint(&event, step);
    for (uint64_t i = 0; i < n; i++) {
        sd_text value = {0};
        put_bytes(&value, 1, scalars[i].tag, strlen(scalars[i].tag));
        put_float(&value, 2, (float)scalars[i].value);
        if (!value.failed)
            put_bytes(&summary, 1, value.text, value.length);
        event.failed = event.failed || value.failed;
        sd_text_free(&value);
    }
    if (summary.length)
        put_bytes(&event, 5, summary.text, summary.length);
    event.failed = event.failed || summary.failed;
    put_record(&record, &event);
    sodet_status s = SODET_OK;
    if (record.failed)
        s = no_memory(e->path, err);
    else if (fwrite(record.text, 1, record.length, e->file) != record.length || fflush(e->file) != 0)
        s = sd_fail_write(err, e->path, "writing", 0);
    sd_text_free(&event);
    sd_text_free(&summary);
    sd_text_free(&record);
    return s;
}

void sd_events_close(sd_events *e)
{
    if (!e)
        return;
    if (e->file)
        fclose(e->file);
    sd_free(e->path);
    sd_free(e);
}
