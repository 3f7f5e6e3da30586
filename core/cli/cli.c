#include "core/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/plugin/plugin.h"
#include "core/train/state.h"

const char sd_written_file[] = "FILE";

/* Short forms as the reference scripts have them, and the keys they stand for. %s is the value. */
static const struct {
    sd_flag flag;
    const char *keys[4];
} aliases[] = {
    {{"-j", "N", "loader threads"}, {"data.workers=%s"}},
    {{"--lr", "RATE", "learning rate"}, {"optimizer.lr=%s"}},
    {{"--lr-decay", "FACTOR", "what the rate is multiplied by at a milestone"}, {"schedule.factor=%s"}},
    {{"--lr-decay-epoch", "LIST", "milestones, in epochs: 160,200"},
     {"schedule.type=multistep", "schedule.unit=epochs", "schedule.milestones=%s"}},
    {{"--epochs", "N", "length of the run"}, {"schedule.unit=epochs", "schedule.total=%s"}},
    {{"--max-steps", "N", "end after so many steps"}, {"train.max_steps=%s"}},
    {{"--overfit", "N", "sanity run on the first N training pictures alone"}, {"data.overfit=%s"}},
    {{"--batch-size", "N", "pictures per batch, over all devices"}, {"train.batch=%s"}},
    {{"--data-shape", "WxH", "width x height of the network's input"}, {"input.size=%s"}},
    {{"--nms-thresh", "IOU", "IoU above which the weaker detection is dropped"}, {"head.nms_iou=%s"}},
    {{"--resume", "FILE", "run folder, or checkpoint, to go on from"}, {"run.resume=%s"}},
    {{"--gpus", "LIST", "CUDA devices: 0,1"}, {"run.devices=cuda:%s"}},
    {{"--seed", "N", "seed of everything random"}, {"run.seed=%s"}},
    {{"--train-split", "NAME", "split of every training data set"}, {NULL}},
    {{"--val-split", "NAME", "split of every validation data set"}, {NULL}},
    {{"--dataset", "NAME", "plugin of every data set"}, {NULL}},
};
enum { N_ALIASES = sizeof aliases / sizeof aliases[0] };

static const sd_flag common[] = {
    {"--json", NULL, "figures as one JSON object"},
    {"--plugin-dir", "DIR", "look for plugins here first"},
    {"--verbose", NULL, "say more"},
    {"--quiet", NULL, "say only results and errors"},
    {"--help", NULL, "this text"},
    {0},
};

const sd_command *sd_cli_find(const char *name)
{
    for (int i = 0; sd_commands[i]; i++) {
        if (strcmp(sd_commands[i]->name, name) == 0)
            return sd_commands[i];
    }
    return NULL;
}

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
}

static sodet_status add_override(sd_cli *cli, const char *text, const char *alias, sodet_err *err)
{
    sodet_status s = sd_grow(&cli->overrides, &cli->override_capacity, cli->n_overrides + 1, sizeof *cli->overrides, err);
    if (s == SODET_OK)
        cli->overrides[cli->n_overrides++] = (sd_override){text, alias};
    return s;
}

/* Where "section.key" ends, if that is what the argument begins with; else NULL. */
static const char *override_equal(const char *text)
{
    const char *equal = strchr(text, '=');
    if (!equal || equal == text)
        return NULL;
    size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return text + name == equal && memchr(text, '.', name) && text[0] != '.' ? equal : NULL;
}

static bool ends_in(const char *text, const char *ending)
{
    size_t n = strlen(text), k = strlen(ending);
    return n > k && strcmp(text + n - k, ending) == 0;
}

static bool is_ini(const char *text)
{
    return ends_in(text, ".ini");
}

static sodet_status add_positional(sd_cli *cli, const char *text, bool literal, sodet_err *err)
{
    uint32_t takes = cli->command->takes;
    if (!*text)
        return SODET_FAIL(err, SODET_E_INVALID, "an argument is an empty word (a variable without a value?); usage: sodet %s %s",
                          cli->command->name, cli->command->synopsis);
    if (!literal && (takes & SD_TAKES_INI)) {
        if (override_equal(text))
            return add_override(cli, text, NULL, err);
        if (strchr(text, '=') && !sd_path_exists(text))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: write section.key=value (`sodet help ini` lists the sections)", text);
        if (!(takes & SD_TAKES_FILES) && ends_in(text, ".safetensors"))
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s: is a checkpoint, and a configuration is needed: config.ini in its run's folder is one%s", text,
                              strcmp(cli->command->name, "train") == 0
                                  ? "; beside it --resume goes on from a checkpoint, run.init= starts from its weights"
                                  : "");
        if (!cli->ini && (is_ini(text) || !(takes & SD_TAKES_FILES))) {
            cli->ini = text;
            return SODET_OK;
        }
        if (is_ini(text) && !(takes & SD_TAKES_FILES))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is the configuration already; several are joined by [run] base", text,
                              cli->ini);
    }
    if (!(takes & SD_TAKES_FILES))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: one argument too many; usage: sodet %s %s", text, cli->command->name,
                          cli->command->synopsis);
    sodet_status s = sd_grow(&cli->files, &cli->file_capacity, cli->n_files + 1, sizeof *cli->files, err);
    if (s == SODET_OK)
        cli->files[cli->n_files++] = text;
    return s;
}

static sodet_status add_alias(sd_cli *cli, size_t which, const char *value, sodet_err *err)
{
    const char *flag = aliases[which].flag.name;
    if (strcmp(flag, "--train-split") == 0)
        cli->train_split = value;
    else if (strcmp(flag, "--val-split") == 0)
        cli->val_split = value;
    else if (strcmp(flag, "--dataset") == 0)
        cli->dataset = value;
    for (int i = 0; i < 4 && aliases[which].keys[i]; i++) {
        const char *key = aliases[which].keys[i], *hole = strstr(key, "%s");
        char *text = sd_pool_printf(&cli->pool, "%.*s%s%s", hole ? (int)(hole - key) : (int)strlen(key), key, hole ? value : "",
                                    hole ? hole + 2 : "");
        if (!text)
            return no_memory(err);
        sodet_status s = add_override(cli, text, flag, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static sodet_status set_common(sd_cli *cli, const sd_flag *flag, const char *value, sodet_err *err)
{
    if (strcmp(flag->name, "--json") == 0) {
        if (!(cli->command->takes & SD_TAKES_JSON))
            return SODET_FAIL(err, SODET_E_INVALID, "--json: `sodet %s` reports no figures", cli->command->name);
        cli->json = true;
    } else if (strcmp(flag->name, "--verbose") == 0) {
        cli->verbose = true;
        sd_log_level(SD_LOG_DEBUG);
    } else if (strcmp(flag->name, "--quiet") == 0) {
        cli->quiet = true;
        sd_log_level(SD_LOG_WARN);
    } else if (strcmp(flag->name, "--help") == 0) {
        cli->help = true;
    } else {
        return sd_plugin_add_folder(value, err);
    }
    return SODET_OK;
}

static sodet_status unknown_flag(const sd_cli *cli, const char *name, sodet_err *err)
{
    const char *names[64];
    uint64_t n = 0;
    for (const sd_flag *f = cli->command->flags; f && f->name && n < 20; f++)
        names[n++] = f->name;
    for (const sd_flag *f = common; f->name; f++)
        names[n++] = f->name;
    for (size_t i = 0; i < N_ALIASES && (cli->command->takes & SD_TAKES_INI); i++)
        names[n++] = aliases[i].flag.name;
    const char *near = sd_nearest(name, names, n);
    if (near)
        return SODET_FAIL(err, SODET_E_INVALID, "unknown flag %s; did you mean %s?", name, near);
    return SODET_FAIL(err, SODET_E_INVALID, "unknown flag %s; `sodet help %s` lists them%s", name, cli->command->name,
                      cli->command->takes & SD_TAKES_INI ? ", any other option is written section.key=value" : "");
}

/* One flag at argv[*i]; moves *i to its value if that is the next word. */
static sodet_status add_flag(sd_cli *cli, int argc, char **argv, int *i, sodet_err *err)
{
    char *word = argv[*i], name[64];
    const char *equal = strchr(word, '='), *value = equal ? equal + 1 : NULL;
    snprintf(name, sizeof name, "%.*s", equal ? (int)(equal - word) : (int)strlen(word), word);
    if (strcmp(name, "-h") == 0 || strcmp(name, "-v") == 0 || strcmp(name, "-q") == 0)
        snprintf(name, sizeof name, "%s", name[1] == 'h' ? "--help" : name[1] == 'v' ? "--verbose" : "--quiet");
    if (strncmp(name, "-j", 2) == 0 && name[2] >= '0' && name[2] <= '9') { /* -j4 */
        value = word + 2;
        name[2] = '\0';
    }
    const sd_flag *flag = NULL;
    bool own = false;
    size_t alias = N_ALIASES;
    for (const sd_flag *f = cli->command->flags; f && f->name && !flag; f++)
        flag = strcmp(f->name, name) == 0 ? f : NULL;
    own = flag != NULL;
    for (const sd_flag *f = common; f->name && !flag; f++)
        flag = strcmp(f->name, name) == 0 ? f : NULL;
    for (size_t k = 0; k < N_ALIASES && !flag && (cli->command->takes & SD_TAKES_INI); k++)
        alias = strcmp(aliases[k].flag.name, name) == 0 ? k : alias;
    if (!flag && alias == N_ALIASES)
        return unknown_flag(cli, name, err);
    bool wants = alias < N_ALIASES || flag->value;
    if (!wants && value)
        return SODET_FAIL(err, SODET_E_INVALID, "%s takes no value", name);
    if (wants && !value) {
        if (*i + 1 >= argc)
            return SODET_FAIL(err, SODET_E_INVALID, "%s needs a value%s%s", name, flag ? ": " : "", flag ? flag->value : "");
        value = argv[++*i];
    }
    if (alias < N_ALIASES)
        return add_alias(cli, alias, value, err);
    if (!own)
        return set_common(cli, flag, value, err);
    sodet_status s = sd_grow(&cli->flags, &cli->flag_capacity, cli->n_flags + 1, sizeof *cli->flags, err);
    if (s == SODET_OK) {
        cli->flags[cli->n_flags].flag = flag;
        cli->flags[cli->n_flags++].value = value ? value : "";
    }
    return s;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A result never takes the place of what it is made from. */
static sodet_status check_outputs(const sd_cli *cli, sodet_err *err)
{
    for (uint64_t w = 0; w < cli->n_flags; w++) {
        const sd_flag *flag = cli->flags[w].flag;
        const char *out = cli->flags[w].value, *in = NULL;
        if (flag->value != sd_written_file)
            continue;
        in = same_file(out, cli->ini) ? cli->ini : NULL;
        for (uint64_t i = 0; i < cli->n_files && !in; i++)
            in = same_file(out, cli->files[i]) ? cli->files[i] : NULL;
        for (uint64_t i = 0; i < cli->n_flags && !in; i++)
            in = cli->flags[i].flag != flag && same_file(out, cli->flags[i].value) ? cli->flags[i].value : NULL;
        if (in)
            return SODET_FAIL(err, SODET_E_INVALID, "%s %s: would replace %s, which is read; name another file", flag->name, out, in);
    }
    return SODET_OK;
}

sodet_status sd_cli_parse(sd_cli *cli, const sd_command *command, int argc, char **argv, sodet_err *err)
{
    cli->command = command;
    bool literal = false;
    sodet_status s = SODET_OK;
    for (int i = 1; i < argc && s == SODET_OK; i++) {
        if (literal || argv[i][0] != '-' || argv[i][1] == '\0')
            s = add_positional(cli, argv[i], literal, err);
        else if (strcmp(argv[i], "--") == 0)
            literal = true;
        else
            s = add_flag(cli, argc, argv, &i, err);
    }
    if (s == SODET_OK && (command->takes & SD_NEEDS_INI) && !cli->ini && !cli->help && cli->n_overrides == 0)
        s = SODET_FAIL(err, SODET_E_INVALID, "which configuration? usage: sodet %s %s", command->name, command->synopsis);
    return s == SODET_OK ? check_outputs(cli, err) : s;
}

void sd_cli_free(sd_cli *cli)
{
    sd_free(cli->overrides);
    sd_free(cli->files);
    sd_free(cli->flags);
    sd_pool_clear(&cli->pool);
}

/* The short forms that speak of data sets: an override for every label. */
static sodet_status add_labels(sd_cli *cli, const sodet_string_list *labels, const char *list, const char *key, const char *value,
                               const char *alias, sodet_err *err)
{
    const char *none[] = {list}; /* a configuration without data sets gets one that is called as its list */
    sodet_string_list used = labels->n ? *labels : (sodet_string_list){1, none};
    sodet_status s = SODET_OK;
    if (labels->n == 0) {
        char *text = sd_pool_printf(&cli->pool, "data.%s=%s", list, list);
        s = text ? add_override(cli, text, alias, err) : no_memory(err);
    }
    for (uint32_t i = 0; i < used.n && s == SODET_OK; i++) {
        char *text = sd_pool_printf(&cli->pool, "dataset.%s.%s=%s", used.v[i], key, value);
        s = text ? add_override(cli, text, alias, err) : no_memory(err);
    }
    return s;
}

static sodet_status expand_labels(sd_cli *cli, const sd_config *cfg, sodet_err *err)
{
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    sodet_status s = SODET_OK;
    if (cli->dataset)
        s = add_labels(cli, &data->train, "train", "plugin", cli->dataset, "--dataset", err);
    if (s == SODET_OK && cli->dataset)
        s = add_labels(cli, &data->val, "val", "plugin", cli->dataset, "--dataset", err);
    if (s == SODET_OK && cli->train_split)
        s = add_labels(cli, &data->train, "train", "split", cli->train_split, "--train-split", err);
    if (s == SODET_OK && cli->val_split)
        s = add_labels(cli, &data->val, "val", "split", cli->val_split, "--val-split", err);
    cli->dataset = cli->train_split = cli->val_split = NULL;
    return s;
}

static sodet_status open_config(const sd_cli *cli, sd_config **out, sodet_err *err)
{
    if (cli->checkpoint && !cli->ini)
        return sd_state_config(cli->checkpoint, cli->overrides, cli->n_overrides, out, err);
    return sd_config_open(cli->ini, cli->overrides, cli->n_overrides, out, err);
}

sodet_status sd_cli_config(sd_cli *cli, sd_config **out, sodet_err *err)
{
    sodet_status s = open_config(cli, out, err);
    if (s == SODET_OK && (cli->dataset || cli->train_split || cli->val_split)) {
        s = expand_labels(cli, *out, err);
        sd_config_close(*out);
        *out = NULL;
        if (s == SODET_OK)
            s = open_config(cli, out, err);
    }
    for (uint64_t i = 0; i < cli->n_overrides && s == SODET_OK; i++) {
        if (cli->overrides[i].alias)
            sd_log(SD_LOG_INFO, "%s sets %s", cli->overrides[i].alias, cli->overrides[i].text);
    }
    return s;
}

const char *sd_cli_flag(const sd_cli *cli, const char *name)
{
    const char *value = NULL;
    for (uint64_t i = 0; i < cli->n_flags; i++) {
        if (strcmp(cli->flags[i].flag->name, name) == 0)
            value = cli->flags[i].value;
    }
    return value;
}

sodet_status sd_cli_flag_uint(const sd_cli *cli, const char *name, uint64_t least, uint64_t fallback, uint64_t *out, sodet_err *err)
{
    const char *text = sd_cli_flag(cli, name);
    *out = fallback;
    if (!text)
        return SODET_OK;
    if (!sd_parse_uint64(text, out) || *out < least)
        return SODET_FAIL(err, SODET_E_INVALID, "%s %s: a whole number of %llu or more is needed", name, text, (unsigned long long)least);
    return SODET_OK;
}

void sd_cli_each_flag(const sd_command *command, sd_cli_visit *visit, void *context)
{
    for (const sd_flag *f = command->flags; f && f->name; f++)
        visit(context, SD_FLAG_OWN, f);
    for (const sd_flag *f = common; f->name; f++) {
        if (strcmp(f->name, "--json") != 0 || (command->takes & SD_TAKES_JSON))
            visit(context, SD_FLAG_COMMON, f);
    }
    for (size_t i = 0; i < N_ALIASES && (command->takes & SD_TAKES_INI); i++)
        visit(context, SD_FLAG_SHORT, &aliases[i].flag);
}

typedef struct help {
    sd_text *out;
    uint32_t group;
} help;

static void help_flag(void *context, uint32_t group, const sd_flag *flag)
{
    help *h = context;
    char head[80];
    if (group == SD_FLAG_SHORT && h->group != group)
        sd_text_printf(h->out, "\nshort forms (each prints the key it sets):\n");
    h->group = group;
    snprintf(head, sizeof head, "%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
    sd_text_printf(h->out, "  %-24s %s\n", head, flag->help);
}

sodet_status sd_cli_say(sd_text *t, sodet_err *err)
{
    const sodet_status s = t->failed ? SODET_FAIL(err, SODET_E_MEMORY, "no memory for what was to be printed") : SODET_OK;
    if (s == SODET_OK && t->text)
        fputs(t->text, stdout);
    sd_text_free(t);
    return s;
}

void sd_cli_help(const sd_command *command, sd_text *out)
{
    help h = {out, SD_FLAG_OWN};
    sd_text_printf(out, "sodet %s: %s\n\nusage: sodet %s %s\n", command->name, command->summary, command->name, command->synopsis);
    if (command->help)
        sd_text_printf(out, "\n%s\n", command->help);
    sd_text_printf(out, "\nflags:\n");
    sd_cli_each_flag(command, help_flag, &h);
}
