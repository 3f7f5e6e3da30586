#include "core/plugin/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/plugin/elf.h"
#include "core/plugin/load.h"
#include "sodet/backend.h"
#include "sodet/data.h"
#include "sodet/detection.h"
#include "sodet/evaluator.h"
#include "sodet/transport.h"

static const struct {
    const char *name;
    size_t ops_size;
} kinds[] = {
    [SODET_KIND_BACKBONE] = {"backbone", sizeof(sodet_backbone_ops)},
    [SODET_KIND_NECK] = {"neck", sizeof(sodet_neck_ops)},
    [SODET_KIND_HEAD] = {"head", sizeof(sodet_head_ops)},
    [SODET_KIND_LOSS] = {"loss", sizeof(sodet_loss_ops)},
    [SODET_KIND_DATASET] = {"dataset", sizeof(sodet_dataset_ops)},
    [SODET_KIND_TRANSFORM] = {"transform", sizeof(sodet_transform_ops)},
    [SODET_KIND_EVALUATOR] = {"evaluator", sizeof(sodet_evaluator_ops)},
    [SODET_KIND_BACKEND] = {"backend", sizeof(sodet_backend_ops)},
    [SODET_KIND_TRANSPORT] = {"transport", sizeof(sodet_transport_ops)},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };
/* The shortest descriptor and row there ever was: those of ABI 0.0. */
#define LEAST_DESC (offsetof(sodet_plugin, ops) + sizeof(void *))
#define LEAST_ROW  (offsetof(sodet_opt, choices) + sizeof(void *))

/* Process-wide, as dlopen is. */
static struct registry {
    pthread_mutex_t lock;
    sd_pool pool;
    const char **added; /* folders of --plugin-dir, the last first */
    uint64_t n_added, added_capacity;
    const char **folders; /* what sd_plugin_folders gave out last */
    uint64_t folder_capacity;
    sd_plugin **loaded;
    uint64_t n_loaded, loaded_capacity;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *sd_kind_name(uint32_t kind)
{
    return kind < N_KINDS ? kinds[kind].name : NULL;
}

uint32_t sd_kind_of(const char *name)
{
    for (uint32_t k = 1; k < N_KINDS; k++) {
        if (strcmp(kinds[k].name, name) == 0)
            return k;
    }
    return 0;
}

/* ---- folders ---- */

sodet_status sd_plugin_add_folder(const char *folder, sodet_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(folder, real) || stat(real, &st) != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "--plugin-dir %s: %s", folder, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return SODET_FAIL(err, SODET_E_INVALID, "--plugin-dir %s: is a file; name the folder above <kind>/<name>.so", folder);
    pthread_mutex_lock(&all.lock);
    sodet_status s = sd_grow(&all.added, &all.added_capacity, all.n_added + 1, sizeof *all.added, err);
    char *copy = sd_pool_strdup(&all.pool, real);
    if (s == SODET_OK && !copy)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK) {
        memmove(all.added + 1, all.added, all.n_added * sizeof *all.added);
        all.added[0] = copy;
        all.n_added++;
    }
    pthread_mutex_unlock(&all.lock);
    return s;
}

static bool add_folder(uint64_t *n, const char *folder)
{
    if (!folder || sd_grow(&all.folders, &all.folder_capacity, *n + 2, sizeof *all.folders, NULL) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < *n; i++) {
        if (strcmp(all.folders[i], folder) == 0)
            return true;
    }
    all.folders[(*n)++] = folder;
    all.folders[*n] = NULL;
    return true;
}

static const char *const *folders_locked(void)
{
    static const char *const none[] = {NULL};
    uint64_t n = 0;
    for (uint64_t i = 0; i < all.n_added; i++)
        add_folder(&n, all.added[i]);
    const char *list = getenv("SODET_PLUGIN_PATH");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        char real[PATH_MAX], one[PATH_MAX];
        if (length > 0 && length < sizeof one) { /* an empty element is not the working directory */
            memcpy(one, list, length);
            one[length] = '\0';
            if (realpath(one, real))
                add_folder(&n, sd_pool_strdup(&all.pool, real));
        }
        list += length + (list[length] == ':');
    }
    if (sd_library_folder()[0])
        add_folder(&n, sd_pool_printf(&all.pool, "%s/sodet", sd_library_folder()));
    add_folder(&n, SODET_PLUGIN_INSTALL);
    return n ? all.folders : none;
}

const char *const *sd_plugin_folders(void)
{
    pthread_mutex_lock(&all.lock);
    const char *const *folders = folders_locked();
    pthread_mutex_unlock(&all.lock);
    return folders;
}

/* ---- the handshake ---- */

sodet_status sd_plugin_read_head(const char *path, const sd_desc_form *form, sd_desc_head *head, sodet_err *err)
{
    uint64_t size;
    sodet_status s = sd_elf_read_symbol(path, form->symbol, head, sizeof *head, &size, err);
    if (s != SODET_OK)
        return s;
    if (head->magic != form->magic)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: its %s begins with 0x%08x, not with 0x%08x: not a descriptor of %s", path,
                          form->symbol, (unsigned)head->magic, (unsigned)form->magic, form->what);
    if (head->major != SODET_ABI_MAJOR)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: built for plugin ABI %u.%u, this sodet (" SODET_VERSION
                          ") has %u.%u; build the plugin again against its headers",
                          path, (unsigned)head->major, (unsigned)head->minor, SODET_ABI_MAJOR, SODET_ABI_MINOR);
    if (head->struct_size < form->least || (size && size < head->struct_size))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: its descriptor says %u bytes, the symbol has %llu and the shortest ever had %zu; use %s(...)", path,
                          (unsigned)head->struct_size, (unsigned long long)size, form->least, form->macro);
    return SODET_OK;
}

/* Before dlopen, so before any code of the plugin: sixteen bytes from the file. */
sodet_status sd_plugin_check_head(const char *path, uint32_t kind, sodet_err *err)
{
    static const sd_desc_form form = {
        .symbol = "sodet_plugin_desc", .what = "a sodet plugin", .macro = "SODET_PLUGIN", .magic = SODET_PLUGIN_MAGIC, .least = LEAST_DESC};
    sd_desc_head head;
    sodet_status s = sd_plugin_read_head(path, &form, &head, err);
    if (s != SODET_OK)
        return s;
    if (!sd_kind_name(head.word))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: a plugin of kind %u, which this sodet (" SODET_VERSION ") does not know; it needs a newer sodet", path,
                          (unsigned)head.word);
    if (head.word != kind)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is a %s, a %s is needed; it belongs into the folder %s/", path,
                          sd_kind_name(head.word), sd_kind_name(kind), sd_kind_name(head.word));
    return SODET_OK;
}

/* dlopen's own words, made into a remedy. */
static sodet_status explain_dlopen(const char *path, const char *text, sodet_err *err)
{
    static const char undefined[] = "undefined symbol: ", missing[] = ": cannot open shared object file", version[] = "version `";
    const char *at = text ? strstr(text, undefined) : NULL;
    if (at) {
        char symbol[200];
        at += sizeof undefined - 1;
        snprintf(symbol, sizeof symbol, "%.*s", (int)strcspn(at, " ,"), at);
        if (strncmp(symbol, "sodet_", 6) == 0)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s: needs a newer sodet: it calls %s, which this one (" SODET_VERSION ") does not have", path, symbol);
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: uses %s, which none of its libraries defines: one of them is another release than it was built with, or was "
                          "forgotten (linking it with -Wl,-z,defs shows that when it is built)",
                          path, symbol);
    }
    if (text && (at = strstr(text, missing)) != NULL && strncmp(text, path, strlen(path)) != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: needs the library %.*s, which is not there; install it, or set LD_LIBRARY_PATH", path,
                          (int)(at - text), text);
    if (text && (at = strstr(text, version)) != NULL && strstr(text, "SODET_"))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: needs a newer sodet (%s)", path, text);
    return SODET_FAIL(err, SODET_E_INVALID, "%s: cannot be loaded: %s", path, text ? text : "no reason given");
}

bool sd_copy_known(void *to, size_t own, const void *from, size_t theirs)
{
    memcpy(to, from, theirs < own ? theirs : own);
    for (size_t i = own; i < theirs; i++) {
        if (((const unsigned char *)from)[i])
            return false;
    }
    return true;
}

static sodet_status check_rows(const char *path, const sodet_plugin *d, sodet_err *err)
{
    if (d->n_opts && (!d->opts || d->opt_size < LEAST_ROW))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: its option rows have %u bytes each, the shortest ever had %zu; use the SODET_OPT_* macros", path,
                          (unsigned)d->opt_size, LEAST_ROW);
    for (uint32_t i = 0; i < d->n_opts; i++) {
        const unsigned char *row = (const unsigned char *)d->opts + (size_t)i * d->opt_size;
        const sodet_opt *o = (const sodet_opt *)(const void *)row;
        for (size_t k = sizeof *o; k < d->opt_size; k++) {
            if (row[k])
                return SODET_FAIL(err, SODET_E_INVALID,
                                  "%s: needs a newer sodet: its option %s uses a field that this one (" SODET_VERSION ") does not know",
                                  path, o->name ? o->name : "?");
        }
        if (!o->name)
            break;
    }
    return SODET_OK;
}

static sodet_status check_desc(const char *path, const char *name, const sodet_plugin *theirs, sd_plugin *p, sodet_err *err)
{
    sodet_plugin *d = &p->desc;
    if (!sd_copy_known(d, sizeof *d, theirs, theirs->struct_size))
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: needs a newer sodet: it was built for ABI %u.%u and uses a part of its descriptor that this one (" SODET_VERSION
            ", ABI %u.%u) does not know",
            path, (unsigned)d->abi_major, (unsigned)d->abi_minor, SODET_ABI_MAJOR, SODET_ABI_MINOR);
    if (d->core != &sodet_core_anchor)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: brings a second core of its own (its sodet_core_anchor is not this one); link it with libsodet.so, "
                          "not with a copy of it",
                          path);
    if (!d->name || strcmp(d->name, name) != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: calls itself %s; the file's name and the plugin's must agree", path,
                          d->name ? d->name : "nothing");
    const uint32_t *ops = d->ops;
    if (!ops || ops[0] < 2 * sizeof(uint32_t) || ops[0] > 65536)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: its table of functions %s; .struct_size = sizeof(sodet_%s_ops) belongs there", path,
                          ops ? "has no struct_size" : "is missing", sd_kind_name(d->kind));
    size_t own = kinds[d->kind].ops_size;
    void *copy = sd_pool_alloc(&all.pool, own);
    if (!copy)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (!sd_copy_known(copy, own, ops, ops[0]))
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: needs a newer sodet: its table of functions has %u bytes and uses what lies behind the %zu that this one (" SODET_VERSION
            ") knows",
            path, (unsigned)ops[0], own);
    p->ops = copy;
    return check_rows(path, d, err);
}

static bool may_unload(void)
{
    /* Sanitizers name functions by address when the process ends; an unmapped object has none. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return false;
#else
    return true;
#endif
#else
    return true;
#endif
}

sodet_status sd_plugin_open_file(const char *path, const char *real, void **handle, sodet_err *err)
{
    *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    return *handle ? SODET_OK : explain_dlopen(path, dlerror(), err);
}

void sd_plugin_close_file(void *handle)
{
    if (may_unload())
        dlclose(handle);
}

static sodet_status load_file(uint32_t kind, const char *name, const char *path, const sd_plugin **out, sodet_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(path, real) || stat(real, &st) != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: cannot open: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: is a folder, not a plugin; name the .so in it", path);
    for (uint64_t i = 0; i < all.n_loaded; i++) {
        if (all.loaded[i]->desc.kind == kind && strcmp(all.loaded[i]->path, real) == 0) {
            *out = all.loaded[i];
            return SODET_OK;
        }
    }
    sodet_status s = sd_plugin_check_head(path, kind, err);
    if (s != SODET_OK)
        return s;
    void *handle;
    s = sd_plugin_open_file(path, real, &handle, err);
    if (s != SODET_OK)
        return s;
    const sodet_plugin *theirs = dlsym(handle, "sodet_plugin_desc");
    sd_plugin *p = sd_pool_alloc(&all.pool, sizeof *p);
    s = !theirs ? SODET_FAIL(err, SODET_E_INVALID, "%s: exports no sodet_plugin_desc", path)
        : !p    ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory")
                : check_desc(path, name, theirs, p, err);
    if (s == SODET_OK)
        s = sd_grow(&all.loaded, &all.loaded_capacity, all.n_loaded + 1, sizeof *all.loaded, err);
    if (s == SODET_OK) {
        p->path = sd_pool_strdup(&all.pool, real);
        p->schema = (sd_schema){.section = sd_pool_printf(&all.pool, "%s/%s", sd_kind_name(kind), name),
                                .summary = p->desc.summary ? p->desc.summary : "",
                                .opts = p->desc.opts,
                                .n_opts = p->desc.n_opts,
                                .opt_size = p->desc.opt_size,
                                .cfg_size = p->desc.cfg_size,
                                .validate = p->desc.validate};
        if (!p->path || !p->schema.section)
            s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    }
    if (s != SODET_OK) {
        sd_plugin_close_file(handle);
        return s;
    }
    all.loaded[all.n_loaded++] = p;
    *out = p;
    return SODET_OK;
}

/* ---- by name ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of <folder>/<kind>/<name>.so, sorted, in the pool. */
static uint64_t list_names(sd_pool *pool, const char *folder, uint32_t kind, const char ***out)
{
    char path[PATH_MAX];
    const char **names = NULL;
    uint64_t n = 0, capacity = 0;
    snprintf(path, sizeof path, "%s/%s", folder, sd_kind_name(kind));
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t length = strlen(e->d_name);
        /* name.cuda.so is the CUDA part of a plugin, not one */
        if (length < 4 || strcmp(e->d_name + length - 3, ".so") != 0 || memchr(e->d_name, '.', length - 3))
            continue;
        char *name = sd_pool_printf(pool, "%.*s", (int)(length - 3), e->d_name);
        if (name && sd_grow(&names, &capacity, n + 1, sizeof *names, NULL) == SODET_OK)
            names[n++] = name;
    }
    if (d)
        closedir(d);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    *out = names;
    return n;
}

static sodet_status fail_missing(uint32_t kind, const char *name, const char *const *folders, sodet_err *err)
{
    char places[300] = "", hint[100] = "";
    sd_pool pool = {0};
    for (uint64_t i = 0; folders[i]; i++) {
        size_t used = strlen(places);
        snprintf(places + used, sizeof places - used, "%s%s", i ? ", " : "", folders[i]);
        const char **names;
        uint64_t n = list_names(&pool, folders[i], kind, &names);
        const char *near = sd_nearest(name, names, n);
        if (near && !*hint)
            snprintf(hint, sizeof hint, "; did you mean %s?", near);
        sd_free(names);
    }
    sd_pool_clear(&pool);
    return SODET_FAIL(err, SODET_E_INVALID, "no plugin %s/%s.so in %s%s", sd_kind_name(kind), name, places,
                      *hint ? hint : "; `sodet list` shows what there is");
}

static sodet_status load_locked(uint32_t kind, const char *name, const sd_plugin **out, sodet_err *err)
{
    if (strchr(name, '/')) {
        char stem[256];
        const char *base = strrchr(name, '/') + 1;
        size_t n = strlen(base);
        n -= n > 3 && strcmp(base + n - 3, ".so") == 0 ? 3 : 0;
        snprintf(stem, sizeof stem, "%.*s", (int)n, base);
        return load_file(kind, stem, name, out, err);
    }
    const char *const *folders = folders_locked();
    for (uint64_t i = 0; folders[i]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s/%s.so", folders[i], sd_kind_name(kind), name);
        if (sd_path_exists(path))
            return load_file(kind, name, path, out, err);
    }
    return fail_missing(kind, name, folders, err);
}

sodet_status sd_plugin_load(uint32_t kind, const char *name, const sd_plugin **out, sodet_err *err)
{
    *out = NULL;
    if (!sd_kind_name(kind))
        return SODET_FAIL(err, SODET_E_INTERNAL, "there is no kind %u of plugins", (unsigned)kind);
    if (!*name)
        return SODET_FAIL(err, SODET_E_INVALID, "the name of the %s is empty", sd_kind_name(kind));
    pthread_mutex_lock(&all.lock);
    sodet_status s = load_locked(kind, name, out, err);
    pthread_mutex_unlock(&all.lock);
    return s;
}

const sd_plugin *sd_plugin_of_address(const void *address)
{
    const sd_plugin *found = NULL;
    Dl_info at, own;
    if (!dladdr(address, &at))
        return NULL;
    pthread_mutex_lock(&all.lock);
    for (uint64_t i = 0; i < all.n_loaded && !found; i++)
        if (dladdr(all.loaded[i]->desc.ops, &own) && own.dli_fbase == at.dli_fbase)
            found = all.loaded[i];
    pthread_mutex_unlock(&all.lock);
    return found;
}

void sd_plugin_each(uint32_t kind, sd_plugin_visit *visit, void *context)
{
    sd_pool pool = {0};
    for (uint32_t k = kind ? kind : 1; k < N_KINDS && (!kind || k == kind); k++) {
        const char *const *folders = sd_plugin_folders();
        for (uint64_t f = 0; folders[f]; f++) {
            const char **names;
            uint64_t n = list_names(&pool, folders[f], k, &names);
            for (uint64_t i = 0; i < n; i++) {
                char path[PATH_MAX];
                bool shadowed = false;
                for (uint64_t before = 0; before < f && !shadowed; before++) {
                    snprintf(path, sizeof path, "%s/%s/%s.so", folders[before], sd_kind_name(k), names[i]);
                    shadowed = sd_path_exists(path);
                }
                if (shadowed)
                    continue;
                snprintf(path, sizeof path, "%s/%s/%s.so", folders[f], sd_kind_name(k), names[i]);
                sodet_err err = SODET_ERR_INIT;
                const sd_plugin *p;
                sodet_status s = sd_plugin_load(k, path, &p, &err);
                visit(context, k, names[i], path, p, s == SODET_OK ? NULL : &err);
            }
            sd_free(names);
        }
    }
    sd_pool_clear(&pool);
}
