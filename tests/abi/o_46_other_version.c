/* Field case O-46: plugins built for another version: (a) another ABI, (b) no symbol, (c) a missing function, (d) a text file, (e)
 * another architecture, (f) nothing created, (g) two of one name. Each is a clear error, and the list shows the good ones anyway. */
#include "check.h"

#include <unistd.h>

#include "core/plugin/plugin.h"

static const char *folder;

static void refused(const char *name, const char *part, const char *second)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_plugin *p;
    sodet_status s = sd_plugin_load(SODET_KIND_HEAD, name, &p, &err);
    check_count();
    if (s == SODET_OK || p)
        check_fail(__FILE__, __LINE__, "%s was loaded", name);
    else if (!strstr(err.text, part) || !strstr(err.text, second) || !strstr(err.text, name))
        check_fail(__FILE__, __LINE__, "%s: \"%s\"; expected \"%s\" and \"%s\"", name, err.text, part, second);
}

static void write_bytes(const char *name, const void *bytes, uint64_t n)
{
    sodet_err err = SODET_ERR_INIT;
    char path[4096];
    snprintf(path, sizeof path, "%s/head/%s.so", folder, name);
    CHECK_OK(sd_file_write_atomic(path, bytes, n, &err));
}

typedef struct seen {
    int good, refused;
    bool has_good, has_magic;
} seen;
static void visit(void *context, uint32_t kind, const char *name, const char *path, const sd_plugin *plugin, const sodet_err *err)
{
    seen *s = context;
    CHECK(kind == SODET_KIND_HEAD && path && (plugin != NULL) == (err == NULL));
    s->good += plugin != NULL;
    s->refused += plugin == NULL;
    s->has_good = s->has_good || (plugin && strcmp(name, "good") == 0);
    s->has_magic = s->has_magic || (!plugin && strcmp(name, "wrong_magic") == 0);
}

int main(void)
{
    sodet_err err = SODET_ERR_INIT;
    static char real[4096];
    CHECK(getenv("SODET_ABI_FOLDER") && realpath(getenv("SODET_ABI_FOLDER"), real));
    folder = real;
    unsetenv("SODET_PLUGIN_PATH");
    CHECK_OK(sd_plugin_add_folder(folder, &err));

    refused("wrong_major", "built for plugin ABI 1.0, this sodet (", "build the plugin again"); /* a */
    refused("no_symbol", "exports no sodet_plugin_desc", "no sodet plugin");                    /* b */
    refused("undefined", "uses never_defined_anywhere", "-Wl,-z,defs");                         /* c */
    write_bytes("o46_text", "this is a text\n", 15);
    refused("o46_text", "not a shared object", "C compiler"); /* d */
    char path[4200], *bytes;
    uint64_t n;
    snprintf(path, sizeof path, "%s/head/good.so", folder);
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    bytes[4] = (char)(bytes[4] == 1 ? 2 : 1);
    write_bytes("o46_bits", bytes, n);
    sd_free(bytes);
    refused("o46_bits", "bits", "build it for this machine"); /* e */

    sd_config *cfg; /* f */
    sd_instance it;
    static const char text[] = "[head]\nplugin = empty_create\n";
    CHECK_OK(sd_config_open_text(text, sizeof text - 1, "x.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_FAILS(sd_instance_create(cfg, "head", &it, &err), SODET_E_INTERNAL, "gives no instance");
    sd_config_close(cfg);

    seen s = {0}; /* the good ones are shown anyway */
    sd_plugin_each(SODET_KIND_HEAD, visit, &s);
    CHECK(s.has_good && s.has_magic && s.good >= 8 && s.refused >= 13);

    /* g: the folder that comes first has the name; the other one is not called */
    char other[4200], target[4200], link[4300];
    const sd_plugin *p;
    snprintf(other, sizeof other, "%s/first/head", folder);
    CHECK_OK(sd_make_folders(other, &err));
    snprintf(target, sizeof target, "%s/head/wrong_magic.so", folder);
    snprintf(link, sizeof link, "%s/good.so", other);
    unlink(link);
    CHECK(symlink(target, link) == 0);
    *strrchr(other, '/') = '\0';
    CHECK_OK(sd_plugin_add_folder(other, &err));
    CHECK_FAILS(sd_plugin_load(SODET_KIND_HEAD, "good", &p, &err), SODET_E_INVALID, "/first/head/good.so");
    seen again = {0};
    sd_plugin_each(SODET_KIND_HEAD, visit, &again);
    CHECK(!again.has_good);
    unlink(link);
    return check_done(40);
}
