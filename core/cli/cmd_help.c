#include <stdio.h>
#include <string.h>

#include "core/cli/cli.h"
#include "core/cli/help.h"
#include "core/plugin/plugin.h"

static const char topic_ini[] =
    "An INI file names the parts of a detector and everything that is done with it.\n"
    "\n"
    "  [run]                 what is run, where, from which start; base = a.ini, b.ini reads fragments first\n"
    "  [input]               what the network sees of a picture\n"
    "  [backbone] [neck] [head] [loss]   plugin = name, and the plugin's options\n"
    "  [data]                train and val: labels of data sets; classes, loading\n"
    "  [dataset.<label>]     plugin = name (default: the label), and its options\n"
    "  [transform]           train and val: chains of labels;   [transform.<label>]  options of one link\n"
    "  [eval]                evaluators: labels; when, and which metric is best;   [evaluator.<label>]\n"
    "  [optimizer] [schedule] [train] [checkpoint]\n"
    "  [backend.<name>]      options of a backend\n"
    "\n"
    "`sodet help run` prints the keys of a section, `sodet help head/ssd` those of a plugin.\n"
    "\n"
    "How it is written: key = value, one a line; ; and # begin a comment at the start of a line or after a blank; quotes (\"\" or '')\n"
    "protect ; # and blanks. Names are in lower case, and come once. % and $ have no meaning. Numbers are decimal; times have units\n"
    "(30s, 5m), bytes too (64MiB), a size is 300x200 (width x height) or 300. Lists are separated by commas.\n"
    "Paths are relative to the file that they stand in, on the command line to the working directory; ~/ is the home folder.\n"
    "Fragments are read in order, later wins; giving a section another plugin drops what was said in it before.\n"
    "On the command line: section.key=value, e.g. optimizer.lr=0.01 dataset.voc07.root=/data/VOC2007.\n";

static const char topic_plugins[] =
    "A plugin is a shared object <kind>/<name>.so with one exported symbol. Folders are searched in this order:\n"
    "  --plugin-dir DIR, SODET_PLUGIN_PATH (separated by colons), the folder `sodet` beside libsodet.so.\n"
    "Never the working directory. `plugin = path/x.so`, with a slash, is a path.\n"
    "`sodet list` shows what there is, `sodet new dataset mine` writes one that builds outside of sodet's tree.\n";

static const char topic_exit[] =
    "Exit codes: 0 done; 2 the request is wrong, found before the first batch; 1 failed afterwards, or in part;\n"
    "130, 143, 129 interrupted, with a checkpoint to resume from; 75 stopped to be queued again (SIGUSR1).\n"
    "Results go to the standard output, everything else to the standard error.\n";

const sd_topic sd_help_topics[] = {
    {"ini", "how a configuration is written", topic_ini},
    {"plugins", "where plugins come from", topic_plugins},
    {"exit", "exit codes and streams", topic_exit},
    {0},
};

static sodet_status help_schema(const sd_schema *schema, sodet_err *err)
{
    sd_text text = {0};
    sd_text_printf(&text, "%s: %s\n\n", schema->section, schema->summary);
    sd_schema_help(schema, &text);
    return sd_cli_say(&text, err);
}

static void overview(void)
{
    printf("commands:\n");
    for (int i = 0; sd_commands[i]; i++)
        printf("  %-12s %s\n", sd_commands[i]->name, sd_commands[i]->summary);
    printf("\ntopics:\n");
    for (int i = 0; sd_help_topics[i].name; i++)
        printf("  %-12s %s\n", sd_help_topics[i].name, sd_help_topics[i].summary);
    printf("  %-12s %s\n", "ops", "the operators of the graph");
    printf("\nsections of an INI file, with their keys:\n ");
    for (uint32_t i = 0; i < sd_core_section_count; i++)
        printf(" %s", sd_core_sections[i].section);
    printf("\n\nplugins: sodet help <kind>/<name>, e.g. sodet help head/ssd; sodet list names them\n");
}

static void help_ops(void)
{
    static const char *const ops[] = {
#define OP(name, ...) #name,
#include "kernels/ops.def"
#undef OP
        NULL};
    for (int i = 0; ops[i]; i++)
        printf("  %-20s sodet/ops/%s.h\n", ops[i], ops[i]);
    printf("\nEach header is the operator's contract: formula, shapes, options, gradient, tolerance.\n");
}

static sodet_status run_one(const char *word, sodet_err *err)
{
    const sd_command *command = sd_cli_find(word);
    const char *slash = strchr(word, '/');
    if (command) {
        sd_text text = {0};
        sd_cli_help(command, &text);
        return sd_cli_say(&text, err);
    }
    for (int i = 0; sd_help_topics[i].name; i++) {
        if (strcmp(sd_help_topics[i].name, word) == 0) {
            fputs(sd_help_topics[i].text, stdout);
            return SODET_OK;
        }
    }
    if (strcmp(word, "ops") == 0) {
        help_ops();
        return SODET_OK;
    }
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        if (strcmp(sd_core_sections[i].section, word) == 0)
            return help_schema(&sd_core_sections[i], err);
    }
    if (slash) {
        char kind[32];
        snprintf(kind, sizeof kind, "%.*s", (int)(slash - word), word);
        const sd_plugin *p;
        if (!sd_kind_of(kind))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: there is no kind %s of plugins", word, kind);
        sodet_status s = sd_plugin_load(sd_kind_of(kind), slash + 1, &p, err);
        return s == SODET_OK ? help_schema(&p->schema, err) : s;
    }
    const char *names[128];
    uint64_t n = 0;
    for (int i = 0; sd_commands[i]; i++)
        names[n++] = sd_commands[i]->name;
    for (int i = 0; sd_help_topics[i].name; i++)
        names[n++] = sd_help_topics[i].name;
    for (uint32_t i = 0; i < sd_core_section_count; i++)
        names[n++] = sd_core_sections[i].section;
    const char *near = sd_nearest(word, names, n);
    return SODET_FAIL(err, SODET_E_INVALID, "%s: no command, topic, section or <kind>/<name>%s%s%s", word, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "; `sodet help` lists them");
}

static sodet_status print_made(const sd_cli *cli, sodet_err *err)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    const char *shell = sd_cli_flag(cli, "--completion");
    const sd_command *command = cli->n_files ? sd_cli_find(cli->files[0]) : NULL;
    sd_text text = {0};
    if (shell && (sd_cli_flag(cli, "--man") || cli->n_files))
        return SODET_FAIL(err, SODET_E_INVALID, "--completion %s stands alone", shell);
    if (cli->n_files > 1)
        return SODET_FAIL(err, SODET_E_INVALID, "--man: one command at a time, %s is one too many", cli->files[1]);
    if (!shell && cli->n_files && !command)
        return SODET_FAIL(err, SODET_E_INVALID, "--man %s: there is no such command; `sodet help` lists them", cli->files[0]);
    if (shell && !sd_complete(shell, &text)) {
        const char *near = sd_nearest(shell, shells, 3);
        return SODET_FAIL(err, SODET_E_INVALID, "--completion %s: bash, zsh or fish is expected%s%s%s", shell,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    if (!shell)
        sd_man(command, &text);
    return sd_cli_say(&text, err);
}

static void words(sd_text *out)
{
    for (int i = 0; sd_commands[i]; i++)
        sd_text_printf(out, "%s ", sd_commands[i]->name);
    for (int i = 0; sd_help_topics[i].name; i++)
        sd_text_printf(out, "%s ", sd_help_topics[i].name);
    for (uint32_t i = 0; i < sd_core_section_count; i++)
        sd_text_printf(out, "%s ", sd_core_sections[i].section);
    sd_text_printf(out, "ops");
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    sodet_status s = SODET_OK;
    if (sd_cli_flag(cli, "--completion") || sd_cli_flag(cli, "--man"))
        return print_made(cli, err);
    if (cli->n_files == 0)
        overview();
    for (uint64_t i = 0; i < cli->n_files && s == SODET_OK; i++) {
        if (i)
            printf("\n");
        s = run_one(cli->files[i], err);
    }
    return s;
}

static const sd_flag flags[] = {
    {"--completion", "bash|zsh|fish", "print the shell's completion of sodet: source <(sodet help --completion bash)"},
    {"--man", NULL, "print the manual page of the command, or of sodet: sodet help --man train | man -l -"},
    {0}};
const sd_command sd_cmd_help;
const sd_command sd_cmd_help = {
    .name = "help",
    .synopsis = "[command | topic | section | kind/name | ops] [--man] | --completion bash|zsh|fish",
    .summary = "this help: commands, topics, keys of sections, options of plugins",
    .takes = SD_TAKES_FILES,
    .flags = flags,
    .words = words,
    .run = run,
};
