#include "core/cli/trained.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/plugin.h"

static bool ends_in(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *sd_cli_take_weights(sd_cli *cli)
{
    const char *weights = sd_cli_flag(cli, "--weights");
    if (weights || !cli->n_files || (!ends_in(cli->files[0], ".safetensors") && !is_folder(cli->files[0])))
        return weights;
    weights = cli->files[0];
    memmove(cli->files, cli->files + 1, --cli->n_files * sizeof *cli->files);
    return weights;
}

sodet_status sd_cli_open_trained(sd_cli *cli, const char *weights, sd_cli_edit *edit, sd_config **cfg, sd_trained *net, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    *cfg = NULL;
    memset(net, 0, sizeof *net);
    sodet_status s = sd_trained_find(weights, &c, err);
    cli->checkpoint = c;
    if (s == SODET_OK)
        s = sd_cli_config(cli, cfg, err);
    if (s == SODET_OK && edit)
        s = edit(cli, *cfg, err);
    if (s == SODET_OK)
        s = sd_plugin_check_all(*cfg, err);
    if (s == SODET_OK)
        s = sd_trained_open(*cfg, c, net, err);
    cli->checkpoint = NULL;
    sd_checkpoint_close(c);
    return s;
}

void sd_cli_progress(const sd_cli *cli, uint64_t done, uint64_t of)
{
    if (cli->quiet || !isatty(STDERR_FILENO))
        return;
    if (of)
        fprintf(stderr, "\r%llu/%llu pictures", (unsigned long long)done, (unsigned long long)of);
    else
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
}
