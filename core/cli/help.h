/* cli/help.h: what is made of the tables of commands, flags, topics and sections for shells and for man. */
#ifndef SD_CLI_HELP_H
#define SD_CLI_HELP_H

#include "core/cli/cli.h"

typedef struct sd_topic {
    const char *name, *summary, *text;
} sd_topic;
extern const sd_topic sd_help_topics[]; /* ends at a row without a name */

/* The completion of sodet for bash, zsh or fish; false: another shell. */
bool sd_complete(const char *shell, sd_text *out);
/* A page for section 1 of the manual; NULL: of sodet itself. */
void sd_man(const sd_command *command, sd_text *out);

#endif
