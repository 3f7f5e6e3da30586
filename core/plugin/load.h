/* plugin/load.h: what plugin.c and part.c share: looking at a file before it is loaded, loading it, and its tables. */
#ifndef SD_PLUGIN_LOAD_H
#define SD_PLUGIN_LOAD_H

#include "core/base/base.h"

/* A kind of descriptor: a data symbol that begins with a magic number, its size, and the plugin ABI it was built for. */
typedef struct sd_desc_form {
    const char *symbol, *what, *macro; /* what: "a sodet plugin"; macro: what writes one */
    uint32_t magic;
    size_t least, size; /* the shortest there ever was; what this sodet knows */
} sd_desc_form;

typedef struct sd_desc_head { /* as it lies in the file */
    uint32_t magic, struct_size;
    uint16_t major, minor;
    uint32_t word; /* a plugin's kind */
} sd_desc_head;

/* Reads it from the file, of which no code runs. Refuses what is no shared object of this machine, has no such symbol, another magic number
 * or ABI, or a size that cannot be. */
sodet_status sd_plugin_read_head(const char *path, const sd_desc_form *form, sd_desc_head *head, sodet_err *err);

/* dlopen of `real`; a refusal speaks of `path`, and has a remedy where dlopen's words tell one. */
sodet_status sd_plugin_open_file(const char *path, const char *real, void **handle, sodet_err *err);
void sd_plugin_close_file(void *handle); /* after a refusal */

/* Another's struct over zeros. Newer and longer: false if what lies behind what we know is not zero. */
bool sd_copy_known(void *to, size_t own, const void *from, size_t theirs);

#endif
