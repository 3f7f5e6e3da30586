/* folder.h: made-up folders of pictures and labels, and a data set of one plugin opened on them. */
#ifndef SODET_TESTS_PLUGINS_FOLDER_H
#define SODET_TESTS_PLUGINS_FOLDER_H

#include "data/files.h"

/* [dataset.d] with these lines; "@" in them stands for `folder`. Whatever comes of it is closed by close_set. */
static inline sodet_status open_set(set *out, const char *folder, const char *lines, uint32_t skip)
{
    memset(out, 0, sizeof *out);
    char text[4000] = "[run]\nname = x\n[dataset.d]\n";
    for (const char *p = lines; *p; p++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, *p == '@' ? "%s" : "%.1s", *p == '@' ? folder : p);
    }
    sodet_status status = sd_config_open_text(text, strlen(text), "test.ini", NULL, NULL, 0, &out->cfg, &err);
    if (status == SODET_OK)
        status = sd_instance_create(out->cfg, "dataset.d", &out->instance, &err);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_file = skip ? SD_SKIP : SD_STOP;
    const sd_dataset_part part = {"d", out->instance.ops, out->instance.self};
    if (status == SODET_OK)
        status = sd_dataset_open(&part, 1, NULL, 0, &rules, &out->d, &err);
    if (status == SODET_OK)
        status = sd_sample_new(out->d, &out->s, &err);
    return status;
}

static inline bool box_is(const sodet_sample *s, uint32_t i, double x1, double y1, double x2, double y2)
{
    const sodet_object *o = sodet_sample_object(s, i);
    return o && o->box.x1 == (float)x1 && o->box.y1 == (float)y1 && o->box.x2 == (float)x2 && o->box.y2 == (float)y2;
}

/* The sample of that id is described; false if there is none. */
static inline bool at(set *s, const char *id)
{
    for (uint64_t i = 0; i < sd_dataset_size(s->d); i++) {
        if (strcmp(sd_dataset_item(s->d, i)->id, id) == 0)
            return sd_dataset_describe(s->d, i, s->s, &err) == SODET_OK;
    }
    return false;
}

#endif
