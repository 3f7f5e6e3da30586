#include "core/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Matches with backtracking, shortest text for each star first; the stars' texts go to `star` (or nowhere, if it is NULL). A pattern
 * with several stars costs at most length^stars, and names are short. */
typedef struct piece {
    const char *text;
    size_t n;
} piece;
enum { STARS = 16 };

static bool match(const char *p, const char *s, piece *star, unsigned n)
{
    for (; *p && *p != '*'; p++, s++)
        if (*p != *s)
            return false;
    if (!*p)
        return !*s;
    for (const char *end = s;; end++) {
        if (star && n < STARS)
            star[n] = (piece){s, (size_t)(end - s)};
        if (match(p + 1, end, star, n + 1))
            return true;
        if (!*end)
            return false;
    }
}

bool sd_glob(const char *pattern, const char *text)
{
    return match(pattern, text, NULL, 0);
}

typedef struct rule {
    const char *theirs, *ours; /* ours NULL: left out */
    uint32_t flags, n_axes;
    uint8_t axes[SD_TENSOR_RANK];
    uint64_t line;
} rule;

struct sd_name_map {
    sd_pool pool;
    rule *rules;
    uint64_t n, capacity;
    const char *where;
};

static unsigned stars(const char *s)
{
    unsigned n = 0;
    for (; *s; s++)
        n += *s == '*';
    return n;
}

static char *trim(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        s[--n] = '\0';
    return s;
}

/* "transpose", "transpose 3 2 0 1" or "reshape", between the brackets. */
static bool parse_change(rule *r, char *text)
{
    char *rest = text, *word = strsep(&rest, " ");
    if (strcmp(word, "reshape") == 0) {
        r->flags |= SD_MAP_RESHAPE;
        return !rest;
    }
    if (strcmp(word, "transpose") != 0)
        return false;
    r->flags |= SD_MAP_TRANSPOSE;
    unsigned used = 0;
    while (rest && (word = strsep(&rest, " "))) {
        uint64_t axis;
        if (!*word)
            continue;
        if (r->n_axes == SD_TENSOR_RANK || !sd_parse_uint64(word, &axis) || axis >= SD_TENSOR_RANK || used & 1u << axis)
            return false;
        used |= 1u << axis;
        r->axes[r->n_axes++] = (uint8_t)axis;
    }
    return used == (1u << r->n_axes) - 1;
}

static sodet_status parse_line(sd_name_map *map, uint64_t line, char *text, sodet_err *err)
{
    char *hash = strchr(text, '#'), *arrow;
    if (hash)
        *hash = '\0';
    text = trim(text);
    if (!*text)
        return SODET_OK;
    const char *shown = sd_pool_strdup(&map->pool, text);
    unsigned long long at = line;
    rule r = {.line = line};
    if (!(arrow = strstr(text, "->")))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: \"%.200s\": `their/name -> our/name` is needed", map->where, at, text);
    *arrow = '\0';
    char *theirs = trim(text), *ours = trim(arrow + 2), *open = strchr(ours, '[');
    if (open) {
        char *close = strchr(open, ']');
        if (!close || *trim(close + 1))
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: \"%.200s\": nothing may follow `[...]`", map->where, at, shown);
        *open = *close = '\0';
        if (!parse_change(&r, trim(open + 1)))
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s:%llu: \"%.200s\": in brackets stand transpose, transpose with all axes (3 2 0 1), or reshape", map->where,
                              at, shown);
        ours = trim(ours);
    }
    bool out = strcmp(ours, "-") == 0;
    if (!*theirs || !*ours || strpbrk(theirs, " \t") || strpbrk(ours, " \t"))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: \"%.200s\": one name on each side of -> is needed, without blanks", map->where,
                          at, shown);
    if (!out && (stars(ours) > stars(theirs) || stars(theirs) > STARS))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: \"%.200s\": more stars on the right than on the left, or more than %d",
                          map->where, at, shown, STARS);
    sodet_status s = sd_grow(&map->rules, &map->capacity, map->n + 1, sizeof *map->rules, err);
    r.theirs = sd_pool_strdup(&map->pool, theirs);
    r.ours = out ? NULL : sd_pool_strdup(&map->pool, ours);
    if (s == SODET_OK && (!r.theirs || (!out && !r.ours)))
        s = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", map->where);
    if (s == SODET_OK)
        map->rules[map->n++] = r;
    return s;
}

sodet_status sd_name_map_parse(const char *text, const char *where, sd_name_map **out, sodet_err *err)
{
    *out = NULL;
    sd_name_map *map = sd_alloc(1, sizeof *map);
    char *copy = sd_strdup(text), *rest = copy;
    sodet_status s = SODET_OK;
    if (!map || !copy || !(map->where = sd_pool_strdup(&map->pool, where)))
        s = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", where);
    uint64_t line = 0;
    for (char *row; s == SODET_OK && (row = strsep(&rest, "\n"));)
        s = parse_line(map, ++line, row, err);
    if (s == SODET_OK && map->n == 0)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: a name map without a line", where);
    sd_free(copy);
    if (s == SODET_OK)
        *out = map;
    else
        sd_name_map_free(map);
    return s;
}

sodet_status sd_name_map_read(const char *path, sd_name_map **out, sodet_err *err)
{
    char *text;
    uint64_t n;
    *out = NULL;
    sodet_status s = sd_file_read(path, 16 << 20, &text, &n, err);
    if (s == SODET_OK && memchr(text, '\0', n))
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: holds a zero byte, a text file is needed", path);
    if (s == SODET_OK)
        s = sd_name_map_parse(text, path, out, err);
    sd_free(text);
    return s;
}

void sd_name_map_free(sd_name_map *map)
{
    if (!map)
        return;
    sd_free(map->rules);
    sd_pool_clear(&map->pool);
    sd_free(map);
}

static char *fill_stars(const char *ours, const piece *star, sd_pool *pool)
{
    size_t n = strlen(ours) + 1, k = 0;
    for (const char *p = ours; *p; p++)
        n += *p == '*' ? star[k++].n : 0;
    char *out = sd_pool_alloc(pool, n), *to = out;
    k = 0;
    for (const char *p = ours; out && *p; p++) {
        if (*p == '*') {
            memcpy(to, star[k].text, star[k].n);
            to += star[k++].n;
        } else
            *to++ = *p;
    }
    return out;
}

int sd_name_map_find(const sd_name_map *map, const char *theirs, sd_pool *pool, sd_map_hit *hit)
{
    piece star[STARS];
    for (uint64_t i = 0; i < map->n; i++) {
        const rule *r = &map->rules[i];
        if (!match(r->theirs, theirs, star, 0))
            continue;
        *hit = (sd_map_hit){.flags = r->flags, .n_axes = r->n_axes, .line = r->line};
        memcpy(hit->axes, r->axes, sizeof hit->axes);
        if (!r->ours)
            return SD_MAP_LEFT_OUT;
        hit->ours = fill_stars(r->ours, star, pool);
        return hit->ours ? SD_MAP_HIT : SD_MAP_NO_MEMORY;
    }
    return SD_MAP_NO_LINE;
}

const char *sd_name_map_where(const sd_name_map *map)
{
    return map->where;
}
