/* sodet detect: a trained network on pictures, or on raw frames from a pipe. What becomes of the detections is found.c's part. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/api/pictures.h"
#include "core/cli/found.h"
#include "core/cli/inputs.h"
#include "core/cli/trained.h"
#include "core/config/value.h"
#include "core/data/recipe.h"

typedef struct frames { /* rgb24 from the standard input, `width` 0: none */
    uint32_t width, height, batch;
    uint8_t *rgb;   /* [batch][height][width][3] */
    uint64_t first; /* number of the batch's first, from 1 */
} frames;

typedef struct detect {
    sd_cli *cli;
    sd_found found;
    sd_inputs in;
    const char **drawn;         /* [in.n] where each is drawn */
    const sd_dataset *pictures; /* in.files */
    sodet_sample *again;        /* of a picture that could not be read, for its message */
    uint64_t next;              /* the first picture nothing has been said about */
    frames frames;
} detect;

/* ---- names ---- */
/* a/1.jpg and b/1.jpg, typed, or 1.jpg and 1.png: numbers in front. */
static sodet_status make_drawn(detect *d, sodet_err *err)
{
    sd_cli *cli = d->cli;
    const char *folder = d->found.draw;
    bool twice = false;
    d->drawn = sd_pool_alloc(&cli->pool, (size_t)(d->in.n + 1) * sizeof *d->drawn);
    if (!d->drawn)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (int numbered = 0; folder && numbered < 2; numbered++) {
        for (uint64_t i = 0; i < d->in.n; i++) {
            const char *stem = d->in.files[i].stem;
            d->drawn[i] = numbered ? sd_pool_printf(&cli->pool, "%s/%06llu_%s.png", folder, (unsigned long long)(i + 1), sd_base_name(stem))
                                   : sd_pool_printf(&cli->pool, "%s/%s.png", folder, stem);
            if (!d->drawn[i])
                return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
        }
        sodet_status s = sd_names_twice(d->drawn, d->in.n, &twice, err);
        if (s != SODET_OK || !twice)
            return s;
    }
    return SODET_OK;
}

/* Whether the folder is the one that the file lies in. */
static bool lies_in(const char *path, const char *folder)
{
    char up[4096];
    struct stat a, b;
    snprintf(up, sizeof up, "%.*s.", (int)(sd_base_name(path) - path), path);
    return stat(folder, &a) == 0 && stat(up, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Files that would replace a picture are found before the first is opened. */
static sodet_status check_files(const detect *d, sodet_err *err)
{
    for (uint64_t i = 0; i < d->in.n; i++) {
        struct stat in, drawn;
        const char *path = d->in.files[i].path;
        if (d->found.draw && stat(path, &in) == 0 && stat(d->drawn[i], &drawn) == 0 && drawn.st_dev == in.st_dev &&
            drawn.st_ino == in.st_ino)
            return SODET_FAIL(err, SODET_E_INVALID, "--draw %s: the drawing would replace the picture %s; name another folder",
                              d->found.draw, path);
        if (d->found.crop && lies_in(path, d->found.crop))
            return SODET_FAIL(err, SODET_E_INVALID, "--crop %s: the picture %s lies there; name another folder", d->found.crop, path);
    }
    return SODET_OK;
}

/* ---- pictures ---- */
/* One that could not be read: said when its turn is over, with the reason, which is found by trying again. */
static void say_broken(detect *d, uint64_t i)
{
    const sd_input_file *file = &d->in.files[i];
    sodet_err why = SODET_ERR_INIT;
    if (sd_dataset_load(d->pictures, i, d->again, &why) == SODET_OK)
        snprintf(why.text, sizeof why.text, "%s: could not be read, but can be now", file->path);
    sd_cli_progress(d->cli, 0, 0);
    sd_found_broken(&d->found, file->shown, why.text);
}

static sodet_status put_picture(void *context, const sd_batch_item *item, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    detect *d = context;
    uint64_t i = item->sample;
    while (d->next < i)
        say_broken(d, d->next++);
    d->next++;
    const sd_input_file *file = &d->in.files[i];
    const sd_found_picture p = {.number = i + 1,
                                .file = file->shown,
                                .name = file->name,
                                .stem = file->stem,
                                .path = file->path,
                                .drawn = d->drawn[i],
                                .width = item->original_width,
                                .height = item->original_height};
    if (d->found.form != SD_FOUND_JSON)
        sd_cli_progress(d->cli, 0, 0);
    return sd_found_put(&d->found, &p, x, n, err);
}

static bool progress(void *context, const sd_infer_stats *s)
{
    sd_cli_progress(((detect *)context)->cli, s->done, s->of);
    return true;
}

static sodet_status detect_pictures(detect *d, sd_config *cfg, const sd_trained *net, uint64_t batch, double *seconds, sodet_err *err)
{
    sd_split chain = {0};
    sd_dataset *pictures = NULL;
    sd_data_rules rules;
    sd_infer_stats stats = {0};
    const char **paths = sd_pool_alloc(&d->cli->pool, (size_t)(d->in.n + 1) * sizeof *paths);
    sodet_status s = paths ? sd_split_open_links(cfg, SD_SPLIT_VAL, &chain, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint64_t i = 0; paths && i < d->in.n; i++)
        paths[i] = d->in.files[i].path;
    sd_data_rules_init(&rules);
    rules.bad_file = SD_SKIP;
    if (s == SODET_OK)
        s = sd_dataset_of_files(paths, d->in.n, net->classes.names, net->classes.n, &rules, &pictures, err);
    if (s == SODET_OK)
        s = sd_sample_new(pictures, &d->again, err);
    if (s == SODET_OK)
        s = sd_found_begin(&d->found, err);
    d->cli->started = s == SODET_OK;
    if (s == SODET_OK) {
        sd_loader_config loader = sd_split_loader(cfg, &chain, SD_SPLIT_VAL);
        loader.dataset = d->pictures = pictures;
        loader.batch = (uint32_t)(batch ? batch : sd_device_pool_count(net->pool));
        s = sd_infer_run(net->infer, &loader, put_picture, progress, d, &stats, err);
    }
    while (s == SODET_OK && d->next < d->in.n)
        say_broken(d, d->next++);
    *seconds = stats.seconds;
    sd_sample_free(d->again);
    sd_dataset_close(pictures);
    sd_split_close(&chain);
    return s;
}

/* ---- frames ---- */
static sodet_status put_frame(void *context, const sd_batch_item *item, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    detect *d = context;
    const frames *f = &d->frames;
    char name[40], drawn[4096];
    snprintf(name, sizeof name, "frame-%06llu", (unsigned long long)(f->first + item->sample));
    if (d->found.draw && snprintf(drawn, sizeof drawn, "%s/%s.png", d->found.draw, name) >= (int)sizeof drawn)
        return SODET_FAIL(err, SODET_E_INVALID, "--draw %.200s...: path too long", d->found.draw);
    const sd_found_picture p = {.number = f->first + item->sample,
                                .file = name,
                                .name = name,
                                .stem = name,
                                .drawn = drawn,
                                .rgb = f->rgb + (size_t)item->sample * f->width * f->height * 3,
                                .width = f->width,
                                .height = f->height};
    return sd_found_put(&d->found, &p, x, n, err);
}

/* Fewer bytes than asked for: the end. */
static sodet_status read_input(uint8_t *to, size_t want, size_t *got, sodet_err *err)
{
    *got = 0;
    while (*got < want) {
        ssize_t n = read(STDIN_FILENO, to + *got, want - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return SODET_FAIL(err, SODET_E_IO, "the standard input: reading: %s", strerror(errno));
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return SODET_OK;
}

static sodet_status run_frames(detect *d, sd_pictures *pictures, sodet_err *err)
{
    frames *f = &d->frames;
    size_t frame = (size_t)f->width * f->height * 3, got = frame * f->batch;
    sodet_picture *p = sd_pool_alloc(&d->cli->pool, f->batch * sizeof *p);
    const sodet_picture **list = sd_pool_alloc(&d->cli->pool, f->batch * sizeof *list);
    f->rgb = sd_alloc(f->batch, frame);
    if (!p || !list || !f->rgb)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %u frames of %ux%u", f->batch, f->width, f->height);
    sodet_status s = SODET_OK;
    for (f->first = 1; s == SODET_OK && got == frame * f->batch;) {
        s = read_input(f->rgb, frame * f->batch, &got, err);
        uint32_t n = (uint32_t)(got / frame);
        for (uint32_t i = 0; i < n; i++) {
            p[i] = (sodet_picture)SODET_PICTURE_INIT;
            p[i].rgb = f->rgb + i * frame;
            p[i].width = f->width;
            p[i].height = f->height;
            list[i] = &p[i];
        }
        if (s == SODET_OK && n)
            s = sd_pictures_run(pictures, list, n, put_frame, d, err);
        f->first += n;
        if (d->found.form != SD_FOUND_JSON)
            fflush(stdout); /* who reads along sees every frame at once */
    }
    if (s == SODET_OK && f->first == 1 && got == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "the standard input ended before the first frame");
    if (s == SODET_OK && got % frame) {
        char name[40], why[200];
        snprintf(name, sizeof name, "frame-%06llu", (unsigned long long)f->first);
        snprintf(why, sizeof why, "%s: the input ended after %zu of its %zu bytes; is --size %ux%u what the pipe sends, as rgb24?", name,
                 got % frame, frame, f->width, f->height);
        sd_found_broken(&d->found, name, why);
    }
    return s;
}

static sodet_status detect_frames(detect *d, sd_config *cfg, const sd_trained *net, uint64_t batch, double *seconds, sodet_err *err)
{
    sd_pictures *pictures = NULL;
    d->frames.batch = (uint32_t)(batch ? batch : sd_device_pool_count(net->pool));
    sodet_status s = sd_pictures_open(cfg, net, &pictures, err);
    if (s == SODET_OK)
        s = sd_pictures_warm_up(pictures, d->frames.width, d->frames.height, d->frames.batch, err);
    if (s == SODET_OK)
        s = sd_found_begin(&d->found, err);
    d->cli->started = s == SODET_OK;
    double begin = sd_now();
    if (s == SODET_OK)
        s = run_frames(d, pictures, err);
    *seconds = sd_now() - begin;
    sd_pictures_close(pictures);
    sd_free(d->frames.rgb);
    return s;
}

/* ---- the request ---- */
/* "-" among the files, with --size. */
static sodet_status parse_frames(detect *d, sodet_err *err)
{
    const sd_cli *cli = d->cli;
    const char *size = sd_cli_flag(cli, "--size");
    bool pipe = false;
    for (uint64_t i = 0; i < cli->n_files; i++)
        pipe = pipe || strcmp(cli->files[i], "-") == 0;
    if (!pipe)
        return size ? SODET_FAIL(err, SODET_E_INVALID, "--size %s is for frames from a pipe: write - instead of pictures", size) : SODET_OK;
    if (cli->n_files > 1)
        return SODET_FAIL(err, SODET_E_INVALID, "-: frames from a pipe and pictures cannot be mixed; run the command for each");
    if (!size)
        return SODET_FAIL(err, SODET_E_INVALID, "-: raw frames do not say how large they are; add --size WxH");
    const sodet_opt row = {.name = "--size", .type = SODET_T_SIZE, .min = 1, .max = 65535};
    char why[400];
    sodet_size2d wanted;
    if (!sd_value_parse(&d->cli->pool, &row, size, NULL, &wanted, why))
        return SODET_FAIL(err, SODET_E_INVALID, "--size %s %s", size, why);
    if (isatty(STDIN_FILENO))
        return SODET_FAIL(err, SODET_E_INVALID,
                          "-: the standard input is a terminal; frames come through a pipe: ffmpeg -i x.mp4 -f rawvideo -pix_fmt rgb24 - | "
                          "sodet detect ... - --size %s",
                          size);
    d->frames.width = wanted.width;
    d->frames.height = wanted.height;
    return SODET_OK;
}

static sodet_status parse(detect *d, uint64_t *batch, sodet_err *err)
{
    sd_cli *cli = d->cli;
    const char *threshold = sd_cli_flag(cli, "--threshold");
    sd_found *f = &d->found;
    f->draw = sd_cli_flag(cli, "--draw");
    f->crop = sd_cli_flag(cli, "--crop");
    f->out = sd_cli_flag(cli, "--out");
    f->form = cli->json ? SD_FOUND_JSON : sd_cli_flag(cli, "--csv") ? SD_FOUND_CSV : SD_FOUND_LINES;
    f->threshold = 0.5;
    if (threshold && (!sd_parse_double(threshold, &f->threshold) || f->threshold < 0 || f->threshold > 1))
        return SODET_FAIL(err, SODET_E_INVALID, "--threshold %s: a score from 0 to 1 is needed", threshold);
    if (cli->json && sd_cli_flag(cli, "--csv"))
        return SODET_FAIL(err, SODET_E_INVALID, "--csv and --json: one form at a time goes to the standard output");
    if (!cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID, "which pictures? usage: sodet detect %s", cli->command->synopsis);
    sodet_status s = sd_cli_flag_uint(cli, "--batch", 1, 0, batch, err);
    if (s == SODET_OK && *batch > 65536)
        s = SODET_FAIL(err, SODET_E_INVALID, "--batch %llu: at most 65536 pictures go through the network at once",
                       (unsigned long long)*batch);
    if (s == SODET_OK)
        s = sd_cli_check_out(f->out, err);
    if (s == SODET_OK)
        s = parse_frames(d, err);
    if (s != SODET_OK || d->frames.width)
        return s;
    s = sd_inputs_find(cli, &d->in, err);
    if (s == SODET_OK)
        s = make_drawn(d, err);
    return s == SODET_OK ? check_files(d, err) : s;
}

static sodet_status conclude(detect *d, const char *weights, double seconds, sodet_err *err)
{
    const sd_found *f = &d->found;
    sd_cli_progress(d->cli, 0, 0);
    sodet_status s = sd_found_end(&d->found, weights, seconds, err);
    if (s != SODET_OK)
        return s;
    if (!d->cli->quiet)
        fprintf(stderr, "%llu pictures, %llu objects at %g or more, %.2f s%s%s%s%s\n", (unsigned long long)f->pictures,
                (unsigned long long)f->objects, f->threshold, seconds, f->draw ? "; drawn in " : "", f->draw ? f->draw : "",
                f->crop ? "; cut out in " : "", f->crop ? f->crop : "");
    return f->broken ? SODET_FAIL(err, SODET_E_INVALID, "%llu of %llu pictures could not be read", (unsigned long long)f->broken,
                                  (unsigned long long)(f->pictures + f->broken))
                     : SODET_OK;
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    detect d = {.cli = cli};
    sd_config *cfg = NULL;
    sd_trained net = {0};
    uint64_t batch = 0;
    double seconds = 0;
    const char *weights = sd_cli_take_weights(cli);
    if (!weights && !cli->ini && cli->n_files)
        return SODET_FAIL(err, SODET_E_INVALID, "which weights? %s: %s; they come first: a checkpoint (.safetensors) or a run's folder",
                          cli->files[0], sd_path_exists(cli->files[0]) ? "is no checkpoint" : "no such file or folder");
    if (!weights)
        return SODET_FAIL(err, SODET_E_INVALID, "which weights? usage: sodet detect %s", cli->command->synopsis);
    for (uint64_t i = 0; i < cli->n_overrides; i++)
        if (strncmp(cli->overrides[i].text, "data.classes=", 13) == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: the classes are those that %s was trained with; leave it out",
                              cli->overrides[i].text, weights);
    sodet_status s = parse(&d, &batch, err);
    if (s == SODET_OK)
        s = sd_cli_open_trained(cli, weights, NULL, &cfg, &net, err);
    d.found.classes = &net.classes;
    if (s == SODET_OK)
        s = d.frames.width ? detect_frames(&d, cfg, &net, batch, &seconds, err) : detect_pictures(&d, cfg, &net, batch, &seconds, err);
    if (s == SODET_OK)
        s = conclude(&d, weights, seconds, err);
    sd_found_free(&d.found);
    sd_inputs_free(&d.in);
    sd_trained_close(&net);
    sd_config_close(cfg);
    return s;
}

static const sd_flag flags[] = {
    {"--weights", "FILE", "checkpoint, where the first argument is an INI or the file does not end in .safetensors"},
    {"--threshold", "SCORE", "what has at least this score counts as found (0.5)"},
    {"--csv", NULL, "comma-separated: file,label,name,score,x1,y1,x2,y2"},
    {"--draw", "DIR", "write a PNG of every picture with what was found drawn in"},
    {"--crop", "DIR", "write a PNG of everything that was found, cut out"},
    {"--out", sd_written_file, "write everything as a COCO result file with its images and categories"},
    {"--size", "WxH", "of the raw frames that - reads"},
    {"--batch", "N", "pictures per pass (one per device)"},
    {0}};
const sd_command sd_cmd_detect;
const sd_command sd_cmd_detect = {
    .name = "detect",
    .synopsis =
        "best.safetensors|runs/x picture|folder|list.txt|- ... [--threshold S] [--csv|--json] [--draw DIR] [--crop DIR] [--out FILE] | "
        "x.ini --weights FILE ...",
    .summary = "finds objects in pictures, folders of them, or frames from a pipe",
    .help =
        "A run's folder stands for its best.safetensors. Without an INI the checkpoint's own configuration counts; section.key=value "
        "still\n"
        "overrides it. Prints one line per object: picture, class, score, x1 y1 x2 y2, separated by tabs; the box is in pixels of the\n"
        "picture, turned upright. A picture that cannot be read is named on the error stream, the others are done, and the exit code is "
        "1.\n"
        "\n"
        "Pictures are done in the order in which they are given. A folder stands for the .jpg .jpeg .png .bmp .ppm .pgm .tga files in it "
        "and\n"
        "below, sorted, called by their paths below it; hidden ones and links to folders are left out. A file that ends in .txt is a list: "
        "one path a "
        "line,\n"
        "relative to the list; blank lines and those that begin with # are skipped. - reads raw frames, three bytes a pixel, which are\n"
        "called frame-000001 and so on:\n"
        "\n"
        "  ffmpeg -i x.mp4 -f rawvideo -pix_fmt rgb24 - | sodet detect best.safetensors - --size 640x480\n"
        "\n"
        "--csv: a header, then a line for each object; fields are quoted as in RFC 4180.\n"
        "--json: {\"weights\", \"threshold\", \"seconds\", \"broken\", \"pictures\": [{\"file\", \"width\", \"height\", \"detections\": "
        "[{\"label\", \"name\", \"score\",\n"
        "\"box\": [x1, y1, x2, y2]}]} or {\"file\", \"error\"}]}; bytes of names that are no UTF-8 become \\xNN\n"
        "--draw: DIR/<name>.png, with a folder's own folders; numbers go in front where two pictures have one name. Small pictures are\n"
        "enlarged by a whole factor, so that names can be read.\n"
        "--crop: DIR/<picture's number>-<rank>-<name>-<class>.png, with every pixel that the box touches.\n"
        "--out: file_name is the picture's name without its folder, or below the folder that was given (the path where two have one "
        "name),\n"
        "so that `sodet eval --detections FILE` counts it; give --threshold 0 for that.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
