#include "core/cli/signals.h"

#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    /* The second one of a person who does not want to wait ends the process as usual. */
    if (stop_signal)
        signal(number, SIG_DFL);
    stop_signal = number;
}

const volatile sig_atomic_t *sd_cli_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup's wish counts */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* nobody reads along any more: the run has its log */
    return &stop_signal;
}

int sd_cli_signal_code(void)
{
    return stop_signal == SIGUSR1 ? 75 : 128 + (int)stop_signal;
}
