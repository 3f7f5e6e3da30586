/* cli/new.h: the texts of core/cli/new/, which the build puts into the program (new_files.c). */
#ifndef SD_CLI_NEW_H
#define SD_CLI_NEW_H

typedef struct sd_new_file {
    const char *name; /* "head.c", "CMakeLists.txt" */
    const char *text; /* with @name@, @kind@, ... in it */
} sd_new_file;
extern const sd_new_file sd_new_files[]; /* ends at a row without a name */

#endif
