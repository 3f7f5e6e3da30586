/* cli/signals.h: a person or a system that asks a training to end. */
#ifndef SD_CLI_SIGNALS_H
#define SD_CLI_SIGNALS_H

#include <signal.h>

/* From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 set what is returned; a second one ends the process as usual. SIGPIPE is ignored. */
const volatile sig_atomic_t *sd_cli_catch_signals(void);
/* The exit code of a command that one of them ended: 130, 143, 129, or 75 (to be requeued). */
int sd_cli_signal_code(void);

#endif
