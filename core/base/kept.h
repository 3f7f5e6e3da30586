/* base/kept.h: what was measured on this machine and is kept for later runs: a table of keys and values in a text file. Its first line says
 * for what all of it holds; a file with another one is as good as none, and is replaced. Then a line "key <tab> value" each.
 *
 * One table serves all devices of a process: whoever measures holds its lock, so that the others find what it has measured. */
#ifndef SD_KEPT_H
#define SD_KEPT_H

#include <pthread.h>

#include "core/base/base.h"

typedef struct sd_kept_row {
    char *key, *value;
} sd_kept_row;
typedef struct sd_kept {
    pthread_mutex_t lock;
    sd_kept_row *row;
    uint64_t n, capacity;
    char *path; /* of the file that was read; NULL: none yet */
    bool changed;
    const char *backend; /* whose option `times` names the file */
} sd_kept;
#define SD_KEPT_INIT(name)                                                                                                                 \
    {                                                                                                                                      \
        .lock = PTHREAD_MUTEX_INITIALIZER, .backend = name                                                                                 \
    }

/* Where it lies: `set` if that is not empty, else sodet/<name> in the user's folder of caches. *out, in the pool; NULL: nowhere, for the
 * environment names no such folder. */
sodet_status sd_kept_path(const char *set, const char *name, sd_pool *pool, char **out, sodet_err *err);
/* All of these with the lock taken. Reads the file, unless it is the one that was read last; what came from another one is forgotten. */
sodet_status sd_kept_read(sd_kept *k, const char *path, const char *head, sodet_err *err);
const char *sd_kept_find(const sd_kept *k, const char *key); /* NULL: unknown */
sodet_status sd_kept_set(sd_kept *k, const char *key, const char *value, sodet_err *err);
/* Writes the file, with its folders, if anything was set since. */
sodet_status sd_kept_write(sd_kept *k, const char *head, sodet_err *err);

#endif
