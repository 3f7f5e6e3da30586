/* What differs between two configurations. */
#include <string.h>

#include "core/config/config.h"
#include "core/config/tree.h"
#include "core/config/value.h"

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static bool same_strings(const sodet_string_list *a, const sodet_string_list *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = strcmp(a->v[i], b->v[i]) == 0;
    return same;
}

static bool same_field(const sodet_opt *row, const void *a, const void *b)
{
    const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
    switch (row->type) {
    case SODET_T_STRING:
    case SODET_T_PATH: {
        const char *p, *q;
        memcpy(&p, x, sizeof p);
        memcpy(&q, y, sizeof q);
        return same_text(p, q);
    }
    case SODET_T_DOUBLE_LIST: {
        const sodet_double_list *p = x, *q = y;
        return p->n == q->n && (!p->n || memcmp(p->v, q->v, p->n * sizeof *p->v) == 0);
    }
    case SODET_T_UINT_LIST: {
        const sodet_uint_list *p = x, *q = y;
        return p->n == q->n && (!p->n || memcmp(p->v, q->v, p->n * sizeof *p->v) == 0);
    }
    case SODET_T_STRING_LIST:
        return same_strings(x, y);
    default:
        return memcmp(x, y, sd_value_size(row->type)) == 0;
    }
}

static const char *shown(const sd_config *cfg, const char *section, const sodet_opt *row)
{
    const char *text = sd_config_text(cfg, section, row->name);
    return text ? text : row->def ? row->def : "(not given)";
}

static void compare_rows(const sd_config *was, const sd_config *now, const char *section, const sd_schema *schema, const void *before,
                         const void *after, sd_config_difference *visit, void *context)
{
    for (uint32_t i = 0, n = sd_schema_rows(schema); i < n; i++) {
        const sodet_opt *row = sd_schema_row(schema, i);
        if (!same_field(row, before, after))
            visit(context, section, row->name, row, shown(was, section, row), shown(now, section, row));
    }
}

sodet_status sd_config_compare(sd_config *was, const sd_config *now, sd_config_difference *visit, void *context, sodet_err *err)
{
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        const sd_schema *schema = &sd_core_sections[i];
        compare_rows(was, now, schema->section, schema, (const char *)&was->core + schema->offset,
                     (const char *)&now->core + schema->offset, visit, context);
    }
    for (uint64_t i = 0; i < now->n_filled; i++) {
        const filled *f = &now->filled[i];
        const char *slash = strrchr(f->schema->section, '/'), *plugin = slash ? slash + 1 : f->schema->section;
        const char *before = sd_config_text(was, f->section, "plugin");
        if (!before || strcmp(before, plugin) != 0) {
            visit(context, f->section, "plugin", NULL, before ? before : "(not given)", plugin);
            continue;
        }
        const void *theirs;
        sodet_status s = sd_config_fill(was, f->section, f->schema, &theirs, err);
        if (s != SODET_OK)
            return s;
        compare_rows(was, now, f->section, f->schema, theirs, f->cfg, visit, context);
    }
    return SODET_OK;
}
