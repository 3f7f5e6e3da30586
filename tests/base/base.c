/* labels: valgrind */
/* core/base: memory, text, numbers, errors, files, hashing, random numbers. */
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/base.h"

static void memory(void)
{
    sodet_err err = SODET_ERR_INIT;
    uint32_t *items = NULL;
    uint64_t capacity = 0;
    CHECK_OK(sd_grow(&items, &capacity, 1, sizeof *items, &err));
    CHECK(capacity >= 1 && items[0] == 0);
    items[0] = 7;
    CHECK_OK(sd_grow(&items, &capacity, 1000, sizeof *items, &err));
    CHECK(capacity >= 1000);
    CHECK_EQ(items[0], 7);
    uint32_t sum = 0;
    for (uint64_t i = 1; i < capacity; i++)
        sum |= items[i];
    CHECK_EQ(sum, 0);
    CHECK_FAILS(sd_grow(&items, &capacity, UINT64_MAX / 2, 64, &err), SODET_E_MEMORY, "out of memory");
    CHECK_EQ(items[0], 7);
    sd_free(items);
    CHECK(sd_alloc(SIZE_MAX / 2, 4) == NULL);

    sd_pool pool = {0};
    char *small = sd_pool_strdup(&pool, "abc"), *large = sd_pool_alloc(&pool, 1 << 20), *next = sd_pool_printf(&pool, "%d-%s", 7, "x");
    CHECK_STR(small, "abc");
    CHECK_STR(next, "7-x");
    CHECK(large && (uintptr_t)large % 16 == 0 && (uintptr_t)next % 16 == 0 && large[0] == 0 && large[(1 << 20) - 1] == 0);
    memset(large, 1, 1 << 20);
    for (int i = 0; i < 5000; i++)
        CHECK(sd_pool_alloc(&pool, 13) != NULL);
    CHECK_STR(small, "abc");
    CHECK_STR(next, "7-x");
    sd_pool_clear(&pool);
    CHECK(pool.blocks == NULL);
}

static void text(void)
{
    sd_text t = {0};
    sd_text_append(&t, "", 0);
    CHECK_STR(t.text, "");
    for (int i = 0; i < 1000; i++)
        sd_text_printf(&t, "%d,", i);
    CHECK_EQ(t.length, 3890);
    CHECK_EQ(strlen(t.text), 3890);
    CHECK(!t.failed);
    sd_text_free(&t);

    static const char *const names[] = {"backbone", "neck", "head", "loss", "transform"};
    CHECK_STR(sd_nearest("backbnoe", names, 5), "backbone");
    CHECK_STR(sd_nearest("BACKBONE", names, 5), "backbone");
    CHECK_STR(sd_nearest("lss", names, 5), "loss");
    CHECK(sd_nearest("zebra", names, 5) == NULL);
    CHECK(sd_nearest("x", names, 5) == NULL);
    CHECK(sd_nearest("head", names, 0) == NULL);
}

static void numbers(void)
{
    double d;
    int64_t i;
    uint64_t u;
    static const char *const bad[] = {"", " 1", "1 ", "1x", "x", "nan", "inf", "-inf", "0x10", "1e", "1e999", "--1", "1,5", "."};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        CHECK(!sd_parse_double(bad[k], &d) && d == 0);
    CHECK(sd_parse_double("-1.5e-3", &d) && d == -1.5e-3);
    CHECK(sd_parse_double(".5", &d) && d == 0.5);
    CHECK(!sd_parse_double(NULL, &d));
    CHECK(sd_parse_int64("010", &i) && i == 10); /* base 10, whatever stands in front */
    CHECK(sd_parse_int64("-9223372036854775808", &i) && i == INT64_MIN);
    CHECK(!sd_parse_int64("9223372036854775808", &i));
    CHECK(!sd_parse_int64("1.0", &i) && !sd_parse_int64("1e3", &i) && !sd_parse_int64("-", &i) && !sd_parse_int64("", &i));
    CHECK(sd_parse_uint64("18446744073709551615", &u) && u == UINT64_MAX);
    CHECK(!sd_parse_uint64("18446744073709551616", &u) && !sd_parse_uint64("-1", &u) && !sd_parse_uint64("+1", &u));
}

static void errors(void)
{
    sodet_err err = SODET_ERR_INIT;
    CHECK_EQ(SODET_FAIL(&err, SODET_E_IO, "a %d", 5), SODET_E_IO);
    CHECK_STR(err.text, "a 5");
    CHECK_EQ(err.code, SODET_E_IO);
    CHECK(strstr(err.file, "base.c") != NULL && err.line > 0);
    CHECK_EQ(sodet_fail(NULL, SODET_E_IO, "x", 1, "nobody listens"), SODET_E_IO);
    SODET_FAIL(&err, SODET_E_INVALID, "inner");
    CHECK_EQ(sd_fail_in(&err, SODET_E_INVALID, "outer %d", 1), SODET_E_INVALID);
    CHECK_STR(err.text, "outer 1: inner");
    CHECK_EQ(sd_fail_in(&err, SODET_E_IO, "outer"), SODET_E_IO);
    CHECK_STR(err.text, "outer: outer 1: inner"); /* another object */
    SODET_FAIL(&err, SODET_E_INVALID, "runs/a/best.safetensors: cut");
    sd_fail_in(&err, SODET_E_INVALID, "runs/a"); /* what is named already is not named twice */
    CHECK_STR(err.text, "runs/a/best.safetensors: cut");
    sd_fail_in(&err, SODET_E_INVALID, "runs/a/best.safetensors");
    CHECK_STR(err.text, "runs/a/best.safetensors: cut");
    SODET_FAIL(&err, SODET_E_INVALID, "inner");
    sd_fail_in(&err, SODET_E_INVALID, "outer 1");
    SODET_FAIL(&err, SODET_E_INVALID, "again: %s", err.text); /* an argument that points into the error itself */
    CHECK_STR(err.text, "again: outer 1: inner");
    SODET_FAIL(&err, SODET_E_INVALID, "two\nlines\tand a tab");
    CHECK(strchr(err.text, '\n') == NULL);
    char large[2000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    SODET_FAIL(&err, SODET_E_INVALID, "%s", large);
    CHECK_EQ(strlen(err.text), sizeof err.text - 1);
    CHECK_STR(err.text + strlen(err.text) - 3, "...");
    for (size_t i = 0; i + 2 < sizeof large; i += 2)
        memcpy(large + i, "\xc3\xa4", 2); /* cut between, not within, characters */
    SODET_FAIL(&err, SODET_E_INVALID, "x%s", large);
    size_t n = strlen(err.text);
    CHECK(n > 400 && ((unsigned char)err.text[n - 4] & 0xc0u) == 0x80u);
    sodet_fail(&err, SODET_E_INVALID, "/a/very/long/path/that/does/not/fit/into/the/sixty-four/bytes/of/the/field/plugin.c", 3, "x");
    CHECK(strlen(err.file) < sizeof err.file && strstr(err.file, "field/plugin.c") != NULL);
    CHECK_EQ(sodet_fail_option(&err, "lr", "outside [%d, %d]", 0, 1), SODET_E_INVALID);
    CHECK_STR(err.text, "option \"lr\": outside [0, 1]");
}

static void files(void)
{
    sodet_err err = SODET_ERR_INIT;
    char path[1200], *bytes;
    uint64_t n;
    const char *scratch = check_scratch("base");
    snprintf(path, sizeof path, "%s/a/b/c", scratch);
    CHECK_OK(sd_make_folders(path, &err));
    CHECK_OK(sd_make_folders(path, &err));
    CHECK_FAILS(sd_file_read(path, 0, &bytes, &n, &err), SODET_E_INVALID, "is a folder");
    snprintf(path, sizeof path, "%s/a/b/c/file", scratch);
    CHECK_FAILS(sd_file_read(path, 0, &bytes, &n, &err), SODET_E_IO, "cannot open");
    CHECK(bytes == NULL && n == 0);
    CHECK_OK(sd_file_write_atomic(path, "first", 5, &err));
    CHECK_OK(sd_file_write_atomic(path, "sec\0ond", 7, &err));
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    CHECK(n == 7 && memcmp(bytes, "sec\0ond", 8) == 0);
    sd_free(bytes);
    CHECK_FAILS(sd_file_read(path, 6, &bytes, &n, &err), SODET_E_INVALID, "the limit is 6");
    CHECK_FAILS(sd_make_folders(path, &err), SODET_E_IO, "is a file");
    CHECK_OK(sd_file_write_atomic(path, NULL, 0, &err));
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    CHECK(n == 0 && bytes && bytes[0] == '\0');
    sd_free(bytes);
    CHECK(sd_path_exists(path));
    unlink(path);
    CHECK(!sd_path_exists(path));
    CHECK_FAILS(sd_file_write_atomic("/proc/version", "x", 1, &err), SODET_E_IO, "cannot create");
    CHECK_OK(sd_file_read("/proc/self/status", 0, &bytes, &n, &err)); /* a file whose size stat does not know */
    CHECK(n > 100 && strlen(bytes) == n);
    sd_free(bytes);
    sd_pool pool = {0};
    CHECK_STR(sd_path_join(&pool, "a", "b"), "a/b");
    CHECK_STR(sd_path_join(&pool, "a/", "b"), "a/b");
    CHECK_STR(sd_path_join(&pool, "a", "/b"), "/b");
    CHECK_STR(sd_path_join(&pool, "", "b"), "b");
    sd_pool_clear(&pool);
}

/* What is no ordinary file is still what it was after it was written to: a terminal (one of our own) got the bytes, a pipe did not. */
static void devices(void)
{
    sodet_err err = SODET_ERR_INIT;
    char folder[] = "/tmp/sodet-devices-XXXXXX", pipe[64], got[16] = "", out[64];
    struct stat st;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0) {
        const int held = open(ptsname(terminal), O_RDWR | O_NOCTTY);
        CHECK_OK(sd_file_write(ptsname(terminal), "seen", 4, &err));
        CHECK(fcntl(terminal, F_SETFL, O_NONBLOCK) == 0 && read(terminal, got, 4) == 4);
        CHECK(strcmp(got, "seen") == 0);
        close(held);
    }
    close(terminal);
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK_FAILS(sd_file_write(pipe, "x", 1, &err), SODET_E_INVALID, "is a named pipe and would be replaced");
    CHECK(stat(pipe, &st) == 0 && S_ISFIFO(st.st_mode));
    unlink(pipe);
    /* One that we hold open is written into under its name in /dev/fd. */
    int end[2];
    CHECK(pipe2(end, O_CLOEXEC) == 0);
    snprintf(out, sizeof out, "/dev/fd/%d", end[1]);
    CHECK_OK(sd_file_write_atomic(out, "held", 4, &err));
    CHECK(read(end[0], got, 4) == 4 && strcmp(got, "held") == 0);
    close(end[0]);
    close(end[1]);
    rmdir(folder);
}

static void random_numbers(void)
{
    /* splitmix64's first three outputs from seed 1234567 (reference implementation of Vigna, prng.di.unimi.it/splitmix64.c). */
    uint64_t x = 1234567;
    static const uint64_t expected[] = {6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull};
    for (int i = 0; i < 3; i++)
        CHECK(sd_mix64(x + (unsigned long long)i * 0x9e3779b97f4a7c15ull) == expected[i]);
    /* FNV-1a 64 of "" and "foobar" (draft-eastlake-fnv). */
    CHECK(sd_fnv1a64("", 0, SD_FNV_START) == 0xcbf29ce484222325ull);
    CHECK(sd_fnv1a64("foobar", 6, SD_FNV_START) == 0x85944171f73967e8ull);

    sodet_stream a = sd_stream(1, 2, 3, 4), same = sd_stream(1, 2, 3, 4), other = sd_stream(1, 2, 4, 3);
    uint64_t first = sd_stream_bits(&a);
    CHECK(first == sd_stream_bits(&same));
    CHECK(first != sd_stream_bits(&other));
    CHECK(first == sd_mix64(a.key ^ sd_mix64(0)));

    sodet_stream r = sd_stream(11, 0, 0, 0);
    double sum = 0, squares = 0, normal = 0, normal2 = 0;
    uint32_t counts[7] = {0};
    int hits = 0;
    enum { N = 70000 };
    for (int i = 0; i < N; i++) {
        double u = sodet_stream_uniform(&r, -1, 3), z = sd_stream_normal(&r);
        if (u < -1 || u >= 3)
            check_fail(__FILE__, __LINE__, "uniform gave %g", u);
        sum += u, squares += u * u, normal += z, normal2 += z * z;
        uint32_t k = sodet_stream_below(&r, 7);
        if (k >= 7)
            check_fail(__FILE__, __LINE__, "below gave %u", (unsigned)k);
        else
            counts[k]++;
        hits += sodet_stream_chance(&r, 0.3) == 1;
    }
    CHECK_NEAR(sum / N, 1, 0, 0.02);
    CHECK_NEAR(squares / N - 1, 16.0 / 12, 0.02, 0);
    CHECK_NEAR(normal / N, 0, 0, 0.02);
    CHECK_NEAR(normal2 / N, 1, 0.03, 0);
    CHECK_NEAR((double)hits / N, 0.3, 0.03, 0);
    double chi = 0;
    for (int k = 0; k < 7; k++)
        chi += (counts[k] - N / 7.0) * (counts[k] - N / 7.0) / (N / 7.0);
    CHECK(chi < 22.5); /* 6 degrees of freedom: 1 in 1000 */
    CHECK_EQ(sodet_stream_below(&r, 1), 0);
    CHECK_EQ(sodet_stream_below(&r, 0), 0);
    CHECK(sodet_stream_uniform(&r, 5, 5) == 5);
    CHECK_EQ(sodet_stream_chance(&r, 0), 0);
    CHECK_EQ(sodet_stream_chance(&r, 1), 1);

    uint64_t items[100], seen = 0, moved = 0;
    for (uint64_t i = 0; i < 100; i++)
        items[i] = i;
    sd_shuffle(items, 100, &r);
    for (uint64_t i = 0; i < 100; i++)
        seen += items[i], moved += items[i] != i;
    CHECK_EQ(seen, 4950);
    CHECK(moved > 80);
    sd_shuffle(items, 0, &r);
}

int main(void)
{
    memory();
    text();
    numbers();
    errors();
    files();
    devices();
    random_numbers();
    double before = sd_now();
    CHECK(before > 0 && sd_now() >= before);
    return check_done(5100);
}
