/* data/decode_png.c: libpng with errors that return. No gamma or colour management: the numbers in the file are the numbers learnt. */
#include "core/data/decode.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <png.h>

typedef struct reader {
    const uint8_t *at, *end;
    char text[200];
} reader;

/* libpng has no code for it: "Out of memory", "insufficient memory", "Memory allocation failed..". */
static bool no_memory(const reader *r)
{
    return strcasestr(r->text, "memory") != NULL;
}

static void fail(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof r->text, "%s", text);
    png_longjmp(png, 1);
}

static void silent(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void take(png_structp png, png_bytep to, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if ((size_t)(r->end - r->at) < n)
        png_error(png, "the file ends too early");
    memcpy(to, r->at, n);
    r->at += n;
}

sodet_status sd_decode_png(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, sodet_err *err)
{
    reader r = {.at = bytes, .end = bytes + n};
    png_bytep *volatile rows = NULL;
    volatile sodet_status status = SODET_OK;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, silent);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for libpng", name);
    }
    if (setjmp(png_jmpbuf(png))) {
        status = no_memory(&r) ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for libpng", name)
                               : SODET_FAIL(err, SODET_E_INVALID, "%s: a damaged or unsupported PNG: %s", name, r.text);
        goto done;
    }
    png_set_read_fn(png, &r, take);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff); /* the area decides, below */
    png_set_chunk_malloc_max(png, 8u << 20);
    png_read_info(png, info);
    uint32_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    if ((uint64_t)width * height > max_pixels) {
        status = sd_decode_too_large(name, width, height, max_pixels, err);
        goto done;
    }
    png_set_expand(png); /* palette to RGB, 1 2 4 bits to 8, tRNS to alpha */
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width * 3) {
        status = SODET_FAIL(err, SODET_E_INTERNAL, "%s: libpng gives %zu bytes a row where %zu are expected", name,
                            png_get_rowbytes(png, info), (size_t)width * 3);
        goto done;
    }
    status = sd_pixels_size(out, width, height, name, err);
    if (status == SODET_OK && !(rows = sd_alloc(height, sizeof *rows)))
        status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for %u rows", name, height);
    if (status != SODET_OK)
        goto done;
    for (uint32_t y = 0; y < height; y++)
        rows[y] = out->rgb + (size_t)y * width * 3;
    png_read_image(png, rows);
    png_read_end(png, NULL);
done:
    png_destroy_read_struct(&png, &info, NULL);
    sd_free(rows);
    return status;
}

static void put(png_structp png, png_bytep from, size_t n)
{
    sd_text_append(png_get_io_ptr(png), from, n);
}

static void flush(png_structp png)
{
    (void)png;
}

sodet_status sd_png_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height, sodet_err *err)
{
    reader r = {0};
    sd_text bytes = {0};
    volatile sodet_status status = SODET_OK;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &r, fail, silent);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for libpng", path);
    }
    if (setjmp(png_jmpbuf(png))) {
        status = SODET_FAIL(err, no_memory(&r) ? SODET_E_MEMORY : SODET_E_INVALID, "%s: libpng cannot write it: %s", path, r.text);
    } else {
        png_set_write_fn(png, &bytes, put, flush);
        png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                     PNG_FILTER_TYPE_DEFAULT);
        png_set_compression_level(png, 3);
        png_write_info(png, info);
        for (uint32_t y = 0; y < height; y++)
            png_write_row(png, rgb + (size_t)y * width * 3);
        png_write_end(png, NULL);
        status = bytes.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the file's bytes", path)
                              : sd_file_write_atomic(path, bytes.text, bytes.length, err);
    }
    png_destroy_write_struct(&png, &info);
    sd_text_free(&bytes);
    return status;
}
