/* sodet data: what a configuration's data sets hold. Verbs that are more than a page have files of their own (data.h). Here: `data draw`
 * writes pictures with their boxes as the network gets them, behind the transforms; `data export` writes pictures and a COCO annotation
 * file, so that other programs see exactly what sodet sees (before the transforms). */
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
        sd_data_object_name(classes, o, name);
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

/* ---- the verbs ---- */

static sodet_status with_set(sd_cli *cli, bool draw, sodet_err *err)
{
    const char *folder = sd_cli_flag(cli, "--output");
    uint64_t count;
    uint32_t which;
    sd_config *cfg = NULL;
    sd_split set = {0};
    sodet_status status = sd_data_which(cli, SD_SPLIT_VAL, &which, err);
    if (status == SODET_OK)
        status = sd_cli_flag_uint(cli, "--count", 1, 0, &count, err);
    if (status == SODET_OK)
        status = sd_cli_config(cli, &cfg, err);
    if (status == SODET_OK)
        status = sd_split_open(cfg, which, NULL, 0, &set, err);
    if (status == SODET_OK)
        status = draw ? draw_split(cli, cfg, &set, which, folder, count, err) : export_split(cli, set.dataset, folder, count, err);
    sd_split_close(&set);
    sd_config_close(cfg);
    return status;
}

static sodet_status draw(sd_cli *cli, sodet_err *err)
{
    return with_set(cli, true, err);
}

static sodet_status export(sd_cli *cli, sodet_err *err)
{
    return with_set(cli, false, err);
}

enum { NEEDS_FOLDER = 1 /* --output */, KNOWS_JSON = 2, TAKES_FOLDER = 4 /* an argument, in the place of an INI */ };
static const struct verb {
    const char *name, *usage;
    uint32_t how;
    sodet_status (*run)(sd_cli *cli, sodet_err *err);
} verbs[] = {
    {"check", "x.ini", KNOWS_JSON, sd_data_check},
    {"stats", "x.ini", KNOWS_JSON, sd_data_stats},
    {"anchors", "x.ini", KNOWS_JSON, sd_data_anchors},
    {"show", "x.ini", 0, sd_data_show},
    {"draw", "x.ini --output FOLDER", NEEDS_FOLDER, draw},
    {"export", "x.ini --output FOLDER", NEEDS_FOLDER, export},
    {"convert", "x.ini --to LAYOUT --output FOLDER", NEEDS_FOLDER, sd_data_convert},
    {"adopt", "FOLDER", TAKES_FOLDER, sd_data_adopt},
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void words(sd_text *out)
{
    for (int i = 0; i < N_VERBS; i++)
        sd_text_printf(out, "%s%s", i ? " " : "", verbs[i].name);
}

static sodet_status refuse(const sd_cli *cli, sodet_err *err)
{
    char usage[480] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < N_VERBS && at < sizeof usage; i++)
        at += (size_t)snprintf(usage + at, sizeof usage - at, "%s`sodet data %s %s`", i ? ", " : "", verbs[i].name, verbs[i].usage);
    return SODET_FAIL(err, SODET_E_INVALID, "data %s: expected %s", cli->n_files ? cli->files[0] : "", usage);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    const struct verb *v = verbs;
    while (v < verbs + N_VERBS && (!cli->n_files || strcmp(cli->files[0], v->name) != 0))
        v++;
    bool folder = v < verbs + N_VERBS && v->how & TAKES_FOLDER;
    if (folder && cli->n_files == 2 && !cli->ini)
        return v->run(cli, err);
    if (folder)
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: %s usage: sodet data %s %s", v->name,
                          cli->ini            ? "takes a folder of pictures and labels, no configuration;"
                          : cli->n_files == 1 ? "which folder of pictures and labels?"
                                              : "one folder at a time;",
                          v->name, v->usage);
    if (!cli->ini && cli->n_overrides == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data: which configuration? usage: sodet data %s", cli->command->synopsis);
    if (v == verbs + N_VERBS || cli->n_files != 1)
        return refuse(cli, err);
    if (v->how & NEEDS_FOLDER && !sd_cli_flag(cli, "--output"))
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: --output FOLDER is missing: where the pictures are to be written", v->name);
    if (cli->json && !(v->how & KNOWS_JSON))
        return SODET_FAIL(err, SODET_E_INVALID, "data %s: reports no figures, so leave out --json", v->name);
    return v->run(cli, err);
}

static const sd_flag flags[] = {
    {"--output", "FOLDER", "draw, export, convert: where pictures and annotations are written"},
    {"--split", "train|val", "which of [data]'s sets (check, stats, convert: both; anchors, show: train; else val)"},
    {"--examples", "N", "check: how many of each kind of finding are shown (5)"},
    {"--out", sd_written_file, "stats: a picture of the figures, FILE.png; show: where the sheet is written (show.png)"},
    {"--anchors", NULL, "show: also the anchors that each box is matched with"},
    {"--clusters", "K", "anchors: typical shapes of boxes that are shown (9)"},
    {"--count", "N", "draw, export: the first N samples (all); show: N from all over the set (16)"},
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
    .synopsis = "check|stats|anchors|show|draw|export|convert x.ini [section.key=value ...] [--split train|val] [--output FOLDER] [...]\n"
                "       sodet data adopt FOLDER [--output x.ini] [--share 0.2] [--split-seed N] [--layout NAME]",
    .summary = "looks at a data set, or writes its pictures and boxes for other programs",
    .help =
        "adopt recognises the layout of a folder of pictures and labels, splits it if it has no split, and writes an INI that trains "
        "TinySSD on it.\n"
        "check reads every annotation and decodes every picture of [data] train and val, and lists what is wrong or odd by kind: how "
        "often,\n"
        "the first examples, and what to do. Errors (exit code 1): files that are missing or damaged, boxes without area or outside their\n"
        "picture, sizes that differ, unknown classes, one file twice in a set, one content in both sets. Notes: boxes over the edge, tiny "
        "or\n"
        "very long ones, the same box or content twice, empty pictures, classes without objects, similar class names, EXIF orientations.\n"
        "What [data] bad_files = skip, unknown_class = skip or bad_boxes = drop leaves out on purpose is a note too.\n"
        "stats counts: pictures, boxes, boxes and pictures of each class, boxes in a picture, sizes in the network's input (behind the "
        "chain\n"
        "of [transform] val) and by COCO's bounds, shapes; --out FILE.png draws it. No picture is decoded.\n"
        "anchors lays the head's anchors on the boxes as the network's input has them (behind the chain of [transform] val): by class, "
        "the\n"
        "largest IoU that a box has with an anchor, how many stay below [head] positive_iou, how many the matching leaves without any, "
        "and\n"
        "how many anchors a box has. Then the boxes' typical shapes by k-means, and values for the head's own options made of such, with\n"
        "what they would do on the same boxes. data.train_limit=5000 is enough to see it in a large set.\n"
        "show writes one picture, a sheet of samples as they come out of the transforms, with boxes and class names; with --anchors also "
        "the\n"
        "anchors that the head's matching gives each box, and their number behind its name: a box with 0 is not learnt.\n"
        "draw writes pictures with their boxes as they come out of the transforms of [transform] train or val.\n"
        "export writes pictures as PNG, before the transforms, and the boxes as a COCO annotation file.\n"
        "convert writes the sets in the layout of voc, coco, yolo or csv: picture files as they are, boxes that read back equal, and a "
        "data.ini.\n"
        "What the layout cannot hold (crowds, difficult objects) is counted and said; a name that it cannot hold (a line break in a CSV "
        "file,\n"
        "say) is refused. Of a conversion that fails nothing is left.\n"
        "--json of check: {\"sets\": [{\"name\", \"pictures\", \"decoded\", \"broken\", \"objects\", \"classes\": {name: objects}}],\n"
        "\"findings\": [{\"kind\", \"error\", \"count\", \"what\", \"remedy\", \"examples\": [{\"set\", \"file\", \"object\", \"class\",\n"
        "\"value\", \"expected\"}]}], \"errors\", \"notes\"}\n"
        "--json of stats: {\"shares\", \"outside\", \"unread\", \"sets\": [{\"name\", \"pictures\", \"empty\", \"boxes\", \"difficult\", "
        "\"crowd\",\n"
        "\"classes\": {name: {\"boxes\", \"pictures\", \"median_side\", \"input\": S}}, \"sizes\": {\"picture\": S, \"input\": S},\n"
        "\"boxes_per_picture\", \"side\", \"ratio\": {\"quantiles\" (at shares), \"edges\", \"counts\"}}]}, S = {\"small\", \"medium\", "
        "\"large\"}\n"
        "--json of anchors: {\"set\", \"pictures\", \"width\", \"height\", \"anchors\", \"threshold\", \"all\": C, \"classes\": {name: "
        "C},\n"
        "\"cluster_iou\", \"clusters\": [{\"width\", \"height\", \"boxes\", \"iou\"}], \"suggested\": {\"better\", \"head\": {key: value}, "
        "\"all\": C}}\n"
        "with C = {\"boxes\", \"mean_iou\", \"below\", \"without\", \"anchors\", \"histogram\": [10]}",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .words = words,
    .run = run,
};
