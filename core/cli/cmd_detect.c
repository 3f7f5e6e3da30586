/* Pictures through a trained detector: one JSON object per run on stdout, drawn pictures beside it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli/cli.h"
#include "core/data/draw.h"
#include "core/data/decode.h"
#include "sodet/detector.h"

typedef struct detection_run {
    sd_cli *cli;
    sodet_detector *detector;
    const char *out;  /* folder of the drawn pictures; NULL: none */
    double threshold; /* of what is printed and drawn */
    sd_text json;
    uint64_t shown, broken;
} detection_run;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static sodet_status draw(detection_run *r, const char *path, const sodet_detection *found, uint64_t n, const uint8_t *rgb, uint32_t width,
                         uint32_t height, sodet_err *err)
{
    uint64_t bytes = (uint64_t)width * height * 3;
    uint8_t *copy = sd_alloc((size_t)bytes, 1);
    if (!copy)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a picture of %ux%u", width, height);
    memcpy(copy, rgb, (size_t)bytes);
    sd_canvas canvas = {copy, width, height};
    for (uint64_t i = n; i-- > 0;) { /* the surest on top */
        if (!((double)found[i].score >= r->threshold))
            continue;
        uint32_t label = (uint32_t)found[i].label;
        uint8_t colour[3];
        sd_class_colour(label, sodet_detector_class_count(r->detector), colour);
        sd_draw_object(&canvas, found[i].box, sodet_detector_class(r->detector, label), (double)found[i].score, colour);
    }
    const char *name = base_name(path), *dot = strrchr(name, '.');
    char *to = sd_pool_printf(&r->cli->pool, "%s/%.*s.png", r->out, dot ? (int)(dot - name) : (int)strlen(name), name);
    sodet_status s = to ? sd_png_write(to, copy, width, height, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    sd_free(copy);
    return s;
}

static void add_json(detection_run *r, const char *path, const sodet_detection *found, uint64_t n, uint32_t width, uint32_t height)
{
    sd_text *t = &r->json;
    sd_text_printf(t, "%s\n  {\"file\": ", r->shown ? "," : "");
    sd_json_write_string(t, path);
    sd_text_printf(t, ", \"width\": %u, \"height\": %u, \"detections\": [", width, height);
    bool first = true;
    for (uint64_t i = 0; i < n; i++) {
        const sodet_detection *d = &found[i];
        if (!((double)d->score >= r->threshold))
            continue;
        sd_text_printf(t, "%s\n    {\"class\": ", first ? "" : ",");
        first = false;
        sd_json_write_string(t, sodet_detector_class(r->detector, (uint32_t)d->label));
        sd_text_printf(t, ", \"score\": %.6g, \"box\": [%.6g, %.6g, %.6g, %.6g]}", (double)d->score, (double)d->box.x1, (double)d->box.y1,
                       (double)d->box.x2, (double)d->box.y2);
    }
    sd_text_printf(t, "]}");
}

static sodet_status one_picture(detection_run *r, const char *path, sodet_err *err)
{
    const sodet_detection *found;
    const uint8_t *rgb;
    uint64_t n;
    uint32_t width, height;
    sodet_status s = sodet_detector_run_file(r->detector, path, &found, &n, &rgb, &width, &height, err);
    if (s == SODET_OK && r->out)
        s = draw(r, path, found, n, rgb, width, height, err);
    if (s == SODET_OK) {
        add_json(r, path, found, n, width, height);
        r->shown++;
    }
    return s;
}

/* The first file that is a checkpoint or a run's folder, then pictures. */
static sodet_status open_detector(sd_cli *cli, sodet_detector **out, sodet_err *err)
{
    if (cli->n_files < 2)
        return SODET_FAIL(err, SODET_E_INVALID, "a checkpoint and at least one picture are expected: sodet detect runs/x picture.jpg");
    const char **settings = sd_pool_alloc(&cli->pool, (size_t)(cli->n_overrides + 1) * sizeof *settings);
    if (!settings)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint64_t i = 0; i < cli->n_overrides; i++)
        settings[i] = cli->overrides[i].text;
    sodet_detector_options o = {.struct_size = sizeof o, .n_settings = (uint32_t)cli->n_overrides, .settings = settings};
    return sodet_detector_open(cli->files[0], &o, out, err);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    detection_run r = {.cli = cli, .out = sd_cli_flag(cli, "--out"), .threshold = 0.5};
    const char *threshold = sd_cli_flag(cli, "--threshold");
    if (threshold && (!sd_parse_double(threshold, &r.threshold) || r.threshold < 0 || r.threshold > 1))
        return SODET_FAIL(err, SODET_E_INVALID, "--threshold %s: a score from 0 to 1 is expected", threshold);
    sodet_status s = open_detector(cli, &r.detector, err);
    if (s == SODET_OK && r.out)
        s = sd_make_folders(r.out, err);
    if (s == SODET_OK)
        cli->started = true;
    sd_text_printf(&r.json, "{\"images\": [");
    for (uint64_t i = 1; s == SODET_OK && i < cli->n_files; i++) {
        sodet_err why = SODET_ERR_INIT;
        if (one_picture(&r, cli->files[i], &why) != SODET_OK) {
            fprintf(stderr, "sodet detect: %s%s%s\n", strstr(why.text, cli->files[i]) ? "" : cli->files[i],
                    strstr(why.text, cli->files[i]) ? "" : ": ", why.text);
            r.broken++;
        }
    }
    sd_text_printf(&r.json, "%s]}\n", r.shown ? "\n" : "");
    if (s == SODET_OK && !cli->quiet)
        fputs(r.json.failed ? "" : r.json.text, stdout);
    if (s == SODET_OK && r.broken) /* done in part; each was named */
        cli->exit_code = 1;
    sd_text_free(&r.json);
    sodet_detector_close(r.detector);
    return s;
}

static const sd_flag flags[] = {
    {"--out", "DIR", "draws boxes and writes DIR/<picture>.png"}, {"--threshold", "SCORE", "least score that is shown; 0.5"}, {0}};
const sd_command sd_cmd_detect;
const sd_command sd_cmd_detect = {
    .name = "detect",
    .synopsis = "CHECKPOINT PICTURE ... [--out DIR] [--threshold SCORE] [section.key=value ...]",
    .summary = "finds objects in pictures with a trained detector",
    .help =
        "CHECKPOINT is a file or a run's folder (its best.safetensors). Prints one JSON object: {\"images\": [{\"file\", \"width\", "
        "\"height\",\n"
        "\"detections\": [{\"class\", \"score\", \"box\": [x1, y1, x2, y2]}]}]}, boxes in pixels of the picture, 0-based, end-exclusive.\n"
        "A picture that cannot be read is named on stderr, the others are done, and the exit code is 1.",
    .takes = SD_TAKES_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
