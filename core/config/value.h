/* config/value.h: from the text of a value to the C field that an option row promises. */
#ifndef SD_CONFIG_VALUE_H
#define SD_CONFIG_VALUE_H

#include "core/base/base.h"
#include "sodet/plugin.h"

/* Writes *field (row->type says of which type); lists and strings go into the pool. False: `why` says in a few words what is wrong
 * ("outside [0, 1]"). folder: what a relative path is relative to. */
bool sd_value_parse(sd_pool *pool, const sodet_opt *row, const char *text, const char *folder, void *field, char why[400]);
/* An absolute path: relative ones below folder, ~/ below HOME. NULL with `why` filled. */
char *sd_value_path(sd_pool *pool, const char *text, const char *folder, char why[400]);
/* Bytes of the field of a row's type. */
size_t sd_value_size(uint32_t type);
/* "number", "whole number", "yes | no", "size, e.g. 300x300", ...; of an enum: its choices. */
void sd_value_type(const sodet_opt *row, char out[300]);
/* Adds `key = value`, quoted where it must be. */
void sd_value_write(sd_text *out, const char *key, const char *value);

#endif
