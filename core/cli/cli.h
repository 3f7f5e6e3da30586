/* cli/cli.h: what every command shares: its row in the table, and the command line taken apart.
 *
 *     sodet <command> [x.ini] [section.key=value ...] [files ...] [flags]
 *
 * The first argument that ends in .ini is the configuration; what has the form section.key=value is an override; the rest are files.
 * Flags may stand anywhere; `--flag value` and `--flag=value` are the same; behind `--` everything is a file.
 *
 * A command prints results to stdout and everything else to stderr. It returns a status; main makes the exit code of it: 0 done; an
 * error before `started` 2, after it 1; exit_code, if it is not zero, in any case (130, 143, 75, or 1 for "done in part"). */
#ifndef SD_CLI_CLI_H
#define SD_CLI_CLI_H

#include "core/base/base.h"
#include "core/base/json.h"
#include "core/config/config.h"

/* A flag of one command. Those of all commands: --json --plugin-dir DIR --verbose -v --quiet -q --help -h, and the short forms. */
typedef struct sd_flag {
    const char *name;  /* "--out" */
    const char *value; /* "FILE", "DIR", "train|val": what completion offers; other words: nothing. NULL: the flag has none */
    const char *help;
} sd_flag;
extern const char sd_written_file[]; /* "FILE", as the value of a flag whose file is written: it is never one that is read */

enum {
    SD_TAKES_INI = 1,   /* an INI file and overrides */
    SD_NEEDS_INI = 2,   /* and an error without one */
    SD_TAKES_FILES = 4, /* further arguments */
    SD_TAKES_JSON = 8   /* reports figures, so knows --json */
};
struct sd_cli;
typedef struct sd_command {
    const char *name, *synopsis, *summary; /* synopsis: "x.ini [section.key=value ...] [--out FILE]", without "sodet <name>" */
    const char *help;                      /* paragraphs below the synopsis; may be NULL */
    uint32_t takes;
    const sd_flag *flags;        /* ends at a row without a name; may be NULL */
    void (*words)(sd_text *out); /* words that may stand among the arguments, separated by blanks: for completion; may be NULL */
    sodet_status (*run)(struct sd_cli *cli, sodet_err *err);
} sd_command;

/* Defined in cmd_<name>.c each; the table is in commands.c. */
extern const sd_command *const sd_commands[]; /* NULL at the end */

struct sd_checkpoint;
typedef struct sd_cli {
    const sd_command *command;
    const char *ini;                        /* NULL: none given */
    const struct sd_checkpoint *checkpoint; /* set by a command: whose configuration counts where no INI was given */
    sd_override *overrides;
    uint64_t n_overrides, override_capacity;
    const char **files;
    uint64_t n_files, file_capacity;
    struct {
        const sd_flag *flag;
        const char *value;
    } * flags;
    uint64_t n_flags, flag_capacity;
    const char *train_split, *val_split, *dataset; /* short forms that need the labels of [data] */
    bool json, verbose, quiet, help;
    bool started;  /* set by a command when the request has proved good and the work begins */
    int exit_code; /* 0: by the status */
    sd_pool pool;
} sd_cli;

/* The configuration with all overrides; prints to stderr what short forms stand for. The caller closes it. */
sodet_status sd_cli_config(sd_cli *cli, sd_config **out, sodet_err *err);
/* The value of the last such flag; "" for a flag without value; NULL if it was not given. */
const char *sd_cli_flag(const sd_cli *cli, const char *name);
/* The same as a number; fallback if it was not given. */
sodet_status sd_cli_flag_uint(const sd_cli *cli, const char *name, uint64_t least, uint64_t fallback, uint64_t *out, sodet_err *err);

/* main.c's part: argv[0] is the command's name. */
sodet_status sd_cli_parse(sd_cli *cli, const sd_command *command, int argc, char **argv, sodet_err *err);
void sd_cli_free(sd_cli *cli);
void sd_cli_help(const sd_command *command, sd_text *out);
/* Prints a text, all of it or, where memory ran out while it was put together, none; frees it. */
sodet_status sd_cli_say(sd_text *t, sodet_err *err);
/* Every flag that the command knows, in the order of its help: its own, those of all commands, short forms of keys. */
enum { SD_FLAG_OWN, SD_FLAG_COMMON, SD_FLAG_SHORT };
typedef void sd_cli_visit(void *context, uint32_t group, const sd_flag *flag);
void sd_cli_each_flag(const sd_command *command, sd_cli_visit *visit, void *context);
const sd_command *sd_cli_find(const char *name);

#endif
