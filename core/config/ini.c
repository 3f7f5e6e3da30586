#include "core/config/ini.h"

#include <errno.h>
#include <iniparser.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONGEST = 1000 }; /* iniparser's buffer holds 1024 bytes, line end included, and a longer line fails the whole file */

typedef struct scan {
    sd_pool *pool;
    const char *name;
    sodet_err *err;
    sd_ini_entry *entries;
    uint64_t n, capacity;
    const char *section;
    int line;
    sd_text clean; /* what iniparser is given: the same lines without comments */
} scan;

#define REFUSE(s, ...) refuse_line((s), __LINE__, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static sodet_status refuse_line(scan *s, int source, const char *format, ...)
{
    char text[480];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return sodet_fail(s->err, SODET_E_INVALID, __FILE__, source, "%s:%d: %s", s->name, s->line, text);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(char **text)
{
    while (blank(**text))
        (*text)++;
    size_t n = strlen(*text);
    while (n > 0 && blank((*text)[n - 1]))
        n--;
    (*text)[n] = '\0';
}

/* Only blanks, or a comment. */
static bool only_comment(const char *p)
{
    p += strspn(p, " \t");
    return *p == '\0' || *p == ';' || *p == '#';
}

static sodet_status check_name(scan *s, const char *what, const char *name)
{
    char small[128];
    size_t n = strlen(name);
    if (n == 0)
        return REFUSE(s, "the %s has no name", what);
    if (n >= sizeof small - 1)
        return REFUSE(s, "%.40s...: the name of a %s has at most %zu characters", name, what, sizeof small - 2);
    for (size_t i = 0; i <= n; i++)
        small[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    if (strcmp(small, name) != 0)
        return REFUSE(s, "%s: names of sections and keys are in lower case, write %s", name, small);
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.");
    if (name[good] != '\0')
        return REFUSE(s, "%s: '%c' cannot stand in the name of a %s; letters, digits and _ can%s", name, name[good], what,
                      name[good] == ' ' ? ", and one line holds one name" : "");
    return SODET_OK;
}

static sodet_status add(scan *s, const char *key, const char *value)
{
    if (sd_grow(&s->entries, &s->capacity, s->n + 1, sizeof *s->entries, s->err) != SODET_OK)
        return SODET_E_MEMORY;
    sd_ini_entry e = {s->section, sd_pool_strdup(s->pool, key), sd_pool_strdup(s->pool, value), s->line};
    if ((key && !e.key) || (value && !e.value))
        return SODET_FAIL(s->err, SODET_E_MEMORY, "%s: out of memory", s->name);
    s->entries[s->n++] = e;
    return SODET_OK;
}

static sodet_status scan_section(scan *s, char *text)
{
    char *close = strchr(text, ']');
    if (!close)
        return REFUSE(s, "%s: no ] closes the section's name", text);
    if (!only_comment(close + 1))
        return REFUSE(s, "%s: a section's name has its line for itself; keys go on the lines below", text);
    *close = '\0';
    char *name = text + 1;
    trim(&name);
    sodet_status status = check_name(s, "section", name);
    if (status != SODET_OK)
        return status;
    for (uint64_t i = 0; i < s->n; i++) {
        if (!s->entries[i].key && strcmp(s->entries[i].section, name) == 0)
            return REFUSE(s, "[%s] is already opened in line %d: put its keys there", name, s->entries[i].line);
    }
    s->section = sd_pool_strdup(s->pool, name);
    if (!s->section)
        return SODET_FAIL(s->err, SODET_E_MEMORY, "%s: out of memory", s->name);
    sd_text_printf(&s->clean, "[%s]\n", name);
    return add(s, NULL, NULL);
}

/* The value without comment and quotes, in place. *as_written: what iniparser shall see. */
static sodet_status scan_value(scan *s, const char *key, char *text, char **value, char *quote)
{
    *quote = '\0';
    if (*text == '"' || *text == '\'') {
        char *close = strchr(text + 1, *text);
        if (!close)
            return REFUSE(s, "[%s] %s = %s: no %c closes the value%s", s->section, key, text, *text,
                          *text == '"' ? "; a value with \" inside is written '...'" : "");
        if (!only_comment(close + 1))
            return REFUSE(
                s, "[%s] %s = %s: text behind the closing quote; put the whole value into quotes, or a blank and # in front of a comment",
                s->section, key, text);
        if (close[1] == '#' || close[1] == ';')
            return REFUSE(s, "[%s] %s = %s: a comment begins after a blank", s->section, key, text);
        *quote = *text;
        *close = '\0';
        *value = text + 1;
        return SODET_OK;
    }
    for (char *p = text; *p; p++) {
        if (*p != ';' && *p != '#')
            continue;
        if (p == text || blank(p[-1])) {
            *p = '\0';
            break;
        }
        /* iniparser would end the value here without a word. */
        bool has_quote = strchr(text, '"') != NULL;
        char *end = p;
        while (*end && !(blank(end[0]) && (end[1] == ';' || end[1] == '#')))
            end++;
        return REFUSE(s, "[%s] %s = %s: %c ends a value unless it is quoted: write %s = %c%.*s%c, or a blank in front of a comment",
                      s->section, key, text, *p, key, has_quote ? '\'' : '"', (int)(end - text), text, has_quote ? '\'' : '"');
    }
    *value = text;
    trim(value);
    return SODET_OK;
}

static sodet_status scan_key(scan *s, char *text)
{
    char *equal = strchr(text, '=');
    if (!equal) {
        char *colon = strchr(text, ':');
        return colon ? REFUSE(s, "%s: write key = value, with = in the place of :", text)
                     : REFUSE(s, "%s: neither [section] nor key = value nor a comment; a long value stays on one line", text);
    }
    *equal = '\0';
    char *key = text, *value = equal + 1, quote;
    trim(&key);
    trim(&value);
    sodet_status status = check_name(s, "key", key);
    if (status != SODET_OK)
        return status;
    if (!s->section)
        return REFUSE(s, "%s = %s: stands above the first [section]; put it below the one it belongs to", key, value);
    for (uint64_t i = s->n; i-- > 0 && s->entries[i].key;) { /* back to the line that opened the section */
        if (strcmp(s->entries[i].key, key) == 0)
            return REFUSE(s, "[%s] %s = %s: %s is already given in line %d; keep one of them", s->section, key, value, key,
                          s->entries[i].line);
    }
    status = scan_value(s, key, value, &value, &quote);
    if (status != SODET_OK)
        return status;
    sd_text_printf(&s->clean, "%s =%s%.1s%s%.1s\n", key, *value || quote ? " " : "", &quote, value, &quote);
    return add(s, key, value);
}

static sodet_status scan_line(scan *s, const char *bytes, size_t n)
{
    char line[LONGEST + 1], *text = line;
    if (n > LONGEST)
        return REFUSE(s,
                      "the line has %zu characters, at most %d can be read; a long list of classes goes into a file: classes = @names.txt",
                      n, LONGEST);
    memcpy(line, bytes, n);
    line[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
            return REFUSE(s, "character %zu is the control character 0x%02x: this is no INI text%s", i + 1, (unsigned)line[i],
                          line[i] == '\r' ? "; lines end with LF or CR LF" : "");
    }
    const char *bad = sd_not_utf8(line);
    if (bad)
        return REFUSE(s, "character %zu is the byte 0x%02x, which is no UTF-8; save the file as UTF-8", (size_t)(bad - line) + 1,
                      (unsigned)(unsigned char)*bad);
    trim(&text);
    if (*text == '\0' || *text == ';' || *text == '#')
        return SODET_OK;
    if (text[strlen(text) - 1] == '\\')
        return REFUSE(s, "%s: a \\ at the end would join the next line; write the value on one line", text);
    return *text == '[' ? scan_section(s, text) : scan_key(s, text);
}

static int silent(const char *format, ...)
{
    (void)format;
    return 0;
}

/* iniparser has process-wide state (its error callback, static buffers). */
static pthread_mutex_t iniparser_lock = PTHREAD_MUTEX_INITIALIZER;

/* Reads the scanned lines by iniparser and puts its values in the place of ours; they must be equal. */
static sodet_status read_by_iniparser(scan *s)
{
    if (s->clean.failed)
        return SODET_FAIL(s->err, SODET_E_MEMORY, "%s: out of memory", s->name);
    int fd = memfd_create("ini", MFD_CLOEXEC);
    if (fd < 0)
        return SODET_FAIL(s->err, SODET_E_IO, "%s: a file in memory: %s", s->name, strerror(errno));
    sodet_status status = SODET_OK;
    for (uint64_t done = 0; done < s->clean.length && status == SODET_OK;) {
        ssize_t put = write(fd, s->clean.text + done, s->clean.length - done);
        if (put > 0)
            done += (uint64_t)put;
        else if (errno != EINTR)
            status = SODET_FAIL(s->err, SODET_E_IO, "%s: a file in memory: %s", s->name, strerror(errno));
    }
    char path[64], name[300];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pthread_mutex_lock(&iniparser_lock);
    iniparser_set_error_callback(silent);
    dictionary *d = status == SODET_OK ? iniparser_load(path) : NULL;
    if (status == SODET_OK && !d)
        status = SODET_FAIL(s->err, SODET_E_INVALID, "%s: iniparser cannot read it", s->name);
    for (uint64_t i = 0; i < s->n && status == SODET_OK; i++) {
        sd_ini_entry *e = &s->entries[i];
        if (!e->key)
            continue;
        snprintf(name, sizeof name, "%s:%s", e->section, e->key);
        const char *value = iniparser_getstring(d, name, NULL);
        s->line = e->line;
        if (!value || strcmp(value, e->value) != 0)
            status = REFUSE(s, "[%s] %s = %s: iniparser reads \"%s\" here; put the value into quotes", e->section, e->key, e->value,
                            value ? value : "nothing");
    }
    if (d)
        iniparser_freedict(d);
    pthread_mutex_unlock(&iniparser_lock);
    close(fd);
    return status;
}

sodet_status sd_ini_parse(sd_pool *pool, const char *bytes, uint64_t n, const char *name, sd_ini_entry **out, uint64_t *n_out,
                          sodet_err *err)
{
    *out = NULL;
    *n_out = 0;
    scan s = {.pool = pool, .name = name, .err = err, .line = 1};
    const char *p = bytes, *end = bytes + n;
    sodet_status status = SODET_OK;
    if (n >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0))
        return REFUSE(&s, "the file is UTF-16; save it as UTF-8");
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (; p < end && status == SODET_OK; s.line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t length = (size_t)(stop - p);
        if (length > 0 && p[length - 1] == '\r')
            length--;
        status = scan_line(&s, p, length);
        p = newline ? newline + 1 : end;
    }
    if (status == SODET_OK && s.n)
        status = read_by_iniparser(&s);
    if (status == SODET_OK && s.n) {
        *out = sd_pool_alloc(pool, s.n * sizeof *s.entries);
        if (*out) {
            memcpy(*out, s.entries, s.n * sizeof *s.entries);
            *n_out = s.n;
        } else {
            status = SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", name);
        }
    }
    sd_text_free(&s.clean);
    sd_free(s.entries);
    return status;
}
