#include <stdio.h>
#include <string.h>

#include "core/cli/cli.h"
#include "core/plugin/plugin.h"

typedef struct listing {
    sd_text *out;
    bool json;
    uint32_t last_kind;
    uint64_t n, refused;
} listing;

static void visit(void *context, uint32_t kind, const char *name, const char *path, const sd_plugin *plugin, const sodet_err *err)
{
    listing *l = context;
    if (l->json) {
        sd_text_printf(l->out, "%s{\"kind\": \"%s\", \"name\": ", l->n ? ",\n  " : "\n  ", sd_kind_name(kind));
        sd_json_write_string(l->out, name);
        sd_text_printf(l->out, ", \"path\": ");
        sd_json_write_string(l->out, path);
        sd_text_printf(l->out, plugin ? ", \"summary\": " : ", \"refused\": ");
        sd_json_write_string(l->out, plugin ? plugin->schema.summary : err->text);
        sd_text_printf(l->out, "}");
    } else {
        if (kind != l->last_kind)
            sd_text_printf(l->out, "%s%s\n", l->n ? "\n" : "", sd_kind_name(kind));
        sd_text_printf(l->out, "  %-16s %s%s\n", name, plugin ? "" : "refused: ", plugin ? plugin->schema.summary : err->text);
    }
    l->last_kind = kind;
    l->n++;
    l->refused += !plugin;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    sd_text text = {0};
    listing l = {.out = &text, .json = cli->json};
    if (cli->json)
        sd_text_printf(&text, "{\"plugins\": [");
    for (uint64_t i = 0; i < (cli->n_files ? cli->n_files : 1); i++) {
        uint32_t kind = cli->n_files ? sd_kind_of(cli->files[i]) : 0;
        if (cli->n_files && !kind) {
            const char *names[16];
            uint64_t n = 0;
            for (uint32_t k = 1; sd_kind_name(k); k++)
                names[n++] = sd_kind_name(k);
            const char *near = sd_nearest(cli->files[i], names, n);
            sd_text_free(&text);
            return SODET_FAIL(err, SODET_E_INVALID, "%s: there is no such kind of plugins%s%s%s", cli->files[i],
                              near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
        }
        sd_plugin_each(kind, visit, &l);
    }
    if (cli->json)
        sd_text_printf(&text, "\n]}\n");
    else if (l.n == 0)
        sd_text_printf(&text, "no plugins found\n");
    const sodet_status s = sd_cli_say(&text, err);
    if (s == SODET_OK && !cli->json && l.n == 0) {
        for (const char *const *f = sd_plugin_folders(); *f; f++)
            fprintf(stderr, "looked in %s\n", *f);
    }
    return s;
}

static void words(sd_text *out)
{
    for (uint32_t k = 1; sd_kind_name(k); k++)
        sd_text_printf(out, "%s%s", k > 1 ? " " : "", sd_kind_name(k));
}

const sd_command sd_cmd_list;
const sd_command sd_cmd_list = {
    .name = "list",
    .synopsis = "[kind ...] [--json]",
    .summary = "the plugins that are there, and why others are refused",
    .help = "Kinds: backbone neck head loss dataset transform evaluator backend transport.\n"
            "--json: {\"plugins\": [{\"kind\", \"name\", \"path\", \"summary\" or \"refused\"}]}",
    .takes = SD_TAKES_FILES | SD_TAKES_JSON,
    .words = words,
    .run = run,
};
