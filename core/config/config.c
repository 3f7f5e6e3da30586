/* Layers: fragments, file, command line. */
#include "core/config/config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config/ini.h"
#include "core/config/tree.h"
#include "core/config/value.h"

enum { DEEPEST = 16, LARGEST = 4 << 20 };

typedef struct layer {
    sd_config *cfg;
    const char *shown;        /* the file, as messages show it */
    const char *real;         /* resolved: the folder of relative paths, and the cycle check */
    const struct layer *from; /* whose base this is */
    int depth;
} layer;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory while the configuration is read");
}

const entry *sd_tree_find(const sd_config *cfg, const char *section, const char *key)
{
    for (uint64_t i = 0; i < cfg->n_entries; i++) {
        const entry *e = &cfg->entries[i];
        if (e->dropped || strcmp(e->section, section) != 0)
            continue;
        if (key ? e->key && strcmp(e->key, key) == 0 : !e->key)
            return e;
    }
    return NULL;
}

static sodet_status note_section(sd_config *cfg, const char *section, sodet_err *err)
{
    for (uint64_t i = 0; i < cfg->n_sections; i++) {
        if (strcmp(cfg->sections[i], section) == 0)
            return SODET_OK;
    }
    if (sd_grow(&cfg->sections, &cfg->section_capacity, cfg->n_sections + 1, sizeof *cfg->sections, err) != SODET_OK)
        return SODET_E_MEMORY;
    cfg->sections[cfg->n_sections++] = section;
    return SODET_OK;
}

static sodet_status put(sd_config *cfg, const char *section, const char *key, const char *value, const origin *from, sodet_err *err)
{
    sodet_status s = note_section(cfg, section, err);
    entry *e = (entry *)sd_tree_find(cfg, section, key);
    if (s != SODET_OK || (e && !key)) /* where a section was opened first is what messages show */
        return s;
    if (!e) {
        if (sd_grow(&cfg->entries, &cfg->entry_capacity, cfg->n_entries + 1, sizeof *cfg->entries, err) != SODET_OK)
            return SODET_E_MEMORY;
        e = &cfg->entries[cfg->n_entries++];
    }
    *e = (entry){.section = section, .key = key, .value = value, .from = *from, .opened = !key};
    return SODET_OK;
}

/* What a section's plugin is when nothing says it: its label, or its kind's name, which no plugin has. */
static const char *default_plugin(const char *section)
{
    const char *dot = strchr(section, '.');
    return dot ? dot + 1 : strcmp(section, "neck") == 0 ? "none" : "";
}

static void drop_other_plugin(sd_config *cfg, const char *section, const char *plugin)
{
    const entry *now = sd_tree_find(cfg, section, "plugin");
    if (!sd_tree_is_plugin_section(section) || strcmp(now ? now->value : default_plugin(section), plugin) == 0)
        return;
    for (uint64_t i = 0; i < cfg->n_entries; i++) {
        entry *e = &cfg->entries[i];
        if (e->key && strcmp(e->section, section) == 0)
            e->dropped = true;
    }
}

static sodet_status merge(sd_config *cfg, const sd_ini_entry *items, uint64_t n, const origin *from, sodet_err *err)
{
    for (uint64_t i = 0; i < n; i++) {
        if (items[i].key && strcmp(items[i].key, "plugin") == 0)
            drop_other_plugin(cfg, items[i].section, items[i].value);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (cfg->foreign && items[i].key && sd_tree_of_a_place(items[i].section, items[i].key))
            continue;
        origin here = *from;
        here.line = items[i].line;
        sodet_status s = put(cfg, items[i].section, items[i].key, items[i].value, &here, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static sodet_status add_file(const layer *l, sodet_err *err);

/* A fragment lies beside the file that names it, or else among the installed ones. */
static sodet_status add_base(const layer *l, const origin *from, const char *name, sodet_err *err)
{
    sd_config *cfg = l->cfg;
    char why[400], shown_folder[PATH_MAX], real[PATH_MAX];
    char *beside = sd_value_path(&cfg->pool, name, from->folder, why), *installed = NULL;
    if (!beside)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%d: [run] base: %s: %s", from->file, from->line, name, why);
    const char *slash = from->file ? strrchr(from->file, '/') : NULL;
    snprintf(shown_folder, sizeof shown_folder, "%.*s", slash ? (int)(slash - from->file) : 0, slash ? from->file : "");
    const char *shown = sd_path_join(&cfg->pool, shown_folder, name), *found = beside;
    if (!sd_path_exists(beside) && name[0] != '/' && name[0] != '~') {
        installed = sd_path_join(&cfg->pool, sd_recipe_folder(), name);
        if (installed && sd_path_exists(installed))
            found = shown = installed;
    }
    if (!realpath(found, real)) {
        if (from->file)
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%d: [run] base = %s: neither %s nor %s can be read (%s)", from->file, from->line,
                              name, beside, installed ? installed : "another place", strerror(errno));
        return SODET_FAIL(err, SODET_E_INVALID, "command line: [run] base = %s: %s cannot be read (%s)", name, beside, strerror(errno));
    }
    char again[PATH_MAX]; /* a configuration behind a link: its fragments lie beside the file, not beside the link */
    if (!shown || !realpath(shown, again) || strcmp(again, real) != 0)
        shown = found;
    for (const layer *up = l; up; up = up->from) {
        if (up->real && strcmp(up->real, real) == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%d: [run] base = %s: the file is read already, it names itself by way of its bases",
                              from->file, from->line, name);
    }
    layer inner = {cfg, shown, sd_pool_strdup(&cfg->pool, real), l, l->depth + 1};
    return shown && inner.real ? add_file(&inner, err) : no_memory(err);
}

static sodet_status add_bases(const layer *l, const origin *from, const char *value, sodet_err *err)
{
    static const sodet_opt row = {.name = "base", .type = SODET_T_STRING_LIST};
    sodet_string_list names;
    char why[400];
    if (!sd_value_parse(&l->cfg->pool, &row, value, from->folder, &names, why))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%d: [run] base = %s: %s", from->file ? from->file : "command line", from->line, value,
                          why);
    for (uint32_t i = 0; i < names.n; i++) {
        sodet_status s = add_base(l, from, names.v[i], err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static sodet_status add_text(const layer *l, const char *bytes, uint64_t n, const char *folder, sodet_err *err)
{
    sd_ini_entry *items;
    uint64_t n_items;
    if (l->depth > DEEPEST)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: fragments are nested more than %d deep", l->shown, DEEPEST);
    sodet_status s = sd_ini_parse(&l->cfg->pool, bytes, n, l->shown, &items, &n_items, err);
    origin from = {.file = l->shown, .folder = folder};
    for (uint64_t i = 0; i < n_items && s == SODET_OK; i++) {
        if (items[i].key && strcmp(items[i].section, "run") == 0 && strcmp(items[i].key, "base") == 0) {
            from.line = items[i].line;
            if (l->cfg->foreign)
                return SODET_FAIL(
                    err, SODET_E_INVALID,
                    "%s: line %d of its configuration is [run] base = %s: sodet writes no such line there; do not trust the file", l->shown,
                    from.line, items[i].value);
            s = add_bases(l, &from, items[i].value, err);
        }
    }
    return s == SODET_OK ? merge(l->cfg, items, n_items, &from, err) : s;
}

static sodet_status add_file(const layer *l, sodet_err *err)
{
    char *bytes;
    uint64_t n;
    char *folder = sd_pool_strdup(&l->cfg->pool, l->real);
    if (!folder)
        return no_memory(err);
    char *slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';
    sodet_status s = sd_file_read(l->real, LARGEST, &bytes, &n, err);
    if (s == SODET_OK)
        s = add_text(l, bytes, n, folder, err);
    sd_free(bytes);
    return s;
}

static char *working_folder(sd_pool *pool)
{
    char here[PATH_MAX];
    return sd_pool_strdup(pool, getcwd(here, sizeof here) ? here : "/");
}

static sodet_status split_override(sd_pool *pool, const sd_override *o, sd_ini_entry *out, sodet_err *err)
{
    char *copy = sd_pool_strdup(pool, o->text);
    if (!copy)
        return no_memory(err);
    char *equal = strchr(copy, '=');
    if (!equal)
        return SODET_FAIL(err, SODET_E_INVALID, "command line: %s: write section.key=value", o->text);
    *equal = '\0';
    char *dot = strrchr(copy, '.');
    if (!dot || dot == copy || !dot[1])
        return SODET_FAIL(err, SODET_E_INVALID, "command line: %s: write section.key=value", o->text);
    if (sd_not_utf8(o->text))
        return SODET_FAIL(err, SODET_E_INVALID, "command line: %s: is no UTF-8, which checkpoints and JSON hold; write it in UTF-8",
                          o->text);
    *dot = '\0';
    *out = (sd_ini_entry){.section = copy, .key = dot + 1, .value = equal + 1};
    return SODET_OK;
}

static sodet_status add_overrides(const layer *l, const sd_override *overrides, uint64_t n, sodet_err *err)
{
    sd_config *cfg = l->cfg;
    sd_ini_entry *items = sd_pool_alloc(&cfg->pool, (n + 1) * sizeof *items);
    origin from = {.folder = working_folder(&cfg->pool)};
    if (!items || !from.folder)
        return no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        sodet_status s = split_override(&cfg->pool, &overrides[i], &items[i], err);
        if (s == SODET_OK && strcmp(items[i].section, "run") == 0 && strcmp(items[i].key, "base") == 0) {
            if (cfg->n_entries && l->shown)
                return SODET_FAIL(err, SODET_E_INVALID, "command line: run.base=%s: fragments are read before the file; name them in %s",
                                  items[i].value, l->shown);
            s = add_bases(l, &from, items[i].value, err);
        }
        if (s != SODET_OK)
            return s;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (strcmp(items[i].key, "plugin") == 0)
            drop_other_plugin(cfg, items[i].section, items[i].value);
    }
    for (uint64_t i = 0; i < n; i++) {
        from.alias = sd_pool_strdup(&cfg->pool, overrides[i].alias);
        sodet_status s = put(cfg, items[i].section, items[i].key, items[i].value, &from, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

/* "conf/ssd300.ini" is the run "ssd300". */
static const char *stem_of(sd_pool *pool, const char *name)
{
    const char *slash = strrchr(name, '/'), *begin = slash ? slash + 1 : name, *dot = strrchr(begin, '.');
    return sd_pool_printf(pool, "%.*s", dot && dot != begin ? (int)(dot - begin) : (int)strlen(begin), begin);
}

static sodet_status finish(const layer *l, const sd_override *overrides, uint64_t n, sodet_status s, sd_config **out, sodet_err *err)
{
    if (s == SODET_OK)
        s = add_overrides(l, overrides, n, err);
    if (s == SODET_OK)
        s = sd_tree_resolve_core(l->cfg, err);
    if (s == SODET_OK)
        *out = l->cfg;
    else
        sd_config_close(l->cfg);
    return s;
}

sodet_status sd_config_open(const char *path, const sd_override *overrides, uint64_t n, sd_config **out, sodet_err *err)
{
    *out = NULL;
    sd_config *cfg = sd_alloc(1, sizeof *cfg);
    if (!cfg)
        return no_memory(err);
    char real[PATH_MAX];
    layer l = {.cfg = cfg};
    cfg->stem = stem_of(&cfg->pool, path ? path : "run");
    if (!path)
        return finish(&l, overrides, n, SODET_OK, out, err);
    cfg->path = l.shown = sd_pool_strdup(&cfg->pool, path);
    sodet_status s = SODET_OK;
    if (!realpath(path, real))
        s = SODET_FAIL(err, errno == ENOENT ? SODET_E_INVALID : SODET_E_IO, "%s: cannot open: %s", path, strerror(errno));
    l.real = real;
    if (s == SODET_OK)
        s = add_file(&l, err);
    return finish(&l, overrides, n, s, out, err);
}

static sodet_status open_text(const char *text, uint64_t length, const char *name, const char *folder, bool foreign,
                              const sd_override *overrides, uint64_t n, sd_config **out, sodet_err *err)
{
    *out = NULL;
    sd_config *cfg = sd_alloc(1, sizeof *cfg);
    if (!cfg)
        return no_memory(err);
    layer l = {.cfg = cfg, .shown = sd_pool_strdup(&cfg->pool, name)};
    cfg->foreign = foreign ? l.shown : NULL;
    cfg->stem = stem_of(&cfg->pool, name);
    const char *place = folder ? sd_pool_strdup(&cfg->pool, folder) : working_folder(&cfg->pool);
    sodet_status s = place && l.shown ? add_text(&l, text, length, place, err) : no_memory(err);
    return finish(&l, overrides, n, s, out, err);
}

sodet_status sd_config_open_text(const char *text, uint64_t length, const char *name, const char *folder, const sd_override *overrides,
                                 uint64_t n, sd_config **out, sodet_err *err)
{
    return open_text(text, length, name, folder, false, overrides, n, out, err);
}

sodet_status sd_config_open_foreign(const char *text, uint64_t length, const char *name, const sd_override *overrides, uint64_t n,
                                    sd_config **out, sodet_err *err)
{
    return open_text(text, length, name, NULL, true, overrides, n, out, err);
}

bool sd_config_foreign_path(const sd_config *cfg, const char *section)
{
    const entry *e = sd_tree_find(cfg, section, "plugin");
    return cfg->foreign && e && e->from.file == cfg->foreign && strchr(e->value, '/');
}

void sd_config_close(sd_config *cfg)
{
    if (!cfg)
        return;
    sd_free(cfg->entries);
    sd_free(cfg->sections);
    sd_free(cfg->filled);
    sd_pool_clear(&cfg->pool);
    sd_free(cfg);
}

sodet_status sd_config_set(sd_config *cfg, const char *section, const char *key, const char *value, sodet_err *err)
{
    origin from = {.folder = working_folder(&cfg->pool)};
    const char *s = sd_pool_strdup(&cfg->pool, section), *k = sd_pool_strdup(&cfg->pool, key), *v = sd_pool_strdup(&cfg->pool, value);
    if (!from.folder || !s || !k || !v)
        return no_memory(err);
    if (strcmp(key, "plugin") == 0)
        drop_other_plugin(cfg, section, value);
    sodet_status status = put(cfg, s, k, v, &from, err);
    return status == SODET_OK ? sd_tree_resolve_core(cfg, err) : status;
}

const sd_core_cfg *sd_config_core(const sd_config *cfg)
{
    return &cfg->core;
}

const char *sd_config_path_of(const sd_config *cfg)
{
    return cfg->path;
}

uint64_t sd_config_section_count(const sd_config *cfg)
{
    return cfg->n_sections;
}

const char *sd_config_section_name(const sd_config *cfg, uint64_t i)
{
    return i < cfg->n_sections ? cfg->sections[i] : NULL;
}

bool sd_config_has_section(const sd_config *cfg, const char *section)
{
    for (uint64_t i = 0; i < cfg->n_sections; i++) {
        if (strcmp(cfg->sections[i], section) == 0)
            return true;
    }
    return false;
}

const char *sd_config_text(const sd_config *cfg, const char *section, const char *key)
{
    const entry *e = sd_tree_find(cfg, section, key);
    return e ? e->value : NULL;
}

char *sd_config_path(const sd_config *cfg, sd_pool *pool, const char *section, const char *key, const char *text)
{
    char why[400];
    const entry *e = sd_tree_find(cfg, section, key);
    if (e)
        return sd_value_path(pool, text, e->from.folder, why);
    char here[PATH_MAX];
    return sd_value_path(pool, text, getcwd(here, sizeof here) ? here : "/", why);
}
