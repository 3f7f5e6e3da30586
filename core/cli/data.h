/* cli/data.h: the parts of `sodet data` that have files of their own. */
#ifndef SD_CLI_DATA_H
#define SD_CLI_DATA_H

#include "core/cli/cli.h"

sodet_status sd_data_convert(sd_cli *cli, sodet_err *err);
sodet_status sd_data_adopt(sd_cli *cli, const char *folder, sodet_err *err);

#endif
