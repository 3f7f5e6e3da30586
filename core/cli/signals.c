#include "core/cli/signals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What comes sooner is the same wish: `timeout` sends its signal to the program and to the program's group. */
enum { APART_MS = 300 };

static volatile sig_atomic_t stop_signal;
static struct timespec stop_time;
static _Atomic(const char *) what_now;

static void put(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) /* nobody reads along */
        return;
}

static void on_signal(int number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (stop_signal) {
        const long long ms = (now.tv_sec - stop_time.tv_sec) * 1000LL + (now.tv_nsec - stop_time.tv_nsec) / 1000000;
        if (ms < APART_MS)
            return;
        signal(number, SIG_DFL);
        raise(number); /* it is let through when this handler returns */
        return;
    }
    const int before = errno; /* of what was interrupted */
    stop_time = now;
    stop_signal = number;
    put("\nstopping after ");
    put(atomic_load(&what_now));
    put("; the signal once more stops it at once\n");
    errno = before;
}

const volatile sig_atomic_t *sd_cli_catch_signals(const char *awaited)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;
    sd_cli_signals_await(awaited);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup's wish counts */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* nobody reads along any more: the run has its log */
    return &stop_signal;
}

void sd_cli_signals_await(const char *awaited)
{
    atomic_store(&what_now, awaited);
}

int sd_cli_signal_code(void)
{
    return stop_signal == SIGUSR1 ? 75 : 128 + (int)stop_signal;
}
