/* config/tree.h: what a configuration is inside; of config/ alone. */
#ifndef SD_CONFIG_TREE_H
#define SD_CONFIG_TREE_H

#include "core/config/config.h"

typedef struct origin {
    const char *file;   /* as a message shows it; NULL: the command line */
    const char *folder; /* absolute; relative paths of the value are relative to it */
    const char *alias;  /* short form on the command line, or NULL */
    int line;
} origin;

typedef struct entry {
    const char *section, *key, *value;
    origin from;
    bool dropped;    /* by a later layer that gave the section another plugin */
    uint32_t opened; /* 1: this is the line that opens the section; key and value are NULL */
} entry;

typedef struct filled {
    const char *section;
    const sd_schema *schema;
    void *cfg;
} filled;

struct sd_config {
    sd_pool pool;
    const char *path, *stem; /* path: as given, or NULL */
    const char *foreign;     /* the `file` of what came with a file of somebody else's, or NULL */
    entry *entries;
    uint64_t n_entries, entry_capacity;
    const char **sections;
    uint64_t n_sections, section_capacity;
    filled *filled;
    uint64_t n_filled, filled_capacity;
    sd_core_cfg core;
};

/* The entry that counts, or NULL. key NULL: the line that opens the section. */
const entry *sd_tree_find(const sd_config *cfg, const char *section, const char *key);
const sd_schema *sd_tree_core_schema(const char *section); /* NULL: not one of the core's */
uint32_t sd_schema_rows(const sd_schema *schema);
const sodet_opt *sd_schema_row(const sd_schema *schema, uint32_t i);
const sodet_opt *sd_schema_find(const sd_schema *schema, const char *key);
/* Kinds whose sections belong to plugins: "head" as it is, "dataset" with a label. */
bool sd_tree_is_plugin_section(const char *section);
/* Fills `out` (schema->cfg_size zero bytes) from defaults and entries; checks ranges and required keys, not unknown ones. */
sodet_status sd_tree_fill(sd_config *cfg, const char *section, const sd_schema *schema, void *out, sodet_err *err);
/* Every key of the section is a row of one of the two; either may be NULL. */
sodet_status sd_tree_check_keys(const sd_config *cfg, const char *section, const sd_schema *a, const sd_schema *b, sodet_err *err);
/* Keys that say where and how a run is made, not what comes out of it: no checkpoint holds them, and none is listened to. */
bool sd_tree_of_a_place(const char *section, const char *key);
sodet_status sd_tree_resolve_core(sd_config *cfg, sodet_err *err);
/* "conf/x.ini:31", "command line", "command line (--lr)" */
void sd_origin_text(const origin *from, char *out, size_t n);

#endif
