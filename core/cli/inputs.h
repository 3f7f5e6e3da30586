/* cli/inputs.h: which pictures a command line names: files, folders, lists. */
#ifndef SD_CLI_INPUTS_H
#define SD_CLI_INPUTS_H

#include "core/cli/cli.h"

/* How a picture is called: a file by what was typed, one of a folder by its path below it, one of a list by its line; the path instead
 * where two pictures would be called the same. In a result file and in drawings' names the folder of a typed or listed file is left out. */
typedef struct sd_input_file {
    const char *path;  /* to open */
    const char *shown; /* in results */
    const char *name;  /* in a COCO file: unique, or the path */
    const char *stem;  /* name without its suffix; may hold folders; not unique */
    const char *from;  /* the folder or list that brought it; NULL: typed */
} sd_input_file;

typedef struct sd_inputs {
    sd_input_file *files;
    uint64_t n, capacity;
} sd_inputs;

/* The arguments in their order. A folder: what sodet_lines_of_folder finds. A file that ends in .txt: one path a line, relative to the list's
 * folder; lines that are blank or begin with # are skipped. Whatever is missing is an error that names the list and the line. Strings live
 * in cli->pool. */
sodet_status sd_inputs_find(sd_cli *cli, sd_inputs *out, sodet_err *err);
void sd_inputs_free(sd_inputs *in);

/* Whether two of the names are one. */
sodet_status sd_names_twice(const char *const *names, uint64_t n, bool *twice, sodet_err *err);
/* The part behind the last slash. */
const char *sd_base_name(const char *path);
/* Length without the suffix (.jpg). */
size_t sd_stem_length(const char *name);

#endif
