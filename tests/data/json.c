/* The JSON reader: what is accepted, what is refused and where, exact numbers against strtod, depth, damage, speed. */
#include "core/base/json.h"

#include <float.h>

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

static double number(const char *text)
{
    sd_json j;
    sd_json_open(&j, "n", text, strlen(text), &err);
    double v = sd_json_double(&j);
    return sd_json_close(&j) == SODET_OK ? v : NAN;
}

static void numbers(void)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "1",
                                       "10",
                                       "-12.5",
                                       "1e3",
                                       "1E+3",
                                       "2.5e-3",
                                       "0.1",
                                       "123456789012345",
                                       "9007199254740993",
                                       "0.30000000000000004",
                                       "1.7976931348623157e308",
                                       "5e-324",
                                       "2.2250738585072011e-308",
                                       "0.9876543283462524",
                                       "1e22",
                                       "1e23",
                                       "8.5e-27",
                                       "123456789012345678901234567890",
                                       "0.000000000000000000000000000001",
                                       "1.00000000000000000000000000000000001",
                                       "9007199254740992.5",
                                       "9007199254740993.5",
                                       "4503599627370496.5",
                                       "100000000000000000000000e-20"};
    for (uint32_t i = 0; i < sizeof good / sizeof *good; i++) {
        double got = number(good[i]), want = strtod(good[i], NULL);
        CHECK(memcmp(&got, &want, sizeof got) == 0);
        if (memcmp(&got, &want, sizeof got) != 0)
            fprintf(stderr, "  %s: %.17g, strtod has %.17g\n", good[i], got, want);
    }
    /* Random ones as programs print them: seed 1 .. 150,000. */
    uint32_t wrong = 0;
    for (uint64_t i = 1; i <= 150000; i++) {
        char text[64];
        double scale = (double[]){1, 1e-3, 1e3, 1e6, 1e-9}[i % 5], v = (double)(sd_mix64(i) >> 11) * 0x1p-53 * scale;
        snprintf(text, sizeof text, i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.2f" : "%.19f", v);
        double got = number(text), want = strtod(text, NULL);
        wrong += memcmp(&got, &want, sizeof got) != 0;
    }
    CHECK_EQ(wrong, 0);
    static const char *const bad[] = {"01",       "1.",        ".5",   "+1",  "1e",    "1e+", "-", "--1", "NaN",
                                      "Infinity", "-Infinity", "0x10", "1 2", "1e999", "1,",  "",  "1a"};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(isnan(number(bad[i])));
    sd_json j;
    static const struct {
        const char *text;
        int64_t want;
    } integers[] = {{"12", 12}, {"-7", -7}, {"12.0", 12}, {"1.2e1", 12}, {"20180000001", 20180000001}, {"9223372036854775807", INT64_MAX},
                    {"0", 0}};
    for (uint32_t i = 0; i < 7; i++) {
        sd_json_open(&j, "i", integers[i].text, strlen(integers[i].text), &err);
        CHECK_EQ(sd_json_int64(&j), integers[i].want);
        CHECK_OK(sd_json_close(&j));
    }
    static const char *const no_integers[] = {"1.5", "1e300", "\"1\"", "99999999999999999999", "007"};
    for (uint32_t i = 0; i < 5; i++) {
        sd_json_open(&j, "i", no_integers[i], strlen(no_integers[i]), &err);
        sd_json_int64(&j);
        CHECK_FAILS(sd_json_close(&j), SODET_E_INVALID, "");
    }
}

/* Any value, with every number and string read. */
static uint64_t walk(sd_json *j)
{
    uint64_t n = 1;
    sd_json_string s;
    switch (sd_json_peek(j)) {
    case '{':
        for (sd_json_enter(j, '{'); sd_json_key(j, &s);)
            n += walk(j);
        break;
    case '[':
        for (sd_json_enter(j, '['); sd_json_item(j);)
            n += walk(j);
        break;
    case '"':
        sd_json_text(j);
        break;
    case '0':
        sd_json_double(j);
        break;
    case 't':
    case 'f':
        sd_json_bool(j);
        break;
    case 'n':
        sd_json_null(j);
        break;
    default:
        break;
    }
    return n;
}

static sodet_status both(const char *text, bool skip)
{
    sd_json j;
    sd_json_open(&j, "file.json", text, strlen(text), &err);
    if (skip)
        sd_json_skip(&j);
    else
        walk(&j);
    return sd_json_close(&j);
}

static void structure(void)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " [ 1 , 2 ] ",
                                       "{\"a\":{\"b\":[{},[],[[]]]}}",
                                       "\"x\"",
                                       "true",
                                       "null",
                                       "\xef\xbb\xbf[1]",
                                       "[\"]\", \"}\", \"\\\"\"]",
                                       "{\"a\":1,\"a\":2}",
                                       "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]"};
    for (uint32_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_OK(both(good[i], false));
        CHECK_OK(both(good[i], true));
    }
    static const char *const bad[] = {"",        "{",          "[",           "[1",          "[1,]",        "{\"a\"}", "{\"a\":}",
                                      "{a:1}",   "{\"a\":1,}", "[1 2]",       "[1}",         "{]",          "]",       "\"x",
                                      "\"\\q\"", "\"\\u12\"",  "\"\\ud800\"", "\"\\udc00\"", "\"\\u0000\"", "tru",     "[1]]",
                                      "// x\n1", "\"a\nb\"",   "['a']"};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(both(bad[i], false), SODET_E_INVALID, "file.json, line ");
    static const char *const unbalanced[] = {"{", "[", "[1", "[1}", "{]", "[{]}", "\"x", "[\"x]", "[1]]", ""};
    for (uint32_t i = 0; i < sizeof unbalanced / sizeof *unbalanced; i++)
        CHECK_FAILS(both(unbalanced[i], true), SODET_E_INVALID, "file.json, line ");
    CHECK_FAILS(both("{\"a\": 1,\n \"b\": NaN}", false), SODET_E_INVALID, "line 2, byte 15: expected a value, found 'NaN}'");
    CHECK_FAILS(both("[1, \033[2J]", false), SODET_E_INVALID, "expected a value, found byte 0x1b"); /* no terminal is to obey a file */
    CHECK_FAILS(both("[1, \377]", false), SODET_E_INVALID, "expected a value, found byte 0xff");
    CHECK_FAILS(both("[1, N\033[2J]", false), SODET_E_INVALID, "expected a value, found 'N'");
    char deep[300];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    deep[200] = 0;
    CHECK_FAILS(both(deep, false), SODET_E_INVALID, "64 levels");
    CHECK_FAILS(both(deep, true), SODET_E_INVALID, "64 levels");
    sd_json j;
    sd_pool pool = {0};
    const char *text = "[\"plain\", \"a\\\"b\\\\c\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20ac\\ud83d\\ude00\", \"d\\u006fg\"]";
    static const char *const want[] = {"plain", "a\"b\\c/\b\f\n\r\t", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "dog"};
    sd_json_open(&j, "s", text, strlen(text), &err);
    uint32_t n = 0;
    for (sd_json_enter(&j, '['); sd_json_item(&j); n++)
        CHECK_STR(sd_json_copy(&j, &pool, sd_json_text(&j)), n < 4 ? want[n] : "");
    CHECK_EQ(n, 4);
    CHECK_OK(sd_json_close(&j));
    sd_pool_clear(&pool);
}

/* Damaged text: an error or not, but an end, and nothing outside the text is read (the sanitizers watch). */
static void damage(void)
{
    const char *text =
        "{\"images\":[{\"id\":1,\"file_name\":\"a\\u00e9.jpg\",\"width\":500}],\"annotations\":[{\"bbox\":[1.5,2,3e1,-4],\"iscrowd\":0,"
        "\"segmentation\":[[1,2,3,4],{\"counts\":\"ab[]{}\"}]}],\"x\":[true,false,null]}";
    uint64_t n = strlen(text), seed = 5;
    printf("damage: seed %llu\n", (unsigned long long)seed);
    uint32_t failed = 0;
    for (uint64_t i = 0; i < 30000; i++) {
        uint64_t length = i % 4 ? n : sd_mix64(seed + i) % n;
        char *copy = malloc(length + 1); /* of its own, so that a read behind it is seen */
        memcpy(copy, text, length);
        copy[length] = 0;
        for (uint64_t k = 0; length && k < 1 + i % 3; k++)
            copy[sd_mix64(i * 7 + k) % length] = (char)sd_mix64(i * 11 + k);
        sd_json j;
        err = (sodet_err)SODET_ERR_INIT;
        sd_json_open(&j, "d", copy, length, &err);
        if (i % 2)
            sd_json_skip(&j);
        else
            walk(&j);
        failed += sd_json_close(&j) != SODET_OK;
        free(copy);
    }
    CHECK(failed > 1000);
}

/* A COCO-like file of 40 MB: polygons skipped, the rest read. */
static void speed(void)
{
    sd_text t = {0};
    uint64_t r = 1;
    sd_text_printf(&t, "{\"annotations\":[");
    for (uint32_t i = 0; i < 60000; i++) {
        sd_text_printf(&t, "%s{\"segmentation\": [[", i ? ", " : "");
        for (uint32_t k = 0; k < 60; k++)
            sd_text_printf(&t, "%s%.2f", k ? ", " : "", (double)((r = sd_mix64(r)) % 64000) / 100);
        sd_text_printf(
            &t,
            "]], \"area\": %.4f, \"iscrowd\": 0, \"image_id\": %u, \"bbox\": [%.2f, %.2f, %.2f, %.2f], \"category_id\": %u, \"id\": %u}",
            (double)(r % 9999999) / 1000, i / 7, (double)(r % 640), (double)(r % 480), (double)(r % 64) + 1, (double)(r % 48) + 1,
            1 + i % 90, i);
    }
    sd_text_printf(&t, "]}");
    CHECK(!t.failed);
    double best = 1e9, sum = 0;
    for (uint32_t round = 0; round < 3; round++) {
        double start = sd_now();
        sd_json j;
        sd_json_string key;
        sd_json_open(&j, "big", t.text, t.length, &err);
        for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
            for (sd_json_enter(&j, '['); sd_json_item(&j);) {
                for (sd_json_enter(&j, '{'); sd_json_key(&j, &key);) {
                    if (sd_json_is(key, "segmentation"))
                        sd_json_skip(&j);
                    else
                        sum += (double)walk(&j);
                }
            }
        }
        CHECK_OK(sd_json_close(&j));
        double s = sd_now() - start;
        best = s < best ? s : best;
    }
    printf("json: %.0f MB/s over %.1f MB with polygons skipped\n", (double)t.length / best / 1e6, (double)t.length / 1e6);
    CHECK_EQ(sum, 3 * 60000 * 10); /* five values and one list of four */
    sd_text_free(&t);
}

int main(void)
{
    numbers();
    structure();
    damage();
    speed();
    return check_done(120);
}
