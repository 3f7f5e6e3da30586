/* sodet/plugin.h: the frame of every plugin. One .so is one component: <kind>/<name>.so exports one data symbol, sodet_plugin_desc,
 * and nothing else. The host reads magic, size and ABI numbers before any of the plugin's code runs.
 *
 * Ownership: descriptor, tables and strings are static in the plugin and valid while it is loaded. The configuration is the host's,
 * strings and lists included, and lives until destroy returns.
 * Threads: one instance is used by one thread at a time unless its kind's header says otherwise. No mutable statics.
 * A plugin never exits, aborts, prints or parses options: they arrive checked, messages go through sodet_err and sodet_warn.
 *
 * Versions: major must be equal. The host copies min(struct_size, its own) over zeros; a longer descriptor whose tail is not all
 * zero needs a newer host and is refused in those words. Change = append at the end; zero means absent. */
#ifndef SODET_PLUGIN_H
#define SODET_PLUGIN_H

#include "sodet/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SODET_PLUGIN_MAGIC 0x54444f53u /* "SODT" */
#define SODET_ABI_MAJOR    0u
#define SODET_ABI_MINOR    0u

enum {
    SODET_KIND_BACKBONE = 1,
    SODET_KIND_NECK,
    SODET_KIND_HEAD,
    SODET_KIND_LOSS,
    SODET_KIND_DATASET,
    SODET_KIND_TRANSFORM,
    SODET_KIND_EVALUATOR,
    SODET_KIND_BACKEND,
    SODET_KIND_TRANSPORT
};

enum {                      /* type of an option, and the C type of its field */
       SODET_T_DOUBLE = 1,  /* double; finite */
       SODET_T_INT,         /* int64_t; base 10 */
       SODET_T_UINT,        /* uint32_t */
       SODET_T_BOOL,        /* uint32_t, 0 or 1; yes/no, true/false, on/off, 1/0 */
       SODET_T_STRING,      /* const char *; NULL if there is no default */
       SODET_T_PATH,        /* const char *; resolved against the INI file's folder or, from the command line, the working directory */
       SODET_T_ENUM,        /* uint32_t, the index in choices */
       SODET_T_BYTES,       /* uint64_t; 64MiB */
       SODET_T_DURATION,    /* double, seconds; 30s, 5m */
       SODET_T_SIZE,        /* sodet_size2d; 300x300 = width x height, or 300 for both */
       SODET_T_DOUBLE_LIST, /* sodet_double_list; separated by commas or blanks */
       SODET_T_UINT_LIST,   /* sodet_uint_list */
       SODET_T_STRING_LIST  /* sodet_string_list; separated by commas */
};
enum {
    SODET_OPT_REQUIRED = 1,
    SODET_OPT_DEPRECATED = 2,
    SODET_OPT_LATER = 4 /* nothing that is trained depends on it: a run may be resumed with another value */
};

typedef struct sodet_size2d {
    uint32_t width, height;
} sodet_size2d;
typedef struct sodet_double_list {
    uint32_t n;
    const double *v;
} sodet_double_list;
typedef struct sodet_uint_list {
    uint32_t n;
    const uint32_t *v;
} sodet_uint_list;
typedef struct sodet_string_list {
    uint32_t n;
    const char *const *v;
} sodet_string_list;

/* One row = parser, default, range, help, documentation. The default is text, parsed as if it stood in the INI. */
typedef struct sodet_opt {
    const char *name, *help;
    uint32_t type, flags;
    size_t offset;              /* of the field in the plugin's configuration struct */
    const char *def;            /* NULL: zero, NULL or an empty list */
    double min, max;            /* inclusive; per element of a list */
    uint32_t length;            /* of a list; 0 is any */
    const char *const *choices; /* SODET_T_ENUM: closed, NULL at the end */
} sodet_opt;

/* The field's C type must be the one that the row promises, or the row does not compile. */
#ifndef __cplusplus
#define SODET_OFFSET(T, field, ctype) _Generic(((T *)0)->field, ctype : offsetof(T, field))
#else
#define SODET_OFFSET(T, field, ctype) offsetof(T, field)
#endif
#define SODET_OPT_DOUBLE(T, field, def, lo, hi, help)                                                                                      \
    {                                                                                                                                      \
#field, help, SODET_T_DOUBLE, 0, SODET_OFFSET(T, field, double), def, lo, hi, 0, NULL                                              \
    }
#define SODET_OPT_INT(T, field, def, lo, hi, help)                                                                                         \
    {                                                                                                                                      \
#field, help, SODET_T_INT, 0, SODET_OFFSET(T, field, int64_t), def, lo, hi, 0, NULL                                                \
    }
#define SODET_OPT_UINT(T, field, def, lo, hi, help)                                                                                        \
    {                                                                                                                                      \
#field, help, SODET_T_UINT, 0, SODET_OFFSET(T, field, uint32_t), def, lo, hi, 0, NULL                                              \
    }
#define SODET_OPT_BOOL(T, field, def, help)                                                                                                \
    {                                                                                                                                      \
#field, help, SODET_T_BOOL, 0, SODET_OFFSET(T, field, uint32_t), def, 0, 1, 0, NULL                                                \
    }
#define SODET_OPT_STRING(T, field, def, help)                                                                                              \
    {                                                                                                                                      \
#field, help, SODET_T_STRING, 0, SODET_OFFSET(T, field, const char *), def, 0, 0, 0, NULL                                          \
    }
#define SODET_OPT_PATH(T, field, opt_flags, help)                                                                                          \
    {                                                                                                                                      \
#field, help, SODET_T_PATH, opt_flags, SODET_OFFSET(T, field, const char *), NULL, 0, 0, 0, NULL                                   \
    }
#define SODET_OPT_ENUM(T, field, def, choices, help)                                                                                       \
    {                                                                                                                                      \
#field, help, SODET_T_ENUM, 0, SODET_OFFSET(T, field, uint32_t), def, 0, 0, 0, choices                                             \
    }
#define SODET_OPT_BYTES(T, field, def, lo, hi, help)                                                                                       \
    {                                                                                                                                      \
#field, help, SODET_T_BYTES, 0, SODET_OFFSET(T, field, uint64_t), def, lo, hi, 0, NULL                                             \
    }
#define SODET_OPT_DURATION(T, field, def, lo, hi, help)                                                                                    \
    {                                                                                                                                      \
#field, help, SODET_T_DURATION, 0, SODET_OFFSET(T, field, double), def, lo, hi, 0, NULL                                            \
    }
#define SODET_OPT_SIZE(T, field, def, lo, hi, help)                                                                                        \
    {                                                                                                                                      \
#field, help, SODET_T_SIZE, 0, SODET_OFFSET(T, field, sodet_size2d), def, lo, hi, 0, NULL                                          \
    }
#define SODET_OPT_DOUBLES(T, field, def, length, lo, hi, help)                                                                             \
    {                                                                                                                                      \
#field, help, SODET_T_DOUBLE_LIST, 0, SODET_OFFSET(T, field, sodet_double_list), def, lo, hi, length, NULL                         \
    }
#define SODET_OPT_UINTS(T, field, def, length, lo, hi, help)                                                                               \
    {                                                                                                                                      \
#field, help, SODET_T_UINT_LIST, 0, SODET_OFFSET(T, field, sodet_uint_list), def, lo, hi, length, NULL                             \
    }
#define SODET_OPT_STRINGS(T, field, def, length, help)                                                                                     \
    {                                                                                                                                      \
#field, help, SODET_T_STRING_LIST, 0, SODET_OFFSET(T, field, sodet_string_list), def, 0, 0, length, NULL                           \
    }
/* A plugin without options passes this as its table. */
#define SODET_NO_OPTIONS                                                                                                                   \
    {                                                                                                                                      \
        {                                                                                                                                  \
            NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, NULL                                                                                       \
        }                                                                                                                                  \
    }

typedef struct sodet_plugin {
    uint32_t magic, struct_size; /* these sixteen bytes never change */
    uint16_t abi_major, abi_minor;
    uint32_t kind;
    const void *core; /* &sodet_core_anchor: another address means that a second core was loaded */
    const char *name, *summary;
    size_t cfg_size;
    const sodet_opt *opts;                                     /* ends after n_opts rows or at a row without a name */
    uint32_t n_opts, opt_size;                                 /* opt_size: stride of the array */
    sodet_status (*validate)(const void *cfg, sodet_err *err); /* rules across options, by sodet_fail_option; may be NULL */
    /* A create that fails cleans up after itself and leaves *self NULL. NULL: self is cfg. */
    sodet_status (*create)(const void *cfg, void **self, sodet_err *err);
    void (*destroy)(void *self); /* once for each successful create; accepts NULL */
    const void *ops;             /* sodet_<kind>_ops */
} sodet_plugin;

SODET_EXPORT extern const char sodet_core_anchor;

/* Raises an error about one option of the plugin's own section: the host adds file, line, section and value. */
SODET_EXPORT sodet_status sodet_fail_option(sodet_err *err, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The only voice of a plugin beside errors: one line on stderr, once for each text. */
SODET_EXPORT void sodet_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
#define SODET_PLUGIN_LINKAGE extern "C"
#else
#define SODET_PLUGIN_LINKAGE
#endif
#define SODET_PLUGIN(kind_, name_, summary_, cfg_, opts_, ...)                                                                             \
    SODET_PLUGIN_LINKAGE SODET_EXPORT extern const sodet_plugin sodet_plugin_desc;                                                         \
    const sodet_plugin sodet_plugin_desc = {.magic = SODET_PLUGIN_MAGIC,                                                                   \
                                            .struct_size = sizeof(sodet_plugin),                                                           \
                                            .abi_major = SODET_ABI_MAJOR,                                                                  \
                                            .abi_minor = SODET_ABI_MINOR,                                                                  \
                                            .kind = kind_,                                                                                 \
                                            .core = &sodet_core_anchor,                                                                    \
                                            .name = name_,                                                                                 \
                                            .summary = summary_,                                                                           \
                                            .cfg_size = sizeof(cfg_),                                                                      \
                                            .opts = opts_,                                                                                 \
                                            .n_opts = (uint32_t)(sizeof opts_ / sizeof opts_[0]),                                          \
                                            .opt_size = sizeof opts_[0],                                                                   \
                                            __VA_ARGS__}

#ifdef __cplusplus
}
#endif
#endif
