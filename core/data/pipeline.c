#include "core/data/pipeline.h"

#include <string.h>

#include "core/data/rgb.h"
#include "kernels/vector.h"

/* Links are numbered 0, 1, 2 ... in streams; a repeated sample's and a partner's draws come from their own ranges. */
#define REPEAT_LINKS 4096u
#define PARTNER_LINK 1000000u
/* Blank pictures on which a chain is tried; in their draws a step of probability 0.02 comes but for one time in 2 * 10^5. */
enum { TRIALS = 600, TRIAL_WIDTH = 64, TRIAL_HEIGHT = 48 };

uint32_t sd_input_channels(const sd_input *in)
{
    return in->channels == SD_CHANNELS_GREY ? 1 : 3;
}

uint32_t sd_links_partners(const sd_link *links, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = links[i].ops->partners > most ? links[i].ops->partners : most;
    return most;
}

static uint32_t round_up(uint32_t v, uint32_t unit)
{
    return unit > 1 ? (v + unit - 1) / unit * unit : v;
}

void sd_links_canvas(const sd_link *links, uint32_t n, const sd_input *input, uint32_t *width, uint32_t *height)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!links[i].ops->shape)
            continue;
        links[i].ops->shape(links[i].self, width, height);
        if (*width == 0 && *height == 0) {
            *width = input->width;
            *height = input->height;
        }
    }
    *width = round_up(*width, input->pad_to);
    *height = round_up(*height, input->pad_to);
}

static sodet_status new_sample(const sd_worker *w, sodet_sample **out, sodet_err *err)
{
    sodet_status status = sd_sample_new(w->dataset, out, err);
    if (status != SODET_OK)
        return status;
    const sd_input *in = w->input;
    for (uint32_t c = 0; c < 3; c++)
        (*out)->mean[c] = in->mean[in->channels == SD_CHANNELS_GREY ? 0 : in->channels == SD_CHANNELS_BGR ? 2 - c : c];
    (*out)->input_width = in->width;
    (*out)->input_height = in->height;
    (*out)->records = w->records;
    (*out)->leaves = w->leaves;
    return SODET_OK;
}

sodet_status sd_worker_open(sd_worker *w, const sd_loader_config *c, sodet_err *err)
{
    *w = (sd_worker){.dataset = c->dataset,
                     .links = c->links,
                     .n_links = c->n_links,
                     .input = &c->input,
                     .seed = c->seed,
                     .records = c->device_pixels,
                     .leaves = c->device_jpegs};
    const char *first = NULL;
    for (uint32_t i = 0; i < c->n_links; i++) {
        if (!c->links[i].ops->partners)
            continue;
        if (first)
            return SODET_FAIL(err, SODET_E_UNSUPPORTED, "transforms %s and %s both want partner samples; use one of them", first,
                              c->links[i].label);
        first = c->links[i].label;
        if (w->records)
            return SODET_FAIL(
                err, SODET_E_UNSUPPORTED,
                "transform %s: it looks at other pictures' pixels, which [data] pixels = device does not do for it; set pixels = host, "
                "or leave it out",
                first);
    }
    sodet_status status = new_sample(w, &w->sample, err);
    uint32_t n = sd_links_partners(c->links, c->n_links);
    if (status == SODET_OK && n && !(w->partners = sd_alloc(n, sizeof *w->partners)))
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u partner samples", n);
    for (; status == SODET_OK && w->n_partners < n; w->n_partners += status == SODET_OK)
        status = new_sample(w, &w->partners[w->n_partners], err);
    if (status != SODET_OK)
        sd_worker_close(w);
    return status;
}

void sd_worker_close(sd_worker *w)
{
    sd_sample_free(w->sample);
    for (uint32_t i = 0; i < w->n_partners; i++)
        sd_sample_free(w->partners[i]);
    sd_free(w->partners);
    memset(w, 0, sizeof *w);
}

static sodet_status chain(sd_worker *w, sodet_sample *s, uint64_t epoch, uint64_t index, uint64_t key, uint32_t first_link,
                          uint32_t n_links, sodet_err *err);

/* Takes what has been loaded through links [0, n_links). name: of the sample, for messages. */
static sodet_status apply_links(sd_worker *w, sodet_sample *s, const char *name, uint64_t epoch, uint64_t key, uint32_t first_link,
                                uint32_t n_links, sodet_err *err)
{
    sodet_status status = SODET_OK;
    for (uint32_t i = 0; i < n_links && status == SODET_OK; i++) {
        const sd_link *link = &w->links[i];
        for (uint32_t k = 0; k < link->ops->partners && status == SODET_OK; k++) {
            sodet_stream draw = sd_stream(w->seed, epoch, key, PARTNER_LINK + first_link + k);
            uint64_t other = sd_stream_bits(&draw) % sd_dataset_size(w->dataset);
            status = chain(w, w->partners[k], epoch, other, draw.key, PARTNER_LINK, i, err);
        }
        s->partners = w->partners;
        s->n_partners = link->ops->partners;
        if (status != SODET_OK)
            break;
        sodet_stream r = sd_stream(w->seed, epoch, key, first_link + i);
        status = link->ops->apply(link->self, s, &r, err);
        if (s->refused)
            status = SODET_FAIL(
                err, SODET_E_UNSUPPORTED,
                "it %s, which [data] pixels = device does not do for it; set pixels = host, or change or leave out the transform",
                s->refused);
        else if (status == SODET_OK && s->broken != SODET_OK)
            status = SODET_FAIL(err, s->broken, "no memory for the picture");
        if (status != SODET_OK)
            sd_fail_in(err, status, "%s: transform %s", name, link->label);
    }
    return status;
}

/* Loads a sample and takes it through links [0, n_links). key stands for the sample in the streams. */
static sodet_status chain(sd_worker *w, sodet_sample *s, uint64_t epoch, uint64_t index, uint64_t key, uint32_t first_link,
                          uint32_t n_links, sodet_err *err)
{
    sodet_status status = sd_dataset_load(w->dataset, index, s, err);
    return status == SODET_OK ? apply_links(w, s, sd_dataset_item(w->dataset, index)->id, epoch, key, first_link, n_links, err) : status;
}

static sodet_status blank(sd_worker *w, uint32_t width, uint32_t height, sodet_err *err)
{
    uint8_t *rgb;
    sd_sample_reset(w->sample);
    sodet_status status = sodet_sample_new_pixels(w->sample, width, height, 3, &rgb, err);
    return status == SODET_OK ? sd_sample_decode(w->sample, err) : status;
}

sodet_status sd_worker_frame(sd_worker *w, uint32_t width, uint32_t height, double map[6], sodet_err *err)
{
    sodet_status status = blank(w, width, height, err);
    if (status == SODET_OK)
        status = apply_links(w, w->sample, "a blank picture", 0, 0, 0, w->n_links, err);
    memcpy(map, w->sample->map, sizeof w->sample->map);
    return status;
}

sodet_status sd_worker_prepare(sd_worker *w, uint64_t epoch, uint64_t index, uint64_t repeat, sodet_err *err)
{
    return chain(w, w->sample, epoch, index, index, (uint32_t)repeat * REPEAT_LINKS, w->n_links, err);
}

sodet_status sd_worker_try(sd_worker *w, sodet_err *err)
{
    const sodet_object middle = {.box = {16, 12, 48, 36}, .area = 768};
    sodet_status status = SODET_OK;
    for (uint32_t i = 0; status == SODET_OK && w->records && i < TRIALS; i++) {
        status =
            blank(w, TRIAL_WIDTH + i % 2 * 13, TRIAL_HEIGHT + i % 2 * 7, err); /* a resize to one of the sizes would be nothing there */
        if (status == SODET_OK)
            status = sodet_sample_append_object(w->sample, &middle, err);
        if (status == SODET_OK)
            status = apply_links(w, w->sample, "[data] pixels = device", i, 0, 0, w->n_links, err);
    }
    return status;
}

SODET_CLONES static void scale_row(float *row, float mean, float scale, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        vector16_at(row + i) = (vector16_at(row + i) - mean) * scale;
    for (; i < n; i++)
        row[i] = (row[i] - mean) * scale;
}

/* A batch's canvas holds the picture. */
static sodet_status fits(const sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err)
{
    uint32_t w, h;
    sodet_sample_size(s, &w, &h);
    if (w > width || h > height) {
        const char *id = s->id.text ? s->id.text : "a sample";
        if (s->width && (s->width != s->original_width || s->height != s->original_height))
            return SODET_FAIL(
                err, SODET_E_INVALID,
                "%s: the annotation was made for %ux%u, the picture is %ux%u and does not fit the canvas of %ux%u; correct the annotation",
                id, s->width, s->height, s->original_width, s->original_height, width, height);
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: the transforms end with a picture of %ux%u, larger than the batch's canvas of %ux%u; put a resize at the end of the chain",
            id, w, h, width, height);
    }
    return SODET_OK;
}

void sd_held_free(sd_held *h)
{
    sd_pixels_free(&h->pixels);
    sd_free(h->encoded);
    *h = (sd_held){0};
}

sodet_status sd_worker_pixel_row(sd_worker *w, uint32_t width, uint32_t height, sd_held *held, sd_pixel_row *out, sodet_err *err)
{
    sodet_sample *s = w->sample;
    sodet_status status = fits(s, width, height, err);
    if (status != SODET_OK)
        return status;
    sd_sample_pixel_row(s, out);
    const sd_held mine = *held;
    if (s->n_coded) {
        held->encoded = s->encoded;
        held->encoded_capacity = s->encoded_capacity;
        s->encoded = mine.encoded;
        s->encoded_capacity = mine.encoded_capacity;
        s->n_encoded = s->n_coded = 0;
    } else {
        held->pixels = s->stored;
        s->stored = mine.pixels;
    }
    s->has_pixels = false;
    return status;
}

sodet_status sd_normalise(sodet_sample *s, const sd_input *in, uint32_t width, uint32_t height, float *to, sodet_err *err)
{
    const sodet_image *image = sodet_sample_image(s);
    if (!image)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the picture", s->id.text ? s->id.text : "a sample");
    uint32_t w = image->width, h = image->height, channels = sd_input_channels(in);
    sodet_status status = fits(s, width, height, err);
    if (status != SODET_OK)
        return status;
    size_t plane = (size_t)width * height;
    size_t red = in->channels == SD_CHANNELS_BGR ? 2 * plane : 0;
    for (uint32_t y = 0; y < h; y++) {
        const float *from = image->pixels + (size_t)y * w * 3;
        size_t at = (size_t)y * width;
        if (channels == 1)
            sd_rgb_grey(from, to + at, w);
        else
            sd_rgb_apart(from, to + red + at, to + plane + at, to + (2 * plane - red) + at, w);
        for (uint32_t c = 0; c < channels; c++) {
            float *row = to + c * plane + at;
            scale_row(row, in->mean[c], 1.0f / in->std[c], w);
            memset(row + w, 0, (width - w) * sizeof *row);
        }
    }
    for (uint32_t c = 0; c < channels; c++)
        memset(to + c * plane + (size_t)h * width, 0, (size_t)(height - h) * width * sizeof *to);
    return SODET_OK;
}
