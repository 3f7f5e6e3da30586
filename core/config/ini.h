/* config/ini.h: one INI file, read strictly: a scan with line numbers refuses what iniparser 4.1 would misread and says how to write
 * it; then iniparser reads, and both must have seen the same values.
 *
 * What is allowed: `[section]`, `key = value`, comments with ; or # at the start of a line or after a blank. Quotes ("" or '')
 * protect ; # and blanks. Names are in lower case. Within a file no section and no key of a section comes twice. CR LF, a UTF-8 byte
 * order mark and a last line without end are read as if they were not there; % and $ have no meaning. */
#ifndef SD_CONFIG_INI_H
#define SD_CONFIG_INI_H

#include "core/base/base.h"

typedef struct sd_ini_entry {
    const char *section, *key, *value; /* key and value NULL: the line that opens a section */
    int line;                          /* from 1 */
} sd_ini_entry;

/* Entries in the order of the file, in the pool. `name` stands in messages. */
sodet_status sd_ini_parse(sd_pool *pool, const char *bytes, uint64_t n, const char *name, sd_ini_entry **out, uint64_t *n_out,
                          sodet_err *err);

#endif
