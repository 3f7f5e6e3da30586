/* sodet detect: a trained network on pictures. Boxes as lines or JSON, as a COCO result file, drawn onto copies of the pictures. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/cli/trained.h"
#include "core/data/decode.h"
#include "core/data/draw.h"
#include "core/data/recipe.h"

typedef struct detect {
    sd_cli *cli;
    const sd_trained *net;
    const sd_dataset *pictures;
    sodet_sample *again; /* of a picture that could not be read, for its message */
    double threshold;
    const char *draw, *out;
    const char **names; /* [n_files] of each picture in --out */
    const char **drawn; /* [n_files] where it is drawn */
    uint64_t next;      /* the first picture nothing has been said about */
    uint64_t broken, found;
    sd_text json, images, annotations;
    sd_pixels pixels, turned;
    uint8_t *bytes;
    uint64_t capacity;
} detect;

/* ---- names ---- */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static size_t stem_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - name) : strlen(name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether two of the names are one. */
static bool twice(const char *const *names, uint64_t n, sd_pool *pool)
{
    const char **sorted = sd_pool_alloc(pool, (size_t)(n + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    memcpy(sorted, names, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (uint64_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return true;
    return false;
}

static sodet_status make_names(detect *d, sodet_err *err)
{
    sd_cli *cli = d->cli;
    uint64_t n = cli->n_files;
    d->names = sd_pool_alloc(&cli->pool, (size_t)(n + 1) * sizeof *d->names);
    d->drawn = sd_pool_alloc(&cli->pool, (size_t)(n + 1) * sizeof *d->drawn);
    bool good = d->names && d->drawn;
    for (uint64_t i = 0; good && i < n; i++)
        d->names[i] = base_of(cli->files[i]);
    for (uint64_t i = 0; good && d->draw && i < n; i++) {
        d->drawn[i] = sd_pool_printf(&cli->pool, "%s/%.*s.png", d->draw, (int)stem_of(d->names[i]), d->names[i]);
        good = d->drawn[i] != NULL;
    }
    /* a/1.jpg and b/1.jpg: numbers in front, and whole paths in --out */
    bool same = good && d->draw && twice(d->drawn, n, &cli->pool);
    for (uint64_t i = 0; good && same && i < n; i++) {
        d->drawn[i] =
            sd_pool_printf(&cli->pool, "%s/%06llu_%.*s.png", d->draw, (unsigned long long)(i + 1), (int)stem_of(d->names[i]), d->names[i]);
        good = d->drawn[i] != NULL;
    }
    if (good && twice(d->names, n, &cli->pool))
        memcpy(d->names, cli->files, (size_t)n * sizeof *d->names);
    return good ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
}

/* Missing pictures, and drawings that would replace one, are found before the first is opened. */
static sodet_status check_files(const detect *d, sodet_err *err)
{
    const sd_cli *cli = d->cli;
    for (uint64_t i = 0; i < cli->n_files; i++) {
        struct stat in, drawn;
        if (stat(cli->files[i], &in) != 0)
            return SODET_FAIL(err, SODET_E_IO, "%s: there is no such picture", cli->files[i]);
        if (S_ISDIR(in.st_mode))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: is a folder; name its pictures (%s/*.jpg)", cli->files[i], cli->files[i]);
        if (d->draw && stat(d->drawn[i], &drawn) == 0 && drawn.st_dev == in.st_dev && drawn.st_ino == in.st_ino)
            return SODET_FAIL(err, SODET_E_INVALID, "--draw %s: the drawing would replace the picture %s; name another folder", d->draw,
                              cli->files[i]);
    }
    return SODET_OK;
}

/* ---- results ---- */
static void json_picture(detect *d, uint64_t i)
{
    sd_text_printf(&d->json, "%s{\"file\": ", i ? ",\n  " : "\n  ");
    sd_json_write_string(&d->json, d->cli->files[i]);
}

/* One that could not be read: said when its turn is over, with the reason, which is found by trying again. */
static void say_broken(detect *d, uint64_t i)
{
    sodet_err why = SODET_ERR_INIT;
    if (sd_dataset_load(d->pictures, i, d->again, &why) == SODET_OK)
        snprintf(why.text, sizeof why.text, "%s: could not be read, but can be now", d->cli->files[i]);
    d->broken++;
    sd_cli_progress(d->cli, 0, 0);
    fprintf(stderr, "sodet detect: %s\n", why.text);
    if (!d->cli->json)
        return;
    json_picture(d, i);
    sd_text_printf(&d->json, ", \"error\": ");
    sd_json_write_string(&d->json, why.text);
    sd_text_printf(&d->json, "}");
}

static void say_found(detect *d, uint64_t i, const sd_batch_item *item, const sodet_detection *x, uint64_t n)
{
    const char *file = d->cli->files[i];
    if (d->cli->json) {
        json_picture(d, i);
        sd_text_printf(&d->json, ", \"width\": %u, \"height\": %u, \"detections\": [", item->original_width, item->original_height);
        for (uint64_t k = 0; k < n; k++) {
            sd_text_printf(&d->json, "%s{\"label\": %d, \"name\": ", k ? ", " : "", (int)x[k].label);
            sd_json_write_string(&d->json, d->net->classes.names[x[k].label]);
            sd_text_printf(&d->json, ", \"score\": %.9g, \"box\": [%.9g, %.9g, %.9g, %.9g]}", (double)x[k].score, (double)x[k].box.x1,
                           (double)x[k].box.y1, (double)x[k].box.x2, (double)x[k].box.y2);
        }
        sd_text_printf(&d->json, "]}");
        return;
    }
    sd_cli_progress(d->cli, 0, 0);
    for (uint64_t k = 0; k < n; k++)
        printf("%s\t%s\t%.3f\t%.1f %.1f %.1f %.1f\n", file, d->net->classes.names[x[k].label], (double)x[k].score, (double)x[k].box.x1,
               (double)x[k].box.y1, (double)x[k].box.x2, (double)x[k].box.y2);
    if (n == 0)
        printf("%s\tnothing\n", file);
}

static void write_coco(detect *d, uint64_t i, const sd_batch_item *item, const sodet_detection *x, uint64_t n)
{
    sd_text_printf(&d->images, "%s{\"id\": %llu, \"file_name\": ", d->images.length ? ",\n" : "", (unsigned long long)(i + 1));
    sd_json_write_string(&d->images, d->names[i]);
    sd_text_printf(&d->images, ", \"width\": %u, \"height\": %u}", item->original_width, item->original_height);
    for (uint64_t k = 0; k < n; k++) {
        const sodet_box *b = &x[k].box;
        sd_text_printf(&d->annotations,
                       "%s{\"image_id\": %llu, \"category_id\": %lld, \"bbox\": [%.9g, %.9g, %.9g, %.9g], \"score\": %.9g}",
                       d->annotations.length ? ",\n" : "", (unsigned long long)(i + 1), (long long)d->net->classes.category_id[x[k].label],
                       (double)b->x1, (double)b->y1, (double)b->x2 - (double)b->x1, (double)b->y2 - (double)b->y1, (double)x[k].score);
    }
}

static sodet_status draw(detect *d, uint64_t i, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    const sd_decode_options options = {0};
    sodet_status s = sd_decode_file(d->cli->files[i], &options, &d->bytes, &d->capacity, &d->pixels, &d->turned, err);
    if (s != SODET_OK)
        return s;
    const sd_canvas canvas = {d->pixels.rgb, d->pixels.width, d->pixels.height};
    for (uint64_t k = n; k-- > 0;) { /* the surest on top */
        uint8_t colour[3];
        sd_class_colour((uint32_t)x[k].label, d->net->classes.n, colour);
        sd_draw_object(&canvas, x[k].box, d->net->classes.names[x[k].label], (double)x[k].score, colour);
    }
    return sd_png_write(d->drawn[i], canvas.rgb, canvas.width, canvas.height, err);
}

static sodet_status put(void *context, const sd_batch_item *item, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    detect *d = context;
    uint64_t kept = 0, i = item->sample;
    while (kept < n && (double)x[kept].score >= d->threshold)
        kept++;
    while (d->next < i)
        say_broken(d, d->next++);
    d->next++;
    d->found += kept;
    say_found(d, i, item, x, kept);
    if (d->out)
        write_coco(d, i, item, x, kept);
    return d->draw ? draw(d, i, x, kept, err) : SODET_OK;
}

static void progress(void *context, const sd_infer_stats *s)
{
    sd_cli_progress(((detect *)context)->cli, s->done, s->of);
}

/* ---- the whole ---- */
static sodet_status write_out(detect *d, sodet_err *err)
{
    sd_text t = {0};
    const sd_classes *c = &d->net->classes;
    sd_text_printf(&t, "{\"images\": [\n%s\n],\n\"annotations\": [\n%s\n],\n\"categories\": [", d->images.text ? d->images.text : "",
                   d->annotations.text ? d->annotations.text : "");
    for (uint32_t i = 0; i < c->n; i++) {
        sd_text_printf(&t, "%s{\"id\": %lld, \"name\": ", i ? ", " : "", (long long)c->category_id[i]);
        sd_json_write_string(&t, c->names[i]);
        sd_text_printf(&t, "}");
    }
    sd_text_printf(&t, "]}\n");
    sodet_status s = t.failed || d->images.failed || d->annotations.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", d->out)
                                                                           : sd_file_write_atomic(d->out, t.text, t.length, err);
    sd_text_free(&t);
    return s;
}

static sodet_status print_json(const detect *d, const char *weights, const sd_infer_stats *stats, sodet_err *err)
{
    sd_text t = {0};
    sd_text_printf(&t, "{\"weights\": ");
    sd_json_write_string(&t, weights);
    sd_text_printf(&t, ", \"threshold\": ");
    sd_json_write_double(&t, d->threshold);
    sd_text_printf(&t, ", \"seconds\": ");
    sd_json_write_double(&t, stats->seconds);
    sd_text_printf(&t, ", \"broken\": %llu, \"pictures\": [%s\n]}\n", (unsigned long long)d->broken, d->json.text ? d->json.text : "");
    sodet_status s = t.failed || d->json.failed ? SODET_FAIL(err, SODET_E_MEMORY, "out of memory") : SODET_OK;
    if (s == SODET_OK)
        fputs(t.text, stdout);
    sd_text_free(&t);
    return s;
}

static sodet_status detect_all(detect *d, const char *weights, const sd_loader_config *loader, sodet_err *err)
{
    sd_infer_stats stats;
    sodet_status s = d->draw ? sd_make_folders(d->draw, err) : SODET_OK;
    d->cli->started = s == SODET_OK;
    if (s == SODET_OK)
        s = sd_infer_run(d->net->infer, loader, put, progress, d, &stats, err);
    while (s == SODET_OK && d->next < d->cli->n_files)
        say_broken(d, d->next++);
    sd_cli_progress(d->cli, 0, 0);
    if (s == SODET_OK && d->out)
        s = write_out(d, err);
    if (s == SODET_OK && d->cli->json)
        s = print_json(d, weights, &stats, err);
    if (s != SODET_OK)
        return s;
    if (!d->cli->quiet)
        fprintf(stderr, "%llu pictures, %llu objects at %g or more, %.2f s%s%s\n", (unsigned long long)(d->cli->n_files - d->broken),
                (unsigned long long)d->found, d->threshold, stats.seconds, d->draw ? "; drawn in " : "", d->draw ? d->draw : "");
    return d->broken ? SODET_FAIL(err, SODET_E_INVALID, "%llu of %llu pictures could not be read", (unsigned long long)d->broken,
                                  (unsigned long long)d->cli->n_files)
                     : SODET_OK;
}

static sodet_status parse(detect *d, uint64_t *batch, sodet_err *err)
{
    const char *threshold = sd_cli_flag(d->cli, "--threshold");
    d->draw = sd_cli_flag(d->cli, "--draw");
    d->out = sd_cli_flag(d->cli, "--out");
    d->threshold = 0.5;
    if (threshold && (!sd_parse_double(threshold, &d->threshold) || d->threshold < 0 || d->threshold > 1))
        return SODET_FAIL(err, SODET_E_INVALID, "--threshold %s: a score from 0 to 1 is needed", threshold);
    if (!d->cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID, "which pictures? usage: sodet detect %s", d->cli->command->synopsis);
    sodet_status s = sd_cli_flag_uint(d->cli, "--batch", 1, 0, batch, err);
    if (s == SODET_OK)
        s = sd_cli_check_out(d->out, err);
    if (s == SODET_OK)
        s = make_names(d, err);
    return s == SODET_OK ? check_files(d, err) : s;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    detect d = {.cli = cli};
    sd_config *cfg = NULL;
    sd_trained net = {0};
    sd_split chain = {0};
    sd_dataset *pictures = NULL;
    uint64_t batch = 0;
    const char *weights = sd_cli_take_weights(cli);
    if (!weights)
        return SODET_FAIL(err, SODET_E_INVALID, "which weights? usage: sodet detect %s", cli->command->synopsis);
    sodet_status s = parse(&d, &batch, err);
    if (s == SODET_OK)
        s = sd_cli_open_trained(cli, weights, NULL, &cfg, &net, err);
    if (s == SODET_OK)
        s = sd_split_open_links(cfg, SD_SPLIT_VAL, &chain, err);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_file = SD_SKIP;
    if (s == SODET_OK)
        s = sd_dataset_of_files(cli->files, cli->n_files, net.classes.names, net.classes.n, &rules, &pictures, err);
    if (s == SODET_OK)
        s = sd_sample_new(pictures, &d.again, err);
    if (s == SODET_OK) {
        sd_loader_config loader = sd_split_loader(cfg, &chain, SD_SPLIT_VAL);
        loader.dataset = pictures;
        uint64_t devices = sd_device_pool_count(net.pool);
        loader.batch = (uint32_t)(batch ? batch : devices);
        d.net = &net;
        d.pictures = pictures;
        s = detect_all(&d, weights, &loader, err);
    }
    sd_sample_free(d.again);
    sd_dataset_close(pictures);
    sd_split_close(&chain);
    sd_trained_close(&net);
    sd_config_close(cfg);
    sd_pixels_free(&d.pixels);
    sd_pixels_free(&d.turned);
    sd_free(d.bytes);
    sd_text_free(&d.json);
    sd_text_free(&d.images);
    sd_text_free(&d.annotations);
    return s;
}

static const sd_flag flags[] = {
    {"--weights", "FILE", "checkpoint, where the first argument is an INI or the file does not end in .safetensors"},
    {"--threshold", "SCORE", "what has at least this score counts as found (0.5)"},
    {"--draw", "DIR", "write a PNG of every picture with what was found drawn in"},
    {"--out", "FILE", "write everything as a COCO result file with its images and categories"},
    {"--batch", "N", "pictures per pass (one per device)"},
    {0}};
const sd_command sd_cmd_detect;
const sd_command sd_cmd_detect = {
    .name = "detect",
    .synopsis =
        "best.safetensors|runs/x pictures ... [--threshold S] [--draw DIR] [--out FILE] [--json] | x.ini --weights FILE pictures ...",
    .summary = "finds objects in pictures",
    .help =
        "A run's folder stands for its best.safetensors. Without an INI the checkpoint's own configuration counts; section.key=value "
        "still\n"
        "overrides it. Prints one line per object: picture, class, score, x1 y1 x2 y2, separated by tabs; the box is in pixels of the\n"
        "picture, turned upright. A picture that cannot be read is named on the error stream, the others are done, and the exit code is "
        "1.\n"
        "\n"
        "--json: {\"weights\", \"threshold\", \"seconds\", \"broken\", \"pictures\": [{\"file\", \"width\", \"height\", \"detections\": "
        "[{\"label\", \"name\", \"score\",\n"
        "\"box\": [x1, y1, x2, y2]}]} or {\"file\", \"error\"}]}\n"
        "--out: file_name is the picture's name without its folder (the path as given where two have one name), so that `sodet eval\n"
        "--detections FILE` counts it; give --threshold 0 for that.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
