#include "core/cli/found.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/draw.h"

/* ---- text ---- */
static sodet_status put_csv(const sd_found *f, const char *file, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    sd_text t = {0};
    for (uint64_t k = 0; k < n; k++) {
        sd_text_csv(&t, file);
        sd_text_printf(&t, ",%d,", (int)x[k].label);
        sd_text_csv(&t, f->classes->names[x[k].label]);
        sd_text_printf(&t, ",%.9g,%.9g,%.9g,%.9g,%.9g\n", (double)x[k].score, (double)x[k].box.x1, (double)x[k].box.y1, (double)x[k].box.x2,
                       (double)x[k].box.y2);
    }
    sodet_status s = t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", file) : SODET_OK;
    if (s == SODET_OK && t.length)
        fwrite(t.text, 1, (size_t)t.length, stdout);
    sd_text_free(&t);
    return s;
}

static void put_lines(const sd_found *f, const char *file, const sodet_detection *x, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++)
        printf("%s\t%s\t%.3f\t%.1f %.1f %.1f %.1f\n", file, f->classes->names[x[k].label], (double)x[k].score, (double)x[k].box.x1,
               (double)x[k].box.y1, (double)x[k].box.x2, (double)x[k].box.y2);
    if (n == 0)
        printf("%s\tnothing\n", file);
}

static void json_picture(sd_found *f, const char *file)
{
    sd_text_printf(&f->json, "%s{\"file\": ", f->json.length ? ",\n  " : "\n  ");
    sd_json_write_string(&f->json, file);
}

static void put_json(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n)
{
    json_picture(f, p->file);
    sd_text_printf(&f->json, ", \"width\": %u, \"height\": %u, \"detections\": [", p->width, p->height);
    for (uint64_t k = 0; k < n; k++) {
        sd_text_printf(&f->json, "%s{\"label\": %d, \"name\": ", k ? ", " : "", (int)x[k].label);
        sd_json_write_string(&f->json, f->classes->names[x[k].label]);
        sd_text_printf(&f->json, ", \"score\": %.9g, \"box\": [%.9g, %.9g, %.9g, %.9g]}", (double)x[k].score, (double)x[k].box.x1,
                       (double)x[k].box.y1, (double)x[k].box.x2, (double)x[k].box.y2);
    }
    sd_text_printf(&f->json, "]}");
}

static void put_coco(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n)
{
    sd_text_printf(&f->images, "%s{\"id\": %llu, \"file_name\": ", f->images.length ? ",\n" : "", (unsigned long long)p->number);
    sd_json_write_string(&f->images, p->name);
    sd_text_printf(&f->images, ", \"width\": %u, \"height\": %u}", p->width, p->height);
    for (uint64_t k = 0; k < n; k++) {
        const sodet_box *b = &x[k].box;
        sd_text_printf(&f->annotations,
                       "%s{\"image_id\": %llu, \"category_id\": %lld, \"bbox\": [%.9g, %.9g, %.9g, %.9g], \"score\": %.9g}",
                       f->annotations.length ? ",\n" : "", (unsigned long long)p->number, (long long)f->classes->category_id[x[k].label],
                       (double)b->x1, (double)b->y1, (double)b->x2 - (double)b->x1, (double)b->y2 - (double)b->y1, (double)x[k].score);
    }
}

/* ---- pictures ---- */
/* The pixels in f->pixels, which may be drawn on. */
static sodet_status load(sd_found *f, const sd_found_picture *p, sodet_err *err)
{
    const sd_decode_options options = {0};
    if (!p->rgb)
        return sd_decode_file(p->path, &options, &f->bytes, &f->capacity, &f->pixels, &f->turned, err);
    sodet_status s = sd_pixels_size(&f->pixels, p->width, p->height, p->file, err);
    if (s == SODET_OK)
        memcpy(f->pixels.rgb, p->rgb, (size_t)p->width * p->height * 3);
    return s;
}

/* The pixels that the box touches, at least one. */
static void touched(float from, float to, uint32_t size, uint32_t *first, uint32_t *n)
{
    uint32_t a = from > 0 ? (uint32_t)floorf(from) : 0, b = to > 0 ? (uint32_t)ceilf(to) : 0;
    a = a < size ? a : size - 1;
    b = b > size ? size : b;
    *first = a;
    *n = b > a ? b - a : 1;
}

static void append_part(sd_text *t, const char *part, size_t most)
{
    size_t n = strlen(part);
    if (n > most)
        for (n = most; n && ((unsigned char)part[n] & 0xc0) == 0x80;) /* not in the middle of a character */
            n--;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)part[i];
        sd_text_append(t, c <= ' ' || c == 127 || strchr("/\\:*?\"<>|", c) ? "_" : part + i, 1);
    }
}

char *sd_found_crop_name(sd_pool *pool, const char *folder, uint64_t picture, uint64_t detection, const char *stem, const char *class_name)
{
    sd_text t = {0};
    sd_text_printf(&t, "%s/%06llu-%03llu-", folder, (unsigned long long)picture, (unsigned long long)detection);
    append_part(&t, stem, 100);
    sd_text_append(&t, "-", 1);
    append_part(&t, class_name, 60);
    sd_text_append(&t, ".png", 4);
    char *name = t.failed ? NULL : sd_pool_strdup(pool, t.text);
    sd_text_free(&t);
    return name;
}

static sodet_status crop(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    sd_pool pool = {0};
    sodet_status s = SODET_OK;
    for (uint64_t k = 0; s == SODET_OK && k < n; k++) {
        uint32_t left, top, w, h;
        touched(x[k].box.x1, x[k].box.x2, f->pixels.width, &left, &w);
        touched(x[k].box.y1, x[k].box.y2, f->pixels.height, &top, &h);
        s = sd_pixels_size(&f->large, w, h, p->file, err);
        for (uint32_t y = 0; s == SODET_OK && y < h; y++)
            memcpy(f->large.rgb + (size_t)y * w * 3, f->pixels.rgb + ((size_t)(top + y) * f->pixels.width + left) * 3, (size_t)w * 3);
        const char *base = strrchr(p->stem, '/');
        char *name = sd_found_crop_name(&pool, f->crop, p->number, k + 1, base ? base + 1 : p->stem, f->classes->names[x[k].label]);
        if (s == SODET_OK)
            s = name ? sd_png_write(name, f->large.rgb, w, h, err) : SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", p->file);
    }
    sd_pool_clear(&pool);
    return s;
}

static sodet_status make_folder_of(const char *path, sodet_err *err)
{
    sd_pool pool = {0};
    char *folder = sd_pool_printf(&pool, "%.*s", (int)(strrchr(path, '/') - path), path);
    sodet_status s = folder ? sd_make_folders(*folder ? folder : "/", err) : SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", path);
    sd_pool_clear(&pool);
    return s;
}

static sodet_status draw(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    sd_canvas canvas = {f->pixels.rgb, f->pixels.width, f->pixels.height};
    uint32_t zoom = sd_draw_zoom(canvas.width, canvas.height);
    sodet_status s = strchr(p->stem, '/') ? make_folder_of(p->drawn, err) : SODET_OK;
    if (s == SODET_OK && zoom > 1) {
        s = sd_pixels_size(&f->large, canvas.width * zoom, canvas.height * zoom, p->file, err);
        if (s == SODET_OK) {
            sd_draw_enlarge(&canvas, zoom, f->large.rgb);
            canvas = (sd_canvas){f->large.rgb, f->large.width, f->large.height};
        }
    }
    for (uint64_t k = n; s == SODET_OK && k-- > 0;) { /* the surest on top */
        uint8_t colour[3];
        const sodet_box *b = &x[k].box;
        float z = (float)zoom;
        sd_class_colour((uint32_t)x[k].label, f->classes->n, colour);
        sd_draw_object(&canvas, (sodet_box){b->x1 * z, b->y1 * z, b->x2 * z, b->y2 * z}, f->classes->names[x[k].label], (double)x[k].score,
                       colour);
    }
    return s == SODET_OK ? sd_png_write(p->drawn, canvas.rgb, canvas.width, canvas.height, err) : s;
}

/* ---- the whole ---- */
sodet_status sd_found_begin(sd_found *f, sodet_err *err)
{
    sodet_status s = f->draw ? sd_make_folders(f->draw, err) : SODET_OK;
    if (s == SODET_OK && f->crop)
        s = sd_make_folders(f->crop, err);
    if (s == SODET_OK && f->form == SD_FOUND_CSV)
        printf("file,label,name,score,x1,y1,x2,y2\n");
    return s;
}

sodet_status sd_found_put(sd_found *f, const sd_found_picture *p, const sodet_detection *x, uint64_t n, sodet_err *err)
{
    uint64_t kept = 0;
    while (kept < n && (double)x[kept].score >= f->threshold)
        kept++;
    f->pictures++;
    f->objects += kept;
    sodet_status s = SODET_OK;
    if (f->form == SD_FOUND_JSON)
        put_json(f, p, x, kept);
    else if (f->form == SD_FOUND_CSV)
        s = put_csv(f, p->file, x, kept, err);
    else
        put_lines(f, p->file, x, kept);
    if (f->out)
        put_coco(f, p, x, kept);
    if (s == SODET_OK && (f->draw || (f->crop && kept)))
        s = load(f, p, err);
    if (s == SODET_OK && f->crop)
        s = crop(f, p, x, kept, err);
    return s == SODET_OK && f->draw ? draw(f, p, x, kept, err) : s;
}

void sd_found_broken(sd_found *f, const char *file, const char *why)
{
    f->broken++;
    fprintf(stderr, "sodet detect: %s\n", why);
    if (f->form != SD_FOUND_JSON)
        return;
    json_picture(f, file);
    sd_text_printf(&f->json, ", \"error\": ");
    sd_json_write_string(&f->json, why);
    sd_text_printf(&f->json, "}");
}

static sodet_status write_out(const sd_found *f, sodet_err *err)
{
    sd_text t = {0};
    const sd_classes *c = f->classes;
    sd_text_printf(&t, "{\"images\": [\n");
    sd_text_join(&t, &f->images);
    sd_text_printf(&t, "\n],\n\"annotations\": [\n");
    sd_text_join(&t, &f->annotations);
    sd_text_printf(&t, "\n],\n\"categories\": [");
    for (uint32_t i = 0; i < c->n; i++) {
        sd_text_printf(&t, "%s{\"id\": %lld, \"name\": ", i ? ", " : "", (long long)c->category_id[i]);
        sd_json_write_string(&t, c->names[i]);
        sd_text_printf(&t, "}");
    }
    sd_text_printf(&t, "]}\n");
    sodet_status s =
        t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: out of memory", f->out) : sd_file_write_atomic(f->out, t.text, t.length, err);
    sd_text_free(&t);
    return s;
}

static sodet_status print_json(const sd_found *f, const char *weights, double seconds, sodet_err *err)
{
    sd_text t = {0};
    sd_text_printf(&t, "{\"weights\": ");
    sd_json_write_string(&t, weights);
    sd_text_printf(&t, ", \"threshold\": ");
    sd_json_write_double(&t, f->threshold);
    sd_text_printf(&t, ", \"seconds\": ");
    sd_json_write_double(&t, seconds);
    sd_text_printf(&t, ", \"broken\": %llu, \"pictures\": [", (unsigned long long)f->broken);
    sd_text_join(&t, &f->json);
    sd_text_printf(&t, "\n]}\n");
    return sd_cli_say(&t, err);
}

sodet_status sd_found_end(sd_found *f, const char *weights, double seconds, sodet_err *err)
{
    sodet_status s = f->out ? write_out(f, err) : SODET_OK;
    return s == SODET_OK && f->form == SD_FOUND_JSON ? print_json(f, weights, seconds, err) : s;
}

void sd_found_free(sd_found *f)
{
    sd_pixels_free(&f->pixels);
    sd_pixels_free(&f->turned);
    sd_pixels_free(&f->large);
    sd_free(f->bytes);
    sd_text_free(&f->json);
    sd_text_free(&f->images);
    sd_text_free(&f->annotations);
}
