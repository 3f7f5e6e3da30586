/* sodet new: a folder with a plugin that builds outside of sodet's tree, loads and runs as it is. */
#include <stdio.h>
#include <string.h>

#include "core/cli/cli.h"
#include "core/cli/new.h"
#include "core/plugin/plugin.h"

typedef struct made {
    const char *kind, *name, *folder;
} made;

static const char *find(const char *file)
{
    for (int i = 0; sd_new_files[i].name; i++) {
        if (strcmp(sd_new_files[i].name, file) == 0)
            return sd_new_files[i].text;
    }
    return NULL;
}

/* What stands for @word@. Kinds: the part that test.ini uses, which is the new plugin where it is of that kind. */
static const char *value_of(const made *m, const char *word)
{
    static const char *const parts[][2] = {
        {"backbone", "tinyssd\nwidth = 0.25"}, {"neck", "none"},     {"head", "ssd"},  {"loss", "multibox"},
        {"dataset", "shapes\nsize = 64"},      {"evaluator", "voc"}, {"transform", ""}};
    static const char *const headers[][2] = {{"dataset", "data.h"}, {"transform", "data.h"}, {"evaluator", "evaluator.h"}};
    static char text[400];
    if (strcmp(word, "name") == 0)
        return m->name;
    if (strcmp(word, "kind") == 0)
        return m->kind;
    if (strcmp(word, "header") == 0) {
        for (size_t i = 0; i < 3; i++) {
            if (strcmp(headers[i][0], m->kind) == 0)
                return headers[i][1];
        }
        return "detection.h";
    }
    if (strcmp(word, "use") == 0) {
        if (strcmp(m->kind, "dataset") == 0)
            snprintf(text, sizeof text, "    [data]\n    train = mine\n    [dataset.mine]\n    plugin = %s", m->name);
        else if (strcmp(m->kind, "transform") == 0)
            snprintf(text, sizeof text, "    [transform]\n    train = %s, resize", m->name);
        else if (strcmp(m->kind, "evaluator") == 0)
            snprintf(text, sizeof text, "    [eval]\n    evaluators = %s", m->name);
        else
            snprintf(text, sizeof text, "    [%s]\n    plugin = %s", m->kind, m->name);
        return text;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i][0], word) != 0)
            continue;
        if (strcmp(m->kind, word) != 0)
            return parts[i][1];
        snprintf(text, sizeof text, "%s%s", m->name, strcmp(word, "transform") == 0 ? ", " : "");
        return text;
    }
    return NULL;
}

static sodet_status write_file(const made *m, const char *source, const char *target, sodet_err *err)
{
    const char *text = find(source);
    char path[4096], word[32];
    if (!text)
        return SODET_FAIL(err, SODET_E_INTERNAL, "no template %s", source);
    sd_text out = {0};
    while (*text) {
        const char *at = strchr(text, '@'), *end = at ? strchr(at + 1, '@') : NULL;
        size_t n = at ? (size_t)(at - text) : strlen(text);
        sd_text_append(&out, text, n);
        text += n;
        if (!at)
            break;
        size_t length = end ? (size_t)(end - at - 1) : 0;
        const char *value = NULL;
        if (length > 0 && length < sizeof word) {
            memcpy(word, at + 1, length);
            word[length] = '\0';
            value = value_of(m, word);
        }
        sd_text_printf(&out, "%s", value ? value : "@");
        text = value ? end + 1 : text + 1;
    }
    snprintf(path, sizeof path, "%s/%s", m->folder, target);
    sodet_status s = out.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory") : sd_file_write_atomic(path, out.text, out.length, err);
    sd_text_free(&out);
    return s;
}

static sodet_status check_name(const char *name, sodet_err *err)
{
    size_t n = strlen(name);
    static const char *const taken[] = {"create",  "destroy", "build", "options", "validate",  "ops",     "apply",    "evaluate", "test",
                                        "install", "all",     "clean", "help",    "rectangle", "overlap", "describe", "pixels",   "classes",
                                        "anchors", "assign",  "int",   "char",    "double",    "for",     "if",       "while"};
    if (n == 0 || n > 40 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != n || name[0] < 'a' || name[0] > 'z')
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: a plugin's name has small letters, digits and _, begins with a letter, and is at most 40 long", name);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(name, taken[i]) == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: has a meaning in C, CMake or the generated file; choose another name", name);
    }
    return SODET_OK;
}

/* One of the same name would be found first or last, by the order of folders, and nobody would see which. */
static sodet_status check_free(sd_cli *cli, const made *m, sodet_err *err)
{
    for (const char *const *folder = sd_plugin_folders(); *folder; folder++) {
        const char *path = sd_pool_printf(&cli->pool, "%s/%s/%s.so", *folder, m->kind, m->name);
        if (!path)
            return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
        if (sd_path_exists(path))
            return SODET_FAIL(err, SODET_E_INVALID, "%s/%s: there is such a plugin, %s, which yours would hide; choose another name",
                              m->kind, m->name, path);
    }
    return SODET_OK;
}

static const char *const kinds[] = {"dataset", "head", "loss", "backbone", "neck", "transform", "evaluator"};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void words(sd_text *out)
{
    for (int i = 0; i < N_KINDS; i++)
        sd_text_printf(out, "%s%s", i ? " " : "", kinds[i]);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    if (cli->n_files != 2)
        return SODET_FAIL(err, SODET_E_INVALID, "usage: sodet new %s", cli->command->synopsis);
    made m = {cli->files[0], cli->files[1], sd_cli_flag(cli, "--folder")};
    char source[64], target[64];
    snprintf(source, sizeof source, "%.40s.c", m.kind);
    if (!find(source)) {
        const char *near = sd_nearest(m.kind, kinds, N_KINDS);
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: there is no template for it%s%s%s; kinds: dataset head loss backbone neck transform evaluator", m.kind,
                          near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    sodet_status s = check_name(m.name, err);
    if (s != SODET_OK)
        return s;
    s = check_free(cli, &m, err);
    if (s != SODET_OK)
        return s;
    if (!m.folder)
        m.folder = m.name;
    if (sd_path_exists(m.folder))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is there already; nothing is overwritten (--folder DIR names another)", m.folder);
    cli->started = true;
    snprintf(target, sizeof target, "%s.c", m.name);
    s = sd_make_folders(m.folder, err);
    if (s == SODET_OK)
        s = write_file(&m, source, target, err);
    if (s == SODET_OK)
        s = write_file(&m, "CMakeLists.txt", "CMakeLists.txt", err);
    if (s == SODET_OK)
        s = write_file(&m, "README.md", "README.md", err);
    if (s == SODET_OK)
        s = write_file(&m, "test.ini", "test.ini", err);
    if (s == SODET_OK)
        printf("%s/: the plugin %s/%s in one C file. Build and try it:\n"
               "  cmake -S %s -B %s/build && cmake --build %s/build && ctest --test-dir %s/build --output-on-failure\n",
               m.folder, m.kind, m.name, m.folder, m.folder, m.folder, m.folder);
    return s;
}

static const sd_flag flags[] = {{"--folder", "DIR", "where to write it; default: the name"}, {0}};
const sd_command sd_cmd_new;
const sd_command sd_cmd_new = {
    .name = "new",
    .synopsis = "<kind> <name> [--folder DIR]",
    .summary = "a plugin of one C file that builds outside of sodet's tree",
    .help =
        "Kinds: dataset head loss backbone neck transform evaluator. Writes <name>.c, a CMakeLists.txt that uses the installed headers,\n"
        "a README and a test (two training steps on drawn pictures).",
    .takes = SD_TAKES_FILES,
    .flags = flags,
    .words = words,
    .run = run,
};
