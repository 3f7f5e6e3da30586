/* sodet data show: a sheet of samples as the network gets them, behind the transforms, with their boxes and, if asked, the anchors that the
 * head's matching gives each box. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/data.h"
#include "core/cli/trained.h"
#include "core/data/decode.h"
#include "core/data/model_assigner.h"
#include "core/data/pipeline.h"
#include "core/report/shots.h"

enum { SIDE = 384, CAPTION = 12, GAP = 8, COUNT = 16, MOST = 400, COLUMNS_MOST = 8, PAPER = 224 };

static const char SHEET[] = "show.png";

void sd_data_object_name(const sd_classes *classes, const sodet_object *o, char text[120])
{
    snprintf(text, 120, "%.80s%s%s", classes->names[o->label], o->flags & SODET_BOX_DIFFICULT ? " (difficult)" : "",
             o->flags & SODET_BOX_CROWD ? " (crowd)" : "");
}

typedef struct show {
    sd_data_sets sets;
    sd_split *set;
    sd_loader_config config;
    sd_worker worker;
    sd_model *model; /* NULL: no anchors */
    int32_t *index;
    uint64_t index_capacity;
    sd_shot_box *boxes;
    uint64_t n, boxes_capacity;
    sodet_box *truth;     /* of the objects that train */
    int32_t *label, *row; /* row: in truth, -1: the object does not train */
    uint32_t *flags;
    uint64_t capacity[4];
    uint64_t objects, matched; /* of the whole sheet */
    sd_pool names;
    sd_canvas sheet;
    uint32_t columns;
} show;

/* The head's matching, as training does it. */
static sodet_status match(show *s, const sodet_sample *sample, const sd_model_grid **grid, uint32_t *n_truth, sodet_err *err)
{
    uint32_t width = sample->original_width, height = sample->original_height, n = 0;
    uint64_t room = sample->n_objects + 1;
    sd_links_canvas(s->config.links, s->config.n_links, &s->config.input, &width, &height);
    sodet_status status = sd_model_grid_of(s->model, height, width, grid, err);
    if (status == SODET_OK)
        status = sd_grow(&s->index, &s->index_capacity, (*grid)->anchors->n + 1, sizeof *s->index, err);
    if (status == SODET_OK)
        status = sd_grow(&s->truth, &s->capacity[0], room, sizeof *s->truth, err);
    if (status == SODET_OK)
        status = sd_grow(&s->label, &s->capacity[1], room, sizeof *s->label, err);
    if (status == SODET_OK)
        status = sd_grow(&s->row, &s->capacity[2], room, sizeof *s->row, err);
    if (status == SODET_OK)
        status = sd_grow(&s->flags, &s->capacity[3], room, sizeof *s->flags, err);
    if (status != SODET_OK)
        return status;
    for (uint64_t i = 0; i < sample->n_objects; i++) {
        const sodet_object *o = &sample->objects[i];
        s->row[i] = -1;
        if (sd_loader_takes(&s->config, o, &s->flags[n]) != SD_OBJECT_TRAINS)
            continue;
        s->row[i] = (int32_t)n;
        s->truth[n] = o->box;
        s->label[n++] = o->label;
    }
    *n_truth = n;
    const sodet_boxes truth = {.struct_size = sizeof truth, .n = n, .box = s->truth, .label = s->label, .flags = s->flags};
    return sd_model_assign(s->model, *grid, &truth, s->index, NULL, err);
}

static sodet_status add_box(show *s, sodet_box box, const char *name, const uint8_t colour[3], sodet_err *err)
{
    sodet_status status = sd_grow(&s->boxes, &s->boxes_capacity, s->n + 1, sizeof *s->boxes, err);
    if (status != SODET_OK)
        return status;
    s->boxes[s->n] = (sd_shot_box){.box = box, .name = name, .score = -1};
    memcpy(s->boxes[s->n++].colour, colour, 3);
    return SODET_OK;
}

/* Half way to white. */
static void lighter(const uint8_t from[3], uint8_t to[3])
{
    for (uint32_t i = 0; i < 3; i++)
        to[i] = (uint8_t)((from[i] + 255) / 2);
}

static sodet_status add_objects(show *s, const sodet_sample *sample, sodet_err *err)
{
    const sd_classes *classes = sd_dataset_classes(s->set->dataset);
    const sd_model_grid *grid = NULL;
    uint32_t n_truth = 0;
    uint64_t anchors = 0;
    sodet_status status = s->model ? match(s, sample, &grid, &n_truth, err) : SODET_OK;
    s->n = 0;
    for (uint64_t i = 0; i < sample->n_objects && status == SODET_OK; i++) {
        const sodet_object *o = &sample->objects[i];
        char name[120];
        uint8_t colour[3];
        uint64_t mine = 0;
        sd_data_object_name(classes, o, name);
        sd_class_colour((uint32_t)o->label, classes->n, colour);
        for (uint64_t a = 0; grid && a < grid->anchors->n; a++)
            mine += s->row[i] >= 0 && s->index[a] == s->row[i];
        anchors += mine;
        s->objects++;
        s->matched += mine > 0;
        const char *whole = !grid           ? sd_pool_strdup(&s->names, name)
                            : s->row[i] < 0 ? sd_pool_printf(&s->names, "%s (does not train)", name)
                                            : sd_pool_printf(&s->names, "%s: %" PRIu64, name, mine);
        status = whole ? add_box(s, o->box, whole, colour, err) : SODET_FAIL(err, SODET_E_MEMORY, "data show: no memory for names");
    }
    for (uint64_t a = 0; anchors && a < grid->anchors->n && status == SODET_OK; a++) {
        const float *b = grid->anchors->box + 4 * a;
        if (s->index[a] < 0 || (uint32_t)s->index[a] >= n_truth)
            continue;
        uint8_t colour[3], light[3];
        sd_class_colour((uint32_t)s->label[s->index[a]], classes->n, colour);
        lighter(colour, light);
        status = add_box(s, (sodet_box){b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2}, NULL, light, err);
    }
    return status;
}

static sodet_status show_sample(show *s, uint64_t item, uint32_t cell, sodet_err *err)
{
    static const uint8_t paper[3] = {PAPER, PAPER, PAPER};
    sd_canvas small = {0};
    const char *id = sd_dataset_item(s->set->dataset, item)->id;
    sodet_status status = sd_worker_prepare(&s->worker, 0, item, 0, err);
    const sodet_image *image = status == SODET_OK ? sodet_sample_image(s->worker.sample) : NULL;
    if (status == SODET_OK && !image)
        status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the picture", id);
    if (status == SODET_OK)
        status = add_objects(s, s->worker.sample, err);
    if (status == SODET_OK)
        status = sd_shot_paint(image, s->boxes, s->n, SIDE, id, &small, err);
    if (status == SODET_OK) {
        uint32_t x = GAP + cell % s->columns * (SIDE + GAP), y = GAP + cell / s->columns * (SIDE + CAPTION + GAP);
        char caption[SIDE / 6];
        size_t length = strlen(id), most = sizeof caption - 1;
        for (uint32_t r = 0; r < small.height; r++)
            memcpy(s->sheet.rgb + ((size_t)(y + r) * s->sheet.width + x) * 3, small.rgb + (size_t)r * small.width * 3,
                   (size_t)small.width * 3);
        snprintf(caption, sizeof caption, "%s", length > most ? id + length - most : id); /* the end of a path tells more */
        sd_draw_text(&s->sheet, (int32_t)x, (int32_t)(y + small.height + 2), caption, paper, 1);
    }
    sd_free(small.rgb);
    return status;
}

static sodet_status make_sheet(show *s, uint64_t count, const char *path, sodet_err *err)
{
    uint64_t size = sd_dataset_size(s->set->dataset), n = count < size ? count : size;
    while ((uint64_t)s->columns * s->columns < n && s->columns < COLUMNS_MOST)
        s->columns++;
    uint32_t rows = (uint32_t)((n + s->columns - 1) / s->columns);
    s->sheet.width = GAP + s->columns * (SIDE + GAP);
    s->sheet.height = GAP + rows * (SIDE + CAPTION + GAP);
    s->sheet.rgb = sd_alloc((size_t)s->sheet.width * s->sheet.height, 3);
    if (!s->sheet.rgb)
        return SODET_FAIL(err, SODET_E_MEMORY, "data show: no memory for a sheet of %" PRIu64 " pictures", n);
    memset(s->sheet.rgb, PAPER, (size_t)s->sheet.width * s->sheet.height * 3);
    sodet_status status = sd_worker_open(&s->worker, &s->config, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) /* from all over the set: neighbours are often alike */
        status = show_sample(s, i * size / n, (uint32_t)i, err);
    if (status == SODET_OK)
        status = sd_png_write(path, s->sheet.rgb, s->sheet.width, s->sheet.height, err);
    if (status == SODET_OK) {
        printf("%s: %" PRIu64 " of %" PRIu64 " samples of %s, %" PRIu64 " objects", path, n, size, s->sets.name[0], s->objects);
        if (s->model)
            printf(", %" PRIu64 " of them with anchors", s->matched);
        printf("\n");
    }
    sd_worker_close(&s->worker);
    return status;
}

sodet_status sd_data_show(sd_cli *cli, sodet_err *err)
{
    show s = {.columns = 1};
    uint64_t count;
    const char *path = sd_cli_flag(cli, "--out");
    sodet_status status = sd_cli_flag_uint(cli, "--count", 1, COUNT, &count, err);
    if (status == SODET_OK && count > MOST)
        status = SODET_FAIL(err, SODET_E_INVALID, "data show: --count %" PRIu64 ": a sheet has room for %d; data draw writes any number",
                            count, (int)MOST);
    if (status == SODET_OK)
        status = sd_cli_check_out(path ? path : SHEET, err);
    if (status == SODET_OK)
        status = sd_data_sets_open(cli, SD_SPLIT_TRAIN, NULL, &s.sets, err);
    if (status != SODET_OK)
        return status;
    const sd_core_cfg *core = sd_config_core(s.sets.cfg);
    s.set = &s.sets.split[0];
    s.config = sd_split_loader(s.sets.cfg, s.set, s.sets.which[0]);
    s.config.difficult = core->data.difficult;
    s.config.min_side = core->data.min_side;
    if (sd_cli_flag(cli, "--anchors"))
        status = sd_model_open(s.sets.cfg, sd_dataset_classes(s.set->dataset)->n, &s.model, err);
    if (status == SODET_OK)
        status = make_sheet(&s, count, path ? path : SHEET, err);
    sd_model_close(s.model);
    sd_free(s.index);
    sd_free(s.boxes);
    sd_free(s.truth);
    sd_free(s.label);
    sd_free(s.row);
    sd_free(s.flags);
    sd_free(s.sheet.rgb);
    sd_pool_clear(&s.names);
    sd_data_sets_close(&s.sets);
    return status;
}
