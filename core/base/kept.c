#include "core/base/kept.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 /* of the file */ };

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a table of measurements");
}

sodet_status sd_kept_path(const char *set, const char *name, sd_pool *pool, char **out, sodet_err *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *out = NULL;
    if (set && *set)
        *out = sd_pool_strdup(pool, set);
    else if (cache && *cache == '/')
        *out = sd_pool_printf(pool, "%s/sodet/%s", cache, name);
    else if (home && *home == '/')
        *out = sd_pool_printf(pool, "%s/.cache/sodet/%s", home, name);
    else
        return SODET_OK;
    return *out ? SODET_OK : no_memory(err);
}

static sd_kept_row *find(const sd_kept *k, const char *key)
{
    for (uint64_t i = 0; i < k->n; i++)
        if (strcmp(k->row[i].key, key) == 0)
            return &k->row[i];
    return NULL;
}

const char *sd_kept_find(const sd_kept *k, const char *key)
{
    const sd_kept_row *r = find(k, key);
    return r ? r->value : NULL;
}

sodet_status sd_kept_set(sd_kept *k, const char *key, const char *value, sodet_err *err)
{
    sd_kept_row *r = find(k, key);
    char *copy = sd_strdup(value), *name = r ? NULL : sd_strdup(key);
    if (!copy || (!r && !name) || (!r && sd_grow(&k->row, &k->capacity, k->n + 1, sizeof *k->row, err) != SODET_OK)) {
        sd_free(copy);
        sd_free(name);
        return no_memory(err);
    }
    if (!r) {
        r = &k->row[k->n++];
        *r = (sd_kept_row){.key = name};
    }
    sd_free(r->value);
    r->value = copy;
    k->changed = true;
    return SODET_OK;
}

static void forget(sd_kept *k)
{
    for (uint64_t i = 0; i < k->n; i++) {
        sd_free(k->row[i].key);
        sd_free(k->row[i].value);
    }
    sd_free(k->row);
    sd_free(k->path);
    k->row = NULL;
    k->path = NULL;
    k->n = k->capacity = 0;
    k->changed = false;
}

static sodet_status parse(sd_kept *k, char *text, const char *head, sodet_err *err)
{
    char *save = NULL, *line = strtok_r(text, "\n", &save);
    if (line && strncmp(line, "sodet ", 6) != 0) /* it would be written over */
        return SODET_FAIL(err, SODET_E_INVALID, "%s: its first line does not begin with \"sodet \"", k->path);
    if (!line || strcmp(line, head) != 0) {
        sd_log(SD_LOG_INFO, "%s: measured with another library or on another device; measuring again", k->path);
        return SODET_OK;
    }
    while ((line = strtok_r(NULL, "\n", &save))) {
        char *value = strchr(line, '\t');
        if (!value) {
            sd_log(SD_LOG_WARN, "%s: a line holds no measurement (\"%.60s\"); it goes", k->path, line);
            continue;
        }
        *value++ = '\0';
        if (!find(k, line) && sd_kept_set(k, line, value, err) != SODET_OK)
            return SODET_E_MEMORY;
    }
    return SODET_OK;
}

sodet_status sd_kept_read(sd_kept *k, const char *path, const char *head, sodet_err *err)
{
    if (k->path && strcmp(k->path, path) == 0)
        return SODET_OK;
    forget(k);
    char *text = NULL;
    uint64_t n = 0;
    k->path = sd_strdup(path);
    if (!k->path)
        return no_memory(err);
    if (!sd_path_exists(path))
        return SODET_OK;
    sodet_status s = sd_file_read(path, MOST_BYTES, &text, &n, err);
    if (s == SODET_OK)
        s = parse(k, text, head, err);
    if (s != SODET_OK && s != SODET_E_MEMORY)
        s = sd_fail_in(err, s, "[backend.%s] times: no file to keep measurements in, remove it or name another one", k->backend);
    k->changed = false;
    sd_free(text);
    if (s != SODET_OK)
        forget(k);
    return s;
}

sodet_status sd_kept_write(sd_kept *k, const char *head, sodet_err *err)
{
    if (!k->changed || !k->path)
        return SODET_OK;
    sd_text t = {0};
    sd_pool pool = {0};
    const char *slash = strrchr(k->path, '/');
    sd_text_printf(&t, "%s\n", head);
    for (uint64_t i = 0; i < k->n; i++)
        sd_text_printf(&t, "%s\t%s\n", k->row[i].key, k->row[i].value);
    sodet_status s = t.failed ? no_memory(err) : SODET_OK;
    if (s == SODET_OK && slash && slash != k->path) {
        const char *folder = sd_pool_printf(&pool, "%.*s", (int)(slash - k->path), k->path);
        s = folder ? sd_make_folders(folder, err) : no_memory(err);
    }
    if (s == SODET_OK)
        s = sd_file_write_atomic(k->path, t.text, t.length, err);
    k->changed = s != SODET_OK;
    sd_text_free(&t);
    sd_pool_clear(&pool);
    return s;
}
