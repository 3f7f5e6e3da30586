/* store/pickle.h: Python's pickles read as data. The opcodes of protocols 2 to 4 build values; nothing is ever called or imported: a call
 * becomes a value that says what was called, with its arguments. Cost in time and memory is linear in the bytes. */
#ifndef SD_STORE_PICKLE_H
#define SD_STORE_PICKLE_H

#include "core/base/base.h"

enum {
    SD_PICKLE_NONE,
    SD_PICKLE_INT,    /* bool too; longer than 64 bits: OTHER */
    SD_PICKLE_TEXT,   /* str and bytes */
    SD_PICKLE_LIST,   /* list, tuple and set */
    SD_PICKLE_DICT,   /* items: key, value, key, value, ...; a call of collections.OrderedDict is one too */
    SD_PICKLE_GLOBAL, /* text: "module name" */
    SD_PICKLE_CALL,   /* items: what was called (GLOBAL), its arguments (LIST) */
    SD_PICKLE_OUTER,  /* items: the persistent id, which stands for something outside of the pickle */
    SD_PICKLE_OTHER   /* floats and whatever nobody needs */
};
typedef struct sd_pickle sd_pickle;
struct sd_pickle {
    uint32_t kind;
    uint32_t seen; /* the reader's, for walks of values that hold themselves */
    int64_t number;
    const char *text;  /* terminated */
    uint64_t n, room;  /* items, or bytes of text */
    sd_pickle **items; /* never NULL pointers */
};

/* One pickle out of bytes[n]; *used: its length. Values live in the pool. `name` stands in messages. SODET_E_INVALID with *used = n: the
 * bytes end before the pickle does. */
sodet_status sd_pickle_read(sd_pool *pool, const char *name, const unsigned char *bytes, uint64_t n, uint64_t *used, sd_pickle **out,
                            sodet_err *err);
bool sd_pickle_is(const sd_pickle *p, uint32_t kind, const char *text); /* GLOBAL or TEXT with this text */

#endif
