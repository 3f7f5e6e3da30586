/* The configuration as text, and the help of an option table. */
#include <stdio.h>
#include <string.h>

#include "core/config/config.h"
#include "core/config/tree.h"
#include "core/config/value.h"

bool sd_tree_of_a_place(const char *section, const char *key)
{
    static const char *const keys[][2] = {{"run", "base"},      {"run", "output"},  {"run", "init"},     {"run", "resume"},
                                          {"run", "overwrite"}, {"run", "timeout"}, {"data", "workers"}, {"data", "queue"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(section, keys[i][0]) == 0 && strcmp(key, keys[i][1]) == 0)
            return true;
    }
    return strncmp(section, "backend.", 8) == 0 && strcmp(key, "times") == 0;
}

static void write_line(sd_text *out, const char *key, const char *value, const char *place)
{
    sd_text line = {0};
    if (value)
        sd_value_write(&line, key, value);
    else
        sd_text_printf(&line, "; %s", key);
    out->failed = out->failed || line.failed;
    if (place)
        sd_text_printf(out, "%-48s ; %s\n", line.failed || !line.text ? "" : line.text, place);
    else
        sd_text_printf(out, "%s\n", line.failed || !line.text ? "" : line.text);
    sd_text_free(&line);
}

static void write_rows(const sd_config *cfg, const char *section, const sd_schema *schema, const void *values, bool places, sd_text *out)
{
    for (uint32_t i = 0, n = sd_schema_rows(schema); i < n; i++) {
        const sodet_opt *row = sd_schema_row(schema, i);
        const entry *e = sd_tree_find(cfg, section, row->name);
        char place[400];
        if (!places && sd_tree_of_a_place(section, row->name))
            continue;
        if (e)
            sd_origin_text(&e->from, place, sizeof place);
        else
            snprintf(place, sizeof place, row->def ? "default" : "not given");
        const char *text = e ? e->value : row->def;
        if (e && places && row->type == SODET_T_PATH && values) {
            const char *path;
            memcpy(&path, (const char *)values + row->offset, sizeof path);
            text = path ? path : text;
        }
        if (!text && strcmp(section, "run") == 0 && strcmp(row->name, "name") == 0) {
            text = cfg->core.run.name;
            snprintf(place, sizeof place, "default");
        }
        if (text || places)
            write_line(out, row->name, text, places ? place : NULL);
    }
}

/* A section of a plugin that nothing filled: as it stands. */
static void write_entries(const sd_config *cfg, const char *section, bool places, sd_text *out)
{
    for (uint64_t i = 0; i < cfg->n_entries; i++) {
        const entry *e = &cfg->entries[i];
        char place[400];
        if (e->dropped || !e->key || strcmp(e->section, section) != 0 || strcmp(e->key, "plugin") == 0 ||
            (sd_tree_core_schema(section) && sd_schema_find(sd_tree_core_schema(section), e->key)))
            continue;
        sd_origin_text(&e->from, place, sizeof place);
        size_t used = strlen(place);
        snprintf(place + used, sizeof place - used, ", not checked");
        write_line(out, e->key, e->value, places ? place : NULL);
    }
}

static void write_section(const sd_config *cfg, const char *section, bool places, sd_text *out)
{
    const filled *f = NULL;
    for (uint64_t i = 0; i < cfg->n_filled && !f; i++)
        f = strcmp(cfg->filled[i].section, section) == 0 ? &cfg->filled[i] : NULL;
    const sd_schema *core = sd_tree_core_schema(section);
    sd_text_printf(out, "%s[%s]\n", out->length ? "\n" : "", section);
    if (sd_tree_is_plugin_section(section)) {
        const entry *e = sd_tree_find(cfg, section, "plugin");
        char place[400] = "default";
        if (e)
            sd_origin_text(&e->from, place, sizeof place);
        const char *dot = strchr(section, '.'), *slash = f ? strrchr(f->schema->section, '/') : NULL;
        const char *name = e ? e->value : slash ? slash + 1 : dot ? dot + 1 : NULL;
        if (name && !places && strchr(name, '/') && slash) /* a plugin given by its path is stored by its name */
            name = slash + 1;
        if (name || places)
            write_line(out, "plugin", name, places ? place : NULL);
    }
    if (core)
        write_rows(cfg, section, core, (const char *)&cfg->core + core->offset, places, out);
    if (f)
        write_rows(cfg, section, f->schema, f->cfg, places, out);
    else
        write_entries(cfg, section, places, out);
    for (uint64_t i = 0; places && i < cfg->n_entries; i++) {
        const entry *e = &cfg->entries[i];
        char place[400];
        if (!e->dropped || strcmp(e->section, section) != 0)
            continue;
        sd_origin_text(&e->from, place, sizeof place);
        sd_text_printf(out, "; dropped with the former plugin: %s = %s (%s)\n", e->key, e->value, place);
    }
}

void sd_config_write(const sd_config *cfg, bool places, sd_text *out)
{
    static const char *const parts[] = {"backbone", "neck", "head"};
    bool parts_done = false;
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        const char *section = sd_core_sections[i].section;
        if (!parts_done && strcmp(section, "data") == 0) { /* the detector between input and data */
            parts_done = true;
            for (size_t k = 0; k < 3; k++) {
                bool is_filled = sd_config_has_section(cfg, parts[k]);
                for (uint64_t q = 0; q < cfg->n_filled; q++)
                    is_filled = is_filled || strcmp(cfg->filled[q].section, parts[k]) == 0;
                if (is_filled)
                    write_section(cfg, parts[k], places, out);
            }
        }
        write_section(cfg, section, places, out);
        size_t n = strlen(section);
        const char *kind = strcmp(section, "data") == 0 ? "dataset" : strcmp(section, "eval") == 0 ? "evaluator" : section;
        n = strlen(kind);
        for (uint64_t k = 0; k < cfg->n_sections; k++) {
            if (strncmp(cfg->sections[k], kind, n) == 0 && cfg->sections[k][n] == '.')
                write_section(cfg, cfg->sections[k], places, out);
        }
        for (uint64_t k = 0; k < cfg->n_filled; k++) { /* sections that nobody wrote, filled from defaults */
            const char *name = cfg->filled[k].section;
            if (strncmp(name, kind, n) == 0 && name[n] == '.' && !sd_config_has_section(cfg, name))
                write_section(cfg, name, places, out);
        }
    }
    for (uint64_t k = 0; k < cfg->n_sections; k++) {
        if (strncmp(cfg->sections[k], "backend.", 8) == 0 || strncmp(cfg->sections[k], "transport.", 10) == 0)
            write_section(cfg, cfg->sections[k], places, out);
    }
}

void sd_schema_help(const sd_schema *schema, sd_text *out)
{
    uint32_t n = sd_schema_rows(schema);
    if (n == 0)
        sd_text_printf(out, "  (no options)\n");
    for (uint32_t i = 0; i < n; i++) {
        const sodet_opt *row = sd_schema_row(schema, i);
        char type[300], head[400];
        bool numeric = row->type != SODET_T_STRING && row->type != SODET_T_PATH && row->type != SODET_T_ENUM && row->type != SODET_T_BOOL &&
                       row->type != SODET_T_STRING_LIST;
        sd_value_type(row, type);
        snprintf(head, sizeof head, "%s = %s", row->name, row->def ? row->def : "");
        sd_text_printf(out, "  %-32s %s", head, row->help ? row->help : "");
        sd_text_printf(out, "%s(%s", row->help && *row->help ? " " : "", type);
        if (row->length)
            sd_text_printf(out, ", %u of them", (unsigned)row->length);
        if (numeric && row->max < 4294967295.0)
            sd_text_printf(out, ", %.15g to %.15g", row->min, row->max);
        else if (numeric && row->min > 0)
            sd_text_printf(out, ", %.15g or more", row->min);
        sd_text_printf(out, "%s%s)\n", row->flags & SODET_OPT_REQUIRED ? ", must be given" : "",
                       row->flags & SODET_OPT_DEPRECATED ? ", deprecated" : "");
    }
}
