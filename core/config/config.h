/* config/config.h: an INI file with its fragments and the command line, resolved. Every value knows where it came from.
 *
 * A file is read strictly: what iniparser would misread is refused with file, line and remedy. `[run] base` names fragments, which
 * are read in order before the file itself; later wins. A layer that gives a section another `plugin` drops what earlier layers
 * said in that section. Overrides of the command line are the last layer.
 *
 * Messages have the form `conf/x.ini:31: [head] nms_iou = 1.5: outside [0, 1]`, or `command line: [head] ...`.
 * Threads: filling (sd_config_fill) by one thread; reading by any number. */
#ifndef SD_CONFIG_CONFIG_H
#define SD_CONFIG_CONFIG_H

#include "core/base/base.h"
#include "core/config/sections.h"

typedef struct sd_config sd_config;

/* One `section.key=value` (split at the last dot before the first '='), and the short form that it stands for or NULL ("--lr"). */
typedef struct sd_override {
    const char *text, *alias;
} sd_override;

/* path may be NULL: then the overrides are all there is. The core's own sections are resolved and checked here, and unknown
 * sections refused; sections of plugins are filled later by sd_config_fill (plugin/plugin.h does it). */
sodet_status sd_config_open(const char *path, const sd_override *overrides, uint64_t n, sd_config **out, sodet_err *err);
/* The same from memory: `name` stands in messages, relative paths are resolved against `folder` (NULL: the working directory). */
sodet_status sd_config_open_text(const char *text, uint64_t length, const char *name, const char *folder, const sd_override *overrides,
                                 uint64_t n, sd_config **out, sodet_err *err);
/* The same of a text that came with a file of somebody else's, a checkpoint: it makes nothing be read or opened. A `base` in it is refused,
 * and a plugin that it names by a path is not loaded (sd_config_foreign_path). */
sodet_status sd_config_open_foreign(const char *text, uint64_t length, const char *name, const sd_override *overrides, uint64_t n,
                                    sd_config **out, sodet_err *err);
/* Whether the section's plugin is a path that only such a text names, and not the command line. */
bool sd_config_foreign_path(const sd_config *cfg, const char *section);
void sd_config_close(sd_config *cfg);

/* [run] [input] [data] [eval] [optimizer] [schedule] [train] [checkpoint], the core's part of [loss], and the chains of [transform]. */
const sd_core_cfg *sd_config_core(const sd_config *cfg);
/* NULL if it was opened from memory alone. */
const char *sd_config_path_of(const sd_config *cfg);

/* Sections that are there, in the order of first mention. */
uint64_t sd_config_section_count(const sd_config *cfg);
const char *sd_config_section_name(const sd_config *cfg, uint64_t i);
bool sd_config_has_section(const sd_config *cfg, const char *section);
/* The configuration's own copy of a section's name, once it is given or filled; NULL before that. */
const char *sd_config_own_name(const sd_config *cfg, const char *section);
/* The text of a value as written, NULL if the section or key is not given. Defaults are not seen here. */
const char *sd_config_text(const sd_config *cfg, const char *section, const char *key);
/* Sets a value as the command line would, later than everything else (what a command itself decides, e.g. an output folder). Before the
 * section is filled; the core's sections are resolved again. */
sodet_status sd_config_set(sd_config *cfg, const char *section, const char *key, const char *value, sodet_err *err);

/* The struct of a plugin's section, filled from its rows: defaults, then what was given, ranges, required keys, unknown keys, then
 * validate. `plugin` (and the core's keys of [loss] and [transform]) are no unknown keys. *out is cfg's, and stays until close; a
 * second call for the section gives the same struct. A section that is not there is filled from defaults. */
sodet_status sd_config_fill(sd_config *cfg, const char *section, const sd_schema *schema, const void **out, sodet_err *err);
/* Adds place and value to an error that sodet_fail_option raised (in create, say); other errors are left as they are. Returns s. */
sodet_status sd_config_explain(const sd_config *cfg, const char *section, sodet_status s, sodet_err *err);
/* Raises an error about a value of a section: place and value are added. key NULL: about the section. */
sodet_status sd_config_fail(const sd_config *cfg, sodet_err *err, const char *section, const char *key, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A path written in the value of section.key (e.g. "@names.txt" without its @), made absolute as that value's own place demands.
 * NULL when memory ran out. */
char *sd_config_path(const sd_config *cfg, sd_pool *pool, const char *section, const char *key, const char *text);

/* Everything as an INI text. With `places`, each line says where its value came from, defaults are shown, and paths are absolute: what
 * `sodet check` prints. Without: values as given and those defaults, nothing that depends on place or time; opening it again gives the
 * same values (paths excepted, which stay as written). */
void sd_config_write(const sd_config *cfg, bool places, sd_text *out);

/* Calls visit for every value that differs: of the core's sections, and of those sections of plugins that are filled in `now`, which are
 * filled in `was` for it. Texts as given, or the default; what is written differently but is the same value is no difference. key "plugin"
 * has no row, and where it differs nothing else of that section is compared. */
typedef void sd_config_difference(void *context, const char *section, const char *key, const sodet_opt *row, const char *was,
                                  const char *now);
sodet_status sd_config_compare(sd_config *was, const sd_config *now, sd_config_difference *visit, void *context, sodet_err *err);

/* Help of a table: one line per key with type, default, range and what it does. */
void sd_schema_help(const sd_schema *schema, sd_text *out);

#endif
