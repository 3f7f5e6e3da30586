/* sodet data: what a configuration's data sets hold. `data export` writes pictures and a COCO annotation file, so that other programs
 * see exactly what sodet sees (before the transforms). */
#include <stdio.h>
#include <string.h>

#include "core/cli/cli.h"
#include "core/data/recipe.h"
#include "core/data/sample.h"

typedef struct export
{
    const char *folder;
    sd_text images, annotations;
    uint64_t n_objects;
}
export;

static void write_objects(export *e, const sodet_sample *s, const sd_classes *classes, uint64_t image)
{
    for (uint64_t k = 0; k < s->n_objects; k++) {
        const sodet_object *o = &s->objects[k];
        double x = (double)o->box.x1, y = (double)o->box.y1, w = (double)o->box.x2 - x, h = (double)o->box.y2 - y;
        sd_text_printf(&e->annotations,
                       "%s{\"id\": %llu, \"image_id\": %llu, \"category_id\": %lld, \"bbox\": [%.9g, %.9g, %.9g, %.9g], \"area\": ",
                       e->n_objects ? ",\n" : "", (unsigned long long)(e->n_objects + 1), (unsigned long long)image,
                       (long long)classes->category_id[o->label], x, y, w, h);
        sd_json_write_double(&e->annotations, o->area > 0 ? o->area : w * h);
        sd_text_printf(&e->annotations, ", \"iscrowd\": %d, \"ignore\": %d}", (o->flags & SODET_BOX_CROWD) != 0,
                       (o->flags & SODET_BOX_DIFFICULT) != 0);
        e->n_objects++;
    }
}

static sodet_status write_sample(export *e, const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sodet_status status = sd_dataset_load(d, i, s, err);
    if (status != SODET_OK)
        return status;
    char name[64], path[4096];
    snprintf(name, sizeof name, "%06llu.png", (unsigned long long)(i + 1));
    snprintf(path, sizeof path, "%s/%s", e->folder, name);
    status = sd_png_write(path, s->stored.rgb, s->stored.width, s->stored.height, err);
    if (status != SODET_OK)
        return status;
    sd_text_printf(&e->images, "%s{\"id\": %llu, \"file_name\": \"%s\", \"width\": %u, \"height\": %u, \"source\": ", i ? ",\n" : "",
                   (unsigned long long)(i + 1), name, s->stored.width, s->stored.height);
    sd_json_write_string(&e->images, sd_dataset_item(d, i)->id);
    sd_text_printf(&e->images, "}");
    write_objects(e, s, sd_dataset_classes(d), i + 1);
    return SODET_OK;
}

static sodet_status write_annotations(export *e, const sd_classes *classes, sodet_err *err)
{
    sd_text text = {0};
    char path[4096];
    sd_text_printf(&text, "{\"images\": [\n%s\n],\n\"annotations\": [\n%s\n],\n\"categories\": [", e->images.text ? e->images.text : "",
                   e->annotations.text ? e->annotations.text : "");
    for (uint32_t c = 0; c < classes->n; c++) {
        sd_text_printf(&text, "%s{\"id\": %lld, \"name\": ", c ? ", " : "", (long long)classes->category_id[c]);
        sd_json_write_string(&text, classes->names[c]);
        sd_text_printf(&text, "}");
    }
    sd_text_printf(&text, "]}\n");
    snprintf(path, sizeof path, "%s/annotations.json", e->folder);
    sodet_status status = text.failed || e->images.failed || e->annotations.failed
                              ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path)
                              : sd_file_write_atomic(path, text.text, text.length, err);
    sd_text_free(&text);
    return status;
}

static sodet_status export_split(sd_cli *cli, const sd_dataset *d, const char *folder, uint64_t count, sodet_err *err)
{
    export e = {.folder = folder};
    sodet_sample *s = NULL;
    uint64_t size = sd_dataset_size(d), n = count && count < size ? count : size;
    cli->started = true;
    sodet_status status = sd_make_folders(folder, err);
    if (status == SODET_OK)
        status = sd_sample_new(d, &s, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++)
        status = write_sample(&e, d, i, s, err);
    if (status == SODET_OK)
        status = write_annotations(&e, sd_dataset_classes(d), err);
    if (status == SODET_OK)
        printf("%s: %llu pictures, %llu objects, annotations.json\n", folder, (unsigned long long)n, (unsigned long long)e.n_objects);
    sd_sample_free(s);
    sd_text_free(&e.images);
    sd_text_free(&e.annotations);
    return status;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    if (cli->n_files != 1 || strcmp(cli->files[0], "export") != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: expected `sodet data export x.ini --output FOLDER`",
                          cli->n_files ? cli->files[0] : "");
    const char *folder = sd_cli_flag(cli, "--output"), *split = sd_cli_flag(cli, "--split");
    if (!folder)
        return SODET_FAIL(err, SODET_E_INVALID, "data export: --output FOLDER is missing: where the pictures are to be written");
    bool train = split && strcmp(split, "train") == 0;
    if (split && !train && strcmp(split, "val") != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data export: --split %s: expected train or val", split);
    uint64_t count;
    sd_config *cfg = NULL;
    sd_split set = {0};
    sodet_status status = sd_cli_flag_uint(cli, "--count", 1, 0, &count, err);
    if (status == SODET_OK)
        status = sd_cli_config(cli, &cfg, err);
    if (status == SODET_OK)
        status = sd_split_open(cfg, train ? SD_SPLIT_TRAIN : SD_SPLIT_VAL, NULL, 0, &set, err);
    if (status == SODET_OK)
        status = export_split(cli, set.dataset, folder, count, err);
    sd_split_close(&set);
    sd_config_close(cfg);
    return status;
}

static const sd_flag flags[] = {
    {"--output", "FOLDER", "where pictures and annotations.json are written"},
    {"--split", "train|val", "which of [data]'s sets (val)"},
    {"--count", "N", "the first N samples (all)"},
    {NULL, NULL, NULL},
};
extern const sd_command sd_cmd_data;
const sd_command sd_cmd_data = {
    .name = "data",
    .synopsis = "export x.ini [section.key=value ...] --output FOLDER [--split train|val] [--count N]",
    .summary = "writes a data set's pictures and boxes for other programs",
    .help = "Pictures are written as PNG, before the transforms, boxes as a COCO annotation file.",
    .takes = SD_TAKES_INI | SD_NEEDS_INI | SD_TAKES_FILES,
    .flags = flags,
    .run = run,
};
