/* cli/data.h: the parts of `sodet data` that have files of their own. */
#ifndef SD_CLI_DATA_H
#define SD_CLI_DATA_H

#include "core/cli/cli.h"

sodet_status sd_data_convert(sd_cli *cli, sodet_err *err);

#endif
