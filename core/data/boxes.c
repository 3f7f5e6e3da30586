#include "core/data/boxes.h"

#include <string.h>

#include "core/data/frame.h"
#include "core/data/sample.h"
#include "sodet/files.h"

typedef struct gatherer {
    const sd_loader_config *config;
    sd_boxes *out;
    sd_frames *frames;
    sodet_sample *s;
    uint64_t capacity[4], canvases_capacity;
} gatherer;

/* Of the upright picture. */
static sodet_status size_of(gatherer *g, uint64_t item, uint32_t *width, uint32_t *height, sodet_err *err)
{
    sodet_sample *s = g->s;
    uint32_t w, h, orientation;
    *width = s->width;
    *height = s->height;
    if (*width && *height)
        return SODET_OK;
    sodet_status status = sd_dataset_locate(g->config->dataset, item, s, err);
    if (status == SODET_OK && s->path.length) {
        status = sodet_picture_size(s->path.text, &w, &h, &orientation, err);
        bool across = status == SODET_OK && sodet_sample_turns(s, orientation);
        *width = across ? h : w;
        *height = across ? w : h;
    } else if (status == SODET_OK) {
        status = sd_sample_decode(s, err);
        *width = s->original_width;
        *height = s->original_height;
    }
    return status;
}

static sodet_status canvas_of(gatherer *g, const sd_frame *f, uint32_t *index, sodet_err *err)
{
    sd_boxes *out = g->out;
    uint32_t i = 0;
    while (i < out->n_canvases && (out->canvases[i].width != f->canvas_width || out->canvases[i].height != f->canvas_height))
        i++;
    *index = i;
    if (i == out->n_canvases) {
        sodet_status status = sd_grow(&out->canvases, &g->canvases_capacity, (uint64_t)i + 1, sizeof *out->canvases, err);
        if (status != SODET_OK)
            return status;
        out->canvases[out->n_canvases++] = (sd_canvas_size){f->canvas_width, f->canvas_height, 0};
    }
    out->canvases[i].pictures++;
    return SODET_OK;
}

static sodet_status room(gatherer *g, uint64_t n, sodet_err *err)
{
    sd_boxes *out = g->out;
    sodet_status status = sd_grow(&out->labelled, &g->capacity[0], n, sizeof *out->labelled, err);
    if (status == SODET_OK)
        status = sd_grow(&out->box, &g->capacity[1], n, sizeof *out->box, err);
    if (status == SODET_OK)
        status = sd_grow(&out->label, &g->capacity[2], n, sizeof *out->label, err);
    return status == SODET_OK ? sd_grow(&out->flags, &g->capacity[3], n, sizeof *out->flags, err) : status;
}

static sodet_status take(gatherer *g, uint64_t item, sodet_err *err)
{
    static const double same[6] = {1, 0, 0, 0, 1, 0};
    sd_boxes *out = g->out;
    sodet_sample *s = g->s;
    uint32_t width, height;
    sd_frame f, still;
    sodet_status status = sd_dataset_describe(g->config->dataset, item, s, err);
    if (status == SODET_OK)
        status = size_of(g, item, &width, &height, err);
    if (status != SODET_OK && status != SODET_E_MEMORY && s->rules->bad_file == SD_SKIP) {
        out->unread++;
        return SODET_OK;
    }
    if (status == SODET_OK)
        status = sd_frames_get(g->frames, width, height, &f, err);
    if (status == SODET_OK)
        status = canvas_of(g, &f, &out->canvas[out->n_items], err);
    if (status == SODET_OK)
        status = room(g, out->n + s->n_objects + 1, err);
    if (status != SODET_OK)
        return status;
    still = f;
    memcpy(still.map, same, sizeof same);
    for (uint64_t i = 0; i < s->n_objects; i++) {
        const sodet_object *o = &s->objects[i];
        if (!sd_frame_box(&still, &o->box, &out->labelled[out->n])) {
            out->outside++;
            continue;
        }
        sd_frame_box(&f, &o->box, &out->box[out->n]);
        out->label[out->n] = o->label;
        out->flags[out->n++] = o->flags;
    }
    out->first[++out->n_items] = out->n;
    return SODET_OK;
}

sodet_status sd_boxes_gather(const sd_loader_config *config, sd_boxes *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    uint64_t n = sd_dataset_size(config->dataset);
    gatherer g = {.config = config, .out = out};
    out->first = sd_alloc(n + 1, sizeof *out->first);
    out->canvas = sd_alloc(n + 1, sizeof *out->canvas);
    sodet_status status = out->first && out->canvas
                              ? sd_frames_open(config, &g.frames, err)
                              : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the boxes of %llu pictures", (unsigned long long)n);
    if (status == SODET_OK)
        status = sd_sample_new(config->dataset, &g.s, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++)
        status = take(&g, i, err);
    sd_sample_free(g.s);
    sd_frames_close(g.frames);
    if (status != SODET_OK)
        sd_boxes_free(out);
    return status;
}

const sd_canvas_size *sd_boxes_canvas(const sd_boxes *b)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < b->n_canvases; i++)
        best = b->canvases[i].pictures > b->canvases[best].pictures ? i : best;
    return &b->canvases[best];
}

void sd_boxes_free(sd_boxes *b)
{
    sd_free(b->labelled);
    sd_free(b->box);
    sd_free(b->label);
    sd_free(b->flags);
    sd_free(b->first);
    sd_free(b->canvas);
    sd_free(b->canvases);
    memset(b, 0, sizeof *b);
}
