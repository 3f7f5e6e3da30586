#include "golden.h"

#include <stdarg.h>

/* ---- trees ---- */
typedef enum { GOLD_NULL, GOLD_BOOL, GOLD_NUMBER, GOLD_TEXT, GOLD_LIST, GOLD_OBJECT } gold_kind;
struct gold {
    gold_kind kind;
    double number;
    char *text;
    gold *items; /* of a list or an object */
    char **keys; /* of an object */
    uint64_t n;
};

static const gold null_node = {.kind = GOLD_NULL};

static void clear(gold *g)
{
    for (uint64_t i = 0; i < g->n; i++) {
        clear(&g->items[i]);
        if (g->keys)
            free(g->keys[i]);
    }
    free(g->items);
    free(g->keys);
    free(g->text);
}

static void skip(const char **p)
{
    while (**p == ' ' || **p == '\n' || **p == '\r' || **p == '\t')
        (*p)++;
}

/* The files have no \u escapes. */
static char *parse_text(const char **p)
{
    const char *begin = ++*p;
    while (**p && **p != '"')
        *p += **p == '\\' && (*p)[1] ? 2 : 1;
    if (**p != '"')
        return NULL;
    char *out = malloc((size_t)(*p - begin) + 1), *to = out;
    for (const char *from = begin; out && from < *p; from++) {
        if (*from == '\\') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        } else
            *to++ = *from;
    }
    if (out)
        *to = '\0';
    (*p)++;
    return out;
}

static bool parse(const char **p, gold *out, int depth);

static bool parse_items(const char **p, gold *out, int depth)
{
    char close = **p == '[' ? ']' : '}';
    uint64_t capacity = 0;
    out->kind = close == ']' ? GOLD_LIST : GOLD_OBJECT;
    (*p)++;
    skip(p);
    if (**p == close) {
        (*p)++;
        return true;
    }
    for (;;) {
        if (out->n == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            gold *items = realloc(out->items, capacity * sizeof *items);
            char **keys = close == '}' ? realloc(out->keys, capacity * sizeof *keys) : NULL;
            if (items)
                out->items = items;
            if (keys)
                out->keys = keys;
            if (!items || (close == '}' && !keys))
                return false;
        }
        char *key = NULL;
        if (close == '}') {
            skip(p);
            if (**p != '"' || !(key = parse_text(p)))
                return false;
            skip(p);
            if (*(*p)++ != ':') {
                free(key);
                return false;
            }
        }
        if (out->keys)
            out->keys[out->n] = key;
        out->items[out->n] = null_node;
        out->n++;
        if (!parse(p, &out->items[out->n - 1], depth + 1))
            return false;
        skip(p);
        char c = *(*p)++;
        if (c == close)
            return true;
        if (c != ',')
            return false;
    }
}

static bool parse(const char **p, gold *out, int depth)
{
    skip(p);
    if (depth > 100)
        return false;
    if (**p == '[' || **p == '{')
        return parse_items(p, out, depth);
    if (**p == '"') {
        out->kind = GOLD_TEXT;
        return (out->text = parse_text(p)) != NULL;
    }
    static const struct {
        const char *word;
        gold_kind kind;
        double number;
    } words[] = {{"true", GOLD_BOOL, 1},
                 {"false", GOLD_BOOL, 0},
                 {"null", GOLD_NULL, 0},
                 {"NaN", GOLD_NUMBER, (double)NAN},
                 {"Infinity", GOLD_NUMBER, (double)INFINITY},
                 {"-Infinity", GOLD_NUMBER, -(double)INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(*p, words[i].word, strlen(words[i].word)) == 0) {
            out->kind = words[i].kind;
            out->number = words[i].number;
            *p += strlen(words[i].word);
            return true;
        }
    char *end;
    out->number = strtod(*p, &end);
    out->kind = GOLD_NUMBER;
    bool good = end != *p;
    *p = end;
    return good;
}

const gold *gold_open(const char *file)
{
    char relative[300];
    snprintf(relative, sizeof relative, "tests/golden/%s", file);
    return gold_read(check_source(relative), relative);
}

const gold *gold_read(const char *path, const char *relative)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    check_count();
    if (!f) {
        check_fail(__FILE__, __LINE__, "%s is missing (SODET_SOURCE names the source tree, SODET_SHARED the data)", relative);
        return NULL;
    }
    char *text = NULL;
    size_t n = 0, capacity = 1 << 16;
    do {
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown)
            break;
        text = grown;
        n += fread(text + n, 1, capacity - n - 1, f);
    } while (n == capacity - 1);
    fclose(f);
    gold *root = calloc(1, sizeof *root);
    if (text && root) {
        text[n] = '\0';
        const char *p = text;
        bool good = parse(&p, root, 0);
        skip(&p);
        if (!good || *p) {
            check_fail(__FILE__, __LINE__, "%s: not JSON at byte %ld", relative, (long)(p - text));
            gold_close(root);
            root = NULL;
        }
    }
    free(text);
    return root;
}

void gold_close(const gold *root)
{
    if (!root)
        return;
    gold *g = (gold *)(uintptr_t)root;
    clear(g);
    free(g);
}

const gold *gold_try(const gold *node, const char *key)
{
    for (uint64_t i = 0; node && node->keys && i < node->n; i++)
        if (strcmp(node->keys[i], key) == 0)
            return &node->items[i];
    return NULL;
}

const gold *gold_get(const gold *node, const char *key)
{
    const gold *found = gold_try(node, key);
    if (!found)
        check_fail(__FILE__, __LINE__, "golden data: no member \"%s\"", key);
    return found ? found : &null_node;
}

const gold *gold_at(const gold *node, uint64_t i)
{
    if (node && i < node->n)
        return &node->items[i];
    check_fail(__FILE__, __LINE__, "golden data: no element %llu", (unsigned long long)i);
    return &null_node;
}

const gold *gold_path(const gold *node, ...)
{
    va_list list;
    va_start(list, node);
    for (const char *key; (key = va_arg(list, const char *));)
        node = key[0] == '#' ? gold_at(node, strtoull(key + 1, NULL, 10)) : gold_get(node, key);
    va_end(list);
    return node ? node : &null_node;
}

const char *gold_key(const gold *node, uint64_t i)
{
    return node && node->keys && i < node->n ? node->keys[i] : "";
}

uint64_t gold_size(const gold *node)
{
    return node ? node->n : 0;
}

bool gold_is_number(const gold *node)
{
    return node && node->kind == GOLD_NUMBER;
}

bool gold_is_list(const gold *node)
{
    return node && node->kind == GOLD_LIST;
}

bool gold_is_object(const gold *node)
{
    return node && node->kind == GOLD_OBJECT;
}

double gold_number(const gold *node)
{
    return node && (node->kind == GOLD_NUMBER || node->kind == GOLD_BOOL) ? node->number : (double)NAN;
}

const char *gold_text(const gold *node)
{
    return node && node->text ? node->text : "";
}

static uint64_t flatten(const gold *node, double *out)
{
    if (!node || (node->kind != GOLD_LIST && node->kind != GOLD_NUMBER && node->kind != GOLD_BOOL))
        return 0;
    if (node->kind != GOLD_LIST) {
        if (out)
            *out = node->number;
        return 1;
    }
    uint64_t n = 0;
    for (uint64_t i = 0; i < node->n; i++)
        n += flatten(&node->items[i], out ? out + n : NULL);
    return n;
}

double *gold_numbers(const gold *node, uint64_t *n)
{
    uint64_t count = flatten(node, NULL);
    double *out = malloc((count + 1) * sizeof *out);
    if (out)
        flatten(node, out);
    if (n)
        *n = out ? count : 0;
    return out;
}

/* ---- the formula ---- */
#define GOLDEN_RATIO 0x9E3779B97F4A7C15ull

uint64_t gold_fnv1a64(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001B3ull;
    return h;
}

uint64_t gold_mix(uint64_t x)
{
    uint64_t z = x + GOLDEN_RATIO;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static uint64_t hash_at(uint64_t h, uint64_t i)
{
    return gold_mix(h ^ (i * GOLDEN_RATIO));
}

uint64_t gold_hash(const char *name, uint64_t i)
{
    return hash_at(gold_fnv1a64(name), i);
}

static double u_of(uint64_t hash)
{
    return (double)(hash >> 40) / 16777216.0;
}

double gold_u(const char *name, uint64_t i)
{
    return u_of(gold_hash(name, i));
}

double gold_u53(const char *name, uint64_t i)
{
    return (double)(gold_hash(name, i) >> 11) / 9007199254740992.0;
}

uint64_t gold_sample(uint64_t k, uint64_t n)
{
    return gold_mix(k) % n;
}

void gold_fill_u(float *out, uint64_t n, const char *name)
{
    uint64_t h = gold_fnv1a64(name);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)u_of(hash_at(h, i));
}

void gold_fill(float *out, uint64_t n, const char *name, double scale)
{
    uint64_t h = gold_fnv1a64(name);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)((u_of(hash_at(h, i)) - 0.5) * 2 * scale);
}

static bool ends(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);
    return n >= m && strcmp(name + n - m, tail) == 0;
}

void gold_fill_state(float *out, const char *name, const uint64_t *dims, uint32_t rank, double gain, bool norm)
{
    uint64_t n = 1, fan_in = 1;
    for (uint32_t i = 0; i < rank; i++) {
        n *= dims[i];
        fan_in *= i ? dims[i] : 1;
    }
    if (ends(name, "scale_weight")) {
        for (uint64_t i = 0; i < n; i++)
            out[i] = 20;
        return;
    }
    if (rank >= 2 && ends(name, "weight")) {
        gold_fill(out, n, name, sqrt(6.0 / (double)fan_in) * gain);
        return;
    }
    double start = 0, scale = 0.05;
    if (ends(name, "running_mean"))
        scale = 0.1;
    else if (ends(name, "running_var"))
        start = 1, scale = 0.2;
    else if (ends(name, "weight"))
        start = 1, scale = 0.1;
    else if (norm)
        scale = 0.1;
    uint64_t h = gold_fnv1a64(name);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)(start + scale * (2 * u_of(hash_at(h, i)) - 1));
}

/* ---- comparison ---- */
static void note(gold_tally *t, const char *what, double error)
{
    if (!(error <= t->worst)) {
        t->worst = error;
        snprintf(t->worst_at, sizeof t->worst_at, "%s", what);
    }
}

static void settle(gold_tally *t, const char *what, bool good, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void settle(gold_tally *t, const char *what, bool good, const char *format, ...)
{
    t->records++;
    check_count();
    if (good)
        return;
    t->failed++;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (t->failed <= 20)
        check_fail("golden", (int)t->records, "%s: %s: %s", t->name, what, text);
    else
        check_fail("golden", (int)t->records, "%s: %s", t->name, what);
}

/* Either got or got32 is given. */
typedef struct values {
    const double *f64;
    const float *f32;
    uint64_t n;
} values;

static double value(const values *v, uint64_t i)
{
    return v->f64 ? v->f64[i] : (double)v->f32[i];
}

static bool near(double got, double want, double allowed)
{
    return isfinite(got) && fabs(got - want) <= allowed;
}

/* more: what each value may be off beyond that; NULL: nothing. */
static void compare(gold_tally *t, const char *what, const gold *record, const values *got, double tolerance, const float *more)
{
    const gold *all = gold_try(record, "values"), *some = gold_try(record, "samples"), *largest = gold_try(record, "max");
    const gold *list = all ? all : some, *shape = gold_try(record, "shape");
    uint64_t n = got->n, expected = 1;
    for (uint64_t i = 0; i < gold_size(shape); i++)
        expected *= (uint64_t)gold_number(gold_at(shape, i));
    if (!list || (shape && expected != n) || (all && gold_size(all) != n)) {
        settle(t, what, false, "%s; %llu values were given, the record has %llu",
               list ? "wrong size" : "the record has neither samples nor values", (unsigned long long)n,
               (unsigned long long)(shape ? expected : gold_size(all)));
        return;
    }
    double max = gold_number(largest);
    if (!largest) {
        max = 0;
        for (uint64_t i = 0; i < gold_size(list); i++)
            max = fmax(max, fabs(gold_number(gold_at(list, i))));
    }
    double unit = max > 0 ? max : 1, allowed = tolerance * unit, summed = allowed * fmin((double)n, 20 * sqrt((double)n)), worst = 0;
    uint64_t at = 0;
    double most_more = 0;
    for (uint64_t i = 0; more && i < n; i++) {
        most_more = fmax(most_more, (double)more[i]);
        summed += (double)more[i];
    }
    for (uint64_t k = 0; k < gold_size(list); k++) {
        uint64_t i = all ? k : gold_sample(k, n);
        double e = fabs(value(got, i) - gold_number(gold_at(list, k))) / unit;
        if (more && e <= tolerance + (double)more[i] / unit)
            continue;
        if (!(e <= worst)) {
            worst = isnan(e) ? (double)INFINITY : e;
            at = k;
        }
    }
    double sum = 0, abs_sum = 0, top = 0;
    for (uint64_t i = 0; i < n; i++) {
        double x = value(got, i);
        sum += x;
        abs_sum += fabs(x);
        top = fmax(top, fabs(x));
    }
    note(t, what, worst);
    const gold *want_sum = gold_try(record, "sum"), *want_abs = gold_try(record, "abs");
    bool good_samples = worst <= tolerance, good_max = !largest || near(top, max, allowed + most_more);
    bool good_sum = !want_sum || near(sum, gold_number(want_sum), summed),
         good_abs = !want_abs || near(abs_sum, gold_number(want_abs), summed);
    uint64_t i = all ? at : gold_sample(at, n);
    settle(t, what, good_samples && good_max && good_sum && good_abs,
           "%s%s%s%sworst value [%llu] = %.9g, expected %.9g (%.2g of max %.3g, allowed %.2g); sum %.9g, expected %.9g; abs %.9g, expected "
           "%.9g",
           good_samples ? "" : "values, ", good_max ? "" : "max, ", good_sum ? "" : "sum, ", good_abs ? "" : "abs, ", (unsigned long long)i,
           value(got, i), gold_number(gold_at(list, at)), worst, max, tolerance, sum, gold_number(want_sum), abs_sum,
           gold_number(want_abs));
}

void gold_compare(gold_tally *t, const char *what, const gold *record, const float *got, uint64_t n, double tolerance)
{
    compare(t, what, record, &(values){.f32 = got, .n = n}, tolerance, NULL);
}

void gold_compare_each(gold_tally *t, const char *what, const gold *record, const float *got, uint64_t n, double tolerance,
                       const float *more)
{
    compare(t, what, record, &(values){.f32 = got, .n = n}, tolerance, more);
}

void gold_compare_double(gold_tally *t, const char *what, const gold *record, const double *got, uint64_t n, double tolerance)
{
    compare(t, what, record, &(values){.f64 = got, .n = n}, tolerance, NULL);
}

static void compare_list(gold_tally *t, const char *what, const gold *list, const values *got, double tolerance, double absolute)
{
    uint64_t count;
    double *want = gold_numbers(list, &count);
    double max = 0, worst = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++)
        max = fmax(max, fabs(want[i]));
    if (!want || count != got->n || count == 0) {
        settle(t, what, false, "%llu values were given, the list has %llu", (unsigned long long)got->n, (unsigned long long)count);
        free(want);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        double e = fabs(value(got, i) - want[i]);
        if (!(e <= worst)) {
            worst = isnan(e) ? (double)INFINITY : e;
            at = i;
        }
    }
    note(t, what, max > 0 ? worst / max : worst);
    settle(t, what, worst <= tolerance * max + absolute, "[%llu] = %.17g, expected %.17g (off by %.3g, allowed %.3g)",
           (unsigned long long)at, value(got, at), want[at], worst, tolerance * max + absolute);
    free(want);
}

void gold_compare_list(gold_tally *t, const char *what, const gold *list, const double *got, uint64_t n, double tolerance, double absolute)
{
    compare_list(t, what, list, &(values){.f64 = got, .n = n}, tolerance, absolute);
}

void gold_compare_list_f32(gold_tally *t, const char *what, const gold *list, const float *got, uint64_t n, double tolerance,
                           double absolute)
{
    compare_list(t, what, list, &(values){.f32 = got, .n = n}, tolerance, absolute);
}

void gold_compare_number(gold_tally *t, const char *what, double want, double got, double tolerance, double absolute)
{
    double e = fabs(got - want), relative = want != 0 ? e / fabs(want) : e;
    note(t, what, isnan(relative) ? (double)INFINITY : relative);
    settle(t, what, e <= tolerance * fabs(want) + absolute, "%.17g, expected %.17g", got, want);
}

void gold_count(gold_tally *t, const char *what, bool equal)
{
    settle(t, what, equal, "not equal");
}

/* -1: no line for this tally. */
static long long expected_count(const char *name)
{
    const char *path = check_source("tests/golden/expected-counts.txt");
    FILE *f = path ? fopen(path, "r") : NULL;
    char line[300], key[200];
    long long found = -1, count;
    while (f && found < 0 && fgets(line, sizeof line, f))
        if (line[0] != '#' && sscanf(line, "%199s %lld", key, &count) == 2 && strcmp(key, name) == 0)
            found = count;
    if (f)
        fclose(f);
    return found;
}

void gold_done(gold_tally *t)
{
    long long expected = expected_count(t->name);
    printf("golden %s: %llu records, %llu failed, worst relative error %.2g%s%s\n", t->name, (unsigned long long)t->records,
           (unsigned long long)t->failed, t->worst, t->worst > 0 ? " at " : "", t->worst > 0 ? t->worst_at : "");
    check_count();
    if (expected < 0)
        check_fail(__FILE__, __LINE__, "golden %s: no line in tests/golden/expected-counts.txt; add \"%s %llu\"", t->name, t->name,
                   (unsigned long long)t->records);
    else if ((long long)t->records < expected)
        check_fail(__FILE__, __LINE__, "golden %s: %llu records compared, %lld were expected", t->name, (unsigned long long)t->records,
                   expected);
    else if ((long long)t->records > expected)
        printf("golden %s: more than the %lld of tests/golden/expected-counts.txt; raise the number there\n", t->name, expected);
}
