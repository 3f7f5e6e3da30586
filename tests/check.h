/* check.h: what every test program uses. A failed CHECK prints file, line, expression and values, is counted, and the test goes on;
 * check_done() is main's return value: 0 only if checks ran, none failed, and at least `least` ran. NaN fails every comparison. */
#ifndef SODET_TESTS_CHECK_H
#define SODET_TESTS_CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sodet/base.h"

void check_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void check_count(void);
int check_failures(void);
/* Prints "N checks, N failed, N skipped" and returns the exit code. */
int check_done(int least);
/* A part that cannot run here; printed and counted. scripts/test bounds the number. */
void check_skip(const char *why);
/* |got - want| <= absolute + relative * |want|; false if any is NaN or infinite. */
int check_close(double got, double want, double relative, double absolute);
/* Largest |got - want| over the largest |want| of n floats; infinity where anything is not finite. */
double check_worst(const float *got, const float *want, int64_t n);
/* A path below the data folder, or NULL if it is not there; static buffer. */
const char *check_shared(const char *relative);
const char *check_source(const char *relative);
/* A fresh folder for this test, removed and made anew; static buffer. */
const char *check_scratch(const char *name);
/* Removes a folder and all in it; false if something of it is still there. */
int check_scratch_remove(const char *path);

#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        check_count();                                                                                                                     \
        if (!(condition))                                                                                                                  \
            check_fail(__FILE__, __LINE__, "%s", #condition);                                                                              \
    } while (0)
#define CHECK_EQ(got, want)                                                                                                                \
    do {                                                                                                                                   \
        long long check_g = (long long)(got), check_w = (long long)(want);                                                                 \
        check_count();                                                                                                                     \
        if (check_g != check_w)                                                                                                            \
            check_fail(__FILE__, __LINE__, "%s = %lld, expected %s = %lld", #got, check_g, #want, check_w);                                \
    } while (0)
#define CHECK_NEAR(got, want, relative, absolute)                                                                                          \
    do {                                                                                                                                   \
        double check_g = (double)(got), check_w = (double)(want);                                                                          \
        check_count();                                                                                                                     \
        if (!check_close(check_g, check_w, relative, absolute))                                                                            \
            check_fail(__FILE__, __LINE__, "%s = %.17g, expected %.17g (off by %.3g)", #got, check_g, check_w, check_g - check_w);         \
    } while (0)
#define CHECK_STR(got, want)                                                                                                               \
    do {                                                                                                                                   \
        const char *check_g = (got), *check_w = (want);                                                                                    \
        check_count();                                                                                                                     \
        if (!check_g || strcmp(check_g, check_w) != 0)                                                                                     \
            check_fail(__FILE__, __LINE__, "%s = \"%s\", expected \"%s\"", #got, check_g ? check_g : "(null)", check_w);                   \
    } while (0)
/* The call succeeds; err is printed if not. */
#define CHECK_OK(call)                                                                                                                     \
    do {                                                                                                                                   \
        sodet_status check_s = (call);                                                                                                     \
        check_count();                                                                                                                     \
        if (check_s != SODET_OK)                                                                                                           \
            check_fail(__FILE__, __LINE__, "%s: status %d: %s", #call, (int)check_s, err.text);                                            \
    } while (0)
/* The call fails with this status and its message holds this text. */
#define CHECK_FAILS(call, status, part)                                                                                                    \
    do {                                                                                                                                   \
        err = (sodet_err)SODET_ERR_INIT;                                                                                                   \
        sodet_status check_s = (call);                                                                                                     \
        check_count();                                                                                                                     \
        if (check_s != (status) || !strstr(err.text, part))                                                                                \
            check_fail(__FILE__, __LINE__, "%s: status %d, \"%s\"; expected %d with \"%s\"", #call, (int)check_s, err.text, (int)(status), \
                       part);                                                                                                              \
    } while (0)

#endif
