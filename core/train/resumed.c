#include "core/train/resumed.h"

#include <string.h>

#include "core/train/state.h"

typedef struct bound {
    const char *section, *key; /* key NULL: all of them */
} bound;
static const bound bounds[] = {
    {"input", NULL},
    {"backbone", NULL},
    {"neck", NULL},
    {"head", NULL},
    {"loss", NULL},
    {"transform", "train"},
    {"run", "seed"},
    {"data", "shuffle"},
    {"data", "overfit"},
    {"data", "last"},
    {"data", "difficult"},
    {"data", "min_side"},
    {"data", "ignore_orientation"},
    {"data", "bad_boxes"},
    {"optimizer", "type"},
    {"optimizer", "accumulate"},
    {"optimizer", "ema"},
    {"optimizer", "freeze"},
    {"train", "batch"},
    {"train", "norm"},
};

typedef struct findings {
    const sd_config *cfg;
    const char *path;
    uint32_t n; /* that are bound and differ */
    sodet_err first;
    sd_text *changed;
} findings;

static bool of_training_chain(const sd_config *cfg, const char *section)
{
    const sodet_string_list *chain = &sd_config_core(cfg)->transform.train;
    for (uint32_t i = 0; !strncmp(section, "transform.", 10) && i < chain->n; i++)
        if (!strcmp(section + 10, chain->v[i]))
            return true;
    return false;
}

static bool is_bound(const sd_config *cfg, const char *section, const char *key, const sodet_opt *row)
{
    if (row && (row->type == SODET_T_PATH || row->flags & SODET_OPT_LATER))
        return false;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (!strcmp(bounds[i].section, section) && (!bounds[i].key || !strcmp(bounds[i].key, key)))
            return true;
    return of_training_chain(cfg, section);
}

static void compare(void *context, const char *section, const char *key, const sodet_opt *row, const char *was, const char *now)
{
    findings *f = context;
    if (is_bound(f->cfg, section, key, row)) {
        if (f->n++ == 0)
            sd_config_fail(
                f->cfg, &f->first, section, key,
                "the run that is resumed has %s (now %.60s), and what is in its checkpoint depends on it; write %s.%s=%s, or begin a "
                "run of its own with run.init=%.120s",
                was, now, section, key, was, f->path);
        return;
    }
    if (strcmp(section, "run") != 0 || (strcmp(key, "resume") != 0 && strcmp(key, "output") != 0 && strcmp(key, "overwrite") != 0))
        sd_text_printf(f->changed, "%s%s.%s = %s (was %s)", f->changed->length ? ", " : "", section, key, now, was);
}

sodet_status sd_resumed_check(const sd_config *cfg, const sd_checkpoint *c, sd_text *changed, sodet_err *err)
{
    sd_config *was = NULL;
    findings f = {.cfg = cfg, .path = sd_checkpoint_path(c), .first = SODET_ERR_INIT, .changed = changed};
    sodet_status s = sd_state_config(c, NULL, 0, &was, err);
    if (s == SODET_OK)
        s = sd_config_compare(was, cfg, compare, &f, err);
    sd_config_close(was);
    if (s == SODET_OK && f.n)
        return f.n > 1 ? SODET_FAIL(err, SODET_E_INVALID, "%.430s; so do %u more values", f.first.text, f.n - 1)
                       : SODET_FAIL(err, SODET_E_INVALID, "%s", f.first.text);
    return s == SODET_OK && changed->failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory: what differs from %s", f.path) : s;
}
