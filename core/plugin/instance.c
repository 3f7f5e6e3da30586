/* From a section of the configuration to a living plugin. */
#include <stdio.h>
#include <string.h>

#include "core/plugin/plugin.h"

static uint32_t kind_of_section(const char *section)
{
    char kind[64];
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(section, "."), section);
    return sd_kind_of(kind);
}

sodet_status sd_plugin_of_section(sd_config *cfg, const char *section, const sd_plugin **out, sodet_err *err)
{
    *out = NULL;
    uint32_t kind = kind_of_section(section);
    if (!kind)
        return SODET_FAIL(err, SODET_E_INTERNAL, "[%s] is no section of a plugin", section);
    const char *dot = strchr(section, '.'), *name = sd_config_text(cfg, section, "plugin");
    if (!name && !dot && kind != SODET_KIND_NECK)
        return sd_config_fail(cfg, err, section, "plugin", "must be given; `sodet list %s` shows what there is", sd_kind_name(kind));
    bool given = name != NULL;
    sd_pool pool = {0};
    if (sd_config_foreign_path(cfg, section))
        return sd_config_fail(cfg, err, section, "plugin",
                              "a checkpoint does not make a file be loaded; if you trust it, say so on the command line: %s.plugin=%s",
                              section, name);
    if (!given && dot && strchr(dot, '/'))
        return SODET_FAIL(err, SODET_E_INVALID, "[%s]: a label is no path; write plugin = %s in a section of another name", section,
                          dot + 1);
    if (!name)
        name = dot ? dot + 1 : "none";
    else if (strchr(name, '/'))
        name = sd_config_path(cfg, &pool, section, "plugin", name);
    sodet_err inner = SODET_ERR_INIT;
    sodet_status s = name ? sd_plugin_load(kind, name, out, &inner) : SODET_FAIL(&inner, SODET_E_INVALID, "not a usable path");
    sd_pool_clear(&pool);
    if (s == SODET_OK)
        return s;
    if (given || sd_config_has_section(cfg, section))
        sd_config_fail(cfg, err, section, given ? "plugin" : NULL, "%s", inner.text);
    else
        SODET_FAIL(err, s, "[%s]: there is no such section, and %s", section, inner.text);
    if (err)
        err->code = s;
    return s;
}

static sodet_status open_section(sd_config *cfg, const char *section, const sd_plugin **plugin, const void **values, sodet_err *err)
{
    sodet_status s = sd_plugin_of_section(cfg, section, plugin, err);
    return s == SODET_OK ? sd_config_fill(cfg, section, &(*plugin)->schema, values, err) : s;
}

sodet_status sd_instance_create(sd_config *cfg, const char *section, sd_instance *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sd_instance it = {0};
    sodet_err inner = SODET_ERR_INIT;
    sodet_status s = open_section(cfg, section, &it.plugin, &it.cfg, err);
    if (s != SODET_OK)
        return s;
    it.section = sd_config_own_name(cfg, section); /* outlives the caller's */
    it.ops = it.plugin->ops;
    const sodet_plugin *d = &it.plugin->desc;
    if (!d->create) {
        it.self = (void *)it.cfg; /* "NULL: self is cfg" */
        *out = it;
        return SODET_OK;
    }
    s = d->create(it.cfg, &it.self, &inner);
    if (s == SODET_OK && it.self) {
        *out = it;
        return SODET_OK;
    }
    const char *name = it.plugin->schema.section;
    if (s == SODET_OK)
        return SODET_FAIL(err, SODET_E_INTERNAL, "[%s]: %s: create reports success and gives no instance; a fault of the plugin (%s)",
                          section, name, it.plugin->path);
    if (it.self)
        return SODET_FAIL(err, SODET_E_INTERNAL,
                          "[%s]: %s: create fails (%.200s) and leaves an instance behind, which nobody frees; a fault of the plugin (%s)",
                          section, name, inner.text[0] ? inner.text : "without a word", it.plugin->path);
    if (!inner.text[0])
        return SODET_FAIL(err, s, "[%s]: %s: create fails with status %d and says no reason (%s)", section, name, (int)s, it.plugin->path);
    bool option = strncmp(inner.text, "option \"", 8) == 0;
    sd_config_explain(cfg, section, s, &inner);
    if (err) {
        *err = inner;
        err->code = s;
    }
    return option ? s : sd_fail_in(err, s, "[%s] (%s)", section, name);
}

void sd_instance_destroy(sd_instance *it)
{
    if (it->plugin && it->plugin->desc.create && it->plugin->desc.destroy)
        it->plugin->desc.destroy(it->self);
    memset(it, 0, sizeof *it);
}

static sodet_status check_labels(sd_config *cfg, const char *kind, const char *from, const char *key, sodet_string_list labels,
                                 sodet_err *err)
{
    for (uint32_t i = 0; i < labels.n; i++) {
        char section[128];
        const sd_plugin *p;
        const void *values;
        snprintf(section, sizeof section, "%s.%s", kind, labels.v[i]);
        if (sd_config_foreign_path(cfg, section))
            continue;
        sodet_status s = open_section(cfg, section, &p, &values, err);
        if (s != SODET_OK && !sd_config_has_section(cfg, section) && err) {
            sodet_err inner = *err;
            return sd_config_fail(cfg, err, from, key, "%s", inner.text);
        }
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

sodet_status sd_plugin_check_all(sd_config *cfg, sodet_err *err)
{
    static const char *const parts[] = {"backbone", "neck", "head", "loss"};
    const sd_core_cfg *core = sd_config_core(cfg);
    const sd_plugin *p;
    const void *values;
    char backend[128];
    snprintf(backend, sizeof backend, "backend.%.*s", (int)strcspn(core->run.devices, ": ,"), core->run.devices);
    sodet_status s = SODET_OK;
    for (size_t i = 0; i < 4 && s == SODET_OK; i++)
        s = open_section(cfg, parts[i], &p, &values, err);
    for (uint64_t i = 0; i < sd_config_section_count(cfg) && s == SODET_OK; i++) {
        const char *section = sd_config_section_name(cfg, i);
        uint32_t kind = strchr(section, '.') ? kind_of_section(section) : 0;
        if (!kind)
            continue;
        /* What is not needed for what a checkpoint is opened for may be a file that is not here, or not to be trusted. */
        bool optional = (kind == SODET_KIND_BACKEND && strcmp(section, backend) != 0) || kind == SODET_KIND_TRANSPORT ||
                        sd_config_foreign_path(cfg, section);
        if (optional && sd_plugin_of_section(cfg, section, &p, NULL) != SODET_OK)
            continue;
        s = open_section(cfg, section, &p, &values, err);
    }
    if (s == SODET_OK)
        s = check_labels(cfg, "dataset", "data", "train", core->data.train, err);
    if (s == SODET_OK)
        s = check_labels(cfg, "dataset", "data", "val", core->data.val, err);
    if (s == SODET_OK)
        s = check_labels(cfg, "transform", "transform", "train", core->transform.train, err);
    if (s == SODET_OK)
        s = check_labels(cfg, "transform", "transform", "val", core->transform.val, err);
    if (s == SODET_OK)
        s = check_labels(cfg, "evaluator", "eval", "evaluators", core->eval.evaluators, err);
    return s;
}
