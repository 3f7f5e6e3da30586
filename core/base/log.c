#include "core/base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_int level_now = SD_LOG_INFO;

double sd_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sd_log_level(int level)
{
    atomic_store(&level_now, level);
}

/* One fwrite per line, so that lines of several threads do not mix. */
static void put_line(int level, const char *text)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
    char line[2100];
    int n = snprintf(line, sizeof line - 1, "%s%s", prefix[level < 0 ? 0 : level > 3 ? 3 : level], text);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[length++] = '\n';
    fwrite(line, 1, length, stderr);
}

void sd_log(int level, const char *format, ...)
{
    if (level > atomic_load(&level_now))
        return;
    char text[2000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put_line(level, text);
}

/* Once for each text: the hashes of what was said. When the table is full, warnings repeat rather than vanish. */
void sodet_warn(const char *format, ...)
{
    enum { SAID = 1024 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t said[SAID];
    static size_t n_said;
    if (SD_LOG_WARN > atomic_load(&level_now))
        return;
    char text[2000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    uint64_t h = sd_fnv1a64(text, strlen(text), SD_FNV_START);
    bool known = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_said && !known; i++)
        known = said[i] == h;
    if (!known && n_said < SAID)
        said[n_said++] = h;
    pthread_mutex_unlock(&lock);
    if (!known)
        put_line(SD_LOG_WARN, text);
}
