#include "core/data/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/colour.h"
#include "core/data/resize.h"

void sd_sample_reset(sodet_sample *s)
{
    s->id.length = s->source.length = s->path.length = 0;
    s->number = 0;
    s->width = s->height = 0;
    s->n_objects = 0;
    s->added = 0;
    s->n_encoded = 0;
    s->has_pixels = s->as_float = s->plain = s->grey = s->resized = false;
    s->refused = s->by_host = NULL;
    s->n_coded = 0;
    s->n_colours = 0;
    s->view = (sd_view){0};
    s->original_width = s->original_height = 0;
    s->broken = SODET_OK;
    static const double identity[6] = {1, 0, 0, 0, 1, 0};
    memcpy(s->map, identity, sizeof identity);
}

void sd_sample_clear(sodet_sample *s)
{
    sd_text_free(&s->id);
    sd_text_free(&s->source);
    sd_text_free(&s->path);
    sd_free(s->objects);
    sd_free(s->encoded);
    sd_pixels_free(&s->stored);
    sd_pixels_free(&s->turned);
    for (uint32_t i = 0; i < 2; i++)
        sd_free(s->planes[i].pixels);
    sd_free(s->rows);
    sd_free(s->taps);
    memset(s, 0, sizeof *s);
}

/* ---- what a dataset calls ---- */

static void set_text(sodet_sample *s, sd_text *t, const char *value)
{
    t->length = 0;
    t->failed = false; /* of the sample before */
    if (value)
        sd_text_append(t, value, strlen(value));
    if (t->failed)
        s->broken = SODET_E_MEMORY;
}

void sodet_sample_set_id(sodet_sample *s, const char *id, int64_t number)
{
    set_text(s, &s->id, id);
    s->number = number;
}

void sodet_sample_set_size(sodet_sample *s, uint32_t width, uint32_t height)
{
    s->width = width;
    s->height = height;
}

void sodet_sample_set_source(sodet_sample *s, const char *path)
{
    set_text(s, &s->source, path);
}

void sodet_sample_set_path(sodet_sample *s, const char *path)
{
    set_text(s, &s->path, path);
}

sodet_status sodet_sample_set_bytes(sodet_sample *s, const void *bytes, size_t n, sodet_err *err)
{
    sodet_status status = sd_grow(&s->encoded, &s->encoded_capacity, n + 1, 1, err);
    if (status != SODET_OK)
        return status;
    memcpy(s->encoded, bytes, n);
    s->n_encoded = n;
    return SODET_OK;
}

sodet_status sodet_sample_new_pixels(sodet_sample *s, uint32_t width, uint32_t height, uint32_t channels, uint8_t **out, sodet_err *err)
{
    *out = NULL;
    if ((channels != 1 && channels != 3) || width == 0 || height == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "sodet_sample_new_pixels: %ux%u with %u channels; at least 1x1 with 1 or 3 is wanted",
                          width, height, channels);
    if ((uint64_t)width * height > s->rules->max_pixels)
        return sd_decode_too_large(s->id.length ? s->id.text : "a sample", width, height, s->rules->max_pixels, err);
    sodet_status status = sd_pixels_size(&s->stored, width, height, s->id.length ? s->id.text : "a sample", err);
    if (status != SODET_OK)
        return status;
    s->has_pixels = true;
    s->grey = channels == 1; /* spread to three channels when the sample is decoded; the plane stands at the buffer's end */
    *out = channels == 3 ? s->stored.rgb : s->stored.rgb + (size_t)width * height * 2;
    return SODET_OK;
}

const char *sd_class_name(const char *name, size_t *n)
{
    name += strspn(name, " \t\r\n");
    *n = strlen(name);
    while (*n && strchr(" \t\r\n", name[*n - 1]))
        (*n)--;
    return name;
}

int32_t sd_class_find(const sd_classes *classes, const uint32_t *by_name, const char *name)
{
    uint32_t lo = 0, hi = classes->n;
    size_t n;
    name = sd_class_name(name, &n);
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        const char *have = classes->names[by_name[mid]];
        int order = strncmp(name, have, n);
        if (order == 0 && have[n] == 0)
            return (int32_t)by_name[mid];
        if (order > 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

static const char *where(const sodet_sample *s)
{
    return s->source.length ? s->source.text : s->id.length ? s->id.text : "a sample";
}

static sodet_status refuse(sodet_sample *s, uint32_t kind, uint32_t rule, const char *class_name, const sodet_box *box,
                           const char *sentence, sodet_err *err)
{
    if (s->listener)
        s->listener->note(s->listener->context, kind, class_name, box, sentence);
    /* With a listener unknown names are gathered first, so that one error lists them all. */
    if (rule == SD_SKIP || (s->listener && kind == SD_NOTE_UNKNOWN_CLASS))
        return SODET_OK;
    return SODET_FAIL(err, SODET_E_INVALID, "%s", sentence);
}

sodet_status sodet_sample_add_object(sodet_sample *s, const char *class_name, sodet_box b, uint32_t flags, double area, int64_t id,
                                     sodet_err *err)
{
    char sentence[560];
    uint32_t k = ++s->added;
    size_t n;
    class_name = sd_class_name(class_name, &n);
    int32_t label = sd_class_find(s->classes, s->by_name, class_name);
    char trimmed[256]; /* VOC's longest; a longer one would be a name that nobody wrote */
    snprintf(trimmed, sizeof trimmed, "%.*s", n > 255 ? 255 : (int)n, class_name);
    if (label < 0 && sd_not_utf8(class_name))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: object %u: the class name \"%s\" is no UTF-8; save the file as UTF-8", where(s), k,
                          trimmed);
    if (label < 0) {
        const char *near = sd_nearest(trimmed, s->classes->names, s->classes->n);
        snprintf(sentence, sizeof sentence, "%s: object %u: class \"%s\" is not in the class list%s%s%s", where(s), k, trimmed,
                 near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return refuse(s, SD_NOTE_UNKNOWN_CLASS, s->rules->unknown_class, trimmed, &b, sentence, err);
    }
    bool finite = isfinite(b.x1) && isfinite(b.y1) && isfinite(b.x2) && isfinite(b.y2);
    if (!finite || !(b.x2 > b.x1) || !(b.y2 > b.y1)) {
        snprintf(sentence, sizeof sentence, "%s: object %u (%s): box %g %g %g %g %s; correct it, or set bad_boxes = drop", where(s), k,
                 trimmed, (double)b.x1, (double)b.y1, (double)b.x2, (double)b.y2, finite ? "has no area" : "is not finite");
        return refuse(s, SD_NOTE_BAD_BOX, s->rules->bad_box, trimmed, &b, sentence, err);
    }
    double own = ((double)b.x2 - (double)b.x1) * ((double)b.y2 - (double)b.y1);
    sodet_object object = {.box = b, .label = label, .flags = flags, .area = area >= 0 ? area : own, .id = id};
    return sodet_sample_append_object(s, &object, err);
}

double sd_box_over(const sodet_box *b, double width, double height)
{
    double over[4] = {-(double)b->x1, -(double)b->y1, (double)b->x2 - width, (double)b->y2 - height}, most = 0;
    if ((double)b->x2 <= 0 || (double)b->y2 <= 0 || (double)b->x1 >= width || (double)b->y1 >= height)
        return HUGE_VAL;
    for (uint32_t i = 0; i < 4; i++)
        most = over[i] > most ? over[i] : most;
    return most;
}

sodet_status sd_sample_apply_edges(sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err)
{
    uint64_t n = 0;
    if (s->rules->outside == SD_OUTSIDE_CLIP || !width || !height)
        return SODET_OK;
    for (uint64_t i = 0; i < s->n_objects; i++) {
        const sodet_object o = s->objects[i];
        char sentence[480];
        if (!(sd_box_over(&o.box, width, height) > SD_EDGE)) {
            s->objects[n++] = o;
            continue;
        }
        const char *name = s->classes->names[o.label];
        snprintf(sentence, sizeof sentence,
                 "%s: %.100s: box %g %g %g %g reaches over the edge of a picture of %ux%u; correct it, or set "
                 "bad_boxes = clip or drop",
                 where(s), name, (double)o.box.x1, (double)o.box.y1, (double)o.box.x2, (double)o.box.y2, width, height);
        sodet_status status = refuse(s, SD_NOTE_OUTSIDE, s->rules->outside, name, &o.box, sentence, err);
        if (status != SODET_OK)
            return status;
    }
    s->n_objects = n;
    return SODET_OK;
}

/* ---- what a transform calls ---- */

uint32_t sodet_sample_object_count(const sodet_sample *s)
{
    return (uint32_t)s->n_objects;
}

sodet_object *sodet_sample_objects(sodet_sample *s)
{
    return s->objects;
}

const sodet_object *sodet_sample_object(const sodet_sample *s, uint32_t i)
{
    return i < s->n_objects ? &s->objects[i] : NULL;
}

sodet_status sodet_sample_append_object(sodet_sample *s, const sodet_object *object, sodet_err *err)
{
    sodet_status status = sd_grow(&s->objects, &s->capacity, s->n_objects + 1, sizeof *s->objects, err);
    if (status == SODET_OK)
        s->objects[s->n_objects++] = *object;
    return status;
}

void sodet_sample_keep_objects(sodet_sample *s, const uint8_t *keep)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n_objects; i++) {
        if (keep[i])
            s->objects[n++] = s->objects[i];
    }
    s->n_objects = n;
}

void sd_affine_box(sodet_box *b, const double m[6])
{
    double xs[2] = {(double)b->x1, (double)b->x2}, ys[2] = {(double)b->y1, (double)b->y2};
    double x1 = HUGE_VAL, y1 = HUGE_VAL, x2 = -HUGE_VAL, y2 = -HUGE_VAL;
    for (int i = 0; i < 4; i++) { /* the box around the four corners: a flip exchanges the ends, a turn keeps them in order */
        double x = m[0] * xs[i & 1] + m[1] * ys[i >> 1] + m[2], y = m[3] * xs[i & 1] + m[4] * ys[i >> 1] + m[5];
        x1 = x < x1 ? x : x1;
        x2 = x > x2 ? x : x2;
        y1 = y < y1 ? y : y1;
        y2 = y > y2 ? y : y2;
    }
    *b = (sodet_box){(float)x1, (float)y1, (float)x2, (float)y2};
}

void sodet_sample_apply_affine(sodet_sample *s, const double m[6])
{
    double a[6];
    memcpy(a, s->map, sizeof a);
    for (int r = 0; r < 6; r += 3) {
        s->map[r] = m[r] * a[0] + m[r + 1] * a[3];
        s->map[r + 1] = m[r] * a[1] + m[r + 1] * a[4];
        s->map[r + 2] = m[r] * a[2] + m[r + 1] * a[5] + m[r + 2];
    }
    for (uint64_t i = 0; i < s->n_objects; i++)
        sd_affine_box(&s->objects[i].box, m);
}

void sd_affine_inverse(const double m[6], double inverse[6])
{
    double det = m[0] * m[4] - m[1] * m[3];
    static const double identity[6] = {1, 0, 0, 0, 1, 0};
    if (!(fabs(det) > 0)) {
        memcpy(inverse, identity, sizeof identity);
        return;
    }
    double a = m[4] / det, b = -m[1] / det, c = -m[3] / det, d = m[0] / det;
    const double out[6] = {a, b, -(a * m[2] + b * m[5]), c, d, -(c * m[2] + d * m[5])};
    memcpy(inverse, out, sizeof out);
}

void sodet_sample_size(const sodet_sample *s, uint32_t *width, uint32_t *height)
{
    *width = s->view.width;
    *height = s->view.height;
}

void sodet_sample_clip_objects(sodet_sample *s)
{
    uint32_t width, height;
    sodet_sample_size(s, &width, &height);
    float w = (float)width, h = (float)height;
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n_objects; i++) {
        sodet_object o = s->objects[i];
        o.box.x1 = o.box.x1 < 0 ? 0 : o.box.x1;
        o.box.y1 = o.box.y1 < 0 ? 0 : o.box.y1;
        o.box.x2 = o.box.x2 > w ? w : o.box.x2;
        o.box.y2 = o.box.y2 > h ? h : o.box.y2;
        if (o.box.x2 > o.box.x1 && o.box.y2 > o.box.y1)
            s->objects[n++] = o;
    }
    s->n_objects = n;
}

/* Of a sample that records. The chain's sentence is made by who runs it. */
static sodet_status refuse_pixels(sodet_sample *s, const char *why, sodet_err *err)
{
    s->refused = why;
    s->broken = SODET_E_UNSUPPORTED;
    return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: a transform %s", where(s), why);
}

static bool plane_fits(sodet_sample *s, uint32_t which, uint32_t width, uint32_t height)
{
    sd_plane *p = &s->planes[which];
    uint64_t need = (uint64_t)width * height * 3;
    if (need <= p->capacity)
        return true;
    sd_free(p->pixels);
    *p = (sd_plane){.pixels = sd_alloc(need, sizeof(float))};
    if (!p->pixels) {
        s->broken = SODET_E_MEMORY;
        return false;
    }
    p->capacity = need;
    return true;
}

static sodet_image image_of(const sodet_sample *s, uint32_t which, uint32_t width, uint32_t height)
{
    return (sodet_image){
        .struct_size = sizeof(sodet_image), .width = width, .height = height, .channels = 3, .pixels = s->planes[which].pixels};
}

static sd_source source_of(const sodet_sample *s)
{
    sd_source from = {.width = s->stored.width, .height = s->stored.height, .colours = s->colours, .n_colours = s->n_colours};
    if (!s->as_float) {
        from.bytes = s->stored.rgb;
        return from;
    }
    from.floats = s->planes[s->plane].pixels;
    from.width = s->image.width;
    from.height = s->image.height;
    return from;
}

/* planes[which] is now the whole picture. */
static void settle(sodet_sample *s, uint32_t which, uint32_t width, uint32_t height)
{
    s->plane = which;
    s->image = image_of(s, which, width, height);
    s->view = (sd_view){.width = width, .height = height};
    s->as_float = s->plain = true;
    s->n_colours = 0;
}

sodet_image *sodet_sample_image(sodet_sample *s)
{
    if (s->plain)
        return &s->image;
    if (s->records) {
        refuse_pixels(s, "looks at the pixels", NULL);
        return NULL;
    }
    uint32_t to = s->as_float ? !s->plane : s->plane, width = s->view.width, height = s->view.height;
    if (!plane_fits(s, to, width, height))
        return NULL;
    const sd_source from = source_of(s);
    sd_view_copy(&from, &s->view, s->planes[to].pixels);
    settle(s, to, width, height);
    return &s->image;
}

sodet_status sodet_sample_replace_image(sodet_sample *s, uint32_t width, uint32_t height, sodet_image *old, sodet_image *fresh,
                                        sodet_err *err)
{
    const sodet_image *now = sodet_sample_image(s);
    if (width == 0 || height == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform asks for a picture of %ux%u", where(s), width, height);
    if (!now || !plane_fits(s, !s->plane, width, height))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a picture of %ux%u", where(s), width, height);
    if (old)
        *old = *now;
    settle(s, !s->plane, width, height);
    if (fresh)
        *fresh = s->image;
    return SODET_OK;
}

sodet_status sodet_sample_resize(sodet_sample *s, uint32_t width, uint32_t height, sodet_err *err)
{
    uint32_t w = s->view.width, h = s->view.height;
    if (w == width && h == height)
        return SODET_OK;
    if (width == 0 || height == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform asks for a picture of %ux%u", where(s), width, height);
    const double m[6] = {(double)width / w, 0, 0, 0, (double)height / h, 0};
    if (s->records) {
        if (s->resized)
            return refuse_pixels(s, "resizes a second time", err);
        s->resized = true;
        s->window = s->view;
        s->before = s->n_colours;
        s->view = (sd_view){.width = width, .height = height};
        sodet_sample_apply_affine(s, m);
        return SODET_OK;
    }
    const sd_source from = source_of(s);
    sodet_status status = sd_grow(&s->rows, &s->rows_capacity, sd_resize_rows(&from, width), sizeof *s->rows, err);
    if (status == SODET_OK)
        status = sd_grow(&s->taps, &s->taps_capacity, sd_resize_taps(width), sizeof *s->taps, err);
    if (status != SODET_OK)
        return status;
    uint32_t to = s->as_float ? !s->plane : s->plane;
    if (!plane_fits(s, to, width, height))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a picture of %ux%u", where(s), width, height);
    sd_resize(&from, &s->view, s->planes[to].pixels, width, height, s->rows, s->taps);
    settle(s, to, width, height);
    sodet_sample_apply_affine(s, m);
    return SODET_OK;
}

sodet_status sodet_sample_crop(sodet_sample *s, int32_t x, int32_t y, uint32_t width, uint32_t height, const float fill[3], sodet_err *err)
{
    enum { FAR = 1 << 24 };
    if (width == 0 || height == 0 || width > FAR || height > FAR || x < -FAR || x > FAR || y < -FAR || y > FAR)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform asks for the window %ux%u at (%d, %d)", where(s), width, height, x, y);
    if (s->resized)
        return refuse_pixels(s, "crops behind a resize", err);
    const float *colour = fill ? fill : s->mean;
    const sd_source from = source_of(s);
    const sd_view *v = &s->view;
    int64_t right = (int64_t)v->x + v->width, bottom = (int64_t)v->y + v->height, w = from.width, h = from.height;
    bool over = x < 0 || y < 0 || (int64_t)x + width > v->width || (int64_t)y + height > v->height;
    bool filled = v->x < 0 || v->y < 0 || right > w || bottom > h, cut = v->x > 0 || v->y > 0 || right < w || bottom < h;
    /* A window over an edge shows the fill there, not what an earlier crop has cut off; and a view has one colour. */
    bool anew = over && (cut || (filled && memcmp(colour, s->view.fill, sizeof s->view.fill) != 0));
    if (anew && s->records)
        return refuse_pixels(s, cut ? "puts a canvas around what was cropped before" : "puts a canvas of another colour around one", err);
    if (anew && !sodet_sample_image(s))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the picture", where(s));
    s->view.x += s->view.mirror ? (int32_t)s->view.width - x - (int32_t)width : x;
    s->view.y += s->view.flip ? (int32_t)s->view.height - y - (int32_t)height : y;
    s->view.width = width;
    s->view.height = height;
    if (over)
        memcpy(s->view.fill, colour, sizeof s->view.fill);
    s->plain = false;
    const double m[6] = {1, 0, -x, 0, 1, -y};
    sodet_sample_apply_affine(s, m);
    return SODET_OK;
}

void sodet_sample_mirror(sodet_sample *s)
{
    s->view.mirror = !s->view.mirror;
    s->plain = false;
    const double m[6] = {-1, 0, s->view.width, 0, 1, 0};
    sodet_sample_apply_affine(s, m);
}

void sodet_sample_flip(sodet_sample *s)
{
    s->view.flip = !s->view.flip;
    s->plain = false;
    const double m[6] = {1, 0, 0, 0, -1, s->view.height};
    sodet_sample_apply_affine(s, m);
}

sodet_status sodet_sample_recolour(sodet_sample *s, sodet_recolour *change, const void *how, size_t size, sodet_err *err)
{
    if (size > SODET_RECOLOUR_BYTES)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform describes a change of colours in %zu bytes; at most %d are kept", where(s),
                          size, SODET_RECOLOUR_BYTES);
    if (s->records && change != sd_colour_follow)
        return refuse_pixels(s, "changes colours by a function of its own", err);
    if (s->records && s->n_colours == SD_RECOLOURS)
        return refuse_pixels(s, "changes colours once more than is written down", err);
    if (s->n_colours == SD_RECOLOURS && !sodet_sample_image(s))
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the picture", where(s));
    sd_recolour *c = &s->colours[s->n_colours++];
    c->change = change;
    if (size)
        memcpy(c->how, how, size);
    if (!s->resized)
        sd_rgb_recolour(c, 1, s->view.fill, 1); /* what is filled in later keeps its own colour */
    s->plain = false;
    return SODET_OK;
}

sodet_status sodet_sample_colour(sodet_sample *s, const sodet_colour_step *steps, uint32_t n, uint32_t clamp, sodet_err *err)
{
    sd_colours c = {.n = n, .clamp = clamp};
    if (n > SODET_COLOUR_STEPS)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform changes colours in %u steps; at most %d are kept", where(s), n,
                          SODET_COLOUR_STEPS);
    for (uint32_t i = 0; i < n; i++) {
        if (steps[i].what > SODET_COLOUR_REORDER || (steps[i].what == SODET_COLOUR_REORDER && !(steps[i].a >= 0 && steps[i].a < 6)))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: a transform asks for step %u with %g; sodet/colour.h has what there is", where(s),
                              steps[i].what, (double)steps[i].a);
        c.steps[i] = steps[i];
    }
    uint32_t all = n;
    for (uint32_t i = 0; s->records && i < s->n_colours; i++)
        all += ((const sd_colours *)(const void *)s->colours[i].how)->n;
    if (s->records && all > SODET_PIXELS_STEPS)
        return refuse_pixels(s, "changes colours in more steps than are written down", err);
    return n ? sodet_sample_recolour(s, sd_colour_follow, &c, sizeof c, err) : SODET_OK;
}

void sodet_sample_input_size(const sodet_sample *s, uint32_t *width, uint32_t *height)
{
    *width = s->input_width;
    *height = s->input_height;
}

void sodet_sample_mean(const sodet_sample *s, float rgb[3])
{
    memcpy(rgb, s->mean, sizeof s->mean);
}

sodet_sample *sodet_sample_partner(sodet_sample *s, uint32_t k)
{
    return k < s->n_partners ? s->partners[k] : NULL;
}

/* ---- decoding ---- */

/* The picture of the n encoded bytes; what the device decodes stays as it is. */
static sodet_status decode_bytes(sodet_sample *s, const char *name, uint64_t n, sodet_err *err)
{
    const sd_decode_options options = {s->rules->max_pixels, s->rules->ignore_orientation != 0};
    uint32_t width = 0, height = 0;
    s->by_host = s->leaves ? sd_decode_by_host(s->encoded, n, options.ignore_orientation, &width, &height) : NULL;
    if (s->leaves && !s->by_host) {
        if ((uint64_t)width * height > s->rules->max_pixels)
            return sd_decode_too_large(name, width, height, s->rules->max_pixels, err);
        s->n_coded = n;
        s->stored.width = width;
        s->stored.height = height;
        s->stored.orientation = 1;
        return SODET_OK;
    }
    return sd_decode(name, s->encoded, n, &options, &s->stored, &s->turned, err);
}

sodet_status sd_sample_decode(sodet_sample *s, sodet_err *err)
{
    uint64_t n_read;
    sodet_status status = SODET_OK;
    if (s->broken != SODET_OK) /* what it has lost may be its path */
        return SODET_FAIL(err, s->broken, "%s: no memory", where(s));
    s->n_coded = 0;
    if (s->has_pixels) {
        s->by_host = s->leaves ? "is given decoded by the data set" : NULL;
        if (s->grey) { /* grey: spread front to back; the plane lies behind what is written */
            uint8_t *to = s->stored.rgb;
            size_t n = (size_t)s->stored.width * s->stored.height;
            const uint8_t *from = to + n * 2;
            for (size_t i = 0; i < n; i++, to += 3)
                to[0] = to[1] = to[2] = from[i];
        }
    } else if (s->n_encoded) {
        status = decode_bytes(s, where(s), s->n_encoded, err);
    } else if (s->path.length) {
        status = sd_decode_read(s->path.text, &s->encoded, &s->encoded_capacity, &n_read, err);
        if (status == SODET_OK)
            status = decode_bytes(s, s->path.text, n_read, err);
    } else {
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: the data set gave neither a path nor bytes nor pixels", where(s));
    }
    if (status != SODET_OK)
        return status;
    s->has_pixels = true;
    s->original_width = s->stored.width;
    s->original_height = s->stored.height;
    s->view = (sd_view){.width = s->stored.width, .height = s->stored.height};
    s->as_float = s->plain = s->resized = false;
    s->n_colours = 0;
    if (s->width == s->stored.height && s->height == s->stored.width && s->width != s->height)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s: the annotation was made for %ux%u, the upright picture is %ux%u: it was labelled without its EXIF orientation; set "
            "[data] ignore_orientation = yes, or label it upright",
            where(s), s->width, s->height, s->stored.width, s->stored.height);
    status = sd_sample_apply_edges(s, s->stored.width, s->stored.height, err);
    if (status == SODET_OK)
        sodet_sample_clip_objects(s);
    return status;
}
