/* labels: threads */
/* Long arrays by several threads: what one thread reads, whatever stands in strings and inside elements, behind the array, or is wrong. */
#include "core/base/json.h"

#include "check.h"

typedef struct row {
    int64_t id;
    double value;
    uint64_t text; /* hash of a string */
    uint64_t inner;
} row;

static int mark; /* is handed through */

static void read_row(sd_json *j, void *context, void *to)
{
    row *r = to;
    sd_json_string key;
    bool has_id = false;
    r->inner = r->id != 0 || r->text != 0 || r->inner != 0 || context != &mark ? 1000 : 0; /* a row is zero before */
    for (sd_json_enter(j, '{'); sd_json_key(j, &key);) {
        if (sd_json_is(key, "id")) {
            r->id = sd_json_int64(j);
            has_id = true;
        } else if (sd_json_is(key, "value"))
            r->value = sd_json_double(j);
        else if (sd_json_is(key, "text")) {
            sd_json_string s = sd_json_text(j);
            r->text = sd_fnv1a64(s.text, s.n, SD_FNV_START);
        } else if (sd_json_is(key, "inner"))
            for (sd_json_enter(j, '['); sd_json_item(j); r->inner++)
                sd_json_skip(j);
        else
            sd_json_skip(j);
    }
    if (!has_id)
        sd_json_fail(j, "an entry without id");
}

/* What pieces are compared with: rows one by one, without the function that is tested. */
static sodet_status plain(const char *text, uint64_t n, row **rows, uint64_t *n_rows, sodet_err *err)
{
    sd_json j;
    sd_json_string key;
    uint64_t capacity = 0;
    *rows = NULL;
    *n_rows = 0;
    sd_json_open(&j, "rows", text, n, err);
    for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
        if (!sd_json_is(key, "list")) {
            sd_json_skip(&j);
            continue;
        }
        for (sd_json_enter(&j, '['); sd_json_item(&j);) {
            if (sd_grow(rows, &capacity, *n_rows + 1, sizeof **rows, err) != SODET_OK)
                return SODET_E_MEMORY;
            memset(&(*rows)[*n_rows], 0, sizeof **rows);
            read_row(&j, &mark, &(*rows)[(*n_rows)++]);
        }
    }
    return sd_json_close(&j);
}

static sodet_status by_threads(const char *text, uint64_t n, uint32_t threads, sd_json_rows *out, sodet_err *err)
{
    sd_json j;
    sd_json_string key;
    *out = (sd_json_rows){.n = 0};
    sd_json_open(&j, "rows", text, n, err);
    for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
        if (sd_json_is(key, "list"))
            sd_json_read_rows(&j, threads, sizeof(row), read_row, &mark, out);
        else
            sd_json_skip(&j);
    }
    return sd_json_close(&j);
}

/* Rows, or the error to the letter, for the first numbers of threads. Returns how many pieces two threads made. */
static uint64_t same(const char *what, const char *text, uint64_t n, uint32_t ways)
{
    sodet_err want_err = SODET_ERR_INIT, err = SODET_ERR_INIT;
    row *want;
    uint64_t n_want, pieces = 0; /* of two threads */
    sodet_status status = plain(text, n, &want, &n_want, &want_err);
    static const uint32_t threads[] = {2, 1, 3, 1000};
    for (uint32_t t = 0; t < ways; t++) {
        sd_json_rows got;
        uint64_t at = 0, differ = 0;
        err = (sodet_err)SODET_ERR_INIT;
        sodet_status s = by_threads(text, n, threads[t], &got, &err);
        for (uint64_t p = 0; p < got.n_pieces; p++) {
            differ += got.pieces[p].first != at || got.pieces[p].n == 0;
            differ += at + got.pieces[p].n > n_want || memcmp(got.pieces[p].rows, want + at, got.pieces[p].n * sizeof *want) != 0;
            at += got.pieces[p].n;
        }
        check_count();
        if (s != status || (s == SODET_OK && (differ || at != n_want || got.n != n_want)) || strcmp(err.text, want_err.text) != 0)
            check_fail(__FILE__, __LINE__, "%s, %u threads: status %d, %llu rows, \"%s\"; expected %d, %llu, \"%s\"", what, threads[t],
                       (int)s, (unsigned long long)got.n, err.text, (int)status, (unsigned long long)n_want, want_err.text);
        pieces = threads[t] == 2 ? got.n_pieces : pieces;
        sd_json_rows_free(&got);
    }
    sd_free(want);
    return pieces;
}

static void put(sd_text *t, uint64_t i, uint64_t r)
{
    static const char *const texts[] = {"plain", "},{", "}, {\\\"id\\\": 7}, {", "\\u007d,{\\\\", ""};
    sd_text_printf(t, "%s{\"text\": \"%s\",\"value\":%.3f", i ? (r % 7 ? ", " : " ,\n\t") : "", texts[r % 5], (double)(r % 100000) / 1000);
    if (r % 3 == 0)
        sd_text_printf(t, ",\"inner\":[{\"id\":1},{\"id\":2}, {\"id\":[{},{}]}]");
    sd_text_printf(t, "%s, \"id\" : %llu}", r % 11 ? "" : ", \"other\": {\"a\":{},\"b\":[]}", (unsigned long long)(i + 1) * 3);
}

static void list(sd_text *t, const char *name, uint64_t n)
{
    sd_text_printf(t, "\"%s\": [", name);
    for (uint64_t i = 0; i < n; i++)
        put(t, i, sd_mix64(i));
    sd_text_printf(t, "]");
}

static void good(void)
{
    static const uint64_t sizes[] = {0, 1, 2, 5000, 60000};
    for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        sd_text t = {0};
        sd_text_printf(&t, "{");
        list(&t, "before", 3000);
        sd_text_printf(&t, ", ");
        list(&t, "list", sizes[k]);
        sd_text_printf(&t, ", ");
        list(&t, "behind", 20000); /* which pieces behind the array's end read for nothing */
        sd_text_printf(&t, "}");
        CHECK(!t.failed);
        same("lists", t.text, t.length, 4);
        sd_text_free(&t);
    }
    /* Where every guess is right, each piece of a wave counts. */
    sd_text plain_list = {0};
    for (uint32_t i = 0; i < 60000; i++)
        sd_text_printf(&plain_list, "%s{\"id\": %u, \"value\": 0.25}", i ? ", " : "{\"list\": [", i + 1);
    sd_text_printf(&plain_list, "]}");
    uint64_t pieces = same("plain", plain_list.text, plain_list.length, 4);
    CHECK_EQ(pieces, 13); /* eight of the first million bytes, five of the rest */
    sd_text_free(&plain_list);
    /* Two lists append to one another; an empty array and none. */
    static const char *const small[] = {"{\"list\": [{\"id\": 1}], \"list\" :[ {\"id\":2} ,{\"id\":3}]}",
                                        "{\"list\":[]}",
                                        "{\"list\": [ ] }",
                                        "{}",
                                        "{\"list\": [1]}",
                                        "{\"list\": [{\"id\": 1},]}",
                                        "{\"list\": [{\"id\": 1}",
                                        "{\"list\": {}}",
                                        "{\"list\": [{}]}",
                                        "{\"list\": [{\"id\": 1}}]"};
    for (uint32_t i = 0; i < sizeof small / sizeof *small; i++)
        same(small[i], small[i], strlen(small[i]), 4);
}

/* Every guess falls into one element: into a string, or between objects that are not the array's. */
static void wrong_guesses(void)
{
    for (uint32_t k = 0; k < 3; k++) {
        sd_text t = {0};
        sd_text_printf(&t, "{\"list\": [");
        for (uint64_t i = 0; i < 40; i++)
            put(&t, i, sd_mix64(i));
        sd_text_printf(&t, k == 0 ? ",{\"id\": 5, \"text\": \"" : ",{\"id\": 5, \"inner\": [{}");
        for (uint32_t i = 0; i < 150000; i++)
            sd_text_printf(&t, k == 0 ? "},{\\\"id\\\": %u}" : ",{\"id\": %u}", i);
        sd_text_printf(&t, k == 0 ? "\"}" : "]}");
        for (uint64_t i = 1; i < 30000; i++)
            put(&t, i, sd_mix64(i));
        sd_text_printf(&t, k == 2 ? ", {\"id\": no}]}" : "]}");
        CHECK(!t.failed);
        same("wrong guesses", t.text, t.length, 3);
        sd_text_free(&t);
    }
}

static void damaged(void)
{
    sd_text t = {0};
    sd_text_printf(&t, "{");
    list(&t, "list", 16000);
    sd_text_printf(&t, "}");
    uint64_t seed = 3, refused = 0;
    printf("damage: seed %llu, %.1f MB\n", (unsigned long long)seed, (double)t.length / 1e6);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = sd_mix64(seed + i) % t.length, n = i % 4 ? t.length : at;
        char was = t.text[at], end = t.text[n];
        if (i % 4)
            t.text[at] = "{}[],:\"\\x0"[sd_mix64(seed * 7 + i) % 10];
        t.text[n] = 0;
        row *rows;
        uint64_t n_rows;
        sodet_err err = SODET_ERR_INIT;
        refused += plain(t.text, n, &rows, &n_rows, &err) != SODET_OK;
        sd_free(rows);
        same("damaged", t.text, n, 1);
        t.text[n] = end;
        t.text[at] = was;
    }
    CHECK(refused >= 20);
    sd_text_free(&t);
}

int main(void)
{
    good();
    wrong_guesses();
    damaged();
    return check_done(100);
}
