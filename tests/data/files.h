/* files.h: what tests of data sets make: files, pictures, a data set and a sample of it. */
#ifndef SODET_TESTS_DATA_FILES_H
#define SODET_TESTS_DATA_FILES_H

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

static inline void close_set(set *s)
{
    sd_sample_free(s->s);
    sd_dataset_close(s->d);
    sd_instance_destroy(&s->instance);
    sd_config_close(s->cfg);
    memset(s, 0, sizeof *s);
}

static inline void write_file(const char *folder, const char *name, const char *text)
{
    char path[2400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    CHECK_OK(sd_make_folders(path, &err));
    *slash = '/';
    CHECK_OK(sd_file_write_atomic(path, text, strlen(text), &err));
}

static inline void write_picture(const char *folder, const char *name, uint32_t width, uint32_t height)
{
    char path[2400];
    write_file(folder, name, ""); /* its folder */
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint8_t *rgb = calloc((size_t)width * height, 3);
    CHECK_OK(sd_png_write(path, rgb, width, height, &err)); /* a PNG whatever its name says: content decides */
    free(rgb);
}

#endif
