/* The handshake: every plugin that misbehaves is refused in a sentence that says what and why. Field case O-46 is beside it. */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/plugin.h"
#include "sodet/detection.h"

static const char *folder;

static sodet_status load(const char *name, const sd_plugin **p, sodet_err *err)
{
    return sd_plugin_load(SODET_KIND_HEAD, name, p, err);
}

static void refused(const char *name, const char *part, const char *second)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_plugin *p;
    sodet_status s = load(name, &p, &err);
    check_count();
    if (s == SODET_OK || p)
        check_fail(__FILE__, __LINE__, "%s was loaded", name);
    else if (!strstr(err.text, part) || !strstr(err.text, second) || !strstr(err.text, name))
        check_fail(__FILE__, __LINE__, "%s: \"%s\"; expected \"%s\" and \"%s\"", name, err.text, part, second);
}

static void create_fails(const char *name, sodet_status status, const char *part, const char *second)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    sd_instance it;
    char text[200];
    snprintf(text, sizeof text, "[head]\nplugin = %s\nsize = 70\n", name);
    CHECK_OK(sd_config_open_text(text, strlen(text), "x.ini", NULL, NULL, 0, &cfg, &err));
    sodet_status s = sd_instance_create(cfg, "head", &it, &err);
    check_count();
    if (s != status || !strstr(err.text, part) || !strstr(err.text, second) || it.self || it.plugin)
        check_fail(__FILE__, __LINE__, "%s: status %d, \"%s\"; expected %d with \"%s\" and \"%s\"", name, (int)s, err.text, (int)status,
                   part, second);
    sd_config_close(cfg);
}

static void good_ones(void)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_plugin *p, *again, *by_path;
    char path[4096];
    CHECK_OK(load("good", &p, &err));
    CHECK_OK(load("good", &again, &err));
    CHECK(p && p == again);
    snprintf(path, sizeof path, "%s/head/good.so", folder);
    CHECK_OK(load(path, &by_path, &err)); /* a name with a slash is a path */
    CHECK(p == by_path);
    CHECK_STR(p->schema.section, "head/good");
    CHECK_OK(load("newer_unused", &p, &err));
    CHECK_EQ(p->desc.abi_minor, SODET_ABI_MINOR + 1);

    sd_config *cfg;
    sd_instance it;
    static const char text[] = "[head]\nplugin = good\nsize = 3\nmode = b\n";
    CHECK_OK(sd_config_open_text(text, sizeof text - 1, "x.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "head", &it, &err));
    CHECK(it.self && *(double *)it.self == 3);
    CHECK_STR(it.section, "head");
    CHECK(((const sodet_head_ops *)it.ops)->struct_size == sizeof(sodet_head_ops));
    sd_instance_destroy(&it);
    CHECK(it.plugin == NULL && it.self == NULL);
    sd_instance_destroy(&it); /* a second time is harmless */
    sd_config_close(cfg);
}

static void write_bytes(const char *name, const void *bytes, uint64_t n)
{
    sodet_err err = SODET_ERR_INIT;
    char path[4096];
    snprintf(path, sizeof path, "%s/head/%s.so", folder, name);
    CHECK_OK(sd_file_write_atomic(path, bytes, n, &err));
}

/* Files that are no shared objects at all, or damaged ones: good.so cut and with bytes changed. */
static void other_files(void)
{
    sodet_err err = SODET_ERR_INIT;
    char path[4096], *bytes;
    uint64_t n;
    write_bytes("text", "this is a text\n", 15);
    refused("text", "not a shared object", "no ELF file");
    write_bytes("empty", "", 0);
    refused("empty", "not a shared object", "it is empty");
    snprintf(path, sizeof path, "%s/head/folder.so", folder);
    mkdir(path, 0777);
    refused("folder", "is a folder", "name the .so");
    snprintf(path, sizeof path, "%s/head/dangling.so", folder);
    unlink(path);
    CHECK(symlink("nowhere.so", path) == 0);
    snprintf(path, sizeof path, "%s/head/good.so", folder);
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    if (!bytes)
        return;
    write_bytes("cut", bytes, 40);
    refused("cut", "damaged", "header");
    write_bytes("half", bytes, n / 2);
    refused("half", "damaged", "build it again");
    char keep = bytes[4];
    bytes[4] = (char)(keep == 1 ? 2 : 1); /* ELFCLASS */
    write_bytes("bits", bytes, n);
    refused("bits", "bits", "build it for this machine");
    bytes[4] = keep;
    keep = bytes[18];
    bytes[18] = 8; /* e_machine: MIPS */
    write_bytes("machine", bytes, n);
    refused("machine", "another processor", "build it for this machine");
    bytes[18] = keep;
    bytes[16] = 1; /* e_type: relocatable */
    write_bytes("object", bytes, n);
    refused("object", "not a shared object", "-shared");
    bytes[16] = 3;
    /* Any byte of the tables may be wrong: the file may be refused or, where the byte does not matter, be accepted by the reader;
     * nothing may be read outside of it (this is what the sanitizers see). The copy is never given to the loader. */
    sd_free(bytes);
}

static void searching(void)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_plugin *p;
    CHECK_FAILS(load("goood", &p, &err), SODET_E_INVALID, "did you mean good?");
    CHECK_FAILS(load("goood", &p, &err), SODET_E_INVALID, folder);
    CHECK_FAILS(load("", &p, &err), SODET_E_INVALID, "is empty");
    CHECK_FAILS(load("./nowhere.so", &p, &err), SODET_E_INVALID, "cannot open");
    CHECK_FAILS(sd_plugin_load(77, "good", &p, &err), SODET_E_INTERNAL, "no kind 77");
    CHECK_FAILS(sd_plugin_add_folder("/nowhere/at/all", &err), SODET_E_INVALID, "--plugin-dir /nowhere/at/all");
    /* Never the working directory, not even by an empty element of the list. */
    char start[4096], there[4096];
    CHECK(getcwd(start, sizeof start) != NULL);
    snprintf(there, sizeof there, "%s/cwd", folder);
    sd_make_folders(there, &err);
    CHECK(chdir(there) == 0);
    mkdir("head", 0777);
    unlink("head/only_here.so");
    char target[4096];
    snprintf(target, sizeof target, "%s/head/good.so", folder);
    CHECK(symlink(target, "head/only_here.so") == 0);
    CHECK(setenv("SODET_PLUGIN_PATH", ":", 1) == 0);
    CHECK_FAILS(load("only_here", &p, &err), SODET_E_INVALID, "no plugin head/only_here.so");
    CHECK(chdir(start) == 0);
    const char *const *folders = sd_plugin_folders();
    CHECK_STR(folders[0], folder);
    CHECK_EQ(sd_kind_of("transport"), SODET_KIND_TRANSPORT);
    CHECK_EQ(sd_kind_of("spoon"), 0);
    CHECK(sd_kind_name(0) == NULL && sd_kind_name(10) == NULL);
}

int main(void)
{
    sodet_err err = SODET_ERR_INIT;
    static char real[4096];
    CHECK(getenv("SODET_ABI_FOLDER") && realpath(getenv("SODET_ABI_FOLDER"), real));
    folder = real;
    unsetenv("SODET_PLUGIN_PATH");
    CHECK_OK(sd_plugin_add_folder(folder, &err));
    char library[4200];
    snprintf(library, sizeof library, "%s/libabi_missing.so", folder);
    unlink(library);

    good_ones();
    refused("wrong_magic", "begins with 0x12345678", "not a descriptor");
    refused("wrong_major", "ABI 1.0", "build the plugin again");
    refused("short_struct", "says 40 bytes", "SODET_PLUGIN(...)");
    refused("lying_size", "says 4000 bytes", "the symbol has");
    refused("newer_used", "needs a newer sodet", "uses a part of its descriptor");
    refused("no_symbol", "exports no sodet_plugin_desc", "SODET_PLUGIN(...)");
    refused("second_core", "brings a second core", "libsodet.so");
    refused("undefined", "uses never_defined_anywhere", "none of its libraries");
    refused("newer_core", "needs a newer sodet", "sodet_call_of_the_future");
    refused("wrong_kind", "is a loss, a head is needed", "folder loss/");
    refused("unknown_kind", "kind 99", "newer sodet");
    refused("wrong_name", "calls itself somebody_else", "must agree");
    refused("missing_lib", "needs the library libabi_missing.so", "install it");
    refused("no_ops", "table of functions is missing", "sodet_head_ops");
    refused("newer_ops", "needs a newer sodet", "table of functions");
    refused("bad_rows", "option rows have 8 bytes", "SODET_OPT_");
    refused("early_code", "ABI 1.0", "build the plugin again");
    CHECK(getenv("SODET_TEST_CONSTRUCTOR") == NULL); /* its code did not run */
    create_fails("bad_create", SODET_E_MEMORY, "[head] (head/bad_create)", "the moon is in the wrong phase");
    create_fails("leaky_create", SODET_E_INTERNAL, "half done", "leaves an instance behind");
    create_fails("mute_create", SODET_E_IO, "says no reason", "head/mute_create");
    create_fails("option_fault", SODET_E_INVALID, "x.ini:3: [head] size = 70: does not go with mode = a", "");
    other_files();
    searching();

    sd_config *cfg;
    sd_instance it;
    static const char text[] = "[head]\nplugin = bad_default\n", none[] = "[head]\nsize = 3\n", absent[] = "[head]\nplugin = nobody\n";
    CHECK_OK(sd_config_open_text(text, sizeof text - 1, "x.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_FAILS(sd_instance_create(cfg, "head", &it, &err), SODET_E_INTERNAL, "fault of the table");
    sd_config_close(cfg);
    CHECK_OK(sd_config_open_text(none, sizeof none - 1, "x.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_FAILS(sd_instance_create(cfg, "head", &it, &err), SODET_E_INVALID, "x.ini:1: [head] plugin: must be given");
    sd_config_close(cfg);
    CHECK_OK(sd_config_open_text(absent, sizeof absent - 1, "x.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_FAILS(sd_instance_create(cfg, "head", &it, &err), SODET_E_INVALID, "x.ini:2: [head] plugin = nobody: no plugin head/nobody.so");
    CHECK_FAILS(sd_instance_create(cfg, "dataset.nothing", &it, &err), SODET_E_INVALID, "[dataset.nothing]: there is no such section");
    CHECK_FAILS(sd_instance_create(cfg, "run", &it, &err), SODET_E_INTERNAL, "no section of a plugin");
    sd_config_close(cfg);
    return check_done(60);
}
