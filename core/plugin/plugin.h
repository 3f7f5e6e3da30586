/* plugin/plugin.h: finds, checks and loads plugins, and makes instances of them from sections of a configuration.
 *
 * Search order: folders added by sd_plugin_add_folder (--plugin-dir), those of SODET_PLUGIN_PATH (separated by colons), and the
 * folder `sodet` beside libsodet.so; in each, <kind>/<name>.so. Never the working directory. A name with a slash is a path.
 * A plugin is loaded once and stays until the process ends. Any thread. */
#ifndef SD_PLUGIN_PLUGIN_H
#define SD_PLUGIN_PLUGIN_H

#include "core/base/base.h"
#include "core/config/config.h"
#include "sodet/plugin.h"

typedef struct sd_plugin {
    sodet_plugin desc; /* the plugin's own, over zeros where it is older */
    const char *path;  /* of the .so, absolute */
    const void *ops;   /* sodet_<kind>_ops, over zeros where it is older */
    sd_schema schema;
} sd_plugin;

/* "backbone", "neck", "head", "loss", "dataset", "transform", "evaluator", "backend", "transport"; NULL for another number. */
const char *sd_kind_name(uint32_t kind);
uint32_t sd_kind_of(const char *name); /* 0: no such kind */

/* Goes in front of every other folder. Not while another thread loads. */
sodet_status sd_plugin_add_folder(const char *folder, sodet_err *err);
/* The folders in the order in which they are searched; NULL behind the last. Ends when the next call or add is made. */
const char *const *sd_plugin_folders(void);

/* name: bare, or a path if it has a slash. Every refusal is a sentence that names the file and what to do. */
sodet_status sd_plugin_load(uint32_t kind, const char *name, const sd_plugin **out, sodet_err *err);

/* What is refused before any of the file's code runs: it is no shared object of this machine, has no descriptor, or that is of another
 * ABI or kind. */
sodet_status sd_plugin_check_head(const char *path, uint32_t kind, sodet_err *err);

/* The loaded plugin in whose code or data the address lies; NULL: none. */
const sd_plugin *sd_plugin_of_address(const void *address);

/* What could be loaded: one call per .so in the folders, names in order; a shadowed one (a folder before it has the name) is not
 * called. err is NULL for a good one; else plugin is NULL and err says why it is refused. */
typedef void sd_plugin_visit(void *context, uint32_t kind, const char *name, const char *path, const sd_plugin *plugin,
                             const sodet_err *err);
void sd_plugin_each(uint32_t kind, sd_plugin_visit *visit, void *context); /* kind 0: all */

/* One plugin with its section's options. */
typedef struct sd_instance {
    const sd_plugin *plugin;
    const char *section; /* "head", "dataset.voc07" */
    const void *cfg;     /* the plugin's struct, filled; the configuration's */
    const void *ops;     /* = plugin->ops */
    void *self;
} sd_instance;

/* The plugin that a section names: its `plugin` value, else the label ([dataset.voc] without one is voc), else for [neck] "none". A
 * section that is neither given nor has such a default is an error. kind comes from the section's name. */
sodet_status sd_plugin_of_section(sd_config *cfg, const char *section, const sd_plugin **out, sodet_err *err);
/* Loads, fills the options and calls create. out is zeroed on failure. Errors name the section. */
sodet_status sd_instance_create(sd_config *cfg, const char *section, sd_instance *out, sodet_err *err);
/* Calls destroy; accepts a zeroed instance, and leaves one. Before sd_config_close. */
void sd_instance_destroy(sd_instance *instance);

/* Loads the plugin of every section that names one and checks its options, creates nothing: what `sodet check` does. Sections of
 * backends that are not installed are left unchecked unless [run] devices needs them. */
sodet_status sd_plugin_check_all(sd_config *cfg, sodet_err *err);

#endif
