/* The table of commands. Adding one: cmd_<name>.c, and a line here. */
#include "core/cli/cli.h"

extern const sd_command sd_cmd_bench, sd_cmd_check, sd_cmd_compare, sd_cmd_data, sd_cmd_detect, sd_cmd_doctor, sd_cmd_eval, sd_cmd_help,
    sd_cmd_import, sd_cmd_list, sd_cmd_new, sd_cmd_report, sd_cmd_summary, sd_cmd_train;

const sd_command *const sd_commands[] = {
    &sd_cmd_train, &sd_cmd_eval,    &sd_cmd_report, &sd_cmd_compare, &sd_cmd_detect,
    &sd_cmd_check, &sd_cmd_summary, &sd_cmd_bench,  &sd_cmd_doctor,  &sd_cmd_data,
    &sd_cmd_list,  &sd_cmd_help,    &sd_cmd_new,    &sd_cmd_import,  NULL,
};
