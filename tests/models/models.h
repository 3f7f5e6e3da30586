/* models.h: what the tests of networks share: a model from fragments of conf/ and overrides. */
#ifndef SODET_TESTS_MODELS_H
#define SODET_TESTS_MODELS_H

#include "check.h"
#include "core/detect/model.h"

typedef struct test_model {
    sd_config *cfg;
    sd_model *model;
} test_model;

/* base: fragments below conf/, as [run] base takes them; overrides: "section.key=value", NULL at the end. */
static inline sodet_status test_model_open(test_model *m, const char *base, const char *const *overrides, uint32_t classes, sodet_err *err)
{
    char text[512], folder[512], name[560];
    sd_override o[32];
    uint64_t n = 0;
    *m = (test_model){NULL, NULL};
    while (overrides && overrides[n] && n < 32) {
        o[n] = (sd_override){overrides[n], NULL};
        n++;
    }
    snprintf(text, sizeof text, "[run]\nbase = %s\n", base);
    snprintf(folder, sizeof folder, "%s", check_source("conf"));
    snprintf(name, sizeof name, "%s/test.ini", folder);
    sodet_status s = sd_config_open_text(text, strlen(text), name, folder, o, n, &m->cfg, err);
    return s == SODET_OK ? sd_model_open(m->cfg, classes, &m->model, err) : s;
}

static inline void test_model_close(test_model *m)
{
    sd_model_close(m->model);
    sd_config_close(m->cfg);
}

#endif
