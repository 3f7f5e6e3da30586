/* Plugins that misbehave, one per value of FIXTURE; each is built as its own .so by CMakeLists.txt. A head without functions is enough:
 * none of them gets as far as a build, but `good`, `newer_unused` and the creates. */
#include <stdlib.h>
#include <string.h>

#include "sodet/detection.h"

#define good         0
#define wrong_magic  1
#define wrong_major  2
#define short_struct 3
#define newer_unused 4
#define newer_used   5
#define no_symbol    6
#define second_core  7
#define undefined    8
#define wrong_kind   9
#define wrong_name   10
#define bad_create   11
#define leaky_create 12
#define missing_lib  13
#define newer_core   14
#define empty_create 15
#define mute_create  16
#define no_ops       17
#define newer_ops    18
#define bad_rows     19
#define bad_default  20
#define option_fault 21
#define early_code   22
#define unknown_kind 23
#define lying_size   24

#if FIXTURE == no_symbol
extern const int sodet_plugin_description;
const int sodet_plugin_description = 1;
#else

#if FIXTURE == second_core
/* As if libsodet had been linked in statically. */
const char sodet_core_anchor = 'X';
#endif

typedef struct fixture_cfg {
    double size;
    uint32_t mode;
} fixture_cfg;
static const char *const modes[] = {"a", "b", NULL};
static const sodet_opt opts[] = {
    SODET_OPT_DOUBLE(fixture_cfg, size, FIXTURE == bad_default ? "70000" : "2", 0, 100, "a size"),
    SODET_OPT_ENUM(fixture_cfg, mode, "a", modes, "a mode"),
};

#if FIXTURE == undefined
extern int never_defined_anywhere(void);
#endif
#if FIXTURE == newer_core
extern int sodet_call_of_the_future(void);
#endif
#if FIXTURE == missing_lib
extern int missing_library(void);
#endif

#if FIXTURE == early_code
/* Its ABI is wrong, so this must never run. */
__attribute__((constructor)) static void too_early(void)
{
    setenv("SODET_TEST_CONSTRUCTOR", "ran", 1);
}
#endif

static sodet_status create(const void *p, void **self, sodet_err *err)
{
    const fixture_cfg *c = p;
    *self = NULL;
#if FIXTURE == undefined
    return never_defined_anywhere();
#elif FIXTURE == newer_core
    return sodet_call_of_the_future();
#elif FIXTURE == missing_lib
    return missing_library();
#elif FIXTURE == bad_create
    return SODET_FAIL(err, SODET_E_MEMORY, "the moon is in the wrong phase");
#elif FIXTURE == leaky_create
    static char left_behind;
    *self = &left_behind;
    return SODET_FAIL(err, SODET_E_INVALID, "half done");
#elif FIXTURE == mute_create
    return SODET_E_IO;
#elif FIXTURE == empty_create
    return SODET_OK;
#elif FIXTURE == option_fault
    if (c->size > 50)
        return sodet_fail_option(err, "size", "does not go with mode = %s", modes[c->mode]);
#endif
    (void)err;
    double *copy = malloc(sizeof *copy);
    if (!copy)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    *copy = c->size;
    *self = copy;
    return SODET_OK;
}

static void destroy(void *self)
{
    free(self);
}

/* As a plugin has it that was built against later headers. */
typedef struct newer_head_ops {
    sodet_head_ops known;
    const void *later[2];
} newer_head_ops;
static const newer_head_ops ops = {
    .known = {.struct_size = FIXTURE == newer_ops ? sizeof(newer_head_ops) : sizeof(sodet_head_ops)},
    .later = {FIXTURE == newer_ops ? "x" : NULL},
};
typedef struct newer_plugin {
    sodet_plugin known;
    const void *later[2];
} newer_plugin;

SODET_EXPORT extern const newer_plugin sodet_plugin_desc;
const newer_plugin sodet_plugin_desc = {
    .known =
        {
            .magic = FIXTURE == wrong_magic ? 0x12345678u : SODET_PLUGIN_MAGIC,
            .struct_size = FIXTURE == short_struct                            ? 40
                           : FIXTURE == newer_unused || FIXTURE == newer_used ? sizeof(newer_plugin)
                           : FIXTURE == lying_size                            ? 4000
                                                                              : sizeof(sodet_plugin),
            .abi_major = FIXTURE == wrong_major || FIXTURE == early_code ? SODET_ABI_MAJOR + 1 : SODET_ABI_MAJOR,
            .abi_minor = FIXTURE == newer_unused || FIXTURE == newer_used ? SODET_ABI_MINOR + 1 : SODET_ABI_MINOR,
            .kind = FIXTURE == wrong_kind     ? SODET_KIND_LOSS
                    : FIXTURE == unknown_kind ? 99
                                              : SODET_KIND_HEAD,
            .core = &sodet_core_anchor,
            .name = FIXTURE == wrong_name ? "somebody_else" : NAME,
            .summary = "a fixture",
            .cfg_size = sizeof(fixture_cfg),
            .opts = opts,
            .n_opts = 2,
            .opt_size = FIXTURE == bad_rows ? 8 : sizeof opts[0],
            .create = create,
            .destroy = destroy,
            .ops = FIXTURE == no_ops ? NULL : (const void *)&ops,
        },
    .later = {FIXTURE == newer_used ? "x" : NULL},
};
#endif
