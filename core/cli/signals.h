/* cli/signals.h: a person or a system that asks a training to end. */
#ifndef SD_CLI_SIGNALS_H
#define SD_CLI_SIGNALS_H

#include <signal.h>

/* From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 set what is returned, and the first says on stderr "stopping after <awaited>"; one that
 * comes 0.3 s later, or later still, ends the process as if nobody had caught it. SIGPIPE is ignored. awaited: a literal. */
const volatile sig_atomic_t *sd_cli_catch_signals(const char *awaited);
/* What is awaited from now on. */
void sd_cli_signals_await(const char *awaited);
/* The exit code of a command that one of them ended: 130, 143, 129, or 75 (to be requeued). */
int sd_cli_signal_code(void);

#endif
