#include <stdio.h>

#include "core/cli/cli.h"
#include "core/plugin/plugin.h"

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    sd_config *cfg;
    sodet_status s = sd_cli_config(cli, &cfg, err);
    if (s != SODET_OK)
        return s;
    s = sd_plugin_check_all(cfg, err);
    sd_text text = {0};
    if (s == SODET_OK)
        sd_config_write(cfg, sd_cli_flag(cli, "--plain") == NULL, &text);
    if (s == SODET_OK && text.failed)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK && !cli->quiet)
        fputs(text.text, stdout);
    sd_text_free(&text);
    sd_config_close(cfg);
    return s;
}

static const sd_flag flags[] = {{"--plain", NULL, "without places: an INI file that says the same"}, {0}};
const sd_command sd_cmd_check;
const sd_command sd_cmd_check = {
    .name = "check",
    .synopsis = "x.ini [section.key=value ...]",
    .summary = "the configuration, resolved: every value and where it came from",
    .help =
        "Reads the INI file with its fragments and the command line, opens the plugins that it names, and checks every key against their\n"
        "option tables. Needs no device and no data. What it prints is an INI file again.",
    .takes = SD_TAKES_INI | SD_NEEDS_INI,
    .flags = flags,
    .run = run,
};
