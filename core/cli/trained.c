#include "core/cli/trained.h"

#include <errno.h>
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

sodet_status sd_cli_check_out(const char *path, sodet_err *err)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char folder[4096] = ".";
    if (!path)
        return SODET_OK;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (is_folder(path))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is a folder; a file is to be written", path);
    if (access(folder, W_OK | X_OK) != 0)
        return SODET_FAIL(err, SODET_E_IO, "%s: nothing can be written in the folder %s: %s", path, folder, strerror(errno));
    return SODET_OK;
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
