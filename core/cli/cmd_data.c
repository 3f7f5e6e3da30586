/* sodet data: what a configuration's data sets hold. `data check` reads every annotation and decodes every picture; `data draw` writes
 * pictures with their boxes as the network gets them, behind the transforms; `data export` writes pictures and a COCO annotation file, so
 * that other programs see exactly what sodet sees (before the transforms); `data convert` (data_convert.c) writes other layouts. */
#include <stdio.h>
#include <string.h>

#include "core/cli/data.h"
#include "core/data/coco_write.h"
#include "core/data/draw.h"
#include "core/data/pipeline.h"
#include "core/data/recipe.h"

static sodet_status write_sample(sd_coco_text *t, const char *folder, const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sodet_status status = sd_dataset_load(d, i, s, err);
    if (status != SODET_OK)
        return status;
    char name[64], path[4096], number[4][32];
    snprintf(name, sizeof name, "%06llu.png", (unsigned long long)(i + 1));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    status = sd_png_write(path, s->stored.rgb, s->stored.width, s->stored.height, err);
    if (status != SODET_OK)
        return status;
    sd_coco_add_image(t, name, s->stored.width, s->stored.height, sd_dataset_item(d, i)->id);
    for (uint64_t k = 0; k < s->n_objects; k++) {
        const sodet_object *o = &s->objects[k];
        double x = (double)o->box.x1, y = (double)o->box.y1;
        const double values[4] = {x, y, (double)o->box.x2 - x, (double)o->box.y2 - y};
        for (uint32_t c = 0; c < 4; c++)
            snprintf(number[c], sizeof number[c], "%.9g", values[c]);
        const char *const bbox[4] = {number[0], number[1], number[2], number[3]};
        sd_coco_add_object(t, o, bbox, sd_dataset_classes(d));
    }
    return SODET_OK;
}

static sodet_status export_split(sd_cli *cli, const sd_dataset *d, const char *folder, uint64_t count, sodet_err *err)
{
    sd_coco_text t = {0};
    sodet_sample *s = NULL;
    char path[4096];
    uint64_t size = sd_dataset_size(d), n = count && count < size ? count : size;
    cli->started = true;
    sodet_status status = sd_make_folders(folder, err);
    if (status == SODET_OK)
        status = sd_sample_new(d, &s, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++)
        status = write_sample(&t, folder, d, i, s, err);
    snprintf(path, sizeof path, "%s/annotations.json", folder);
    if (status == SODET_OK)
        status = sd_coco_write(&t, path, sd_dataset_classes(d), err);
    if (status == SODET_OK)
        printf("%s: %llu pictures, %llu objects, annotations.json\n", folder, (unsigned long long)n, (unsigned long long)t.n_objects);
    sd_sample_free(s);
    sd_coco_text_free(&t);
    return status;
}

/* Every annotation has been read when the set was opened; here every picture is decoded. Broken ones are listed, the rest goes on. */
static sodet_status check_split(sd_cli *cli, const sd_dataset *d, sodet_err *err)
{
    sd_text report = {0};
    sodet_sample *s = NULL;
    const sd_classes *classes = sd_dataset_classes(d);
    uint64_t broken = 0, differ = 0, n = sd_dataset_size(d);
    cli->started = true;
    sd_dataset_report(d, &report);
    for (uint32_t c = 0; c < classes->n; c++)
        sd_text_printf(&report, "  %-20s %10llu\n", classes->names[c], (unsigned long long)sd_dataset_census(d)->per_class[c]);
    fputs(report.text ? report.text : "", stdout);
    sd_text_free(&report);
    sodet_status status = sd_sample_new(d, &s, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        sodet_err one = SODET_ERR_INIT;
        sodet_status loaded = sd_dataset_load(d, i, s, &one);
        if (loaded == SODET_E_MEMORY) {
            status = SODET_FAIL(err, loaded, "%s", one.text);
        } else if (loaded != SODET_OK) {
            broken++;
            printf("  %s\n", one.text);
        } else if (s->width && s->height && (s->width != s->original_width || s->height != s->original_height)) {
            if (differ++ < 10)
                printf("  %s: the annotation was made for %ux%u, the picture is %ux%u\n", sd_dataset_item(d, i)->id, s->width, s->height,
                       s->original_width, s->original_height);
        }
    }
    if (status == SODET_OK)
        printf("  %llu pictures decoded, %llu broken, %llu of another size than their annotation says\n", (unsigned long long)(n - broken),
               (unsigned long long)broken, (unsigned long long)differ);
    if (broken)
        cli->exit_code = 1;
    sd_sample_free(s);
    return status;
}

static sodet_status draw_sample(const sd_split *set, sd_worker *w, const char *folder, uint64_t i, sd_pixels *canvas, sodet_err *err)
{
    sodet_status status = sd_worker_prepare(w, 0, i, 0, err);
    if (status != SODET_OK)
        return status;
    const sodet_image *image = sodet_sample_image(w->sample);
    const sd_classes *classes = sd_dataset_classes(set->dataset);
    if (!image)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the picture", sd_dataset_item(set->dataset, i)->id);
    status = sd_pixels_size(canvas, image->width, image->height, "data draw", err);
    if (status != SODET_OK)
        return status;
    for (size_t k = 0, n = (size_t)image->width * image->height * 3; k < n; k++) {
        float v = image->pixels[k] + 0.5f;
        canvas->rgb[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    const sd_canvas c = {canvas->rgb, canvas->width, canvas->height};
    for (uint32_t k = 0; k < sodet_sample_object_count(w->sample); k++) {
        const sodet_object *o = sodet_sample_object(w->sample, k);
        char name[120];
        uint8_t rgb[3];
        snprintf(name, sizeof name, "%.80s%s%s", classes->names[o->label], o->flags & SODET_BOX_DIFFICULT ? " (difficult)" : "",
                 o->flags & SODET_BOX_CROWD ? " (crowd)" : "");
        sd_class_colour((uint32_t)o->label, classes->n, rgb);
        sd_draw_object(&c, o->box, name, -1, rgb);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/%06llu.png", folder, (unsigned long long)(i + 1));
    return sd_png_write(path, canvas->rgb, canvas->width, canvas->height, err);
}

static sodet_status draw_split(sd_cli *cli, const sd_config *cfg, const sd_split *set, uint32_t which, const char *folder, uint64_t count,
                               sodet_err *err)
{
    const sd_loader_config config = sd_split_loader(cfg, set, which);
    uint64_t size = sd_dataset_size(set->dataset), n = count && count < size ? count : size;
    sd_worker w;
    sd_pixels canvas = {0};
    sodet_status status = sd_worker_open(&w, &config, err);
    if (status != SODET_OK)
        return status;
    cli->started = true;
    status = sd_make_folders(folder, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++)
        status = draw_sample(set, &w, folder, i, &canvas, err);
    if (status == SODET_OK)
        printf("%s: %llu pictures\n", folder, (unsigned long long)n);
    sd_pixels_free(&canvas);
    sd_worker_close(&w);
    return status;
}

static const char *const verbs[] = {"check", "draw", "export", "convert", "adopt"};
enum { CHECK, DRAW, EXPORT, CONVERT, ADOPT, N_VERBS };

static void words(sd_text *out)
{
    for (int i = 0; i < N_VERBS; i++)
        sd_text_printf(out, "%s%s", i ? " " : "", verbs[i]);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    if (cli->n_files == 2 && strcmp(cli->files[0], verbs[ADOPT]) == 0 && !cli->ini)
        return sd_data_adopt(cli, cli->files[1], err);
    if (!cli->ini && cli->n_overrides == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data: which configuration? usage: sodet data %s", cli->command->synopsis);
    uint32_t verb = 0;
    while (verb < ADOPT && (cli->n_files != 1 || strcmp(cli->files[0], verbs[verb]) != 0))
        verb++;
    if (verb == ADOPT)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "data %s: expected `sodet data check x.ini`, `sodet data draw x.ini --output FOLDER`, `sodet data export x.ini "
                          "--output FOLDER`, `sodet data convert x.ini --to LAYOUT --output FOLDER` or `sodet data adopt FOLDER`",
                          cli->n_files ? cli->files[0] : "");
    const char *folder = sd_cli_flag(cli, "--output"), *split = sd_cli_flag(cli, "--split");
    if (!folder && verb != CHECK)
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: --output FOLDER is missing: where the pictures are to be written", verbs[verb]);
    bool train = split && strcmp(split, "train") == 0;
    if (split && !train && strcmp(split, "val") != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: --split %s: expected train or val", verbs[verb], split);
    if (verb == CONVERT)
        return sd_data_convert(cli, err);
    uint64_t count;
    sd_config *cfg = NULL;
    sd_split set = {0};
    uint32_t which = train ? SD_SPLIT_TRAIN : SD_SPLIT_VAL;
    sodet_status status = sd_cli_flag_uint(cli, "--count", 1, 0, &count, err);
    if (status == SODET_OK)
        status = sd_cli_config(cli, &cfg, err);
    if (status == SODET_OK)
        status = sd_split_open(cfg, which, NULL, 0, &set, err);
    if (status == SODET_OK)
        status = verb == CHECK  ? check_split(cli, set.dataset, err)
                 : verb == DRAW ? draw_split(cli, cfg, &set, which, folder, count, err)
                                : export_split(cli, set.dataset, folder, count, err);
    sd_split_close(&set);
    sd_config_close(cfg);
    return status;
}

static const sd_flag flags[] = {
    {"--output", "FOLDER", "draw, export, convert: where pictures and annotations are written"},
    {"--split", "train|val", "which of [data]'s sets (val; convert: both)"},
    {"--count", "N", "draw, export: the first N samples (all)"},
    {"--to", "voc|coco|yolo|csv", "convert: the layout to write"},
    {"--section", "LABEL", "convert: [dataset.LABEL] in the place of [data]'s sets"},
    {"--share", "X", "adopt: part of the pictures to validate with, where the folder has no split (0.2)"},
    {"--split-seed", "N", "adopt: another seed is another split (1)"},
    {"--layout", "NAME", "adopt: look for this one alone"},
    {"--pictures", "copy|link|leave", "convert: copied, linked to, or named where they are (copy)"},
    {NULL, NULL, NULL},
};
extern const sd_command sd_cmd_data;
const sd_command sd_cmd_data = {
    .name = "data",
    .synopsis = "check|draw|export|convert x.ini [section.key=value ...] [--split train|val] [--output FOLDER] [...]\n"
                "       sodet data adopt FOLDER [--output x.ini] [--share 0.2] [--split-seed N] [--layout NAME]",
    .summary = "looks at a data set, or writes its pictures and boxes for other programs",
    .help =
        "adopt recognises the layout of a folder of pictures and labels, splits it if it has no split, and writes an INI that trains "
        "TinySSD on it.\n"
        "check reads every annotation and decodes every picture: counts, classes, and each file that is broken (exit code 1 if any is).\n"
        "draw writes pictures with their boxes as they come out of the transforms of [transform] train or val.\n"
        "export writes pictures as PNG, before the transforms, and the boxes as a COCO annotation file.\n"
        "convert writes the sets in the layout of voc, coco, yolo or csv: picture files as they are, boxes that read back equal, and a "
        "data.ini.\n"
        "What the layout cannot hold (crowds, difficult objects) is counted and said.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES,
    .flags = flags,
    .words = words,
    .run = run,
};
