/* base/json.c: the pull parser. One pass, no allocation but for strings that hold escapes. */
#include "core/base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

void sd_json_open(sd_json *j, const char *name, const char *text, uint64_t n, sodet_err *err)
{
    *j = (sd_json){.name = name, .begin = text, .at = text, .end = text + n, .err = err};
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark; RFC 8259 lets a reader ignore it */
        j->at += 3;
}

void sd_json_fail(sd_json *j, const char *format, ...)
{
    if (j->status != SODET_OK)
        return;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    uint64_t line = 1;
    for (const char *p = j->begin; p < j->at && (p = memchr(p, '\n', (size_t)(j->at - p))); p++)
        line++;
    j->status = SODET_FAIL(j->err, SODET_E_INVALID, "%s, line %llu, byte %llu: %s", j->name, (unsigned long long)line,
                           (unsigned long long)(j->at - j->begin), text);
    j->at = j->end;
}

/* What stands here, for messages: a few printable characters. */
static const char *here(const sd_json *j, char out[24])
{
    if (j->at >= j->end)
        return "the end of the file";
    uint32_t n = 0;
    if (*j->at < ' ' || *j->at > '~') { /* a terminal might obey it */
        snprintf(out, 24, "byte 0x%02x", (unsigned char)*j->at);
        return out;
    }
    out[n++] = '\'';
    for (const char *p = j->at; p < j->end && n < 17 && *p >= ' ' && *p <= '~'; p++)
        out[n++] = *p;
    out[n++] = '\'';
    out[n] = 0;
    return out;
}

static void unexpected(sd_json *j, const char *wanted)
{
    char text[24];
    sd_json_fail(j, "expected %s, found %s", wanted, here(j, text));
}

static inline void blanks(sd_json *j)
{
    const char *p = j->at; /* the text ends with a NUL, which is no blank */
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    j->at = p;
}

char sd_json_peek(sd_json *j)
{
    if (j->status != SODET_OK)
        return 0;
    blanks(j);
    char c = *j->at;
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    if (c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n')
        return c;
    unexpected(j, "a value");
    return 0;
}

void sd_json_enter(sd_json *j, char bracket)
{
    if (j->status != SODET_OK)
        return;
    blanks(j);
    if (*j->at != bracket) {
        unexpected(j, bracket == '{' ? "an object '{'" : "an array '['");
        return;
    }
    if (j->depth == SD_JSON_DEPTH) {
        sd_json_fail(j, "more than %d levels of brackets", SD_JSON_DEPTH);
        return;
    }
    j->at++;
    j->open[j->depth++] = bracket;
    j->fresh = true;
}

/* Takes the comma before the next entry, or the closing bracket. True if an entry follows. */
static bool advance(sd_json *j, char open, char close)
{
    if (j->status != SODET_OK)
        return false;
    if (j->depth == 0 || j->open[j->depth - 1] != open) {
        sd_json_fail(j, "the reader is not inside '%c'", open);
        return false;
    }
    blanks(j);
    if (*j->at == close) {
        j->at++;
        j->depth--;
        j->fresh = false;
        return false;
    }
    if (!j->fresh) {
        if (*j->at != ',') {
            unexpected(j, close == ']' ? "',' or ']'" : "',' or '}'");
            return false;
        }
        j->at++;
        blanks(j);
        if (*j->at == close) {
            unexpected(j, "another entry after ','");
            return false;
        }
    }
    j->fresh = false;
    return true;
}

bool sd_json_item(sd_json *j)
{
    return advance(j, '[', ']');
}

bool sd_json_key(sd_json *j, sd_json_string *key)
{
    *key = (sd_json_string){"", 0};
    if (!advance(j, '{', '}'))
        return false;
    *key = sd_json_text(j);
    if (j->status == SODET_OK) {
        blanks(j);
        if (*j->at != ':')
            unexpected(j, "':' behind the key");
        else
            j->at++;
    }
    return j->status == SODET_OK;
}

/* From behind the opening quote to the closing one (or to a control character or the end); tells whether escapes were passed. */
static const char *string_end(const char *p, const char *end, bool *escaped)
{
    for (;;) {
#ifdef __SSE2__
        while (end - p >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
            __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
            stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v)); /* v <= 0x1f */
            int mask = _mm_movemask_epi8(stop);
            if (mask) {
                p += __builtin_ctz((unsigned)mask);
                break;
            }
            p += 16;
        }
#endif
        while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p > 0x1f)
            p++;
        if (p >= end || *p != '\\')
            return p;
        *escaped = true;
        if (end - p < 2)
            return end;
        p += 2;
    }
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static uint32_t utf8(int c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

static bool unescape(sd_json *j, const char *p, const char *end)
{
    sd_text *t = &j->unescaped;
    t->length = 0;
    sd_text_append(t, "", 0);
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        const char *stop = slash ? slash : end;
        sd_text_append(t, p, (uint64_t)(stop - p));
        if (!slash)
            break;
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found = slash[1] ? strchr(from, slash[1]) : NULL;
        if (found) {
            sd_text_append(t, &to[found - from], 1);
            p = slash + 2;
            continue;
        }
        int c = slash[1] == 'u' && end - slash >= 6 ? hex4(slash + 2) : -1;
        p = slash + 6;
        if (c >= 0xd800 && c < 0xdc00) { /* the first half of a pair */
            int low = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
            c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : -1;
            p += 6;
        } else if (c >= 0xdc00 && c < 0xe000) {
            c = -1;
        }
        if (c <= 0) { /* also \u0000: names are C strings everywhere behind this parser */
            j->at = slash;
            unexpected(j, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX (no lone half of a pair, not 0)");
            return false;
        }
        char bytes[4];
        sd_text_append(t, bytes, utf8(c, bytes));
    }
    if (t->failed)
        sd_json_fail(j, "no memory for a string");
    return j->status == SODET_OK;
}

sd_json_string sd_json_text(sd_json *j)
{
    const sd_json_string none = {"", 0};
    if (j->status != SODET_OK)
        return none;
    blanks(j);
    if (*j->at != '"') {
        unexpected(j, "a string");
        return none;
    }
    bool escaped = false;
    const char *start = j->at + 1, *stop = string_end(start, j->end, &escaped);
    if (stop >= j->end || *stop != '"') {
        j->at = stop < j->end ? stop : start - 1;
        sd_json_fail(j, stop < j->end ? "a control character inside a string" : "a string that does not end");
        return none;
    }
    sd_json_string s = {start, (uint64_t)(stop - start)};
    if (escaped) {
        if (!unescape(j, start, stop))
            return none;
        s = (sd_json_string){j->unescaped.text, j->unescaped.length};
    }
    j->at = stop + 1;
    return s;
}

/* Correctly rounded w * 10^e for what real files hold; false: the caller asks strtod. */
static bool exact(uint64_t w, int64_t e, double *out)
{
    static const double p10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (w <= 9007199254740992u && e >= -22 && e <= 22) { /* both exact in double: one rounding */
        *out = e < 0 ? (double)w / p10[-e] : (double)w * p10[e];
        return true;
    }
#if LDBL_MANT_DIG == 64
    /* Sixteen to nineteen digits, as Python prints a float: both operands are exact in 64 bits, so q is the true quotient rounded to 64
     * bits. Rounding it again to 53 is right unless q lies exactly half way between two doubles. */
    static const long double l10[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                      1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (e >= -27 && e <= 0) {
        long double q = (long double)w / l10[-e];
        uint64_t mantissa;
        memcpy(&mantissa, &q, 8);
        if ((mantissa & 0x7ff) != 0x400) {
            *out = (double)q;
            return true;
        }
    }
#endif
    return false;
}

double sd_json_double(sd_json *j)
{
    if (sd_json_peek(j) != '0') {
        if (j->status == SODET_OK)
            unexpected(j, "a number");
        return 0;
    }
    const char *start = j->at, *p = start;
    bool negative = *p == '-';
    p += negative;
    uint64_t w = 0;
    uint32_t digits = 0; /* significant ones in w */
    int64_t e = 0;
    bool fits = true;
    const char *first = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (digits < 19) {
            w = w * 10 + (uint64_t)(*p - '0');
            digits += w != 0;
        } else {
            fits = false;
        }
    }
    bool ok = p > first && !(p - first > 1 && *first == '0');
    if (*p == '.') {
        const char *fraction = ++p;
        for (; *p >= '0' && *p <= '9'; p++) {
            if (digits < 19) {
                w = w * 10 + (uint64_t)(*p - '0');
                digits += w != 0;
                e--;
            } else {
                fits = fits && *p == '0';
            }
        }
        ok = ok && p > fraction;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        bool minus = *p == '-';
        p += *p == '-' || *p == '+';
        const char *exponent = p;
        int64_t x = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            x = x < 100000 ? x * 10 + (*p - '0') : x;
        ok = ok && p > exponent;
        e += minus ? -x : x;
    }
    if (!ok) {
        unexpected(j, "a number");
        return 0;
    }
    double v;
    if (w == 0 && fits) {
        v = 0;
    } else if (!fits || !exact(w, e, &v)) {
        locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library: nothing is allocated */
        char *stop;
        v = c ? strtod_l(first, &stop, c) : 0;
        if (!c || stop != p)
            sd_json_fail(j, "a number that cannot be read");
        if (c)
            freelocale(c);
    }
    if (v > DBL_MAX) {
        unexpected(j, "a number within the range of double");
        return 0;
    }
    j->at = p;
    return negative ? -v : v;
}

int64_t sd_json_int64(sd_json *j)
{
    if (sd_json_peek(j) != '0') {
        if (j->status == SODET_OK)
            unexpected(j, "an integer");
        return 0;
    }
    const char *start = j->at, *p = start + (*start == '-');
    uint64_t w = 0;
    uint32_t n = 0;
    for (; *p >= '0' && *p <= '9' && n < 19; p++, n++)
        w = w * 10 + (uint64_t)(*p - '0');
    bool plain = n > 0 && !(n > 1 && start[*start == '-'] == '0') && *p != '.' && *p != 'e' && *p != 'E' && !(*p >= '0' && *p <= '9');
    if (plain && w <= INT64_MAX) {
        j->at = p;
        return *start == '-' ? -(int64_t)w : (int64_t)w;
    }
    double v = sd_json_double(j);
    if (j->status == SODET_OK && !(v >= -9007199254740992.0 && v <= 9007199254740992.0 && v == (double)(int64_t)v)) {
        j->at = start;
        unexpected(j, "an integer");
        return 0;
    }
    return (int64_t)v;
}

static bool word(sd_json *j, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, text, n) != 0) {
        unexpected(j, "true, false or null");
        return false;
    }
    j->at += n;
    return true;
}

bool sd_json_bool(sd_json *j)
{
    char c = sd_json_peek(j);
    if (c == 't')
        return word(j, "true");
    if (c == 'f') {
        word(j, "false");
        return false;
    }
    const char *start = j->at;
    int64_t v = c == '0' ? sd_json_int64(j) : 2;
    if (j->status == SODET_OK && v != 0 && v != 1) {
        j->at = start;
        unexpected(j, "0, 1, true or false");
        return false;
    }
    return v == 1;
}

bool sd_json_null(sd_json *j)
{
    return sd_json_peek(j) == 'n' && word(j, "null");
}

/* Behind the brackets that are open at j->at: strings are passed, brackets are matched, the rest is not looked at. */
static void skip_brackets(sd_json *j)
{
    const char *p = j->at, *end = j->end;
    uint32_t floor = j->depth;
    for (;;) {
#ifdef __SSE2__
        while (end - p >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p), low = _mm_or_si128(v, _mm_set1_epi8(0x20));
            /* [ and { differ in one bit, as do ] and } */
            __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(low, _mm_set1_epi8('{')), _mm_cmpeq_epi8(low, _mm_set1_epi8('}')));
            stop = _mm_or_si128(stop, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
            int mask = _mm_movemask_epi8(stop);
            if (mask) {
                p += __builtin_ctz((unsigned)mask);
                break;
            }
            p += 16;
        }
#endif
        while (p < end && *p != '"' && *p != '[' && *p != ']' && *p != '{' && *p != '}')
            p++;
        j->at = p;
        if (p >= end) {
            sd_json_fail(j, "the file ends inside '%c'", j->open[j->depth ? j->depth - 1 : 0]);
            return;
        }
        char c = *p++;
        if (c == '"') {
            bool escaped = false;
            p = string_end(p, end, &escaped);
            if (p >= end || *p != '"') {
                sd_json_fail(j, "a string that does not end, or a control character inside one");
                return;
            }
            p++;
        } else if (c == '[' || c == '{') {
            if (j->depth == SD_JSON_DEPTH) {
                sd_json_fail(j, "more than %d levels of brackets", SD_JSON_DEPTH);
                return;
            }
            j->open[j->depth++] = c;
        } else {
            if (j->open[j->depth - 1] != (c == ']' ? '[' : '{')) {
                unexpected(j, c == ']' ? "'}'" : "']'");
                return;
            }
            if (--j->depth == floor) {
                j->at = p;
                return;
            }
        }
    }
}

void sd_json_skip(sd_json *j)
{
    switch (sd_json_peek(j)) {
    case '{':
    case '[':
        skip_brackets(j);
        j->fresh = false;
        break;
    case '"': {
        bool escaped = false;
        const char *stop = string_end(j->at + 1, j->end, &escaped);
        if (stop >= j->end || *stop != '"')
            sd_json_fail(j, "a string that does not end, or a control character inside one");
        else
            j->at = stop + 1;
        break;
    }
    case '0':
        sd_json_double(j);
        break;
    case 't':
        word(j, "true");
        break;
    case 'f':
        word(j, "false");
        break;
    case 'n':
        word(j, "null");
        break;
    default:
        break;
    }
}

char *sd_json_copy(sd_json *j, sd_pool *pool, sd_json_string s)
{
    char *copy = sd_pool_alloc(pool, s.n + 1);
    if (!copy) {
        if (j->status == SODET_OK)
            j->status = SODET_FAIL(j->err, SODET_E_MEMORY, "%s: no memory for a string of %llu bytes", j->name, (unsigned long long)s.n);
        j->at = j->end;
        return NULL;
    }
    memcpy(copy, s.text, s.n);
    const char *bad = sd_not_utf8(copy);
    if (bad)
        sd_json_fail(j, "the byte 0x%02x in a string is no UTF-8; save the file as UTF-8", (unsigned)(unsigned char)*bad);
    return copy;
}

sodet_status sd_json_close(sd_json *j)
{
    if (j->status == SODET_OK) {
        blanks(j);
        if (j->depth)
            sd_json_fail(j, "'%c' is still open", j->open[j->depth - 1]);
        else if (j->at != j->end)
            unexpected(j, "the end of the file");
    }
    sd_text_free(&j->unescaped);
    j->unescaped = (sd_text){0};
    return j->status;
}

/* ---- writing ---- */

void sd_json_write_string(sd_text *out, const char *text)
{
    sd_text_append(out, "\"", 1);
    for (const char *p = text; *p;) {
        uint32_t code, n = sd_utf8_character(p, &code);
        if (!n)
            sd_text_printf(out, "\\\\x%02x", (unsigned)(unsigned char)*p);
        else if (code == '"' || code == '\\')
            sd_text_printf(out, "\\%c", *p);
        else if (code < 0x20)
            sd_text_printf(out, "\\u%04x", code);
        else
            sd_text_append(out, p, n);
        p += n ? n : 1;
    }
    sd_text_append(out, "\"", 1);
}

void sd_json_write_double(sd_text *out, double value)
{
    if (isfinite(value))
        sd_text_printf(out, "%.17g", value);
    else
        sd_text_printf(out, "null");
}
