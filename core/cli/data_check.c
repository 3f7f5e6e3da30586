/* sodet data check: what is wrong or odd in the data sets of a configuration. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/cli/data.h"
#include "core/cli/trained.h"
#include "core/data/check.h"

/* Kinds that a key of [data] passes over, if the configuration says so itself: what is a default is no decision. */
static uint32_t allowed(const sd_config *cfg)
{
    static const struct {
        const char *key, *word;
        uint32_t kinds;
    } rows[] = {
        {"bad_files", "skip", 1u << SD_CHECK_MISSING | 1u << SD_CHECK_UNDECODABLE | 1u << SD_CHECK_ANNOTATION},
        {"unknown_class", "skip", 1u << SD_CHECK_UNKNOWN_CLASS},
        {"bad_boxes", "drop", 1u << SD_CHECK_NOT_FINITE | 1u << SD_CHECK_NO_AREA | 1u << SD_CHECK_OUTSIDE},
    };
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    bool same = data->train.n == data->val.n && !data->train_list && !data->val_list;
    for (uint32_t i = 0; i < data->train.n && same; i++)
        same = strcmp(data->train.v[i], data->val.v[i]) == 0;
    uint32_t out = same ? 1u << SD_CHECK_LEAK : 0; /* val = train, in so many words */
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = sd_config_text(cfg, "data", rows[i].key);
        out |= text && strcmp(text, rows[i].word) == 0 ? rows[i].kinds : 0;
    }
    return out;
}

static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- for a person ---- */

static void text_sets(const sd_check_config *c, sd_text *t)
{
    const sd_classes *classes = sd_dataset_classes(c->sets[0].dataset);
    for (uint32_t k = 0; k < c->n_sets; k++) {
        const sd_census *census = sd_dataset_census(c->sets[k].dataset);
        sd_text_printf(t, "%s: %" PRIu64 " picture%s decoded, %" PRIu64 " broken; %" PRIu64 " object%s of %u class%s\n", c->sets[k].name,
                       c->sets[k].decoded, s_of(c->sets[k].decoded), c->sets[k].broken, census->objects, s_of(census->objects), classes->n,
                       classes->n == 1 ? "" : "es");
    }
    sd_text_printf(t, "  %-20s", "");
    for (uint32_t k = 0; k < c->n_sets; k++)
        sd_text_printf(t, " %10s", c->sets[k].name);
    for (uint32_t i = 0; i < classes->n; i++) {
        sd_text_printf(t, "\n  %-20s", classes->names[i]);
        for (uint32_t k = 0; k < c->n_sets; k++)
            sd_text_printf(t, " %10" PRIu64, sd_dataset_census(c->sets[k].dataset)->per_class[i]);
    }
    sd_text_printf(t, "\n");
}

static void text_finding(const sd_check_config *c, const sd_check_finding *f, sd_text *t)
{
    sd_text_printf(t, "%s %s: %s (%" PRIu64 ")\n", f->error ? "error" : "note", f->name, f->what, f->count);
    for (uint32_t i = 0; i < f->n_examples; i++) {
        const sd_check_example *e = &f->examples[i];
        const char *set = c->sets[e->set].name;
        sd_text_printf(t, "  %s", set);
        if (strcmp(set, e->file) != 0)
            sd_text_printf(t, ": %s", e->file);
        if (e->object)
            sd_text_printf(t, ": object %u (%s)", e->object, e->class ? e->class : "");
        if (e->value)
            sd_text_printf(t, ": %s", e->value);
        if (e->expected)
            sd_text_printf(t, "%s expected %s", e->value ? ";" : ":", e->expected);
        sd_text_printf(t, "\n");
    }
    if (f->count > f->n_examples)
        sd_text_printf(t, "  and %" PRIu64 " more\n", f->count - f->n_examples);
    sd_text_printf(t, "  -> %s\n", f->remedy);
}

static void text(const sd_check_config *c, const sd_check *found, const uint64_t count[2], const uint32_t n_kinds[2], sd_text *t)
{
    text_sets(c, t);
    for (uint32_t error = 2; error-- > 0;) {
        for (uint32_t k = 0; k < SD_CHECK_KINDS; k++) {
            const sd_check_finding *f = &found->finding[k];
            if (f->count && f->error == (error == 1))
                text_finding(c, f, t);
        }
    }
    sd_text_printf(t, "%" PRIu64 " error%s of %u kind%s, %" PRIu64 " note%s of %u kind%s\n", count[1], s_of(count[1]), n_kinds[1],
                   s_of(n_kinds[1]), count[0], s_of(count[0]), n_kinds[0], s_of(n_kinds[0]));
}

/* ---- for a program ---- */

static void member(sd_text *t, const char *name, const char *value)
{
    if (!value)
        return;
    sd_text_printf(t, ", \"%s\": ", name);
    sd_json_write_string(t, value);
}

static void json(const sd_check_config *c, const sd_check *found, const uint64_t count[2], sd_text *t)
{
    const sd_classes *classes = sd_dataset_classes(c->sets[0].dataset);
    sd_text_printf(t, "{\"sets\": [");
    for (uint32_t k = 0; k < c->n_sets; k++) {
        const sd_census *census = sd_dataset_census(c->sets[k].dataset);
        sd_text_printf(t,
                       "%s\n  {\"name\": \"%s\", \"pictures\": %" PRIu64 ", \"decoded\": %" PRIu64 ", \"broken\": %" PRIu64
                       ", \"objects\": %" PRIu64 ", \"classes\": {",
                       k ? "," : "", c->sets[k].name, sd_dataset_size(c->sets[k].dataset), c->sets[k].decoded, c->sets[k].broken,
                       census->objects);
        for (uint32_t i = 0; i < classes->n; i++) {
            sd_text_printf(t, "%s", i ? ", " : "");
            sd_json_write_string(t, classes->names[i]);
            sd_text_printf(t, ": %" PRIu64, census->per_class[i]);
        }
        sd_text_printf(t, "}}");
    }
    sd_text_printf(t, "],\n\"findings\": [");
    const char *comma = "";
    for (uint32_t k = 0; k < SD_CHECK_KINDS; k++) {
        const sd_check_finding *f = &found->finding[k];
        if (!f->count)
            continue;
        sd_text_printf(t, "%s\n  {\"kind\": \"%s\", \"error\": %s, \"count\": %" PRIu64, comma, f->name, f->error ? "true" : "false",
                       f->count);
        comma = ",";
        member(t, "what", f->what);
        member(t, "remedy", f->remedy);
        sd_text_printf(t, ", \"examples\": [");
        for (uint32_t i = 0; i < f->n_examples; i++) {
            const sd_check_example *e = &f->examples[i];
            sd_text_printf(t, "%s\n    {\"set\": \"%s\"", i ? "," : "", c->sets[e->set].name);
            member(t, "file", e->file);
            if (e->object)
                sd_text_printf(t, ", \"object\": %u", e->object);
            member(t, "class", e->class);
            member(t, "value", e->value);
            member(t, "expected", e->expected);
            sd_text_printf(t, "}");
        }
        sd_text_printf(t, "]}");
    }
    sd_text_printf(t, "],\n\"errors\": %" PRIu64 ", \"notes\": %" PRIu64 "}\n", count[1], count[0]);
}

static void progress(void *context, uint64_t done, uint64_t of)
{
    sd_cli_progress(context, done, of);
}

sodet_status sd_data_check(sd_cli *cli, sodet_err *err)
{
    sd_data_sets sets = {0};
    sd_check found = {0};
    sd_check_set set[SD_DATA_SETS];
    sd_text out = {0};
    uint64_t examples, count[2] = {0}; /* notes, errors */
    uint32_t n_kinds[2] = {0};
    sodet_status status = sd_cli_flag_uint(cli, "--examples", 0, 5, &examples, err);
    if (status == SODET_OK && examples > 1000000)
        status = SODET_FAIL(err, SODET_E_INVALID, "data check: --examples %" PRIu64 ": at most 1000000", examples);
    if (status == SODET_OK)
        status = sd_data_sets_open(cli, SD_DATA_SETS, sd_check_rules, &sets, err);
    if (status != SODET_OK)
        return status;
    const sd_core_cfg *core = sd_config_core(sets.cfg);
    for (uint32_t i = 0; i < sets.n; i++)
        set[i] = (sd_check_set){.name = sets.name[i], .dataset = sets.split[i].dataset, .frames = &sets.frames[i]};
    const sd_check_config config = {.n_sets = sets.n,
                                    .threads = core->run.threads ? core->run.threads : sd_processors(),
                                    .sets = set,
                                    .examples = (uint32_t)examples,
                                    .turned = !core->data.ignore_orientation,
                                    .min_side = core->data.min_side,
                                    .allowed = allowed(sets.cfg),
                                    .progress = progress,
                                    .context = cli};
    status = sd_check_run(&config, &found, err);
    sd_cli_progress(cli, 0, 0);
    if (status == SODET_OK) {
        const char *bad_boxes = sd_config_text(sets.cfg, "data", "bad_boxes");
        found.finding[SD_CHECK_OVER_EDGE].error = bad_boxes && strcmp(bad_boxes, "fail") == 0;
        for (uint32_t k = 0; k < SD_CHECK_KINDS; k++) {
            count[found.finding[k].error] += found.finding[k].count;
            n_kinds[found.finding[k].error] += found.finding[k].count > 0;
        }
        if (cli->json)
            json(&config, &found, count, &out);
        else
            text(&config, &found, count, n_kinds, &out);
        status = out.failed ? SODET_FAIL(err, SODET_E_MEMORY, "data check: no memory for the report") : SODET_OK;
    }
    if (status == SODET_OK) {
        fputs(out.text, stdout);
        if (count[1])
            cli->exit_code = 1;
    }
    sd_text_free(&out);
    sd_check_clear(&found);
    sd_data_sets_close(&sets);
    return status;
}
