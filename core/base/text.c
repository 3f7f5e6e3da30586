#include "core/base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void sd_text_append(sd_text *t, const void *bytes, uint64_t n)
{
    if (t->failed || sd_grow(&t->text, &t->capacity, t->length + n + 1, 1, NULL) != SODET_OK) {
        t->failed = true;
        return;
    }
    if (n)
        memcpy(t->text + t->length, bytes, n);
    t->length += n;
    t->text[t->length] = '\0';
}

void sd_text_join(sd_text *t, const sd_text *part)
{
    t->failed = t->failed || part->failed;
    if (part->text)
        sd_text_append(t, part->text, part->length);
}

void sd_text_csv(sd_text *t, const char *field)
{
    const size_t n = strlen(field);
    if (!field[strcspn(field, ",\"\r\n")] && !(n && (strchr(" \t", field[0]) || strchr(" \t", field[n - 1])))) {
        sd_text_append(t, field, n);
        return;
    }
    sd_text_append(t, "\"", 1);
    for (; *field; field++)
        sd_text_append(t, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
    sd_text_append(t, "\"", 1);
}

void sd_text_printf(sd_text *t, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || t->failed || sd_grow(&t->text, &t->capacity, t->length + (uint64_t)n + 1, 1, NULL) != SODET_OK) {
        t->failed = true;
    } else {
        vsnprintf(t->text + t->length, (size_t)n + 1, format, again);
        t->length += (uint64_t)n;
    }
    va_end(again);
}

void sd_text_free(sd_text *t)
{
    free(t->text);
    *t = (sd_text){0};
}

uint32_t sd_utf8_character(const char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    uint32_t n = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (!n)
        return 0;
    *code = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (uint32_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

const char *sd_not_utf8(const char *text)
{
    for (uint32_t n, code; *text; text += n) {
        n = sd_utf8_character(text, &code);
        if (!n)
            return text;
    }
    return NULL;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c == '-' ? '_' : c;
}

/* Edit distance with swaps of neighbours (optimal string alignment), case apart and '-' equal to '_'. */
static size_t distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    size_t n = strlen(a), m = strlen(b), row[3][MOST + 1];
    if (n > MOST || m > MOST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *sd_nearest(const char *word, const char *const *candidates, uint64_t n)
{
    const char *best = NULL;
    size_t limit = strlen(word) < 3 ? 1 : (strlen(word) + 2) / 3, least = limit + 1;
    for (uint64_t i = 0; i < n; i++) {
        if (!candidates[i])
            continue;
        size_t d = distance(word, candidates[i]);
        if (d < least && d < strlen(candidates[i])) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}

bool sd_parse_double(const char *text, double *out)
{
    /* strtod also takes hexadecimal, "inf", "nan" and leading blanks; none of them belongs in a configuration. */
    *out = 0;
    if (!text || !*text || text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    char *end;
    double v = strtod(text, &end);
    if (*end != '\0' || end == text || !(v - v == 0))
        return false;
    *out = v;
    return true;
}

bool sd_parse_uint64(const char *text, uint64_t *out)
{
    *out = 0;
    if (!text || !*text || text[strspn(text, "0123456789")] != '\0')
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, NULL, 10);
    if (errno)
        return false;
    *out = v;
    return true;
}

bool sd_parse_int64(const char *text, int64_t *out)
{
    *out = 0;
    if (!text)
        return false;
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    if (errno)
        return false;
    *out = v;
    return true;
}
