/* folder.h: made-up folders of pictures and labels, and a data set of one plugin opened on them. */
#ifndef SODET_TESTS_PLUGINS_FOLDER_H
#define SODET_TESTS_PLUGINS_FOLDER_H

#include "core/data/dataset.h"
#include "core/data/decode.h"
#include "core/data/sample.h"
#include "core/plugin/plugin.h"

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

typedef struct set {
    sd_config *cfg;
    sd_instance instance;
    sd_dataset *d;
    sodet_sample *s;
} set;

static void close_set(set *s)
{
    sd_sample_free(s->s);
    sd_dataset_close(s->d);
    sd_instance_destroy(&s->instance);
    sd_config_close(s->cfg);
    memset(s, 0, sizeof *s);
}

/* [dataset.d] with these lines; "@" in them stands for `folder`. Whatever comes of it is closed by close_set. */
static sodet_status open_set(set *out, const char *folder, const char *lines, uint32_t skip)
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

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    CHECK_OK(sd_make_folders(path, &err));
    *slash = '/';
    CHECK_OK(sd_file_write_atomic(path, text, strlen(text), &err));
}

static void write_picture(const char *folder, const char *name, uint32_t width, uint32_t height)
{
    char path[1200];
    write_file(folder, name, "");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint8_t *rgb = calloc((size_t)width * height, 3);
    CHECK_OK(sd_png_write(path, rgb, width, height, &err)); /* a PNG whatever its name says: content decides */
    free(rgb);
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
