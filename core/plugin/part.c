#include "core/plugin/part.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    sd_pool pool;
    sd_part **loaded;
    uint64_t n, capacity;
} parts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sodet_status load_locked(const sd_plugin *owner, const char *path, const char *real, const sd_desc_form *form, const sd_part **out,
                                sodet_err *err)
{
    for (uint64_t i = 0; i < parts.n; i++)
        if (strcmp(parts.loaded[i]->path, real) == 0) {
            *out = parts.loaded[i];
            return SODET_OK;
        }
    sd_desc_head head;
    void *handle;
    sodet_status s = sd_plugin_read_head(path, form, &head, err);
    if (s == SODET_OK)
        s = sd_plugin_open_file(path, real, &handle, err);
    if (s != SODET_OK)
        return s;
    const void *theirs = dlsym(handle, form->symbol);
    sd_part *p = sd_pool_alloc(&parts.pool, sizeof *p);
    void *desc = sd_pool_alloc(&parts.pool, form->size);
    s = p && desc ? sd_grow(&parts.loaded, &parts.capacity, parts.n + 1, sizeof *parts.loaded, err)
                  : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s == SODET_OK && (!theirs || !sd_copy_known(desc, form->size, theirs, head.struct_size)))
        s = SODET_FAIL(err, SODET_E_INVALID,
                       "%s: needs a newer sodet: it was built for ABI %u.%u and uses a part of its %s that this one (" SODET_VERSION
                       ", ABI %u.%u) does not know",
                       path, (unsigned)head.major, (unsigned)head.minor, form->symbol, SODET_ABI_MAJOR, SODET_ABI_MINOR);
    if (s == SODET_OK) {
        *p = (sd_part){.owner = owner, .path = sd_pool_strdup(&parts.pool, real), .desc = desc};
        s = p->path ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    }
    if (s != SODET_OK) {
        sd_plugin_close_file(handle);
        return s;
    }
    parts.loaded[parts.n++] = p;
    *out = p;
    return SODET_OK;
}

/* A description that was put together at run time is not the plugin's data, but its functions are the plugin's code. */
static const sd_plugin *owner_of(const sodet_op *op)
{
    const void *code;
    memcpy(&code, &op->infer, sizeof code);
    const sd_plugin *p = sd_plugin_of_address(op);
    return p ? p : sd_plugin_of_address(code);
}

sodet_status sd_plugin_part(const sodet_op *op, const char *backend, const char *header, const sd_desc_form *form, const sd_part **out,
                            sodet_err *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    *out = NULL;
    const sd_plugin *owner = owner_of(op);
    if (!owner)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "operator %s is in no plugin that was loaded, and only beside one is a file with its kernels for the backend %s "
                          "looked for (%s); devices = cpu needs none",
                          op->name, backend, header);
    size_t stem = strlen(owner->path);
    if (stem > 3 && strcmp(owner->path + stem - 3, ".so") == 0)
        stem -= 3;
    if (snprintf(path, sizeof path, "%.*s.%s.so", (int)stem, owner->path, backend) >= (int)sizeof path || !realpath(path, real))
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "operator %s of the plugin %s has no kernels for the backend %s: there is no file %s; build it (%s), or write "
                          "devices = cpu",
                          op->name, owner->schema.section, backend, path, header);
    pthread_mutex_lock(&parts.lock);
    sodet_status s = load_locked(owner, path, real, form, out, err);
    pthread_mutex_unlock(&parts.lock);
    return s;
}
