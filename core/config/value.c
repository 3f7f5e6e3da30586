#include "core/config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHY(...) because(why, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) static bool because(char *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, 400, format, list);
    va_end(list);
    return false;
}

size_t sd_value_size(uint32_t type)
{
    switch (type) {
    case SODET_T_DOUBLE:
    case SODET_T_DURATION:
        return sizeof(double);
    case SODET_T_INT:
    case SODET_T_BYTES:
        return sizeof(int64_t);
    case SODET_T_UINT:
    case SODET_T_BOOL:
    case SODET_T_ENUM:
        return sizeof(uint32_t);
    case SODET_T_STRING:
    case SODET_T_PATH:
        return sizeof(const char *);
    case SODET_T_SIZE:
        return sizeof(sodet_size2d);
    case SODET_T_DOUBLE_LIST:
        return sizeof(sodet_double_list);
    case SODET_T_UINT_LIST:
        return sizeof(sodet_uint_list);
    case SODET_T_STRING_LIST:
        return sizeof(sodet_string_list);
    default:
        return 0;
    }
}

static bool in_range(const sodet_opt *row, double v, char *why)
{
    if (v >= row->min && v <= row->max)
        return true;
    if (v < row->min && row->max >= 4294967295.0)
        return WHY("must be %.16g or more", row->min);
    return WHY("outside [%.16g, %.16g]", row->min, row->max);
}

/* What is wrong with a text that is no number: nothing of it is one, or something stands behind one. */
static bool no_number(const char *text, const char *kind, char *why)
{
    char *end;
    if (*text == '\0')
        return WHY("no value; %s is needed", kind);
    (void)strtod(text, &end);
    while (*end == ' ')
        end++;
    if (end != text && *end && *text != ' ' && (*text < 'A' || *text > 'z'))
        return WHY("\"%.40s\" behind the number; %s is needed%s", end, kind, *end == '%' ? ", a fraction is written 0.5" : "");
    return WHY("is no number; %s is needed", kind);
}

static bool parse_double(const sodet_opt *row, const char *text, double *out, char *why)
{
    if (!sd_parse_double(text, out))
        return no_number(text, "a finite number", why);
    return in_range(row, *out, why);
}

static bool parse_whole(const sodet_opt *row, const char *text, int64_t *out, char *why)
{
    double real;
    if (!sd_parse_int64(text, out) && sd_parse_double(text, &real) && !strpbrk(text, ".eE")) /* digits alone, and too many of them */
        return in_range(row, real, why) && WHY("has too many digits");
    if (!sd_parse_int64(text, out))
        return sd_parse_double(text, &real) ? WHY("a whole number is needed, in digits alone") : no_number(text, "a whole number", why);
    return in_range(row, (double)*out, why);
}

static bool parse_uint(const sodet_opt *row, const char *text, uint32_t *out, char *why)
{
    int64_t v;
    if (!parse_whole(row, text, &v, why))
        return false;
    if (v < 0 || v > UINT32_MAX)
        return WHY("outside [0, 4294967295]");
    *out = (uint32_t)v;
    return true;
}

static bool parse_bool(const char *text, uint32_t *out, char *why)
{
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return true;
        }
    }
    return WHY("is neither yes nor no (true, on, 1; false, off, 0)");
}

static bool parse_enum(const sodet_opt *row, const char *text, uint32_t *out, char *why)
{
    char all[200] = "";
    uint32_t n = 0;
    for (; row->choices[n]; n++) {
        if (strcmp(row->choices[n], text) == 0) {
            *out = n;
            return true;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", row->choices[n]);
    }
    const char *near = sd_nearest(text, row->choices, n);
    if (near)
        return WHY("is none of %s; did you mean %s?", all, near);
    return WHY("is none of %s", all);
}

/* A number and a unit, with or without a blank between; the plain number has factor 1. */
static bool parse_unit(const char *text, const char *const *units, const double *factors, const char *kind, double *out, char *why)
{
    char number[64];
    size_t n = strspn(text, "+-.0123456789");
    if (n < strlen(text) && (text[n] == 'e' || text[n] == 'E') && text[n + 1 + strspn(text + n + 1, "+-")] >= '0' &&
        text[n + 1 + strspn(text + n + 1, "+-")] <= '9')
        n += 1 + strspn(text + n + 1, "+-0123456789");
    const char *unit = text + n + strspn(text + n, " ");
    if (n >= sizeof number)
        return WHY("is no %s", kind);
    memcpy(number, text, n);
    number[n] = '\0';
    double v;
    if (!sd_parse_double(number, &v))
        return no_number(text, kind, why);
    if (*unit == '\0') {
        *out = v;
        return true;
    }
    char all[100] = "";
    for (size_t i = 0; units[i]; i++) {
        if (strcmp(units[i], unit) == 0) {
            *out = v * factors[i];
            return true;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", units[i]);
    }
    return WHY("\"%.20s\" is no unit; the units are %s", unit, all);
}

static bool parse_bytes(const sodet_opt *row, const char *text, uint64_t *out, char *why)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", NULL};
    static const double factors[] = {1, 1024, 1048576, 1073741824, 1099511627776, 1e3, 1e6, 1e9, 1e12};
    double v;
    if (!parse_unit(text, units, factors, "a number of bytes, e.g. 64MiB,", &v, why) || !in_range(row, v, why))
        return false;
    if (v < 0 || v > 9007199254740992.0 || v != (double)(uint64_t)v)
        return WHY("is no whole number of bytes");
    *out = (uint64_t)v;
    return true;
}

static bool parse_duration(const sodet_opt *row, const char *text, double *out, char *why)
{
    static const char *const units[] = {"ms", "s", "m", "min", "h", "d", NULL};
    static const double factors[] = {1e-3, 1, 60, 60, 3600, 86400};
    return parse_unit(text, units, factors, "a time, e.g. 30s,", out, why) && in_range(row, *out, why);
}

static bool parse_size(const sodet_opt *row, const char *text, sodet_size2d *out, char *why)
{
    char side[2][32];
    const char *x = strchr(text, 'x');
    size_t n = x ? (size_t)(x - text) : strlen(text);
    if (n == 0 || n >= sizeof side[0] || (x && strlen(x + 1) >= sizeof side[1]))
        return WHY("is no size; write width x height as 300x200, or 300 for both");
    memcpy(side[0], text, n);
    side[0][n] = '\0';
    snprintf(side[1], sizeof side[1], "%s", x ? x + 1 : side[0]);
    uint64_t v[2];
    for (int i = 0; i < 2; i++) {
        if (!sd_parse_uint64(side[i], &v[i]) || v[i] > UINT32_MAX)
            return WHY("is no size; write width x height as 300x200, or 300 for both");
        if (!in_range(row, (double)v[i], why))
            return false;
    }
    out->width = (uint32_t)v[0];
    out->height = (uint32_t)v[1];
    return true;
}

/* Splits a copy in the pool. Strings are separated by commas alone, numbers by commas or blanks. */
static bool split(sd_pool *pool, const char *text, bool by_blanks, char ***out, uint32_t *n_out, char *why)
{
    char *copy = sd_pool_strdup(pool, text);
    uint32_t most = 1, n = 0;
    for (const char *p = text; *p; p++)
        most += *p == ',' || *p == ' ' || *p == '\t';
    char **items = copy ? sd_pool_alloc(pool, (most + 1) * sizeof *items) : NULL;
    if (!items)
        return WHY("out of memory");
    char *p = copy + strspn(copy, " \t");
    while (*p) {
        size_t length = strcspn(p, by_blanks ? ", \t" : ",");
        char *next = p + length, *stop = next;
        next += strspn(next, " \t");
        bool comma = *next == ',';
        if (comma)
            next += 1 + strspn(next + 1, " \t");
        while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        if (stop == p || (comma && *next == '\0'))
            return WHY("element %u of the list is empty", (unsigned)(stop == p ? n + 1 : n + 2));
        *stop = '\0';
        items[n++] = p;
        p = next;
    }
    *out = items;
    *n_out = n;
    return true;
}

static bool parse_list(sd_pool *pool, const sodet_opt *row, const char *text, void *field, char *why)
{
    char **items = NULL, inner[400];
    uint32_t n = 0;
    if (!split(pool, text, row->type != SODET_T_STRING_LIST, &items, &n, why))
        return false;
    if (row->length && n != row->length)
        return WHY("has %u elements, %u are needed", (unsigned)n, (unsigned)row->length);
    if (row->type == SODET_T_STRING_LIST) {
        *(sodet_string_list *)field = (sodet_string_list){n, (const char *const *)items};
        return true;
    }
    double *reals = sd_pool_alloc(pool, n * sizeof *reals + 1);
    uint32_t *wholes = sd_pool_alloc(pool, n * sizeof *wholes + 1);
    if (!reals || !wholes)
        return WHY("out of memory");
    for (uint32_t i = 0; i < n; i++) {
        bool good =
            row->type == SODET_T_DOUBLE_LIST ? parse_double(row, items[i], &reals[i], inner) : parse_uint(row, items[i], &wholes[i], inner);
        if (!good)
            return WHY("element %u, \"%.60s\": %.300s", (unsigned)(i + 1), items[i], inner);
    }
    if (row->type == SODET_T_DOUBLE_LIST)
        *(sodet_double_list *)field = (sodet_double_list){n, reals};
    else
        *(sodet_uint_list *)field = (sodet_uint_list){n, wholes};
    return true;
}

char *sd_value_path(sd_pool *pool, const char *text, const char *folder, char why[400])
{
    char *path = NULL;
    if (text[0] == '$') {
        WHY("environment variables are not expanded; write the path itself, or ~/ for the home folder");
        return NULL;
    }
    if (text[0] == '~') {
        const char *home = getenv("HOME");
        if (text[1] != '/' && text[1] != '\0') {
            WHY("~name is not expanded; write the path itself, or ~/ for your own home folder");
            return NULL;
        }
        if (!home || home[0] != '/') {
            WHY("HOME is not set, so ~ means nothing; write the path itself");
            return NULL;
        }
        path = sd_pool_printf(pool, "%s%s", home, text + 1);
    } else if (text[0] == '/') {
        path = sd_pool_strdup(pool, text);
    } else {
        /* The folder is a real path, so a leading ../ can be taken off textually. */
        size_t n = strlen(folder);
        for (;;) {
            if (strncmp(text, "./", 2) == 0 || strcmp(text, ".") == 0) {
                text += text[1] ? 2 : 1;
            } else if ((strncmp(text, "../", 3) == 0 || strcmp(text, "..") == 0) && n > 1) {
                while (n > 1 && folder[n - 1] != '/')
                    n--;
                n -= n > 1;
                text += text[2] ? 3 : 2;
            } else {
                break;
            }
            text += strspn(text, "/");
        }
        path = sd_pool_printf(pool, "%.*s%s%s", (int)n, folder, n > 1 && *text ? "/" : "", text);
    }
    if (!path)
        WHY("out of memory");
    return path;
}

bool sd_value_parse(sd_pool *pool, const sodet_opt *row, const char *text, const char *folder, void *field, char why[400])
{
    switch (row->type) {
    case SODET_T_DOUBLE:
        return parse_double(row, text, field, why);
    case SODET_T_INT:
        return parse_whole(row, text, field, why);
    case SODET_T_UINT:
        return parse_uint(row, text, field, why);
    case SODET_T_BOOL:
        return parse_bool(text, field, why);
    case SODET_T_ENUM:
        return row->choices ? parse_enum(row, text, field, why) : WHY("the option's row has no choices");
    case SODET_T_BYTES:
        return parse_bytes(row, text, field, why);
    case SODET_T_DURATION:
        return parse_duration(row, text, field, why);
    case SODET_T_SIZE:
        return parse_size(row, text, field, why);
    case SODET_T_STRING: {
        char *copy = sd_pool_strdup(pool, text);
        *(const char **)field = copy;
        return copy ? true : WHY("out of memory");
    }
    case SODET_T_PATH: {
        char *path = *text ? sd_value_path(pool, text, folder, why) : NULL;
        *(const char **)field = path;
        return path || !*text;
    }
    case SODET_T_DOUBLE_LIST:
    case SODET_T_UINT_LIST:
    case SODET_T_STRING_LIST:
        return parse_list(pool, row, text, field, why);
    default:
        return WHY("the option's row has the unknown type %u", (unsigned)row->type);
    }
}

void sd_value_type(const sodet_opt *row, char out[300])
{
    const char *text = "?";
    switch (row->type) {
    case SODET_T_DOUBLE:
        text = "number";
        break;
    case SODET_T_INT:
    case SODET_T_UINT:
        text = "whole number";
        break;
    case SODET_T_BOOL:
        text = "yes | no";
        break;
    case SODET_T_STRING:
        text = "text";
        break;
    case SODET_T_PATH:
        text = "path";
        break;
    case SODET_T_BYTES:
        text = "bytes, e.g. 64MiB";
        break;
    case SODET_T_DURATION:
        text = "time, e.g. 30s";
        break;
    case SODET_T_SIZE:
        text = "width x height";
        break;
    case SODET_T_DOUBLE_LIST:
        text = "list of numbers";
        break;
    case SODET_T_UINT_LIST:
        text = "list of whole numbers";
        break;
    case SODET_T_STRING_LIST:
        text = "list, by commas";
        break;
    case SODET_T_ENUM:
        out[0] = '\0';
        for (uint32_t i = 0; row->choices && row->choices[i]; i++) {
            size_t used = strlen(out);
            snprintf(out + used, 300 - used, "%s%s", i ? " | " : "", row->choices[i]);
        }
        return;
    }
    snprintf(out, 300, "%s", text);
}

void sd_value_write(sd_text *out, const char *key, const char *value)
{
    size_t n = strlen(value);
    bool quote =
        strpbrk(value, ";#'\"\\") != NULL || (n && (value[0] == ' ' || value[n - 1] == ' ' || value[0] == '\t' || value[n - 1] == '\t'));
    char q = strchr(value, '"') ? '\'' : '"';
    if (quote)
        sd_text_printf(out, "%s = %c%s%c", key, q, value, q);
    else
        sd_text_printf(out, "%s = %s", key, value);
}
