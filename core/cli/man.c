#include <ctype.h>
#include <string.h>

#include "core/cli/help.h"
#include "core/report/build.h"

/* Text that roff leaves as it is: no escapes, no hyphen where a minus is meant, no request at a line's start. */
static void put(sd_text *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if ((c == '.' || c == '\'') && (out->length == 0 || out->text[out->length - 1] == '\n'))
            sd_text_printf(out, "\\&");
        if (c == '\\')
            sd_text_printf(out, "\\e");
        else if (c == '-')
            sd_text_printf(out, "\\-");
        else
            sd_text_append(out, &c, 1);
    }
}

static void puts_text(sd_text *out, const char *text)
{
    put(out, text, strlen(text));
}

/* Lines that begin with blanks stay as they are; others are filled, a flag at their start beginning a new one. */
static void put_paragraphs(sd_text *out, const char *text)
{
    bool literal = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool indented = text[0] == ' ';
        if (indented != literal && n)
            sd_text_printf(out, indented ? ".PP\n.nf\n" : ".fi\n");
        literal = n ? indented : literal;
        if (n == 0)
            sd_text_printf(out, literal ? "\n" : ".PP\n");
        else if (!indented && text[0] == '-')
            sd_text_printf(out, ".PP\n");
        put(out, text, n);
        if (n)
            sd_text_printf(out, "\n");
        text += n + (text[n] == '\n');
    }
    if (literal)
        sd_text_printf(out, ".fi\n");
}

static void put_header(sd_text *out, const char *name, const char *summary)
{
    sd_build_info b;
    sd_build_info_get(&b);
    sd_text_printf(out, ".\\\" made by `sodet help --man`\n.TH ");
    for (const char *p = name; *p; p++)
        sd_text_printf(out, "%c", toupper((unsigned char)*p));
    sd_text_printf(out, " 1 \"\" \"sodet %s\" \"sodet\"\n.SH NAME\n%s \\- ", b.version, name);
    puts_text(out, summary);
    sd_text_printf(out, "\n.SH SYNOPSIS\n.B ");
}

typedef struct page {
    sd_text *out;
    uint32_t group;
} page;

static void put_flag(void *context, uint32_t group, const sd_flag *flag)
{
    page *p = context;
    if (group == SD_FLAG_SHORT && p->group != group)
        sd_text_printf(p->out, ".SH SHORT FORMS\nEach stands for a key of the configuration, and prints it.\n");
    p->group = group;
    sd_text_printf(p->out, ".TP\n.B ");
    puts_text(p->out, flag->name);
    if (flag->value) {
        sd_text_printf(p->out, " \\fI");
        puts_text(p->out, flag->value);
        sd_text_printf(p->out, "\\fR");
    }
    sd_text_printf(p->out, "\n");
    puts_text(p->out, flag->help);
    sd_text_printf(p->out, "\n");
}

static void put_exit(sd_text *out)
{
    for (int i = 0; sd_help_topics[i].name; i++) {
        if (strcmp(sd_help_topics[i].name, "exit") == 0) {
            sd_text_printf(out, ".SH EXIT STATUS\n");
            put_paragraphs(out, sd_help_topics[i].text);
        }
    }
}

static void man_of_command(const sd_command *c, sd_text *out)
{
    sd_text name = {0};
    page p = {out, SD_FLAG_OWN};
    sd_text_printf(&name, "sodet-%s", c->name);
    put_header(out, name.failed ? "sodet" : name.text, c->summary);
    sd_text_printf(out, "sodet %s\n", c->name);
    puts_text(out, c->synopsis);
    sd_text_printf(out, "\n");
    if (c->help) {
        sd_text_printf(out, ".SH DESCRIPTION\n");
        put_paragraphs(out, c->help);
    }
    sd_text_printf(out, ".SH OPTIONS\n");
    sd_cli_each_flag(c, put_flag, &p);
    put_exit(out);
    sd_text_printf(out, ".SH SEE ALSO\n.BR sodet (1)\n");
    sd_text_free(&name);
}

static void man_of_sodet(sd_text *out)
{
    put_header(out, "sodet", "object detectors whose parts are plugins named in an INI file");
    sd_text_printf(out, "sodet\n\\fIcommand\\fR [\\fIx.ini\\fR] [\\fIsection.key\\fR=\\fIvalue\\fR ...]\n.SH COMMANDS\n");
    for (int i = 0; sd_commands[i]; i++) {
        sd_text_printf(out, ".TP\n.BR sodet\\-%s (1)\n", sd_commands[i]->name);
        puts_text(out, sd_commands[i]->summary);
        sd_text_printf(out, "\n");
    }
    for (int i = 0; sd_help_topics[i].name; i++) {
        if (strcmp(sd_help_topics[i].name, "exit") == 0)
            continue;
        sd_text_printf(out, ".SH ");
        for (const char *c = sd_help_topics[i].summary; *c; c++)
            sd_text_printf(out, "%c", toupper((unsigned char)*c));
        sd_text_printf(out, "\n");
        put_paragraphs(out, sd_help_topics[i].text);
    }
    sd_text_printf(out, ".SH SECTIONS\n");
    for (uint32_t i = 0; i < sd_core_section_count; i++) {
        sd_text_printf(out, ".TP\n.B ");
        puts_text(out, sd_core_sections[i].section);
        sd_text_printf(out, "\n");
        puts_text(out, sd_core_sections[i].summary);
        sd_text_printf(out, "\n");
    }
    put_exit(out);
}

void sd_man(const sd_command *command, sd_text *out)
{
    if (command)
        man_of_command(command, out);
    else
        man_of_sodet(out);
}
