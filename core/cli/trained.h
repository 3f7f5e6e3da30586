/* cli/trained.h: the commands that work with a trained network: `x.ini --weights w.safetensors`, or the checkpoint alone. */
#ifndef SD_CLI_TRAINED_H
#define SD_CLI_TRAINED_H

#include "core/api/trained.h"
#include "core/cli/cli.h"

/* The value of --weights, else the first of the files if it ends in .safetensors or is a (run's) folder; it is then no file any more. NULL:
 * neither. */
const char *sd_cli_take_weights(sd_cli *cli);
/* Configuration (the INI's, else the checkpoint's, with overrides) and network. edit, if not NULL, may set values before anything is
 * opened. Also after a failure the caller closes the network and then *cfg. */
typedef sodet_status sd_cli_edit(sd_cli *cli, sd_config *cfg, sodet_err *err);
sodet_status sd_cli_open_trained(sd_cli *cli, const char *weights, sd_cli_edit *edit, sd_config **cfg, sd_trained *net, sodet_err *err);

/* Whether a file could be written there, before the work begins; path NULL: nothing is to be written. */
sodet_status sd_cli_check_out(const char *path, sodet_err *err);

/* "12/500 pictures" on the terminal, if the error stream is one and the command is not quiet; of = 0 ends the line. */
void sd_cli_progress(const sd_cli *cli, uint64_t done, uint64_t of);

#endif
