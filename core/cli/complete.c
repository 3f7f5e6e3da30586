#include <string.h>

#include "core/cli/help.h"

/* What may follow a flag, by how its value is called. */
enum { NOTHING, FILES, FOLDERS, CHOICES };
static int value_kind(const sd_flag *f)
{
    return strcmp(f->value, "FILE") == 0                                     ? FILES
           : strcmp(f->value, "DIR") == 0 || strcmp(f->value, "FOLDER") == 0 ? FOLDERS
           : strchr(f->value, '|')                                           ? CHOICES
                                                                             : NOTHING;
}

/* What the arguments of a command may be beside its words: "ini", "any" (with an INI among them), "file", "none". */
static const char *arguments_kind(const sd_command *c)
{
    if (c->takes & SD_TAKES_INI)
        return (c->takes & SD_TAKES_FILES) && !c->words ? "any" : "ini";
    return (c->takes & SD_TAKES_FILES) && !c->words ? "file" : "none";
}

static void put_words(const sd_command *c, sd_text *out)
{
    if (c->words)
        c->words(out);
}

/* section.key= of the core's sections; plugins bring theirs when they are loaded, which completion does not do. */
static void put_keys(sd_text *out)
{
    const char *before = "";
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        const sd_schema *s = &sd_core_sections[i];
        for (uint32_t k = 0; k < s->n_opts; k++) {
            const sodet_opt *row = (const sodet_opt *)(const void *)((const char *)s->opts + (size_t)k * s->opt_size);
            if (!row->name)
                break;
            sd_text_printf(out, "%s%s.%s=", before, s->section, row->name);
            before = " ";
        }
    }
}

/* Inside single quotes, a backslash before what is special. fish: a quote is written with a backslash too, elsewhere by leaving the quotes. */
static void put_quoted(sd_text *out, const char *text, const char *special, bool fish)
{
    for (; *text; text++) {
        if (*text == '\'')
            sd_text_printf(out, fish ? "\\'" : "'\\''");
        else if (strchr(special, *text))
            sd_text_printf(out, "\\%c", *text);
        else
            sd_text_append(out, text, 1);
    }
}

static void put_choices(sd_text *out, const char *value)
{
    for (; *value; value++)
        sd_text_append(out, *value == '|' ? " " : value, 1);
}

typedef struct script {
    sd_text *out;
    const sd_command *command;
    int kind; /* bash: of the values that are asked for */
} script;

/* ---- bash ---- */
static void bash_name(void *context, uint32_t group, const sd_flag *f)
{
    (void)group;
    sd_text_printf(((script *)context)->out, " %s", f->name);
}

static void bash_valued(void *context, uint32_t group, const sd_flag *f)
{
    script *s = context;
    (void)group;
    if (f->value && value_kind(f) == s->kind)
        sd_text_printf(s->out, "%s ", f->name);
}

static void bash_choices(void *context, uint32_t group, const sd_flag *f)
{
    script *s = context;
    (void)group;
    if (!f->value || value_kind(f) != CHOICES)
        return;
    sd_text_printf(s->out, "    %s:%s) choices='", s->command->name, f->name);
    put_choices(s->out, f->value);
    sd_text_printf(s->out, "' ;;\n");
}

static void complete_bash(sd_text *out)
{
    sd_text_printf(out, "# bash completion of sodet, made by `sodet help --completion bash`\n_sodet()\n{\n"
                        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "    local flags='' words='' takes='' files='' folders='' free='' choices=''\n    COMPREPLY=()\n"
                        "    # --flag=value and section.key=value come in three words\n"
                        "    if [[ $cur == = ]]; then\n        cur=''\n"
                        "    elif [[ $prev == = ]]; then\n        prev=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
                        "    if ((COMP_CWORD == 1)); then\n        mapfile -t COMPREPLY < <(compgen -W '");
    for (int i = 0; sd_commands[i]; i++)
        sd_text_printf(out, "%s ", sd_commands[i]->name);
    sd_text_printf(out, "--help --version' -- \"$cur\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; sd_commands[i]; i++) {
        script s = {out, sd_commands[i], FILES};
        sd_text_printf(out, "    %s)\n        takes=%s flags='", sd_commands[i]->name, arguments_kind(sd_commands[i]));
        sd_cli_each_flag(sd_commands[i], bash_name, &s);
        sd_text_printf(out, "'\n        words='");
        put_words(sd_commands[i], out);
        static const struct {
            int kind;
            const char *name;
        } of[] = {{FILES, "files"}, {FOLDERS, "folders"}, {NOTHING, "free"}};
        for (int k = 0; k < 3; k++) {
            s.kind = of[k].kind;
            sd_text_printf(out, "' %s=' ", of[k].name);
            sd_cli_each_flag(sd_commands[i], bash_valued, &s);
        }
        sd_text_printf(out, "' ;;\n");
    }
    sd_text_printf(out, "    *) return ;;\n    esac\n    case ${COMP_WORDS[1]}:$prev in\n");
    for (int i = 0; sd_commands[i]; i++) {
        script s = {out, sd_commands[i], CHOICES};
        sd_cli_each_flag(sd_commands[i], bash_choices, &s);
    }
    sd_text_printf(out, "    esac\n"
                        "    if [[ -n $choices ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$cur\")\n"
                        "    elif [[ $prev == -* && $files == *\" $prev \"* ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                        "        compopt -o filenames 2>/dev/null\n"
                        "    elif [[ $prev == -* && $folders == *\" $prev \"* ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
                        "        compopt -o filenames 2>/dev/null\n"
                        "    elif [[ $prev == -* && $free == *\" $prev \"* ]]; then\n"
                        "        return\n"
                        "    elif [[ $cur == -* ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
                        "    else\n"
                        "        mapfile -t COMPREPLY < <(\n"
                        "            compgen -W \"$words\" -- \"$cur\"\n"
                        "            [[ $takes == ini ]] && { compgen -f -X '!*.ini' -- \"$cur\"; compgen -d -- \"$cur\"; }\n"
                        "            [[ $takes == any || $takes == file ]] && compgen -f -- \"$cur\"\n"
                        "            [[ $takes == ini || $takes == any ]] && [[ -n $cur ]] && compgen -W '");
    put_keys(out);
    sd_text_printf(out, "' -- \"$cur\")\n"
                        "        if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then\n"
                        "            compopt -o nospace 2>/dev/null\n"
                        "        elif [[ $takes != none ]]; then\n"
                        "            compopt -o filenames 2>/dev/null\n"
                        "        fi\n    fi\n}\ncomplete -F _sodet sodet\n");
}

/* ---- zsh ---- */
static void zsh_flag(void *context, uint32_t group, const sd_flag *f)
{
    script *s = context;
    (void)group;
    sd_text_printf(s->out, "                '%s%s[", f->name, !f->value ? "" : f->name[1] == '-' ? "=" : "+");
    put_quoted(s->out, f->help, "[]:\\", false);
    sd_text_printf(s->out, "]");
    if (f->value) {
        int kind = value_kind(f);
        sd_text_printf(s->out, ":");
        put_quoted(s->out, f->value, ":\\", false);
        sd_text_printf(s->out, ":");
        if (kind == CHOICES) {
            sd_text_printf(s->out, "(");
            put_choices(s->out, f->value);
            sd_text_printf(s->out, ")");
        } else {
            sd_text_printf(s->out, kind == FILES ? "_files" : kind == FOLDERS ? "_files -/" : " ");
        }
    }
    sd_text_printf(s->out, "' \\\n");
}

static void complete_zsh(sd_text *out)
{
    sd_text_printf(out, "#compdef sodet\n# zsh completion of sodet, made by `sodet help --completion zsh`\n"
                        "_sodet_keys() {\n    compadd -S '' -- ");
    put_keys(out);
    sd_text_printf(out, "\n}\n"
                        "# what kind of arguments, then words\n"
                        "_sodet_rest() {\n    local kind=$1\n    local -a ways\n    shift\n"
                        "    (( $# )) && ways+=(\"words:word:($*)\")\n    case $kind in\n"
                        "    ini) ways+=('files:configuration:_files -g \"*.ini\"' 'keys:key:_sodet_keys') ;;\n"
                        "    any) ways+=('files:file:_files' 'keys:key:_sodet_keys') ;;\n"
                        "    file) ways+=('files:file:_files') ;;\n    esac\n    (( $#ways )) && _alternative $ways\n}\n"
                        "_sodet() {\n    local curcontext=\"$curcontext\" state line\n    local -a commands\n    commands=(\n");
    for (int i = 0; sd_commands[i]; i++) {
        sd_text_printf(out, "        '%s:", sd_commands[i]->name);
        put_quoted(out, sd_commands[i]->summary, ":\\", false);
        sd_text_printf(out, "'\n");
    }
    sd_text_printf(out, "    )\n    _arguments -C '(- *)--version[what this was built with]' '(- *)--help[the commands]' '1: :->command' "
                        "'*:: :->arguments'\n    case $state in\n    command) _describe -t commands 'sodet command' commands ;;\n"
                        "    arguments)\n        case $words[1] in\n");
    for (int i = 0; sd_commands[i]; i++) {
        script s = {out, sd_commands[i], 0};
        sd_text_printf(out, "        %s)\n            _arguments \\\n", sd_commands[i]->name);
        sd_cli_each_flag(sd_commands[i], zsh_flag, &s);
        sd_text_printf(out, "                '*: : _sodet_rest %s ", arguments_kind(sd_commands[i]));
        put_words(sd_commands[i], out);
        sd_text_printf(out, "' ;;\n");
    }
    sd_text_printf(out, "        esac ;;\n    esac\n}\n_sodet \"$@\"\n");
}

/* ---- fish ---- */
static void fish_flag(void *context, uint32_t group, const sd_flag *f)
{
    script *s = context;
    (void)group;
    sd_text_printf(s->out, "complete -c sodet -n '__sodet_command %s' %s %s -d '", s->command->name, f->name[1] == '-' ? "-l" : "-s",
                   f->name + (f->name[1] == '-' ? 2 : 1));
    put_quoted(s->out, f->help, "\\", true);
    sd_text_printf(s->out, "'");
    if (f->value) {
        int kind = value_kind(f);
        sd_text_printf(s->out, kind == FILES ? " -r -F" : kind == FOLDERS ? " -x -a '(__fish_complete_directories)'" : " -x");
        if (kind == CHOICES) {
            sd_text_printf(s->out, " -a '");
            put_choices(s->out, f->value);
            sd_text_printf(s->out, "'");
        }
    }
    sd_text_printf(s->out, "\n");
}

static void complete_fish(sd_text *out)
{
    sd_text_printf(out, "# fish completion of sodet, made by `sodet help --completion fish`\n"
                        "function __sodet_first\n    test (count (commandline -opc)) -eq 1\nend\n"
                        "function __sodet_command\n    set -l words (commandline -opc)\n"
                        "    test (count $words) -gt 1; and test $words[2] = $argv[1]\nend\n"
                        "complete -c sodet -n __sodet_first -l version -d 'what this was built with'\n"
                        "complete -c sodet -n __sodet_first -l help -d 'the commands'\n");
    for (int i = 0; sd_commands[i]; i++) {
        const sd_command *c = sd_commands[i];
        const char *kind = arguments_kind(c);
        script s = {out, c, 0};
        sd_text_printf(out, "complete -c sodet -n __sodet_first -f -a %s -d '", c->name);
        put_quoted(out, c->summary, "\\", true);
        sd_text_printf(out, "'\n");
        sd_cli_each_flag(c, fish_flag, &s);
        if (c->words || strcmp(kind, "none") == 0) {
            sd_text_printf(out, "complete -c sodet -n '__sodet_command %s' %s-a '", c->name, strcmp(kind, "none") == 0 ? "-f " : "");
            put_words(c, out);
            sd_text_printf(out, "'\n");
        }
        if (c->takes & SD_TAKES_INI) {
            sd_text_printf(out, "complete -c sodet -n '__sodet_command %s' -a '", c->name);
            put_keys(out);
            sd_text_printf(out, "'\n");
        }
    }
}

bool sd_complete(const char *shell, sd_text *out)
{
    if (strcmp(shell, "bash") == 0)
        complete_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(out);
    else
        return false;
    return true;
}
