#include "core/cli/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sodet/files.h"

#define SUFFIXES ".jpg .jpeg .png .bmp .ppm .pgm .tga" /* sodet_is_picture's */

const char *sd_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

size_t sd_stem_length(const char *name)
{
    const char *base = sd_base_name(name), *dot = strrchr(base, '.');
    return dot && dot > base ? (size_t)(dot - name) : strlen(name);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcasecmp(name + n - k, suffix) == 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

sodet_status sd_names_twice(const char *const *names, uint64_t n, bool *twice, sodet_err *err)
{
    const char **sorted = sd_alloc((size_t)n + 1, sizeof *sorted);
    *twice = false;
    if (!sorted)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    memcpy(sorted, names, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (uint64_t i = 1; i < n && !*twice; i++)
        *twice = strcmp(sorted[i - 1], sorted[i]) == 0;
    sd_free(sorted);
    return SODET_OK;
}

/* name: what is left where the folder is left out. */
static sodet_status add(sd_cli *cli, sd_inputs *in, const char *path, const char *shown, const char *name, const char *from, sodet_err *err)
{
    char *stem = sd_pool_printf(&cli->pool, "%.*s", (int)sd_stem_length(name), name);
    if (!path || !shown || !name || !stem)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    sodet_status s = sd_grow(&in->files, &in->capacity, in->n + 1, sizeof *in->files, err);
    if (s == SODET_OK)
        in->files[in->n++] = (sd_input_file){.path = path, .shown = shown, .name = name, .stem = stem, .from = from};
    return s;
}

static sodet_status add_folder(sd_cli *cli, sd_inputs *in, const char *root, sodet_err *err)
{
    sodet_lines *names;
    sodet_status s = sodet_lines_of_folder(root, NULL, &names, err);
    if (s == SODET_OK && !sodet_lines_count(names))
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: no picture lies in this folder or below; files that end in " SUFFIXES " count as such",
                       root);
    for (uint64_t i = 0; s == SODET_OK && i < sodet_lines_count(names); i++) {
        char *name = sd_pool_strdup(&cli->pool, sodet_lines_at(names, i));
        s = name ? add(cli, in, sd_path_join(&cli->pool, root, name), name, name, root, err)
                 : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    }
    sodet_lines_free(names);
    return s;
}

static sodet_status add_file(sd_cli *cli, sd_inputs *in, const char *path, const char *shown, const char *list, uint64_t line,
                             sodet_err *err)
{
    char where[4096] = "";
    if (list)
        snprintf(where, sizeof where, "%s:%llu: ", list, (unsigned long long)line);
    if (!path)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (!sd_path_exists(path))
        return SODET_FAIL(err, SODET_E_IO, "%s%s: there is no such picture", where, path);
    if (sodet_is_folder(path))
        return SODET_FAIL(err, SODET_E_INVALID, "%s%s: is a folder; a list holds pictures, folders are given on the command line", where,
                          path);
    return add(cli, in, path, shown, sd_base_name(shown), list, err);
}

static sodet_status add_list(sd_cli *cli, sd_inputs *in, const char *list, sodet_err *err)
{
    sodet_lines *lines;
    uint64_t before = in->n;
    char *folder = sd_pool_printf(&cli->pool, "%.*s", (int)(sd_base_name(list) - list), list);
    if (!folder)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    sodet_status s = sodet_lines_read(list, &lines, err);
    for (uint64_t i = 0; s == SODET_OK && i < sodet_lines_count(lines); i++) {
        const char *line = sodet_lines_at(lines, i);
        if (!*line || *line == '#')
            continue;
        char *shown = sd_pool_strdup(&cli->pool, line);
        s = shown ? add_file(cli, in, sd_path_join(&cli->pool, folder, shown), shown, list, i + 1, err)
                  : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    }
    sodet_lines_free(lines);
    if (s == SODET_OK && in->n == before)
        s = SODET_FAIL(err, SODET_E_INVALID, "%s: names no picture; a .txt is a list, one path a line", list);
    return s;
}

/* ---- names ---- */
static sodet_status make_unique(sd_inputs *in, sodet_err *err)
{
    const char **names = sd_alloc((size_t)in->n + 1, sizeof *names);
    sodet_status s = names ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    bool twice = false;
    for (uint64_t i = 0; s == SODET_OK && i < in->n; i++)
        names[i] = in->files[i].shown;
    if (s == SODET_OK)
        s = sd_names_twice(names, in->n, &twice, err);
    for (uint64_t i = 0; s == SODET_OK && i < in->n; i++) {
        if (twice)
            in->files[i].shown = in->files[i].path;
        names[i] = in->files[i].name;
    }
    if (s == SODET_OK)
        s = sd_names_twice(names, in->n, &twice, err);
    for (uint64_t i = 0; s == SODET_OK && twice && i < in->n; i++)
        in->files[i].name = in->files[i].path;
    sd_free(names);
    return s;
}

sodet_status sd_inputs_find(sd_cli *cli, sd_inputs *out, sodet_err *err)
{
    *out = (sd_inputs){0};
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; s == SODET_OK && i < cli->n_files; i++) {
        const char *path = cli->files[i];
        if (sodet_is_folder(path))
            s = add_folder(cli, out, path, err);
        else if (has_suffix(path, ".txt") && sd_path_exists(path))
            s = add_list(cli, out, path, err);
        else
            s = add_file(cli, out, path, path, NULL, 0, err);
    }
    return s == SODET_OK ? make_unique(out, err) : s;
}

void sd_inputs_free(sd_inputs *in)
{
    sd_free(in->files);
    *in = (sd_inputs){0};
}
