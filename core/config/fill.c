/* From entries to structs, and errors that name their place. */
#include <stdio.h>
#include <string.h>

#include "core/config/config.h"
#include "core/config/tree.h"
#include "core/config/value.h"

static const char *const plugin_kinds[] = {"backbone", "neck", "head", "loss"};
static const char *const labelled_kinds[] = {"dataset", "transform", "evaluator", "backend", "transport"};
enum { N_PLUGIN_KINDS = 4, N_LABELLED_KINDS = 5 };

/* Keys as other systems call them, and where they live here. */
static const struct {
    const char *theirs, *section, *key;
} elsewhere[] = {
    {"learning_rate", "optimizer", "lr"},
    {"base_lr", "optimizer", "lr"},
    {"lr_gamma", "schedule", "factor"},
    {"gamma", "schedule", "factor"},
    {"lr_decay", "schedule", "factor"},
    {"lr_decay_epoch", "schedule", "milestones"},
    {"steps", "schedule", "milestones"},
    {"wd", "optimizer", "weight_decay"},
    {"batch_size", "train", "batch"},
    {"batchsize", "train", "batch"},
    {"epochs", "schedule", "total"},
    {"num_epochs", "schedule", "total"},
    {"max_epochs", "schedule", "total"},
    {"max_iter", "schedule", "total"},
    {"iterations", "schedule", "total"},
    {"num_workers", "data", "workers"},
    {"data_shape", "input", "size"},
    {"input_size", "input", "size"},
    {"image_size", "input", "size"},
    {"gpus", "run", "devices"},
    {"device", "run", "devices"},
    {"num_classes", "data", "classes"},
    {"class_names", "data", "classes"},
    {"save_dir", "run", "output"},
    {"pretrained", "run", "init"},
    {"optimizer", "optimizer", "type"},
    {"min_lr", "schedule", "floor"},
    {"nms_thresh", "head", "nms_iou"},
    {"grad_clip", "optimizer", "clip_norm"},
    {"warmup_steps", "schedule", "warmup_iterations"},
};
static const struct {
    const char *theirs, *ours;
} other_sections[] = {
    {"model", "[backbone] [neck] [head] [loss]"},    {"net", "[backbone] [neck] [head] [loss]"},
    {"network", "[backbone] [neck] [head] [loss]"},  {"dataset", "[data] and [dataset.<label>]"},
    {"solver", "[optimizer] and [schedule]"},        {"training", "[train]"},
    {"evaluator", "[eval] and [evaluator.<label>]"}, {"backend", "[backend.<name>]"},
};

const sd_schema *sd_tree_core_schema(const char *section)
{
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        if (strcmp(sd_core_sections[i].section, section) == 0)
            return &sd_core_sections[i];
    }
    return NULL;
}

uint32_t sd_schema_rows(const sd_schema *schema)
{
    uint32_t n = 0;
    while (n < schema->n_opts && sd_schema_row(schema, n)->name)
        n++;
    return n;
}

const sodet_opt *sd_schema_row(const sd_schema *schema, uint32_t i)
{
    /* The stride is the plugin's own: its rows may be longer than ours. */
    return (const sodet_opt *)(const void *)((const char *)schema->opts + (size_t)i * schema->opt_size);
}

const sodet_opt *sd_schema_find(const sd_schema *schema, const char *key)
{
    for (uint32_t i = 0, n = sd_schema_rows(schema); i < n; i++) {
        if (strcmp(sd_schema_row(schema, i)->name, key) == 0)
            return sd_schema_row(schema, i);
    }
    return NULL;
}

bool sd_tree_is_plugin_section(const char *section)
{
    for (int i = 0; i < N_PLUGIN_KINDS; i++) {
        if (strcmp(section, plugin_kinds[i]) == 0)
            return true;
    }
    for (int i = 0; i < N_LABELLED_KINDS; i++) {
        size_t n = strlen(labelled_kinds[i]);
        if (strncmp(section, labelled_kinds[i], n) == 0 && section[n] == '.' && section[n + 1])
            return true;
    }
    return false;
}

void sd_origin_text(const origin *from, char *out, size_t n)
{
    if (from->file)
        snprintf(out, n, "%s:%d", from->file, from->line);
    else
        snprintf(out, n, "command line%s%s%s", from->alias ? " (" : "", from->alias ? from->alias : "", from->alias ? ")" : "");
}

/* "place: [section] key = value: " in front of a reason. */
static sodet_status fail_at(const sd_config *cfg, sodet_err *err, const char *section, const char *key, const char *reason)
{
    const entry *e = key ? sd_tree_find(cfg, section, key) : NULL;
    const entry *opened = e ? NULL : sd_tree_find(cfg, section, NULL);
    char place[300] = "";
    if (e)
        sd_origin_text(&e->from, place, sizeof place);
    else if (opened)
        sd_origin_text(&opened->from, place, sizeof place);
    else
        snprintf(place, sizeof place, "%s", cfg->path ? cfg->path : "configuration");
    if (e)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: [%s] %s = %.120s: %s", place, section, key, e->value, reason);
    if (key)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: [%s] %s: %s", place, section, key, reason);
    return SODET_FAIL(err, SODET_E_INVALID, "%s: [%s]: %s", place, section, reason);
}

sodet_status sd_config_fail(const sd_config *cfg, sodet_err *err, const char *section, const char *key, const char *format, ...)
{
    char reason[480];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    return fail_at(cfg, err, section, key, reason);
}

sodet_status sd_config_explain(const sd_config *cfg, const char *section, sodet_status s, sodet_err *err)
{
    /* The form that sodet_fail_option writes: option "x": reason */
    static const char lead[] = "option \"";
    if (!err || s == SODET_OK || strncmp(err->text, lead, sizeof lead - 1) != 0)
        return s;
    char key[128], reason[sizeof err->text];
    const char *name = err->text + sizeof lead - 1, *close = strstr(name, "\": ");
    if (!close || (size_t)(close - name) >= sizeof key)
        return s;
    memcpy(key, name, (size_t)(close - name));
    key[close - name] = '\0';
    snprintf(reason, sizeof reason, "%s", close + 3);
    const filled *f = NULL;
    for (uint64_t i = 0; i < cfg->n_filled && !f; i++)
        f = strcmp(cfg->filled[i].section, section) == 0 ? &cfg->filled[i] : NULL;
    const sd_schema *schema = f ? f->schema : sd_tree_core_schema(section);
    const sodet_opt *row = schema ? sd_schema_find(schema, key) : NULL;
    if (!sd_tree_find(cfg, section, key) && row && row->def) {
        size_t used = strlen(reason);
        snprintf(reason + used, sizeof reason - used, " (it has its default, %s)", row->def);
    }
    fail_at(cfg, err, section, key, reason);
    return err->code = s;
}

static sodet_status fail_row(const sd_schema *schema, const sodet_opt *row, const char *what, sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_INTERNAL, "the option table of %s, row \"%s\": %s; this is a fault of the table", schema->section,
                      row->name, what);
}

sodet_status sd_tree_fill(sd_config *cfg, const char *section, const sd_schema *schema, void *out, sodet_err *err)
{
    char why[400];
    for (uint32_t i = 0, n = sd_schema_rows(schema); i < n; i++) {
        const sodet_opt *row = sd_schema_row(schema, i);
        size_t size = sd_value_size(row->type);
        if (size == 0 || row->offset > schema->cfg_size || size > schema->cfg_size - row->offset)
            return fail_row(schema, row, size ? "its field lies outside the struct" : "unknown type", err);
        void *field = (char *)out + row->offset;
        const entry *e = sd_tree_find(cfg, section, row->name);
        if (!e && (row->flags & SODET_OPT_REQUIRED))
            return sd_config_fail(cfg, err, section, row->name, "must be given (%s)", row->help ? row->help : "no default");
        if (!e && !row->def)
            continue;
        if (sd_value_parse(&cfg->pool, row, e ? e->value : row->def, e ? e->from.folder : "/", field, why)) {
            if (e && (row->flags & SODET_OPT_DEPRECATED))
                sodet_warn("[%s] %s is deprecated: %s", section, row->name, row->help ? row->help : "");
            continue;
        }
        if (!e)
            return fail_row(schema, row, why, err);
        return fail_at(cfg, err, section, row->name, why);
    }
    return SODET_OK;
}

/* "; the keys here are ...", as many as there is room for. */
static void list_keys(const sd_schema *const tables[2], char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "; the keys here are");
    const char *comma = "";
    for (int t = 0; t < 2; t++) {
        for (uint32_t i = 0, rows = tables[t] ? sd_schema_rows(tables[t]) : 0; i < rows; i++) {
            const char *name = sd_schema_row(tables[t], i)->name;
            if (used + strlen(name) + 8 > size) {
                snprintf(out + used, size - used, " ...");
                return;
            }
            used += (size_t)snprintf(out + used, size - used, "%s %s", comma, name);
            comma = ",";
        }
    }
    if (!*comma)
        snprintf(out, size, "; there are no keys here");
}

/* "; did you mean ...", or where the key belongs. */
static void suggest(const char *section, const char *key, const sd_schema *const tables[2], char *out, size_t size)
{
    const char *names[600];
    uint64_t n = 0;
    for (int t = 0; t < 2; t++) {
        for (uint32_t i = 0, rows = tables[t] ? sd_schema_rows(tables[t]) : 0; i < rows && n < 500; i++)
            names[n++] = sd_schema_row(tables[t], i)->name;
    }
    const char *near = sd_nearest(key, names, n);
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        if (strcmp(sd_core_sections[i].section, section) != 0 && sd_schema_find(&sd_core_sections[i], key)) {
            snprintf(out, size, "; it belongs into [%s]", sd_core_sections[i].section);
            return;
        }
    }
    if (near) {
        snprintf(out, size, "; did you mean %s?", near);
        return;
    }
    n = 0;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        names[n++] = elsewhere[i].theirs;
    near = sd_nearest(key, names, n);
    for (size_t i = 0; near && i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (near == elsewhere[i].theirs)
            snprintf(out, size, "; did you mean %s in [%s]?", elsewhere[i].key, elsewhere[i].section);
    }
    if (near)
        return;
    n = 0;
    for (uint32_t s = 0; s < sd_core_section_count; s++) {
        for (uint32_t i = 0, rows = sd_schema_rows(&sd_core_sections[s]); i < rows && n < 600; i++)
            names[n++] = sd_schema_row(&sd_core_sections[s], i)->name;
    }
    near = sd_nearest(key, names, n);
    for (uint32_t s = 0; near && s < sd_core_section_count; s++) {
        if (sd_schema_find(&sd_core_sections[s], near)) {
            snprintf(out, size, "; did you mean %s in [%s]?", near, sd_core_sections[s].section);
            return;
        }
    }
    list_keys(tables, out, size);
}

sodet_status sd_tree_check_keys(const sd_config *cfg, const char *section, const sd_schema *a, const sd_schema *b, sodet_err *err)
{
    bool plugin = sd_tree_is_plugin_section(section);
    for (uint64_t i = 0; i < cfg->n_entries; i++) {
        const entry *e = &cfg->entries[i];
        if (e->dropped || !e->key || strcmp(e->section, section) != 0 || (plugin && strcmp(e->key, "plugin") == 0) ||
            (a && sd_schema_find(a, e->key)) || (b && sd_schema_find(b, e->key)))
            continue;
        char hint[200] = "";
        const sd_schema *tables[2] = {a, b};
        suggest(section, e->key, tables, hint, sizeof hint);
        const char *of = plugin && b ? b->section : NULL;
        return sd_config_fail(cfg, err, section, e->key, "unknown key%s%s%s", of ? " of " : "", of ? of : "", hint);
    }
    return SODET_OK;
}

static sodet_status fail_section(const sd_config *cfg, const char *section, sodet_err *err)
{
    const char *names[64];
    uint64_t n = 0;
    for (uint32_t i = 0; i < sd_core_section_count; i++)
        names[n++] = sd_core_sections[i].section;
    for (int i = 0; i < N_PLUGIN_KINDS; i++)
        names[n++] = plugin_kinds[i];
    uint64_t plain = n;
    for (int i = 0; i < N_LABELLED_KINDS; i++)
        names[n++] = labelled_kinds[i];
    const entry *first = NULL; /* a section may come from an override alone */
    for (uint64_t i = 0; i < cfg->n_entries && !first; i++)
        first = strcmp(cfg->entries[i].section, section) == 0 && !cfg->entries[i].dropped ? &cfg->entries[i] : NULL;
    const char *key = first && first->key ? first->key : NULL;
    for (size_t i = 0; i < sizeof other_sections / sizeof other_sections[0]; i++) {
        if (strcmp(other_sections[i].theirs, section) == 0)
            return sd_config_fail(cfg, err, section, key, "unknown section; it is called %s here", other_sections[i].ours);
    }
    char kind[128];
    const char *dot = strchr(section, '.');
    snprintf(kind, sizeof kind, "%.*s", dot ? (int)(dot - section) : (int)strlen(section), section);
    const char *near = dot ? sd_nearest(kind, names + plain, n - plain) : sd_nearest(section, names, plain);
    for (int i = 0; i < N_LABELLED_KINDS && dot && !dot[1]; i++)
        if (strcmp(labelled_kinds[i], kind) == 0)
            return sd_config_fail(cfg, err, section, key, "no name behind the dot; write [%s.mine], say", kind);
    if (near && dot)
        return sd_config_fail(cfg, err, section, key, "unknown section; did you mean [%s%s]?", near, dot);
    if (near)
        return sd_config_fail(cfg, err, section, key, "unknown section; did you mean [%s]?", near);
    return sd_config_fail(cfg, err, section, key, "unknown section; `sodet help ini` lists them");
}

sodet_status sd_tree_resolve_core(sd_config *cfg, sodet_err *err)
{
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; i < cfg->n_sections; i++) {
        if (!sd_tree_core_schema(cfg->sections[i]) && !sd_tree_is_plugin_section(cfg->sections[i]))
            return fail_section(cfg, cfg->sections[i], err);
    }
    memset(&cfg->core, 0, sizeof cfg->core);
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        const sd_schema *schema = &sd_core_sections[i];
        void *out = (char *)&cfg->core + schema->offset;
        if (!sd_tree_is_plugin_section(schema->section)) /* [loss] has the plugin's keys too */
            s = sd_tree_check_keys(cfg, schema->section, schema, NULL, err);
        if (s == SODET_OK)
            s = sd_tree_fill(cfg, schema->section, schema, out, err);
        if (s == SODET_OK && schema->validate) {
            s = schema->validate(out, err);
            s = sd_config_explain(cfg, schema->section, s, err);
        }
        if (s != SODET_OK)
            return s;
    }
    if (!cfg->core.run.name || !*cfg->core.run.name)
        cfg->core.run.name = cfg->stem;
    return SODET_OK;
}

sodet_status sd_config_fill(sd_config *cfg, const char *section, const sd_schema *schema, const void **out, sodet_err *err)
{
    *out = NULL;
    for (uint64_t i = 0; i < cfg->n_filled; i++) {
        if (strcmp(cfg->filled[i].section, section) == 0) {
            *out = cfg->filled[i].cfg;
            return SODET_OK;
        }
    }
    sodet_status s = sd_tree_check_keys(cfg, section, sd_tree_core_schema(section), schema, err);
    void *p = s == SODET_OK ? sd_pool_alloc(&cfg->pool, schema->cfg_size + 1) : NULL;
    const char *name = p ? sd_pool_strdup(&cfg->pool, section) : NULL;
    if (s == SODET_OK && !name)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory while [%s] is read", section);
    if (s == SODET_OK)
        s = sd_tree_fill(cfg, section, schema, p, err);
    if (s == SODET_OK)
        s = sd_grow(&cfg->filled, &cfg->filled_capacity, cfg->n_filled + 1, sizeof *cfg->filled, err);
    if (s != SODET_OK)
        return s;
    cfg->filled[cfg->n_filled++] = (filled){name, schema, p};
    if (schema->validate) {
        s = schema->validate(p, err);
        s = sd_config_explain(cfg, section, s, err);
    }
    if (s == SODET_OK)
        *out = p;
    else
        cfg->n_filled--;
    return s;
}

const char *sd_config_own_name(const sd_config *cfg, const char *section)
{
    for (uint64_t i = 0; i < cfg->n_filled; i++) {
        if (strcmp(cfg->filled[i].section, section) == 0)
            return cfg->filled[i].section;
    }
    for (uint64_t i = 0; i < cfg->n_sections; i++) {
        if (strcmp(cfg->sections[i], section) == 0)
            return cfg->sections[i];
    }
    return NULL;
}
