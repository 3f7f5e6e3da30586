/* cli/version.h: what this program is built of. */
#ifndef SD_CLI_VERSION_H
#define SD_CLI_VERSION_H

#include <stdio.h>

/* Version, build, plugin ABI, libraries, instruction sets, plugin folders. Opens no plugin. */
void sd_version_print(FILE *out);

#endif
